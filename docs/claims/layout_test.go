// SPDX-License-Identifier: Apache-2.0

// Tests of docs/layout.md: its folders, its drawing of imports and its links.

package claims

import (
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
	// folder matches a folder in docs/layout.md: at the start of a line, or in the first
	// cell of a table.
	folder = regexp.MustCompile("(?m)^(?:\\| `)?([a-z][a-zA-Z0-9/-]*)/[` ]")
	// arrow matches a line of the drawing of imports.
	arrow = regexp.MustCompile(`(?m)^ +([a-z0-9]+) --> ([a-z0-9 &]+)$`)
	// name matches a name that docs/layout.md links to the file that declares it.
	name = regexp.MustCompile("\\[`([A-Za-z]+)`\\]\\(\\.\\./([a-zA-Z0-9_/]+\\.go)\\)")
)

func foldersOfTheLayout(t *testing.T) map[string]bool {
	t.Helper()
	folders := map[string]bool{}
	for _, match := range folder.FindAllStringSubmatch(read(t, "docs", "layout.md"), -1) {
		folders[match[1]] = true
	}
	return folders
}

func TestFoldersInLayoutExist(t *testing.T) {
	for _, path := range slices.Sorted(maps.Keys(foldersOfTheLayout(t))) {
		if info, err := os.Stat(filepath.Join(moduleRoot, path)); err != nil || !info.IsDir() {
			t.Errorf("docs/layout.md names %s, which is not a folder", path)
		}
	}
}

func TestLayoutHasEachFolder(t *testing.T) {
	folders := foldersOfTheLayout(t)
	for _, parent := range []string{"artifacts", "hack", "internal", "pkg", "test", "tools"} {
		children, err := os.ReadDir(filepath.Join(moduleRoot, parent))
		if err != nil {
			t.Fatal(err)
		}
		for _, child := range children {
			if path := parent + "/" + child.Name(); child.IsDir() && !folders[path] {
				t.Errorf("docs/layout.md lacks the folder %s", path)
			}
		}
	}
}

// TestArrowsInLayoutAreTheImports compares the drawing with the imports of the code
// without its tests. The files of package main except main.go are one box, called
// controller.
func TestArrowsInLayoutAreTheImports(t *testing.T) {
	drawn, imported := map[string]bool{}, map[string]bool{}
	for _, match := range arrow.FindAllStringSubmatch(read(t, "docs", "layout.md"), -1) {
		for to := range strings.SplitSeq(match[2], "&") {
			drawn[match[1]+" --> "+strings.TrimSpace(to)] = true
		}
	}
	delete(drawn, "main --> controller") // they are one package
	files, err := filepath.Glob(filepath.Join(moduleRoot, "internal", "*", "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("found no code in internal: %v", err)
	}
	root, err := filepath.Glob(filepath.Join(moduleRoot, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	inside := modulePath(t) + "/internal/"
	for _, file := range append(files, root...) {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		from := filepath.Base(filepath.Dir(file))
		if isOfAKind(from) {
			continue
		}
		switch {
		case file == filepath.Join(moduleRoot, "main.go"):
			from = "main"
		case filepath.Dir(file) == moduleRoot:
			from = "controller"
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, spec := range parsed.Imports {
			if to, ok := strings.CutPrefix(strings.Trim(spec.Path.Value, `"`), inside); ok && !isOfAKind(to) {
				imported[from+" --> "+to] = true
			}
		}
	}
	for _, edge := range slices.Sorted(maps.Keys(imported)) {
		if !drawn[edge] {
			t.Errorf("docs/layout.md does not draw %s", edge)
		}
	}
	for _, edge := range slices.Sorted(maps.Keys(drawn)) {
		if !imported[edge] {
			t.Errorf("docs/layout.md draws %s, which is not an import", edge)
		}
	}
}

// isOfAKind reports whether a package of internal is the controller of a kind beside Foo,
// with a plan of its own. The drawing has only that of Foo.
func isOfAKind(name string) bool {
	_, err := os.Stat(filepath.Join(moduleRoot, "internal", name, "plan"))
	return err == nil
}

func TestLinkedNamesInLayoutAreInTheirFiles(t *testing.T) {
	links := name.FindAllStringSubmatch(read(t, "docs", "layout.md"), -1)
	if len(links) < 10 {
		t.Fatalf("docs/layout.md links %d names, want more", len(links))
	}
	for _, link := range links {
		if !declaredIn(t, filepath.Join(moduleRoot, link[2]))[link[1]] {
			t.Errorf("docs/layout.md says that %s is in %s: it is not", link[1], link[2])
		}
	}
}

// TestInternalIsWhatTheControllerLinks fails if internal/ has a package for tests or tools.
func TestInternalIsWhatTheControllerLinks(t *testing.T) {
	linked := goList(t, "-deps", ".")
	for path := range strings.FieldsSeq(goList(t, "./internal/...")) {
		if part, _, _ := strings.Cut(strings.TrimPrefix(path, modulePath(t)+"/internal/"), "/"); !isOfAKind(part) && !slices.Contains(strings.Fields(linked), path) {
			t.Errorf("the controller does not link %s: it belongs into test/ or tools/", path)
		}
	}
}

func modulePath(t *testing.T) string {
	t.Helper()
	return goList(t, "-m")
}

func goList(t *testing.T, args ...string) string {
	t.Helper()
	return goCommand(t, append([]string{"list"}, args...)...)
}

// goCommand runs the go command in the root module, and returns what it prints.
func goCommand(t *testing.T, args ...string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), "go", args...)
	command.Dir = moduleRoot
	command.Env = append(os.Environ(), "GOWORK=off")
	out, err := command.Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}
