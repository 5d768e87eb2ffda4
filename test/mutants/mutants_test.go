// SPDX-License-Identifier: Apache-2.0

package mutants

import (
	"errors"
	"go/ast"
	"go/build"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const root = "../.."

// TestMutantsApply fails for a mutant whose place is not there or not the only one, for one that
// does not compile, and for two of a name.
func TestMutantsApply(t *testing.T) {
	files, names := token.NewFileSet(), map[string]bool{}
	imports := importer.ForCompiler(files, "gc", compiledPackages(t))
	for _, m := range All() {
		if names[m.Name] {
			t.Errorf("there are two mutants %q", m.Name)
		}
		names[m.Name] = true
		file, text, err := m.Apply(root)
		if err != nil && !errors.Is(err, ErrAbsent) {
			t.Error(err)
		}
		if strings.HasSuffix(file, ".go") {
			if err := compile(files, imports, filepath.Join(root, file), text); err != nil {
				t.Errorf("the mutant %q does not compile: %v", m.Name, err)
			}
		}
	}
}

// compiledPackages opens what the compiler exports of each package that the program links.
func compiledPackages(t *testing.T) importer.Lookup {
	t.Helper()
	command := exec.CommandContext(t.Context(), "go", "list", "-deps", "-export", "-f", "{{if .Export}}{{.ImportPath}} {{.Export}}{{end}}", ".")
	command.Dir = root
	output, err := command.Output()
	if err != nil {
		t.Fatal(err)
	}
	compiled := map[string]string{}
	for line := range strings.Lines(string(output)) {
		path, file, _ := strings.Cut(strings.TrimSpace(line), " ")
		compiled[path] = file
	}
	return func(path string) (io.ReadCloser, error) { return os.Open(compiled[path]) }
}

// compile checks the types in the package of a file that has another text.
func compile(files *token.FileSet, imports types.Importer, mutated string, text []byte) error {
	pkg, err := build.ImportDir(filepath.Dir(mutated), 0)
	if err != nil {
		return err
	}
	var parsed []*ast.File
	for _, name := range pkg.GoFiles {
		var source any
		if name == filepath.Base(mutated) {
			source = text
		}
		file, err := parser.ParseFile(files, filepath.Join(pkg.Dir, name), source, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		parsed = append(parsed, file)
	}
	_, err = (&types.Config{Importer: imports}).Check(pkg.Dir, files, parsed, nil)
	return err
}
