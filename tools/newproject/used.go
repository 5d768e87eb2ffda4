// SPDX-License-Identifier: Apache-2.0

// What a set of Go files needs, and which names are taken.

package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"path"
	"slices"
	"strings"
)

// piece is a declaration of a Go file.
type piece struct {
	names       []string        // that it declares
	of          string          // the type of a method's receiver
	uses, calls map[string]bool // names of the package, and those of methods
	begin, end  int             // in the file
	kept        bool
}

// isTest reports whether a function is a test that holds for each kind.
func isTest(name string) bool {
	return (strings.HasPrefix(name, "Test") || strings.HasPrefix(name, "Fuzz")) && name != "TestFuzzSeedsReachEveryDecisionAndReason"
}

// usedBy returns the files of a package without the declarations that those accepted by
// isRoot do not need, and without the imports that are not needed then. It goes by names: a
// method is needed if its type is, and it is exported, because then it may implement an
// interface, or something that is needed calls a method of its name.
func usedBy(files []treeFile, isRoot func(name string) bool) ([]treeFile, error) {
	var all [][]*piece
	for _, file := range files {
		pieces, err := piecesOf(file)
		if err != nil {
			return nil, err
		}
		all = append(all, pieces)
	}
	keepUsed(slices.Concat(all...), isRoot)
	var left []treeFile
	for i, file := range files {
		if !slices.ContainsFunc(all[i], func(p *piece) bool { return p.kept }) {
			continue
		}
		source := string(file.data)
		for _, p := range slices.Backward(all[i]) {
			if !p.kept {
				source = strings.TrimRight(source[:p.begin], "\n") + "\n\n" + strings.TrimLeft(source[p.end:], "\n")
			}
		}
		data, err := withoutImports(source)
		if err != nil {
			return nil, err
		}
		file.data = data
		left = append(left, file)
	}
	return left, nil
}

// keepUsed marks the declarations that are needed.
func keepUsed(all []*piece, isRoot func(name string) bool) {
	// Types of other files, of which these have methods, are needed.
	used, called := map[string]bool{}, map[string]bool{}
	for _, p := range all {
		used[p.of] = true
	}
	for _, p := range all {
		if p.of == "" {
			for _, name := range p.names {
				delete(used, name)
			}
		}
	}
	for changed := true; changed; {
		changed = false
		for _, p := range all {
			if p.kept || !p.isNeeded(used, called, isRoot) {
				continue
			}
			p.kept, changed = true, true
			maps.Copy(used, p.uses)
			maps.Copy(called, p.calls)
		}
	}
}

func (p *piece) isNeeded(used, called map[string]bool, isRoot func(name string) bool) bool {
	if p.of != "" {
		return used[p.of] && (called[p.names[0]] || token.IsExported(p.names[0]))
	}
	return slices.ContainsFunc(p.names, func(name string) bool { return used[name] || isRoot(name) })
}

// piecesOf returns the declarations of a file, except for imports.
func piecesOf(file treeFile) ([]*piece, error) {
	set := token.NewFileSet()
	parsed, err := parser.ParseFile(set, file.path, file.data, parser.ParseComments)
	if err != nil {
		return nil, err
	}
	var pieces []*piece
	for _, declaration := range parsed.Decls {
		p := &piece{uses: map[string]bool{}, calls: map[string]bool{}, begin: set.Position(declaration.Pos()).Offset, end: set.Position(declaration.End()).Offset}
		var doc *ast.CommentGroup
		switch d := declaration.(type) {
		case *ast.FuncDecl:
			p.names, p.of, doc = []string{d.Name.Name}, receiver(d), d.Doc
		case *ast.GenDecl:
			if d.Tok == token.IMPORT {
				continue
			}
			p.names, doc = namesIn(d), d.Doc
		}
		if doc != nil {
			p.begin = set.Position(doc.Pos()).Offset
		}
		p.findUses(declaration, parsed)
		pieces = append(pieces, p)
	}
	return pieces, nil
}

// findUses finds what a declaration of a file uses of its package.
func (p *piece) findUses(declaration ast.Node, file *ast.File) {
	ast.Inspect(declaration, func(node ast.Node) bool {
		switch n := node.(type) {
		case *ast.SelectorExpr:
			p.calls[n.Sel.Name] = true
			p.findUses(n.X, file)
			return false
		case *ast.InterfaceType:
			for _, method := range n.Methods.List {
				for _, name := range method.Names {
					p.calls[name.Name] = true
				}
			}
		case *ast.Ident: // not of a variable of a function
			if n.Obj == nil || file.Scope.Objects[n.Name] == n.Obj {
				p.uses[n.Name] = true
			}
		}
		return true
	})
}

// namesIn returns the names of types, variables and constants in a declaration.
func namesIn(declaration *ast.GenDecl) []string {
	var names []string
	for _, spec := range declaration.Specs {
		switch s := spec.(type) {
		case *ast.TypeSpec:
			names = append(names, s.Name.Name)
		case *ast.ValueSpec:
			for _, name := range s.Names {
				names = append(names, name.Name)
			}
		}
	}
	return names
}

// withoutImports returns a Go file without the imports that it does not use.
func withoutImports(source string) ([]byte, error) {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, "", source, parser.ParseComments)
	if err != nil {
		return nil, err
	}
	used := map[string]bool{}
	ast.Inspect(file, func(node ast.Node) bool {
		if selector, ok := node.(*ast.SelectorExpr); ok {
			if ident, ok := selector.X.(*ast.Ident); ok {
				used[ident.Name] = true
			}
		}
		return true
	})
	for _, spec := range slices.Backward(file.Imports) {
		name := path.Base(strings.Trim(spec.Path.Value, "\""))
		if spec.Name != nil {
			name = spec.Name.Name
		}
		if strings.HasPrefix(name, "v") && spec.Name == nil {
			name = path.Base(path.Dir(strings.Trim(spec.Path.Value, "\"")))
		}
		if !used[name] && name != "_" {
			source = source[:set.Position(spec.Pos()).Offset] + source[set.Position(spec.End()).Offset:]
		}
	}
	return format.Source([]byte(source))
}

// goPackage holds the identifiers of the Go files in one folder.
type goPackage struct {
	folder   string
	names    map[string]bool // all identifiers
	declared map[member]bool // those that the package declares, methods included
}

// member is a declaration of a package, or a method of a type.
type member struct{ of, name string }

// packagesOf collects the identifiers of Go files by folder, in order. It ignores scopes:
// a name that is used anywhere in the package is taken.
func packagesOf(files map[string]*ast.File) []*goPackage {
	packages := map[string]*goPackage{}
	for name, file := range files {
		folder := path.Dir(name)
		if packages[folder] == nil {
			packages[folder] = &goPackage{folder, map[string]bool{}, map[member]bool{}}
		}
		packages[folder].add(file)
	}
	return slices.SortedFunc(maps.Values(packages), func(a, b *goPackage) int { return strings.Compare(a.folder, b.folder) })
}

func (p *goPackage) add(file *ast.File) {
	ast.Inspect(file, func(node ast.Node) bool {
		if ident, ok := node.(*ast.Ident); ok {
			p.names[ident.Name] = true
		}
		return true
	})
	for _, declaration := range file.Decls {
		switch d := declaration.(type) {
		case *ast.FuncDecl:
			p.declared[member{receiver(d), d.Name.Name}] = true
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				p.declare(spec)
			}
		}
	}
}

func (p *goPackage) declare(spec ast.Spec) {
	switch s := spec.(type) {
	case *ast.TypeSpec:
		p.declared[member{"", s.Name.Name}] = true
		if methods, ok := s.Type.(*ast.InterfaceType); ok {
			for _, method := range methods.Methods.List {
				for _, name := range method.Names {
					p.declared[member{s.Name.Name, name.Name}] = true
				}
			}
		}
	case *ast.ValueSpec:
		for _, name := range s.Names {
			p.declared[member{"", name.Name}] = true
		}
	}
}

// receiver returns the type of a method's receiver, or "" for a function.
func receiver(function *ast.FuncDecl) string {
	of := ""
	if function.Recv != nil {
		ast.Inspect(function.Recv.List[0].Type, func(node ast.Node) bool {
			if ident, ok := node.(*ast.Ident); ok && of == "" {
				of = ident.Name
			}
			return true
		})
	}
	return of
}

// unexportedIn returns the unexported identifiers of packages that have the kind in them,
// except foo and foos.
func unexportedIn(packages []*goPackage) map[string]bool {
	unexported := map[string]bool{}
	for _, p := range packages {
		for name := range p.names {
			unexported[name] = !token.IsExported(name) && oldKind.MatchString(name) && name != sample.singular() && name != sample.Plural
		}
	}
	return unexported
}

// checkHidden returns an error if the new name of an unexported identifier is taken.
func (p *goPackage) checkHidden(s speller) error {
	became := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(p.names)) {
		spelled := s.identifier(name)
		if spelled == name || token.IsExported(name) {
			continue
		}
		first, twice := became[spelled]
		became[spelled] = name
		switch {
		case twice:
			return fmt.Errorf("%s and %s would both be named %s in %s: choose another kind or plural", first, name, spelled, p.folder)
		case p.names[spelled] && s.identifier(spelled) == spelled, !token.IsIdentifier(spelled), types.Universe.Lookup(spelled) != nil:
			return fmt.Errorf("%s would be named %s, which has another meaning in %s: choose another kind, plural or group", name, spelled, p.folder)
		}
	}
	return nil
}

// checkDeclared returns an error if a name would be declared twice in a package.
func (p *goPackage) checkDeclared(s speller) error {
	became := map[member]string{}
	sorted := slices.SortedFunc(maps.Keys(p.declared), func(a, b member) int { return strings.Compare(a.name+" "+a.of, b.name+" "+b.of) })
	for _, declared := range sorted {
		now := member{s.identifier(declared.of), s.identifier(declared.name)}
		if first, ok := became[now]; ok {
			return fmt.Errorf("%s and %s would both be named %s in %s: choose another kind, plural or group", first, declared.name, now.name, p.folder)
		}
		became[now] = declared.name
	}
	return nil
}

// spellerFor returns the speller for a project's names, or an error if they conflict with
// others. Names in the API and in generated code are fixed, so a conflict there is an
// error.
func (src *sources) spellerFor(n names) (speller, error) {
	written := packagesOf(src.parsed)
	s := speller{names: n, unexported: unexportedIn(written)}
	err := errors.Join(checkProgram(n, src.kept), checkGeneratedPaths(s, slices.Sorted(maps.Keys(src.generated))), checkScopes(n, src.clients))
	if err != nil {
		return s, err
	}
	for _, other := range [][2]bool{{false, false}, {false, true}, {true, false}, {true, true}} {
		s.suffixed, s.longAlias, err = other[0], other[1], nil
		for _, p := range written {
			err = errors.Join(err, p.checkHidden(s))
		}
		if err == nil {
			break
		}
	}
	all := maps.Clone(src.clients)
	maps.Copy(all, src.parsed)
	for _, p := range packagesOf(all) {
		err = errors.Join(err, p.checkDeclared(s))
	}
	return s, err
}
