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

// The identifiers of each package, which show conflicts with the new names.

package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"maps"
	"path"
	"slices"
	"strings"
)

// goPackage holds the identifiers of the Go files in one folder.
type goPackage struct {
	folder   string
	names    map[string]bool // all identifiers
	declared map[member]bool // those that the package declares, methods included
	aliases  map[string]bool // imports of this project's packages
}

// member is a declaration of a package, or a method of a type.
type member struct{ of, name string }

// packagesOf collects the identifiers of Go files by folder, in order. It ignores scopes:
// a name that is used anywhere in the package is taken.
func packagesOf(files []*goFile) []*goPackage {
	packages := map[string]*goPackage{}
	for _, file := range files {
		folder := path.Dir(file.path)
		if packages[folder] == nil {
			packages[folder] = &goPackage{folder, map[string]bool{}, map[member]bool{}, map[string]bool{}}
		}
		packages[folder].add(file)
	}
	return slices.SortedFunc(maps.Values(packages), func(a, b *goPackage) int { return strings.Compare(a.folder, b.folder) })
}

func (p *goPackage) add(file *goFile) {
	for _, spec := range file.syntax.Imports {
		own := strings.HasPrefix(strings.Trim(spec.Path.Value, `"`), sample.Module+"/")
		switch {
		case own && spec.Name != nil:
			p.aliases[spec.Name.Name] = true
		case own:
			p.aliases[path.Base(strings.Trim(spec.Path.Value, `"`))] = true
		case spec.Name == nil:
			p.names[path.Base(strings.Trim(spec.Path.Value, `"`))] = true
		}
	}
	ast.Inspect(file.syntax, func(node ast.Node) bool {
		if ident, ok := node.(*ast.Ident); ok {
			p.names[ident.Name] = true
		}
		return true
	})
	for _, declaration := range file.syntax.Decls {
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

// locals finds identifiers of a hand-written package whose regular new names are taken,
// and returns other names for them. It renames only unexported identifiers, because other
// packages use the exported ones.
func (p *goPackage) locals(s speller) map[string]string {
	renamed := map[string]string{}
	taken := map[string]bool{}
	for name := range p.names {
		taken[name] = p.spell(s, name) == name
	}
	for _, name := range slices.Sorted(maps.Keys(p.names)) {
		spelled := p.spell(s, name)
		if spelled == name {
			continue
		}
		if free(spelled, taken) || token.IsExported(name) {
			taken[spelled] = taken[spelled] || !token.IsExported(name)
			continue
		}
		other := otherName(name, s)
		if p.aliases[name] {
			other = "own" + capitalized(spelled)
		}
		for !free(other, taken) {
			other += "_"
		}
		taken[other] = true
		renamed[name] = other
	}
	return renamed
}

// spell returns the regular new name of an identifier.
func (p *goPackage) spell(s speller, name string) string {
	if p.aliases[name] {
		return s.importName(name)
	}
	return s.identifier(name)
}

// otherName returns an alternative name, with another word after the kind.
func otherName(name string, s speller) string {
	s.Kind, s.Kinds = s.Kind+"Resource", s.Kind+"Resources"
	return s.identifier(name)
}

// free reports whether a name can be declared.
func free(name string, taken map[string]bool) bool {
	return !taken[name] && token.IsIdentifier(name) && types.Universe.Lookup(name) == nil
}

// checkDeclared returns an error if a name would be declared twice in a package.
func (p *goPackage) checkDeclared(s speller, locals map[string]string) error {
	became := map[member]string{}
	sorted := slices.SortedFunc(maps.Keys(p.declared), func(a, b member) int { return strings.Compare(a.name+" "+a.of, b.name+" "+b.of) })
	for _, declared := range sorted {
		spelled, ok := locals[declared.name]
		if !ok {
			spelled = s.identifier(declared.name)
		}
		now := member{s.identifier(declared.of), spelled}
		if first, ok := became[now]; ok {
			return fmt.Errorf("%s and %s would both be named %s in %s: choose another kind, plural or group", first, declared.name, spelled, p.folder)
		}
		became[now] = declared.name
	}
	return nil
}
