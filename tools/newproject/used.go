// SPDX-License-Identifier: Apache-2.0

// Which names a set of Go files has taken.

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
			packages[folder] = &goPackage{folder: folder, names: map[string]bool{}, declared: map[member]bool{}}
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
