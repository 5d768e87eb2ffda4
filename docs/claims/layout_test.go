// SPDX-License-Identifier: Apache-2.0

// Tests of docs/layout.md: its folders and its drawing of imports.

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
)

// TestLayoutHasTheFolders also finds a folder that is gone, at any depth.
func TestLayoutHasTheFolders(t *testing.T) {
	named := map[string]bool{}
	for _, match := range folder.FindAllStringSubmatch(read(t, "docs", "layout.md"), -1) {
		named[match[1]] = true
		if info, err := os.Stat(filepath.Join(moduleRoot, match[1])); err != nil || !info.IsDir() {
			t.Errorf("docs/layout.md names %s, which is not a folder", match[1])
		}
	}
	for _, parent := range []string{"artifacts", "hack", "internal", "pkg", "test", "tools"} {
		for _, file := range glob(t, parent+"/*/*") {
			if path := parent + "/" + filepath.Base(filepath.Dir(file)); !named[path] {
				t.Errorf("docs/layout.md lacks the folder %s", path)
				named[path] = true
			}
		}
	}
}

// TestArrowsInLayoutAreTheImports compares the drawing with the imports of the code
// without its tests. The files of package main except main.go are one box, called
// controller.
func TestArrowsInLayoutAreTheImports(t *testing.T) {
	const drawn, imported = "drawn", "imported"
	arrows, inside := map[string]string{}, goCommand(t, "list", "-m")+"/internal/"
	for _, match := range arrow.FindAllStringSubmatch(read(t, "docs", "layout.md"), -1) {
		for to := range strings.SplitSeq(match[2], "&") {
			arrows[match[1]+" --> "+strings.TrimSpace(to)] = drawn
		}
	}
	delete(arrows, "main --> controller") // they are one package
	for _, file := range append(glob(t, "internal/*/*.go"), glob(t, "*.go")...) {
		from := filepath.Base(filepath.Dir(file))
		switch {
		case strings.HasSuffix(file, "_test.go"):
			continue
		case filepath.Base(file) == "main.go" && filepath.Dir(file) == moduleRoot:
			from = "main"
		case filepath.Dir(file) == moduleRoot:
			from = "controller"
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		for _, spec := range must(t, parsed, err).Imports {
			if _, to, ok := strings.Cut(strings.Trim(spec.Path.Value, `"`), inside); ok {
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
