// SPDX-License-Identifier: Apache-2.0

// The files that a new project gets.

package main

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"text/template"
	"unicode/utf8"
)

// leftOut lists the directories and files that no new project gets, as path.Match patterns: those
// that concern only this project, compare it with others, teach or show it.
var leftOut = []string{
	"tools/newproject", "tools/docs", "docs/claims", "docs/second-kind*", "docs/upgrade.md", "docs/from-upstream.md",
	"docs/tour*", "docs/finalizer*", "tools/image", "hack/image.sh", "docs/releasing.md", "tools/demo", "tools/internal", "docs/timeline.svg",
	"tools/kubectl-foo", "docs/kubectl-foo.md", "docs/kubectl-foo-ui.png",
	"test/bench", "docs/benchmarks*", "docs/kubernetes-versions.md", "hack/next.md", "test/faults", "docs/faults.md", "test/mutants", "test/audit",
	"test/fuzz", "hack/fuzz.sh", "testdata", "test/simulation/explore", "explore_test.go", "docs/verification.md",
	"tools/migrate/kubernetes-issues.md", "hack/codegen/*_test.go", "hack/codegen/testdata", "hack/codegen/targets.mk", "test/thirdparty", "test/e2e/thirdparty_test.go",
}

// extras lists what a lean project does not get either: everything that needs a control plane, and
// the tools for it.
var extras = []string{
	"devcluster", "test/devcluster", "test/e2e", "test/oracle", "test/testcluster", "hack/e2e.sh", "hack/flakes.sh",
	"test/simulation", "simulation_test.go",
	"hack/skew.sh", "hack/next.sh", "hack/targets.mk",
	"test/waiters", "artifacts/monitoring/*_test.go", "artifacts/monitoring/targets.mk",
	"tools/migrate/targets.mk", "tools/migrate/*_test.go",
	"test/chart", "artifacts/chart", "hack/update-chart.sh",
}

// made lists the files that hack/update-codegen.sh generates.
var made = []string{"pkg/generated", "pkg/apis/*/*/zz_generated.*", "pkg/apis/*/*/README.md", "artifacts/crd/*_*.yaml"}

// matches reports whether a file, or a directory that contains it, matches one of the
// patterns.
func matches(file string, patterns []string) bool {
	for name := file; name != "." && name != "/"; name = path.Dir(name) {
		for _, pattern := range patterns {
			if ok, _ := path.Match(pattern, name); ok {
				return true
			}
		}
	}
	return false
}

// treeFile is a file of a project, at a path with slashes.
type treeFile struct {
	path string
	data []byte
	mode fs.FileMode
}

// isText reports whether a file is text, and can be searched for names.
func (f treeFile) isText() bool {
	return utf8.Valid(f.data) && bytes.IndexByte(f.data, 0) < 0
}

// findRoot returns this project's root, given a directory in it.
func findRoot(dir string) (string, error) {
	for at := dir; ; at = filepath.Dir(at) {
		data, err := os.ReadFile(filepath.Join(at, "go.mod"))
		if err == nil && bytes.HasPrefix(data, []byte("module "+sample.Module+"\n")) {
			return at, nil
		}
		if at == filepath.Dir(at) {
			return "", fmt.Errorf("%s is not in a clone of %s: run newproject from there", dir, sample.Module)
		}
	}
}

// readTree reads the files of this project that git tracks or, outside a clone, does not ignore.
func readTree(ctx context.Context, root string) (files []treeFile, err error) {
	arguments := []string{"ls-files", "-z"}
	if _, err := os.Stat(filepath.Join(root, ".git")); err != nil { // unpacked, perhaps within another clone
		repository, err := os.MkdirTemp("", "newproject-")
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(repository)) }()
		if _, err := git(ctx, repository, "init", "--quiet", "--bare"); err != nil {
			return nil, err
		}
		arguments = append([]string{"--git-dir=" + repository, "--work-tree=" + root}, append(arguments, "--others", "--exclude-standard")...)
	}
	out, err := git(ctx, root, arguments...)
	if err != nil {
		return nil, err
	}
	names := strings.Split(strings.TrimSuffix(out, "\x00"), "\x00")
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		full := filepath.Join(root, filepath.FromSlash(name))
		info, err := os.Lstat(full)
		if errors.Is(err, fs.ErrNotExist) {
			continue // deleted, but not yet in the index
		}
		if err != nil {
			return nil, err
		}
		if !info.Mode().IsRegular() { // a symbolic link
			files = append(files, treeFile{name, nil, info.Mode()})
			continue
		}
		data, err := os.ReadFile(full)
		if err != nil {
			return nil, err
		}
		files = append(files, treeFile{name, data, info.Mode().Perm() | 0o600})
	}
	return files, nil
}

// newReadme is the template of the new project's README.md, with the sample's names.
//
//go:embed readme.md.txt
var newReadme string

// blueprint is the source of new projects: files with slots instead of names.
type blueprint struct {
	files  []treeFile
	idents map[string]bool // of the Go files, with slots
}

// newBlueprint turns the files of this project into a blueprint.
func newBlueprint(tree []treeFile, lean bool) (*blueprint, error) {
	gone := omission{patterns: leftOut, targets: map[string]bool{}, tests: map[string]bool{}}
	if lean {
		gone.patterns = slices.Concat(leftOut, extras)
	}
	var readme strings.Builder
	if err := template.Must(template.New("").Parse(newReadme)).Execute(&readme, struct{ Lean bool }{lean}); err != nil {
		return nil, err
	}
	b := &blueprint{idents: map[string]bool{}}
	kept := []treeFile{{"README.md", []byte(readme.String()), 0o644}}
	for _, file := range tree {
		switch {
		case gone.has(file) || matches(file.path, made) || file.path == "README.md":
		case !file.mode.IsRegular():
			return nil, fmt.Errorf("%s is neither a file nor a directory: newproject can't copy it", file.path)
		default:
			kept = append(kept, file)
		}
	}
	for _, file := range kept {
		if path.Ext(file.path) == ".md" {
			file.data = gone.document(file)
		}
		b.files = append(b.files, slotFile(file, b.idents))
	}
	if found := traces(b.files); len(found) > 0 {
		return nil, fmt.Errorf("%d places contain parts of the old names:\n%s", len(found), strings.Join(found[:min(len(found), 20)], "\n"))
	}
	return b, nil
}

// plan makes a new project in memory.
func (b *blueprint) plan(n names, kinds ...addedKind) (*project, error) {
	if err := b.checkProgram(n); err != nil {
		return nil, err
	}
	p := &project{spelling: spellingFor(n, b.idents), hasKinds: len(kinds) > 0}
	seen := map[string]bool{}
	for _, file := range b.files {
		file, err := p.fill(file)
		if err == nil && seen[file.path] {
			err = fmt.Errorf("two files would have the path %s: choose another kind, group or module", file.path)
		}
		if err != nil {
			return nil, err
		}
		seen[file.path] = true
		p.files = append(p.files, file)
	}
	for _, kind := range kinds {
		if err := b.addKind(p, kind); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// omission describes what a new project does not get.
type omission struct {
	patterns []string
	targets  map[string]bool // of the Makefile, left out
	tests    map[string]bool // that remain
}

var (
	targetLine = regexp.MustCompile(`(?m)^([a-z0-9-]+) *:[^=\n]*## `)
	testLine   = regexp.MustCompile(`(?m)^func (?:\(.*?\) )?((?:Test|Fuzz|check)[A-Z]\w*)\(`)
	targetName = regexp.MustCompile("(?m)(?:`(?:[A-Z_]+=\\S+ )?|^(?:\\$ )?)make ([a-z0-9-]+)")
	namedPath  = regexp.MustCompile("(?:`|(?:^|[\\s=(])(?:[a-z]+/))[A-Za-z0-9_.*/-]+|\\]\\(([^)#]+)")
	// A test in a list of a table, with its directory, and one in parentheses.
	namedTest = regexp.MustCompile("(?:[,;] |(\\| ))(?:(?:e2e|internal/\\w+|pkg/apis|test/\\w+) )?`((?:Test|Fuzz|check)[A-Z]\\w*)`|() \\(`((?:Test|Fuzz|check)[A-Z]\\w*)`\\)")
	aboutTest = regexp.MustCompile("^\\| `((?:Test|Fuzz|check)[A-Z]\\w*)`")
	faultRow  = regexp.MustCompile(`(?:; |(\| ))faults [A-G][0-9]+(?:, [A-G][0-9]+)*`)
)

// has reports whether a file is left out. It records the make targets of files that are left out,
// and the tests of the others.
func (o omission) has(file treeFile) bool {
	isGone, names, found := matches(file.path, o.patterns), o.tests, testLine
	if isGone {
		names, found = o.targets, targetLine
	}
	if ext := path.Ext(file.path); isGone && ext == ".mk" || !isGone && ext == ".go" {
		for _, match := range found.FindAllSubmatch(file.data, -1) {
			names[string(match[1])] = true
		}
	}
	return isGone
}

// document returns a document without the table rows, paragraphs, list items and command blocks
// that name a directory, file or make target that is left out, and without the names of such
// tests in tables.
func (o omission) document(file treeFile) []byte {
	var out strings.Builder
	for _, block := range blocksOf(string(file.data)) {
		if test := aboutTest.FindStringSubmatch(block); len(test) > 1 && !o.tests[test[1]] {
			continue
		}
		if strings.HasPrefix(block, "| ") {
			block = o.row(block)
		}
		if !o.isNamedIn(block, path.Dir(file.path)) {
			out.WriteString(block)
		}
	}
	return []byte(emptyLines.ReplaceAllString(out.String(), "\n\n"))
}

// row returns a row of a table without the tests that are left out.
func (o omission) row(row string) string {
	if matches("test/faults", o.patterns) {
		row = faultRow.ReplaceAllString(row, "${1}")
	}
	row = namedTest.ReplaceAllStringFunc(row, func(item string) string {
		match := namedTest.FindStringSubmatch(item)
		if o.tests[match[2]+match[4]] {
			return item
		}
		return match[1]
	})
	return noFirst.ReplaceAllString(row, "| ")
}

var (
	emptyLines = regexp.MustCompile(`\n{3,}`)
	noFirst    = regexp.MustCompile(`\| (?:[,;] | )`)
	// opens matches the first line of a block that may follow another without an empty
	// line.
	opens = regexp.MustCompile("^(\\| |- |[0-9]+\\. |<!-- |#+ |\n)")
)

// blocksOf splits a document into table rows, list items, paragraphs, empty lines, and fenced
// blocks with the comment above them.
func blocksOf(text string) []string {
	var blocks []string
	inFence, joins := false, false
	for line := range strings.Lines(text) {
		isFence := strings.HasPrefix(strings.TrimSpace(line), "```")
		if inFence || joins && !opens.MatchString(line) && !isFence || joins && isFence && strings.HasPrefix(blocks[len(blocks)-1], "<!-- ") {
			blocks[len(blocks)-1] += line
		} else {
			blocks = append(blocks, line)
		}
		inFence = inFence != isFence
		joins = line != "\n" && (inFence || !isFence)
	}
	return blocks
}

// isNamedIn reports whether a block of a document in a directory names anything that is left out.
func (o omission) isNamedIn(block, dir string) bool {
	for _, match := range targetName.FindAllStringSubmatch(block, -1) {
		if o.targets[match[1]] {
			return true
		}
	}
	for _, match := range namedPath.FindAllStringSubmatch(block, -1) {
		name := path.Clean(strings.TrimLeft(match[0], "` \n=("))
		if match[1] != "" {
			name = path.Join(dir, match[1])
		}
		if matches(strings.TrimRight(name, "."), o.patterns) {
			return true
		}
	}
	return false
}
