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
	"io"
	"io/fs"
	"maps"
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
	markers map[string][]string // the lines of comments that begin with +, by file
	files   map[string]string   // each name that is declared at the top level, with its file
	methods map[string]bool     // Type.Method
	typed   []string            // the types that embed TypeMeta
	kinds   []string            // those that embed ObjectMeta, too
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
		p := &apiPackage{dir: filepath.ToSlash(dir), markers: map[string][]string{}, files: map[string]string{}, methods: map[string]bool{}}
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
			if line = strings.TrimSpace(line); strings.HasPrefix(line, "+") {
				p.markers[name] = append(p.markers[name], line)
			}
		}
	}
	for _, declaration := range file.Decls {
		switch d := declaration.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil {
				p.files[d.Name.Name] = name
			} else {
				p.methods[baseName(d.Recv.List[0].Type)+"."+d.Name.Name] = true
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				p.readSpec(name, spec)
			}
		}
	}
	return nil
}

func (p *apiPackage) readSpec(file string, spec ast.Spec) {
	switch s := spec.(type) {
	case *ast.ValueSpec:
		for _, ident := range s.Names {
			p.files[ident.Name] = file
		}
	case *ast.TypeSpec:
		p.files[s.Name.Name] = file
		p.readType(s)
	}
}

func (p *apiPackage) readType(s *ast.TypeSpec) {
	structure, ok := s.Type.(*ast.StructType)
	if !ok {
		return
	}
	embedded := map[string]bool{}
	for _, field := range structure.Fields.List {
		if len(field.Names) == 0 {
			embedded[baseName(field.Type)] = true
		}
	}
	if embedded["TypeMeta"] {
		p.typed = append(p.typed, s.Name.Name)
		if embedded["ObjectMeta"] {
			p.kinds = append(p.kinds, s.Name.Name)
		}
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
	for _, line := range p.markers["doc.go"] {
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
	clients := map[string]string{}
	for _, p := range packages {
		switch {
		case len(p.kinds) == 0:
			errs = append(errs, p.checkModelPackage(module))
		case !version.MatchString(p.dir):
			errs = append(errs, fmt.Errorf("%s/%s: the kind %s must be in a directory pkg/apis/GROUP/VERSION, with a version such as v1 or v1alpha1", p.dir, p.files[p.kinds[0]], p.kinds[0]))
		default:
			errs = append(errs, p.checkMarkers(module), p.checkNames(), p.checkGroup(clients))
		}
	}
	if len(clients) == 0 && errors.Join(errs...) == nil {
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
		begins := func(line string) bool { return strings.HasPrefix(line, marker) }
		if slices.ContainsFunc(p.markers["doc.go"], begins) {
			continue
		}
		err := fmt.Errorf("%s: no file has the marker // %s: add it to doc.go, above the package clause", p.dir, marker)
		for file, lines := range p.markers {
			if slices.ContainsFunc(lines, begins) {
				err = fmt.Errorf("%s/%s: the marker // %s must be in doc.go, above the package clause: the generators read the markers of a package there", p.dir, file, marker)
			}
		}
		errs = append(errs, err)
	}
	if all := slices.Concat(slices.Collect(maps.Values(p.markers))...); !slices.Contains(all, "+genclient") {
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

// registered lists what zz_generated.register.go declares.
var registered = []string{"GroupName", "GroupVersion", "SchemeGroupVersion", "Resource", "SchemeBuilder", "localSchemeBuilder", "AddToScheme", "Install", "addKnownTypes"}

// checkNames returns an error for each name that generated code has, too.
func (p *apiPackage) checkNames() error {
	var errs []error
	twice := map[string][]string{}
	for _, name := range registered {
		if file, ok := p.files[name]; ok && !slices.Contains(p.typed, name) {
			twice[file] = append(twice[file], name)
		}
	}
	for _, file := range slices.Sorted(maps.Keys(twice)) {
		errs = append(errs, fmt.Errorf("%s/%s declares %s, and so does zz_generated.register.go, which hack/update-codegen.sh writes: delete them, or the file if nothing else is in it", p.dir, file, strings.Join(twice[file], ", ")))
	}
	if _, err := os.Stat(path.Join(p.dir, "register.go")); err == nil && len(twice["register.go"]) == 0 {
		errs = append(errs, fmt.Errorf("%s/register.go: register-gen writes nothing beside a file of this name: rename it", p.dir))
	}
	for _, kind := range p.kinds {
		if reason := badKind(kind); reason != "" {
			errs = append(errs, fmt.Errorf("%s/%s: the kind %s must have another name: %s", p.dir, p.files[kind], kind, reason))
		}
	}
	return errors.Join(errs...)
}

// taken lists the names of generated code that a variable for an object would hide, or a function
// for a kind would repeat.
var taken = []string{"b", "ctx", "err", "managedfields", "nil", "opts", "result", "typed"}

// badKind returns why clients of a kind would not compile, or "".
func badKind(kind string) string {
	name := strings.ToLower(kind)
	elsewhere := build.Context{GOOS: "elsewhere", GOARCH: "elsewhere", Compiler: "gc", OpenFile: func(string) (io.ReadCloser, error) {
		return io.NopCloser(strings.NewReader("package fake")), nil
	}}
	file := "fake_" + name + ".go"
	switch everywhere, _ := elsewhere.MatchFile("", file); {
	case token.IsKeyword(name):
		return name + " is a word of Go, and generated code has a variable with that name"
	case slices.Contains(registered, kind):
		return "zz_generated.register.go declares " + kind
	case slices.Contains(taken, name):
		return "generated code has other things of that name"
	case !everywhere || strings.HasSuffix(file, "_test.go"):
		return "the go command compiles a file " + file + " only on some platforms, or for tests"
	}
	return ""
}

// checkGroup returns an error if the group's clients would have a name that Go does not take, or
// that those of another group have.
func (p *apiPackage) checkGroup(clients map[string]string) error {
	group, _ := p.marker("groupName")
	name, ok := p.marker("groupGoName")
	if !ok {
		name, _, _ = strings.Cut(group, ".")
	}
	dir := path.Dir(p.dir)
	if base := path.Base(dir); !token.IsIdentifier(base) || base != strings.ToLower(base) || slices.Contains([]string{"internal", "main", "vendor"}, base) {
		return fmt.Errorf("%s: the directory's name becomes that of Go packages: rename it, to lower-case letters and digits only", dir)
	}
	if !token.IsIdentifier(name) {
		return fmt.Errorf("%s/doc.go: clients of the group %s are named after %q, which is no Go identifier: add // +groupGoName=NAME, with another name", p.dir, group, name)
	}
	name = strings.ToLower(name)
	if other, ok := clients[name]; ok && other != dir {
		return fmt.Errorf("%s/doc.go: clients of the group %s have the same name as those in %s, %s: add // +groupGoName=NAME, with another name", p.dir, group, other, name)
	}
	clients[name] = dir
	return nil
}

// checkDeepCopies returns an error for each kind that is no runtime.Object. The registration of
// such a kind would not compile.
func checkDeepCopies(packages []*apiPackage) error {
	var errs []error
	for _, p := range packages {
		if len(p.kinds) == 0 {
			continue
		}
		for _, name := range p.typed {
			if !p.methods[name+".DeepCopyObject"] {
				errs = append(errs, fmt.Errorf("%s/%s: the type %s has no DeepCopyObject: add // +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object above it", p.dir, p.files[name], name))
			}
		}
	}
	return errors.Join(errs...)
}
