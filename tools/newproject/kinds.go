// SPDX-License-Identifier: Apache-2.0

// The files of an added kind: copies of the first kind's with other names, and templates for
// what is particular to a kind.

package main

import (
	"embed"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path"
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

// kindFiles are the files of an added kind, by their templates.
var kindFiles = map[string]string{
	"types.go.txt":     "pkg/apis/samplecontroller/v1alpha1/foo_types.go",
	"owner.go.txt":     "pkg/apis/samplecontroller/v1alpha1/foo_owner.go",
	"plan.go.txt":      "internal/plan/foo_kind.go",
	"harness.go.txt":   "test/footest/foo_kind.go",
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
	child, err := childOf(k.Child)
	if err != nil {
		return err
	}
	w := &kindWriter{speller: speller{names: k.names(first.names), first: &first}, src: src, child: child, project: p}
	for _, add := range []func() error{w.checkNames, w.fillTemplates, w.editFiles} {
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

// checkNames returns an error if the names of the kind conflict with those of generated code.
func (w *kindWriter) checkNames() error { return checkScopes(w.names, w.src.clients) }

// add adds a file, unless there is one of this path, or another file of its folder declares
// something of the same name.
func (w *kindWriter) add(file treeFile) error {
	var others []treeFile
	for _, other := range w.project.files {
		if strings.EqualFold(other.path, file.path) {
			return fmt.Errorf("there is a file %s already: choose another kind", file.path)
		}
		if path.Ext(other.path) == ".go" && path.Dir(other.path) == path.Dir(file.path) {
			others = append(others, other)
		}
	}
	if path.Ext(file.path) == ".go" {
		taken, err := declaredIn(others...)
		if err != nil {
			return err
		}
		added, err := declaredIn(file)
		if err != nil {
			return err
		}
		for m := range added {
			if taken[m] {
				return fmt.Errorf("%s has a %s already: choose another kind, or add a word", path.Dir(file.path), m.name)
			}
		}
	}
	w.project.files = append(w.project.files, file)
	return nil
}

// declaredIn returns what Go files of a package declare.
func declaredIn(files ...treeFile) (map[member]bool, error) {
	p := &goPackage{names: map[string]bool{}, declared: map[member]bool{}}
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file.path, file.data, 0)
		if err != nil {
			return nil, err
		}
		p.add(parsed)
	}
	return p.declared, nil
}

// fillTemplates adds the files of the templates.
func (w *kindWriter) fillTemplates() error {
	for name, to := range kindFiles {
		text, err := w.fill(name)
		if err != nil {
			return err
		}
		if name == "owner.go.txt" {
			decoding, err := w.decoding()
			if err != nil {
				return err
			}
			text += decoding
		}
		to = w.text(to)
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
		Article, First string
	}{w.child, strings.TrimSuffix(article, " "+w.child.Kind), w.first.Kind})
	return out.String(), err
}

// decoding returns the methods that decode the status, which are as those of the first kind.
func (w *kindWriter) decoding() (string, error) {
	const name = "pkg/apis/samplecontroller/v1alpha1/decode.go"
	i := slices.IndexFunc(w.src.kept, func(file treeFile) bool { return file.path == name })
	if i < 0 {
		return "", nil
	}
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, name, w.src.kept[i].data, parser.ParseComments)
	if err != nil {
		return "", err
	}
	var methods strings.Builder
	for _, declaration := range file.Decls {
		if method, ok := declaration.(*ast.FuncDecl); ok && method.Recv != nil {
			fmt.Fprintf(&methods, "\n%s\n", w.src.kept[i].data[set.Position(method.Doc.Pos()).Offset:set.Position(method.End()).Offset])
		}
	}
	return methods.String(), nil
}
