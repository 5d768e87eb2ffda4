// SPDX-License-Identifier: Apache-2.0

// What has to stand in the packages below pkg/apis, because a generator that does not find it
// skips the package, or writes code that does not compile.

package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	openapi "k8s.io/kube-openapi/pkg/util"
)

// apiPackage is the code of a directory below pkg/apis, tests excluded.
type apiPackage struct {
	dir     string
	name    string
	markers []string          // the lines of comments in doc.go that begin with +
	client  bool              // if any file has +genclient
	files   map[string]string // each struct, with its file
	kinds   []string          // the structs that embed TypeMeta and ObjectMeta
}

// readPackages parses the packages in a directory and below.
func readPackages(root string) (packages []*apiPackage, err error) {
	err = filepath.WalkDir(root, func(dir string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			return err
		}
		if name := entry.Name(); name == "testdata" || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") {
			return filepath.SkipDir
		}
		p := &apiPackage{dir: filepath.ToSlash(dir), files: map[string]string{}}
		entries, err := os.ReadDir(dir)
		for _, entry := range entries {
			name := entry.Name()
			if ok, _ := build.Default.MatchFile(dir, name); ok && path.Ext(name) == ".go" && !strings.HasSuffix(name, "_test.go") {
				err = errors.Join(err, p.read(name))
			}
		}
		packages = append(packages, p)
		return err
	})
	return packages, err
}

func (p *apiPackage) read(name string) error {
	file, err := parser.ParseFile(token.NewFileSet(), path.Join(p.dir, name), nil, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	p.name = file.Name.Name
	for _, group := range file.Comments {
		for line := range strings.SplitSeq(group.Text(), "\n") {
			line = strings.TrimSpace(line)
			p.client = p.client || line == "+genclient"
			if name == "doc.go" && strings.HasPrefix(line, "+") {
				p.markers = append(p.markers, line)
			}
		}
	}
	for node := range ast.Preorder(file) {
		if spec, ok := node.(*ast.TypeSpec); ok {
			p.readType(name, spec)
		}
	}
	return nil
}

func (p *apiPackage) readType(file string, s *ast.TypeSpec) {
	structure, ok := s.Type.(*ast.StructType)
	if !ok {
		return
	}
	p.files[s.Name.Name] = file
	embedded := map[string]bool{}
	for _, field := range structure.Fields.List {
		if len(field.Names) == 0 {
			embedded[baseName(field.Type)] = true
		}
	}
	if embedded["TypeMeta"] && embedded["ObjectMeta"] {
		p.kinds = append(p.kinds, s.Name.Name)
	}
}

// baseName returns the name of a type, without a pointer and its package.
func baseName(expression ast.Expr) string {
	switch e := expression.(type) {
	case *ast.StarExpr:
		return baseName(e.X)
	case *ast.SelectorExpr:
		return e.Sel.Name
	case *ast.Ident:
		return e.Name
	}
	return ""
}

// marker returns the value of a marker in doc.go, which is the only file where the generators of
// Kubernetes read markers of a package.
func (p *apiPackage) marker(name string) (string, bool) {
	for _, line := range p.markers {
		if value, ok := strings.CutPrefix(line, "+"+name+"="); ok {
			return value, true
		}
	}
	return "", false
}

// modelPackage returns the only name of a package's OpenAPI models by which applyconfiguration-gen
// finds the kinds. fake.NewClientset looks them up by the name that a marker gives.
func modelPackage(module, dir string) string {
	return openapi.ToRESTFriendlyName(module + "/" + dir)
}

// version matches the directories for which the generators of clients work.
var version = regexp.MustCompile(`^pkg/apis/[^/]+/v[0-9]+((alpha|beta)[0-9]+)?$`)

// checkPackages returns an error for each thing that the generators need and don't find, or can't
// handle.
func checkPackages(packages []*apiPackage, module string) error {
	var errs []error
	found := false
	for _, p := range packages {
		switch {
		case len(p.kinds) == 0:
			errs = append(errs, p.checkModelPackage(module))
		case !version.MatchString(p.dir):
			errs = append(errs, fmt.Errorf("%s/%s: the kind %s must be in a directory pkg/apis/GROUP/VERSION, with a version such as v1 or v1alpha1", p.dir, p.files[p.kinds[0]], p.kinds[0]))
		default:
			found = true
			errs = append(errs, p.checkMarkers(module), p.checkGroup())
		}
	}
	if !found && errors.Join(errs...) == nil {
		errs = append(errs, errors.New("no API found: expected directories pkg/apis/GROUP/VERSION with a kind, a struct that embeds metav1.TypeMeta and metav1.ObjectMeta"))
	}
	return errors.Join(errs...)
}

func (p *apiPackage) checkMarkers(module string) error {
	var errs []error
	if p.name != path.Base(p.dir) {
		errs = append(errs, fmt.Errorf("%s: the package must be called %s, as the directory is: controller-gen takes its name for the version", p.dir, path.Base(p.dir)))
	}
	for _, marker := range []string{"+groupName=", "+k8s:deepcopy-gen=package", "+k8s:openapi-gen=true"} {
		if !slices.ContainsFunc(p.markers, func(line string) bool { return strings.HasPrefix(line, marker) }) {
			errs = append(errs, fmt.Errorf("%s/doc.go: the marker // %s is missing: add it above the package clause, where the generators read the markers of a package", p.dir, marker))
		}
	}
	if !p.client {
		errs = append(errs, fmt.Errorf("%s: no file has the marker // +genclient: add it above each kind, as a line of its own", p.dir))
	}
	return errors.Join(append(errs, p.checkModelPackage(module))...)
}

// checkModelPackage compares the marker of a package that has OpenAPI definitions.
func (p *apiPackage) checkModelPackage(module string) error {
	const marker = "k8s:openapi-model-package"
	want := modelPackage(module, p.dir)
	generated, _ := p.marker("k8s:openapi-gen")
	switch got, ok := p.marker(marker); {
	case ok && got != want:
		return fmt.Errorf("%s/doc.go: the marker // +%s=%s must be // +%s=%s: fake.NewClientset does not find the types by another name", p.dir, marker, got, marker, want)
	case !ok && (generated == "true" || len(p.kinds) > 0):
		return fmt.Errorf("%s/doc.go: the marker // +%s=%s is missing: add it", p.dir, marker, want)
	}
	return nil
}

// checkGroup returns an error if the group's clients would have a name that Go does not take.
func (p *apiPackage) checkGroup() error {
	group, _ := p.marker("groupName")
	name, ok := p.marker("groupGoName")
	if !ok {
		name, _, _ = strings.Cut(group, ".")
	}
	if !token.IsIdentifier(name) {
		return fmt.Errorf("%s/doc.go: clients of the group %s are named after %q, which is no Go identifier: add // +groupGoName=NAME, with another name", p.dir, group, name)
	}
	return nil
}
