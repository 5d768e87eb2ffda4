// SPDX-License-Identifier: Apache-2.0

// Checks that need the sources: the folder, names that the tree already uses, and old
// names that remain.

package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// checkFolder returns the absolute path of the new project's folder, or an error if a
// project can't be written there.
func checkFolder(dir, root string) (string, error) {
	if dir == "" {
		return "", errors.New("-dir is missing: name the folder for the new project, such as ../widgets")
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	parent, err := filepath.EvalSymlinks(filepath.Dir(dir))
	if err != nil {
		return "", fmt.Errorf("-dir=%s: %w: its parent folder must exist", dir, err)
	}
	dir = filepath.Join(parent, filepath.Base(dir))
	if root, err = filepath.EvalSymlinks(root); err != nil {
		return "", err
	}
	if dir == root || strings.HasPrefix(dir, root+string(filepath.Separator)) {
		return "", fmt.Errorf("-dir=%s: must not be inside this project, %s", dir, root)
	}
	info, err := os.Lstat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return dir, nil
	}
	if err != nil {
		return "", fmt.Errorf("-dir=%s: %w", dir, err)
	}
	if !info.IsDir() {
		return "", fmt.Errorf("-dir=%s: exists and is not a folder: choose one that does not exist or is empty", dir)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", fmt.Errorf("-dir=%s: %w", dir, err)
	}
	if len(entries) > 0 {
		return "", fmt.Errorf("-dir=%s: is not empty (it has %s): choose a folder that does not exist or is empty", dir, entries[0].Name())
	}
	return dir, nil
}

// builtProgram matches the names of the project's programs in scripts and the Makefile.
var builtProgram = regexp.MustCompile(`(?m)(?:^|[^/a-z])bin/([a-z0-9-]+)`)

// checkProgram returns an error if the tree already uses the name of the program.
func checkProgram(n names, kept []treeFile) error {
	if n.Program == "bin" {
		return fmt.Errorf("-module=%s: its last element becomes the name of the program, and must not be bin, where the programs are built", n.Module)
	}
	for _, file := range kept {
		first, _, _ := strings.Cut(file.path, "/")
		if first == n.Program {
			return fmt.Errorf("-module=%s: its last element becomes the name of the program, and must not be %s, which is a folder or file of the project", n.Module, first)
		}
		if file.path != "Makefile" && filepath.Ext(file.path) != ".mk" && file.path != ".ci/run" && filepath.Ext(file.path) != ".sh" {
			continue
		}
		for _, match := range builtProgram.FindAllStringSubmatch(string(file.data), -1) {
			if match[1] == n.Program && match[1] != sample.Program {
				return fmt.Errorf("-module=%s: its last element becomes the name of the program, and must not be %s, which %s already has in bin", n.Module, match[1], file.path)
			}
		}
	}
	return nil
}

// checkScopes returns an error if the kind or the plural conflicts with another name in
// generated code.
func checkScopes(n names, generated map[string]*ast.File) error {
	private := map[string]string{"foo": lowerFirst(n.Kind), "foos": lowerFirst(n.Kinds)}
	for _, name := range slices.Sorted(maps.Keys(generated)) {
		imported := importedNames(generated[name])
		for _, declaration := range generated[name].Decls {
			used := usedNames(declaration)
			for old, spelled := range private {
				if used[old] && (used[spelled] || imported[spelled]) {
					return fmt.Errorf("-kind=%s: %s already has a meaning in generated code such as that of %s: choose another kind or plural, or add a word", n.Kind, spelled, filepath.Base(name))
				}
			}
		}
	}
	return nil
}

func lowerFirst(s string) string { return strings.ToLower(s[:1]) + s[1:] }

func importedNames(file *ast.File) map[string]bool {
	imported := map[string]bool{}
	for _, spec := range file.Imports {
		path := strings.Trim(spec.Path.Value, `"`)
		if spec.Name != nil {
			imported[spec.Name.Name] = true
		} else {
			imported[path[strings.LastIndex(path, "/")+1:]] = true
		}
	}
	return imported
}

// usedNames returns the identifiers in a declaration, except those of fields and methods.
func usedNames(declaration ast.Decl) map[string]bool {
	used := map[string]bool{}
	var look func(node ast.Node) bool
	look = func(node ast.Node) bool {
		switch n := node.(type) {
		case *ast.SelectorExpr:
			ast.Inspect(n.X, look)
			return false
		case *ast.Ident:
			used[n.Name] = true
		}
		return true
	}
	if d, ok := declaration.(*ast.GenDecl); ok && d.Tok == token.IMPORT {
		return used
	}
	ast.Inspect(declaration, look)
	return used
}

// checkGeneratedPaths returns an error if the names would give two generated files the
// same path.
func checkGeneratedPaths(s speller, generated []string) error {
	var paths []string
	for _, name := range generated {
		paths = append(paths, s.text(name))
	}
	slices.Sort(paths)
	for i := 1; i < len(paths); i++ {
		if paths[i] == paths[i-1] {
			return fmt.Errorf("-kind=%s: the generators would write %s twice: choose another, or add a word", s.Kind, paths[i])
		}
	}
	return nil
}

// trace is a place in the new project that still contains a name of the sample.
type trace struct {
	file string
	line int
	text string
}

func (t trace) String() string { return fmt.Sprintf("%s:%d: %s", t.file, t.line, t.text) }

var (
	oldModule  = regexp.MustCompile(`(^|[^a-zA-Z0-9.-])example\.com/sample-controller|com\.example\.sample-controller`)
	oldProgram = regexp.MustCompile(`(?i)sample[-_ .]?controller|\bsamplev[0-9]`)
	oldKind    = regexp.MustCompile(`(?i:foo)[a-z]*`)
)

// others are texts of Kubernetes in generated files.
var others = []string{"foo.example.com/CamelCase", `\"aOption\":\"foo\"`, "'Foo' is the kind for a resource 'foo'"}

// findTraces searches the new project for names of the sample. It ignores those that are
// part of the user's names.
func findTraces(files []treeFile, n names) []trace {
	chosen := chosenNames(n)
	var found []trace
	for _, file := range files {
		if hasTrace(file.path, chosen) {
			found = append(found, trace{file.path, 0, "in the path"})
		}
		if path.Base(file.path) == "go.sum" || !file.isText() {
			continue
		}
		for i, line := range strings.Split(string(file.data), "\n") {
			if hasTrace(line, chosen) {
				found = append(found, trace{file.path, i + 1, strings.TrimSpace(line[:min(len(line), 200)])})
			}
		}
	}
	return found
}

// chosenNames returns all spellings of the new names that look like a trace, the longest
// first.
func chosenNames(n names) []string {
	s := speller{names: n}
	var chosen []string
	for _, name := range []string{n.Module, n.Program, pascal(n.Program), s.programTitle(), strings.ReplaceAll(n.Program, "-", "_"),
		n.Group, n.modelPackage(), n.Package, n.Package + n.Version, n.Kind, n.Kinds, n.Kind + "s", n.Short} {
		if oldKind.MatchString(name) || oldProgram.MatchString(name) {
			chosen = append(chosen, regexp.QuoteMeta(name))
		}
	}
	slices.SortFunc(chosen, func(a, b string) int { return len(b) - len(a) })
	return chosen
}

func hasTrace(line string, chosen []string) bool {
	if !oldKind.MatchString(line) && !oldModule.MatchString(line) && !oldProgram.MatchString(line) {
		return false
	}
	if oldModule.MatchString(line) {
		return true
	}
	for _, text := range others {
		line = strings.ReplaceAll(line, text, "")
	}
	if len(chosen) > 0 {
		line = regexp.MustCompile(`(?i)`+strings.Join(chosen, "|")).ReplaceAllString(line, "0")
	}
	if oldProgram.MatchString(line) {
		return true
	}
	for _, run := range oldKind.FindAllString(line, -1) {
		if !english.MatchString(run) {
			return true
		}
	}
	return false
}
