// SPDX-License-Identifier: Apache-2.0

// Tests of docs/layout.md: its directories and its drawing of imports; of the names of code that
// documents link; of the code that they show; and that every patch applies.

package claims

import (
	"fmt"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	// folder matches a directory in docs/layout.md: at the start of a line, or in the first
	// cell of a table.
	folder = regexp.MustCompile("(?m)^(?:\\| `)?([a-z][a-zA-Z0-9/-]*)/[` ]")
	// arrow matches a line of the drawing of imports.
	arrow = regexp.MustCompile(`(?m)^ +([a-z0-9]+) --> ([a-z0-9 &]+)$`)
)

// TestLayoutHasTheFolders also finds a directory that is gone, at any depth.
func TestLayoutHasTheFolders(t *testing.T) {
	named := map[string]bool{}
	for _, match := range folder.FindAllStringSubmatch(read(t, "docs", "layout.md"), -1) {
		named[match[1]] = true
		if info, err := os.Stat(filepath.Join(moduleRoot, match[1])); err != nil || !info.IsDir() {
			t.Errorf("docs/layout.md names %s, which is not a folder", match[1])
		}
	}
	for _, parent := range []string{"artifacts", "hack", "internal", "pkg", "pkg/process", "pkg/reconcile", "test", "tools"} {
		for _, file := range glob(t, parent+"/*/*") {
			if path := parent + "/" + filepath.Base(filepath.Dir(file)); !named[path] {
				t.Errorf("docs/layout.md lacks the folder %s", path)
				named[path] = true
			}
		}
	}
}

// TestArrowsInLayoutAreTheImports compares the drawing with the imports of the code
// without its tests and their harness. The files of package main except main.go are one box, called
// controller.
func TestArrowsInLayoutAreTheImports(t *testing.T) {
	const drawn, imported = "drawn", "imported"
	arrows, inside := map[string]string{}, regexp.MustCompile("^"+goCommand(t, "list", "-m")+"/(?:internal|pkg/process|pkg/reconcile)/")
	for _, match := range arrow.FindAllStringSubmatch(read(t, "docs", "layout.md"), -1) {
		for to := range strings.SplitSeq(match[2], "&") {
			arrows[match[1]+" --> "+strings.TrimSpace(to)] = drawn
		}
	}
	delete(arrows, "main --> controller") // they are one package
	for _, file := range slices.Concat(glob(t, "internal/*/*.go"), glob(t, "pkg/process/*/*.go"), glob(t, "pkg/reconcile/*/*.go"), glob(t, "*.go")) {
		from := filepath.Base(filepath.Dir(file))
		switch {
		case strings.HasSuffix(file, "_test.go"), from == "reconciletest":
			continue
		case filepath.Base(file) == "main.go" && filepath.Dir(file) == moduleRoot:
			from = "main"
		case filepath.Dir(file) == moduleRoot:
			from = "controller"
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		for _, spec := range must(t, parsed, err).Imports {
			path := strings.Trim(spec.Path.Value, `"`)
			if to := inside.ReplaceAllString(path, ""); to != path {
				if arrow := from + " --> " + to; arrows[arrow] == "" {
					t.Errorf("docs/layout.md does not draw %s", arrow)
				} else {
					arrows[arrow] = imported
				}
			}
		}
	}
	for _, arrow := range slices.Sorted(maps.Keys(arrows)) {
		if arrows[arrow] == drawn {
			t.Errorf("docs/layout.md draws %s, which is not an import", arrow)
		}
	}
}

// TestInternalIsWhatTheControllerLinks fails if internal/ has a package for tests or tools.
func TestInternalIsWhatTheControllerLinks(t *testing.T) {
	linked := goCommand(t, "list", "-deps", ".")
	for path := range strings.FieldsSeq(goCommand(t, "list", "./internal/...")) {
		if !slices.Contains(strings.Fields(linked), path) {
			t.Errorf("the controller does not link %s: it belongs into test/ or tools/", path)
		}
	}
}

// goCommand runs the go command in the root module, and returns what it prints.
func goCommand(t *testing.T, args ...string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), "go", args...)
	command.Dir = moduleRoot
	command.Env = append(os.Environ(), "GOWORK=off")
	out, err := command.Output()
	return strings.TrimSpace(string(must(t, out, err)))
}

// codeLink matches a name that a document links to the file that declares it, in this
// repository or in client-go.
var codeLink = regexp.MustCompile("\\[`([A-Za-z]+)`\\]\\((\\.\\./|https://github\\.com/kubernetes/client-go/blob/v[0-9.]+/)([a-zA-Z0-9_/]+\\.go)\\)")

// clientGoLink matches a link to a file of client-go.
var clientGoLink = regexp.MustCompile(`https://github\.com/kubernetes/client-go/blob/(v[0-9.]+)/`)

// patchedFile matches the name of a file that a patch changes.
var patchedFile = regexp.MustCompile(`(?m)^--- a/(\S+)$`)

func TestLinkedNamesAreInTheirFiles(t *testing.T) {
	version, clientGo, _ := strings.Cut(goCommand(t, "list", "-m", "-f", "{{.Version}}\n{{.Dir}}", "k8s.io/client-go"), "\n")
	for _, document := range []string{"from-upstream.md", "layout.md", "tour.md"} {
		text := read(t, "docs", document)
		links := codeLink.FindAllStringSubmatch(text, -1)
		if len(links) < 10 {
			t.Errorf("docs/%s links %d names, want more", document, len(links))
		}
		for _, link := range links {
			name, folder, file := link[1], moduleRoot, link[3]
			if clientGoLink.MatchString(link[2]) {
				folder = clientGo
			}
			if !declaredIn(t, filepath.Join(folder, file))[name] {
				t.Errorf("docs/%s says that %s is in %s: it is not", document, name, file)
			}
		}
		for _, link := range clientGoLink.FindAllStringSubmatch(text, -1) {
			if link[1] != version {
				t.Errorf("docs/%s links client-go %s, and go.mod has %s", document, link[1], version)
			}
		}
	}
}

// TestDocumentsShowTheirCode looks for the excerpts in some documents, in which "…" stands for
// what is left out, in the files in the directory of the same name. The tour applies each patch.
func TestDocumentsShowTheirCode(t *testing.T) {
	for name, language := range map[string]string{"tour": "diff", "second-child": "go", "second-kind": "go"} {
		document, plain := read(t, "docs", name+".md"), strings.NewReplacer("\n+", "\n")
		code, err := filepath.Glob(filepath.Join(moduleRoot, "docs", name, "*", "*.go"))
		files := append(glob(t, "docs/"+name+"/*.patch"), must(t, code, err)...)
		for _, block := range strings.Split(document, "\n```"+language+"\n")[1:] {
			shown, _, _ := strings.Cut("\n"+block, "```\n")
			parts := strings.Split(plain.Replace(shown), "…\n")
			holds := func(file string) bool {
				text := plain.Replace(read(t, strings.TrimPrefix(file, moduleRoot)))
				return !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(text, part) })
			}
			if !slices.ContainsFunc(files, holds) {
				t.Errorf("docs/%s.md shows code that is not in docs/%[1]s:\n%s", name, shown)
			}
		}
	}
	for _, file := range glob(t, "docs/tour/*.patch") {
		if apply := "git apply docs/tour/" + filepath.Base(file) + "\n"; !strings.Contains(read(t, "docs", "tour.md"), apply) {
			t.Errorf("docs/tour.md lacks %s", apply)
		}
	}
}

// TestPatchesApply tells of an outdated patch at once: the tests that build from one take
// minutes. It leaves out those that are applied, and those of files that a reader creates.
func TestPatchesApply(t *testing.T) {
	for _, file := range glob(t, "docs/*/*.patch") {
		name := strings.TrimPrefix(file, moduleRoot+"/")
		patch := read(t, name)
		t.Run(name, func(t *testing.T) {
			for _, file := range patchedFile.FindAllStringSubmatch(patch, -1) {
				if _, err := os.Stat(filepath.Join(moduleRoot, file[1])); err != nil {
					t.Skipf("%s is not here", file[1])
				}
			}
			if checkPatch(t, patch, "--reverse") == nil {
				t.Skip("This patch is applied")
			}
			if err := checkPatch(t, patch); err != nil {
				t.Errorf("%s no longer applies, create it again: %v", name, err)
			}
		})
	}
}

func checkPatch(t *testing.T, patch string, args ...string) error {
	t.Helper()
	command := exec.CommandContext(t.Context(), "git", append([]string{"apply", "--check"}, args...)...)
	command.Dir, command.Stdin = moduleRoot, strings.NewReader(patch)
	if out, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	return nil
}
