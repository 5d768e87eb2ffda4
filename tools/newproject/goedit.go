/*
Copyright The Sample Controller Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

// Writing Go files with the new names.

package main

import (
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"path"
	"slices"
	"strconv"
	"strings"
)

// goFile is a parsed Go file of the sample.
type goFile struct {
	path   string
	source []byte
	set    *token.FileSet
	syntax *ast.File
}

func parseGo(path string, source []byte) (*goFile, error) {
	f := &goFile{path: path, source: source, set: token.NewFileSet()}
	var err error
	f.syntax, err = parser.ParseFile(f.set, path, source, parser.ParseComments|parser.SkipObjectResolution)
	return f, err
}

// edit replaces source[start:end] by a text.
type edit struct {
	start, end int
	text       string
}

// goWriter writes Go files with the new names.
type goWriter struct {
	speller
	local map[string]string // identifiers of the package whose regular new names are taken, and their other names
	edits []edit
	file  *goFile
	alias map[string]string // this project's packages: their old and new names in the file
}

// rewrite returns the file with the new names, formatted.
func (s speller) rewrite(file *goFile, local map[string]string) ([]byte, error) {
	w := &goWriter{speller: s, file: file, local: local, alias: map[string]string{}}
	w.imports()
	w.packageClause()
	for _, group := range file.syntax.Comments {
		w.put(group, s.markers(s.text(w.text(group), comment)))
	}
	ast.Inspect(file.syntax, w.node)
	out, err := format.Source(w.apply())
	if err != nil {
		return nil, fmt.Errorf("%s, with the new names: %w", file.path, err)
	}
	return out, nil
}

// packageClause renames a package that has the name of its folder.
func (w *goWriter) packageClause() {
	if old := w.file.syntax.Name; old.Name == path.Base(path.Dir(w.file.path)) {
		w.put(old, path.Base(w.speller.text(path.Dir(w.file.path), prose)))
	}
}

// imports renames the packages of this project. Their names in this file depend on the
// packages, not on words.
func (w *goWriter) imports() {
	for _, spec := range w.file.syntax.Imports {
		old, err := strconv.Unquote(spec.Path.Value)
		if err != nil || old != sample.Module && !strings.HasPrefix(old, sample.Module+"/") {
			continue
		}
		renamed := w.Module + w.speller.text(strings.TrimPrefix(old, sample.Module), prose)
		w.put(spec.Path, strconv.Quote(renamed))
		if spec.Name == nil {
			w.alias[path.Base(old)] = path.Base(renamed)
			continue
		}
		w.alias[spec.Name.Name] = w.localName(spec.Name.Name)
		w.put(spec.Name, w.alias[spec.Name.Name])
	}
}

// importName returns the new name of an imported package of this project: fooinformers
// becomes widgetinformers.
func (s speller) importName(alias string) string {
	switch {
	case strings.HasPrefix(alias, "foo") && alias == strings.ToLower(alias):
		return s.singular() + strings.TrimPrefix(alias, "foo")
	case strings.HasSuffix(alias, "foo"):
		return strings.TrimSuffix(alias, "foo") + s.singular()
	case alias == sample.Version:
		return s.Version
	}
	return s.identifier(alias)
}

// localName returns the new name of an imported package in this file.
func (w *goWriter) localName(name string) string {
	if other, ok := w.local[name]; ok {
		return other
	}
	return w.importName(name)
}

// node adds the edits of one node of the syntax tree.
func (w *goWriter) node(node ast.Node) bool {
	switch n := node.(type) {
	case *ast.ImportSpec:
		return false
	case *ast.SelectorExpr:
		w.selector(n)
		return false
	case *ast.Ident:
		if n != w.file.syntax.Name {
			w.identifier(n)
		}
	case *ast.BasicLit:
		if n.Kind == token.STRING {
			w.put(n, w.literal(n.Value))
		}
	}
	return true
}

// selector renames X.Sel. X may be a package, and Sel the version of a group of clients.
func (w *goWriter) selector(n *ast.SelectorExpr) {
	if x, ok := n.X.(*ast.Ident); ok && w.alias[x.Name] != "" {
		w.put(x, w.alias[x.Name])
	} else {
		ast.Inspect(n.X, w.node)
	}
	if n.Sel.Name == capitalized(sample.Version) && strings.HasSuffix(w.text(n.X), "."+sample.GoGroup+"()") {
		w.put(n.Sel, w.title())
		return
	}
	w.identifier(n.Sel)
}

func (w *goWriter) identifier(n *ast.Ident) {
	if other, ok := w.local[n.Name]; ok {
		w.put(n, other)
		return
	}
	w.put(n, w.speller.identifier(n.Name))
}

// literal rewrites a string literal. The sample's short name counts as such only if it is
// the whole string or the last word.
func (w *goWriter) literal(value string) string {
	body := value[1 : len(value)-1]
	if body == sample.Short || strings.HasSuffix(body, " "+sample.Short) {
		return value[:len(value)-1-len(sample.Short)] + w.shortest() + value[len(value)-1:]
	}
	return w.speller.text(value, prose)
}

// text returns the source of a node.
func (w *goWriter) text(node ast.Node) string {
	return string(w.file.source[w.offset(node.Pos()):w.offset(node.End())])
}

func (w *goWriter) offset(pos token.Pos) int { return w.file.set.Position(pos).Offset }

func (w *goWriter) put(node ast.Node, text string) {
	w.edits = append(w.edits, edit{w.offset(node.Pos()), w.offset(node.End()), text})
}

func (w *goWriter) apply() []byte {
	slices.SortFunc(w.edits, func(a, b edit) int { return a.start - b.start })
	var out []byte
	at := 0
	for _, e := range w.edits {
		out = append(append(out, w.file.source[at:e.start]...), e.text...)
		at = e.end
	}
	return append(out, w.file.source[at:]...)
}
