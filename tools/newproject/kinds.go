// SPDX-License-Identifier: Apache-2.0

// The files of an added kind: copies of the first kind's with other names, and templates for
// what is particular to a kind.

package main

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"text/template"
)

// addedKind is a kind of a project beside its first one.
type addedKind struct {
	Kind   string `json:"kind"`
	Plural string `json:"plural,omitempty"`
	Short  string `json:"short,omitempty"`
	// Child is what an object of the kind owns, as GROUP/VERSION/Kind.
	Child string `json:"child"`
}

// The templates of an added kind, with the sample's names.
//
//go:embed kind/*.txt
var kindTemplates embed.FS

// copies are the files of the first kind that an added kind gets copies of, as path.Match
// patterns, and the folders of the copies.
var copies = []struct{ from, to string }{
	{"controller.go", "internal/foo"}, {"children.go", "internal/foo"}, {"handlers.go", "internal/foo"}, {"writes.go", "internal/foo"},
	{"kinds_test.go", "internal/foo"}, {"fixture_test.go", "internal/foo"}, {"simulation_test.go", "internal/foo"},
	{"fuzz_test.go", "internal/foo"},
	{"internal/plan/fuzz_*_test.go", "internal/foo/plan"}, {"internal/plan/rows_test.go", "internal/foo/plan"},
	{"internal/plan/*.go", "internal/foo/plan"},
	{"tools/preview/*.go", "internal/foo/preview"}, {"tools/preview/previewtest/*.go", "internal/foo/preview/previewtest"},
	{"internal/reporting/*.go", "internal/foo/reporting"},
}

// particular are the files among these that concern only the first kind.
var particular = []string{"internal/plan/deployment*.go", "internal/reporting/counts.go"}

// templates are the other files of an added kind.
var templates = map[string]string{
	"types.go.txt":     "pkg/apis/samplecontroller/v1alpha1/foo_types.go",
	"child.go.txt":     "internal/foo/plan/<<.File>>.go",
	"counts.go.txt":    "internal/foo/reporting/counts.go",
	"harness.go.txt":   "test/footest/foo.go",
	"policy.go.txt":    "test/policy/foo_test.go",
	"example.yaml.txt": "artifacts/examples/example-foo.yaml",
}

// kindWriter writes the files of an added kind.
type kindWriter struct {
	speller
	src     *sources
	child   childType
	project *project
}

// addKind adds the files of a kind to a project, and what other files say of it.
func (src *sources) addKind(p *project, first speller, k addedKind) error {
	folder := "internal/" + strings.ToLower(k.Kind)
	if slices.ContainsFunc(p.files, func(file treeFile) bool { return strings.HasPrefix(file.path, folder+"/") }) {
		return fmt.Errorf("-add-kind=%s: its controller would be in %s, which every project has: choose another kind, or add a word", k.Kind, folder)
	}
	child, err := childOf(k.Child)
	if err != nil {
		return err
	}
	w := &kindWriter{speller: speller{names: k.names(first.names), first: &first}, src: src, child: child, project: p}
	if err := w.chooseSpelling(); err != nil {
		return fmt.Errorf("-add-kind=%s: %w", k.Kind, err)
	}
	for _, add := range []func() error{w.copyFiles, w.fillTemplates, w.copyDecoding, w.editFiles} {
		if err := add(); err != nil {
			return fmt.Errorf("-add-kind=%s: %w", k.Kind, err)
		}
	}
	return nil
}

// names returns the names of a project with this kind in place of the first one.
func (k addedKind) names(n names) names {
	return deriveNames(request{Module: n.Module, Group: n.Group, Version: n.Version, Kind: k.Kind, Plural: k.Plural, Short: k.Short})
}

// chooseSpelling chooses other spellings for unexported identifiers if regular ones are
// taken in the copies. It returns an error if names conflict with others nevertheless.
func (w *kindWriter) chooseSpelling() error {
	if err := checkScopes(w.names, w.src.clients); err != nil {
		return err
	}
	copied := map[string]*ast.File{}
	for name, file := range w.src.parsed {
		if i := copyOf(name); i >= 0 {
			copied[copies[i].to+"/"+path.Base(name)] = file
		}
	}
	var err error
	for _, w.suffixed = range []bool{false, true} {
		err = nil
		for _, p := range packagesOf(copied) {
			err = errors.Join(err, p.checkHidden(w.speller))
		}
		if err == nil {
			return nil
		}
	}
	return err
}

// copyOf returns which of the copies a file is, or -1.
func copyOf(name string) int {
	if matches(name, particular) {
		return -1
	}
	i := slices.IndexFunc(copies, func(c struct{ from, to string }) bool { ok, _ := path.Match(c.from, name); return ok })
	if i >= 0 && strings.HasSuffix(name, "_test.go") && !strings.HasSuffix(copies[i].from, "_test.go") {
		return -1
	}
	return i
}

// add adds a file, unless there is one of this path.
func (w *kindWriter) add(file treeFile) error {
	if slices.ContainsFunc(w.project.files, func(other treeFile) bool { return strings.EqualFold(other.path, file.path) }) {
		return fmt.Errorf("there is a %s already: choose another kind", file.path)
	}
	w.project.files = append(w.project.files, file)
	return nil
}

// copyFiles adds the copies.
func (w *kindWriter) copyFiles() error {
	tests := map[string][]treeFile{} // by folder
	for _, file := range w.src.kept {
		i := copyOf(file.path)
		if i < 0 {
			continue
		}
		name := copies[i].to + "/" + path.Base(file.path)
		if strings.HasSuffix(name, "_test.go") {
			file.path, file.data = name, []byte(w.forOwner(string(file.data)))
			tests[copies[i].to] = append(tests[copies[i].to], file)
			continue
		}
		data, err := w.copied(name, file.data)
		if err != nil {
			return err
		}
		if err := w.add(treeFile{w.text(name), data, file.mode}); err != nil {
			return err
		}
	}
	for _, folder := range slices.Sorted(maps.Keys(tests)) {
		needed, err := usedBy(tests[folder], isTest)
		if err != nil {
			return err
		}
		for _, file := range needed {
			data, err := w.copied(file.path, file.data)
			if err == nil {
				err = w.add(treeFile{w.text(file.path), data, file.mode})
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// copied returns a Go file of the first kind as one of the added kind.
func (w *kindWriter) copied(name string, source []byte) ([]byte, error) {
	text := string(source)
	for _, part := range []string{"internal/plan", "internal/reporting", "tools/preview", "tools/preview/previewtest"} {
		_, inside, _ := strings.Cut(part, "/")
		text = strings.ReplaceAll(text, sample.Module+"/"+part+"\"", sample.Module+"/internal/foo/"+inside+"\"")
	}
	var err error
	switch path.Base(name) {
	case "controller.go":
		text, err = replace(text, "Config.Image", "")
		text = strings.Replace(text, "\npackage main\n", "\n// Package foo is the controller of Foos. It works as that of the first kind.\npackage main\n", 1)
	case "table.go": // of tools/preview
		var table string
		if table, err = w.fill("preview.go.txt"); err == nil {
			text, err = replace(text, ".Table", table)
		}
	case "previewtest.go":
		text = w.forOwner(text)
	case "children.go":
		var table string
		if table, err = w.fill("table.go.txt"); err == nil {
			text, err = replace(text, "Controller.table", table)
		}
		text = strings.Replace(text, `appsv1 "k8s.io/api/apps/v1"`, w.child.Alias+" \""+w.child.Package+"\"", 1)
	}
	if err != nil {
		return nil, err
	}
	data, err := w.goFile(name, []byte(text))
	return bytes.Replace(data, []byte("\npackage main\n"), []byte("\npackage "+w.singular()+"\n"), 1), err
}

// fillTemplates adds the files of the templates.
func (w *kindWriter) fillTemplates() error {
	for name, to := range templates {
		text, err := w.fill(name)
		if err != nil {
			return err
		}
		to = w.text(strings.ReplaceAll(to, "<<.File>>", strings.ToLower(w.child.Kind)))
		data := []byte(w.text(text))
		if path.Ext(to) == ".go" {
			if data, err = withoutImports(w.src.license() + text); err == nil {
				data, err = w.goFile(to, data)
			}
		}
		if err != nil {
			return err
		}
		if err := w.add(treeFile{to, data, 0o644}); err != nil {
			return err
		}
	}
	return nil
}

// license returns the line at the top of each Go file.
func (src *sources) license() string {
	for _, file := range src.kept {
		if file.path == "controller.go" {
			license, _, _ := strings.Cut(string(file.data), "\n")
			return license + "\n\n"
		}
	}
	return ""
}

// fill executes a template. It returns the text with the sample's names.
func (w *kindWriter) fill(name string) (string, error) {
	text, err := kindTemplates.ReadFile("kind/" + name)
	if err != nil {
		return "", err
	}
	t, err := template.New(name).Delims("<<", ">>").Parse(string(text))
	if err != nil {
		return "", err
	}
	article := speller{names: names{Kind: w.child.Kind}}.text("a Foo")
	var out strings.Builder
	err = t.Execute(&out, struct {
		childType
		Article, GoPackage, First, Firsts string
	}{w.child, strings.TrimSuffix(article, " "+w.child.Kind), w.singular(), w.first.Kind, w.first.Kinds})
	return out.String(), err
}

// copyDecoding adds the decoding of the status, which is methods.
func (w *kindWriter) copyDecoding() error {
	const name, to = "pkg/apis/samplecontroller/v1alpha1/decode.go", "pkg/apis/samplecontroller/v1alpha1/foo_decode.go"
	i := slices.IndexFunc(w.src.kept, func(file treeFile) bool { return file.path == name })
	if i < 0 {
		return nil
	}
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, name, w.src.kept[i].data, parser.ParseComments)
	if err != nil {
		return err
	}
	text := w.src.license() + "// Decoding of a Foo's status, as that of the first kind: see decode.go.\n\npackage v1alpha1\n\nimport (\n" +
		"\tencodingjson \"encoding/json\"\n\n\tmetav1 \"k8s.io/apimachinery/pkg/apis/meta/v1\"\n\t\"k8s.io/apimachinery/pkg/util/json\"\n)\n"
	var methods strings.Builder
	for _, declaration := range file.Decls {
		if method, ok := declaration.(*ast.FuncDecl); ok && method.Recv != nil {
			fmt.Fprintf(&methods, "\n%s\n", w.src.kept[i].data[set.Position(method.Doc.Pos()).Offset:set.Position(method.End()).Offset])
		}
	}
	data, err := w.goFile(to, []byte(text+methods.String()))
	if err != nil {
		return err
	}
	return w.add(treeFile{w.text(to), data, 0o644})
}

// image matches the field of a Config that only the first kind has.
var image = regexp.MustCompile(`, Image: [a-zA-Z.]+`)

// ownerOfWorld matches the Foo of a footest.FuzzWorld.
var ownerOfWorld = regexp.MustCompile(`\b(w|fuzzed|live)\.Foo\b`)

// forOwner returns a test file that asks a footest.OwnerRow for the kinds of children.
func (w *kindWriter) forOwner(text string) string {
	text = ownerOfWorld.ReplaceAllString(text, "$1.Subject()")
	text = strings.NewReplacer("preview.Table(footest.DefaultImage)", "preview.Table()", "*footest.FuzzWorld", "*footest.FuzzWorldOf[*samplev1alpha1.Foo]",
		"footest.NewFuzzWorld(", "footest.NewFuzzWorldOf[*samplev1alpha1.Foo](", "rowOf(shipped)", "rowOf("+w.child.Kind+"())", "footest.FooKind", "footest.FooOwner.Kind", "footest.Kinds", "footest.FooOwner.Kinds", "footest.Primary", "footest.FooOwner.Kinds[0]").Replace(text)
	return image.ReplaceAllString(text, "")
}
