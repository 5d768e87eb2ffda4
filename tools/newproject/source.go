// SPDX-License-Identifier: Apache-2.0

// The files of this project that a new one gets.

package main

import (
	_ "embed"
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"regexp"
	"slices"
	"strings"
	"text/template"
)

// leftOut are the folders and files that no new project gets, as path.Match patterns:
// comparisons of this project with others, what concerns only this project, and this
// program.
var leftOut = []string{
	"tools/newproject", "tools/docs",
	"docs/benchmarks*", "docs/faults.md", "docs/tour*", "docs/upgrade.md", "docs/second-kind.md", "docs/claims/tour_test.go",
	"docs/verification.md", "docs/state-graph.svg",
	"test/bench", "test/faults", "test/thirdparty", "test/mutants/mutants_test.go",
	"test/e2e/thirdparty_test.go",
}

// extras are what a lean project does not get either.
var extras = []string{
	"test/simulation", "test/mutants", "simulation_test.go",
	"tools/demo", "tools/audit", "tools/internal", "docs/timeline.svg",
	"hack/skew.sh", "hack/targets.mk",
	"tools/image", "hack/image.sh", "docs/releasing.md",
	"test/chart", "artifacts/chart", "hack/update-chart.sh",
	"tools/kubectl-foo", "docs/kubectl-foo.md", "docs/kubectl-foo-ui.png",
	"docs/claims",
}

// made are the files that hack/update-codegen.sh generates.
var made = []string{"pkg/generated", "pkg/apis/*/*/zz_generated.*", "artifacts/crd/*_*.yaml"}

// matches reports whether a file, or a folder that contains it, matches one of the
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

const readmeFile = "README.md"

// newReadme is the new project's README.md, with the sample's names, as a template that
// gets the request.
//
//go:embed readme.md.txt
var newReadme string

// sources holds the files of this project that are read for a new one.
type sources struct {
	kept      []treeFile           // files that the new project gets
	parsed    map[string]*ast.File // the Go files of kept
	generated map[string]bool      // paths of files that the new project generates itself
	clients   map[string]*ast.File // the Go files of generated
}

// readSources sorts and parses the files of this project.
func readSources(tree []treeFile, lean bool) (*sources, error) {
	src := &sources{parsed: map[string]*ast.File{}, generated: map[string]bool{}, clients: map[string]*ast.File{}}
	gone := omission{leftOut, map[string]bool{}, lean}
	if lean {
		gone.patterns = slices.Concat(gone.patterns, extras)
	}
	gone.findTargets(tree)
	var readme strings.Builder
	if err := template.Must(template.New(readmeFile).Parse(newReadme)).Execute(&readme, struct{ Lean bool }{lean}); err != nil {
		return nil, err
	}
	src.kept = append(src.kept, treeFile{readmeFile, []byte(readme.String()), 0o644})
	for _, file := range tree {
		parsed := src.parsed
		switch {
		case matches(file.path, gone.patterns) || file.path == readmeFile: // newReadme replaces it
			continue
		case matches(file.path, made):
			src.generated[file.path], parsed = true, src.clients
		case path.Ext(file.path) == ".md":
			file.data = gone.document(file)
			fallthrough
		default:
			src.kept = append(src.kept, file)
		}
		if path.Ext(file.path) != ".go" {
			continue
		}
		syntax, err := parser.ParseFile(token.NewFileSet(), file.path, file.data, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		parsed[file.path] = syntax
	}
	return src, nil
}

// plan makes the new project in memory.
func (src *sources) plan(n names, kinds ...addedKind) (*project, error) {
	s, err := src.spellerFor(n)
	if err != nil {
		return nil, err
	}
	files, err := s.rename(src.kept)
	if err != nil {
		return nil, err
	}
	p := &project{names: n, files: files, hasKinds: len(kinds) > 0}
	for _, kind := range kinds {
		if err := src.addKind(p, s, kind); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// project is the new project before anything is generated.
type project struct {
	names
	files    []treeFile
	hasKinds bool // beside the first one
}

// omission is what a new project does not get.
type omission struct {
	patterns []string
	targets  map[string]bool // of the Makefile
	lean     bool
}

var (
	targetLine = regexp.MustCompile(`(?m)^([a-z0-9-]+) *:[^=\n]*## `)
	targetName = regexp.MustCompile("(?m)(?:`(?:[A-Z_]+=\\S+ )?|^(?:\\$ )?)make ([a-z0-9-]+)")
	namedPath  = regexp.MustCompile("(?:`|(?:^|[\\s=])(?:[a-z]+/))[A-Za-z0-9_.*/-]+|\\]\\(([^)#]+)")
)

// findTargets finds the targets of the Makefile that are left out.
func (o omission) findTargets(tree []treeFile) {
	for _, file := range tree {
		if path.Base(file.path) != "targets.mk" || !matches(file.path, o.patterns) {
			continue
		}
		for _, match := range targetLine.FindAllSubmatch(file.data, -1) {
			o.targets[string(match[1])] = true
		}
	}
}

// document returns a document without the rows of tables that name a folder, a file or a
// target of the Makefile that is left out. A lean project also loses such paragraphs,
// items of lists and blocks of commands.
func (o omission) document(file treeFile) []byte {
	var out strings.Builder
	for _, block := range blocksOf(string(file.data)) {
		if !o.lean && !strings.HasPrefix(block, "| ") || !o.isNamedIn(block, path.Dir(file.path)) {
			out.WriteString(block)
		}
	}
	return []byte(emptyLines.ReplaceAllString(out.String(), "\n\n"))
}

var (
	emptyLines = regexp.MustCompile(`\n{3,}`)
	// opens matches the first line of a block that may follow another without an empty
	// line.
	opens = regexp.MustCompile("^(\\| |- |[0-9]+\\. |<!-- |#+ |\n)")
)

// blocksOf splits a document into rows of tables, items of lists, paragraphs, empty lines
// and fenced blocks with the comment above them.
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

// isNamedIn reports whether a block of a document in a folder names what is left out.
func (o omission) isNamedIn(block, folder string) bool {
	for _, match := range targetName.FindAllStringSubmatch(block, -1) {
		if o.targets[match[1]] {
			return true
		}
	}
	for _, match := range namedPath.FindAllStringSubmatch(block, -1) {
		name := path.Clean(strings.TrimLeft(match[0], "` \n="))
		if match[1] != "" {
			name = path.Join(folder, match[1])
		}
		if matches(strings.TrimRight(name, "."), o.patterns) {
			return true
		}
	}
	return false
}

// request is what the user asks for. Plural and Short may be empty. The new project
// records it in stateFile.
type request struct {
	Module  string `json:"module"`
	Group   string `json:"group"`
	Version string `json:"version"`
	Kind    string `json:"kind"`
	Plural  string `json:"plural,omitempty"`
	Short   string `json:"short,omitempty"`
	Lean    bool   `json:"lean,omitempty"`
	// Kinds are those that were added later.
	Kinds []addedKind `json:"kinds,omitempty"`
	Dir   string      `json:"-"`
}
