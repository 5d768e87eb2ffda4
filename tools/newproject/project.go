// SPDX-License-Identifier: Apache-2.0

// What a new project consists of.

package main

import (
	"bytes"
	"cmp"
	"context"
	"embed"
	"errors"
	"fmt"
	"go/format"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"text/template"
)

// library is the module path of this repository, and copyDir the directory of a project's copy.
const (
	library = "example.com/sample-controller"
	copyDir = "third_party/sample-controller"
)

// stateFile records the request that a project was generated from.
const stateFile = ".newproject.json"

// inLibrary lists what a copy of the library consists of: what a project imports, the loop, the
// generators, the linters' versions and the development cluster, each without tests and documents.
var inLibrary = []string{"*.go", "go.mod", "go.sum", "LICENSE", "pkg/reconcile", "pkg/process", "pkg/signals", "devcluster",
	"hack/codegen", "hack/codegen.sh", "hack/models-schema", "hack/build.sh", "hack/tools/go.*",
	"conform/*.go", "conform/judge", "test/testcluster", "test/faults/proxy"}

// notInLibrary lists the tests and documents among these.
var notInLibrary = []string{":!**/*_test.go", ":!**/*.md", ":!**/*.mk", ":!**/testdata/**"}

// asTheyAre lists the files that a project has from this repository without a change.
var asTheyAre = []string{"LICENSE", ".editorconfig", ".devcontainer/*", ".github/CODEOWNERS", ".github/workflows/*"}

// templates are the files that belong to a project, with GROUP, VERSION and KIND in their paths.
//
//go:embed all:template all:template-of
var templates embed.FS

// notOfOthers lists the templates that a project for one of Kubernetes' own kinds lacks: it has no API. In the place of some
// others it has those of template-of.
var notOfOthers = regexp.MustCompile(`^template/(pkg|artifacts|hack/update-codegen|hack/boilerplate|hack/conform|reconcile_test)`)

// project is a project in a directory.
type project struct {
	names

	request   request
	root, dir string // this clone, and the project's directory
	tmp       string // for the commands' temporary files; empty for the usual directory
}

// findRoot returns this repository's root.
func findRoot() (string, error) {
	here, err := os.Getwd()
	for at := here; err == nil; at = filepath.Dir(at) {
		data, err := os.ReadFile(filepath.Join(at, "go.mod"))
		if err == nil && bytes.HasPrefix(data, []byte("module "+library+"\n")) {
			return at, nil
		}
		if at == filepath.Dir(at) {
			return "", fmt.Errorf("%s is not in a clone of %s: run newproject from there", here, library)
		}
	}
	return "", err
}

// create generates a project in a temporary directory next to dir, so that a failure leaves nothing
// behind.
func create(ctx context.Context, root, dir string, r request, out io.Writer) (err error) {
	dir, err = checkDir(dir, root)
	child, childErr := childOf(r.Child)
	if childErr == nil && r.Child == r.KindOf {
		childErr = fmt.Errorf("-child=%s: is the kind of the owners, too: choose another", r.Child)
	}
	if err := errors.Join(checkNames(r), childErr, err, checkLibrary(r.Library)); err != nil {
		return refusal{err}
	}
	beside, err := os.MkdirTemp(filepath.Dir(dir), "."+filepath.Base(dir)+"-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(beside)) }()
	r.Library = cmp.Or(r.Library, copyDir)
	p := &project{deriveNames(r), r, root, filepath.Join(beside, "project"), beside}
	all := []step{{"Writing the project", func(ctx context.Context) error { return p.write(ctx, child) }}}
	if p.Of == nil {
		all = append(all, step{"Generating clients and the CustomResourceDefinition", p.command("hack/update-codegen.sh")})
	}
	err = steps(ctx, out, append(all,
		step{"Tidying the module", p.command("go", "mod", "tidy")},
		step{"Compiling", p.compile},
		step{"Creating a git repository", p.commit})...)
	if err != nil {
		return err
	}
	if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) { // it may exist, if it is empty
		return err
	}
	if err := os.Rename(p.dir, dir); err != nil {
		return err
	}
	fmt.Fprintf(out, "\n%s contains a controller for %s (%s, %s), in a git repository with one commit.\nIts README.md shows how to make it yours.\n",
		dir, p.Kinds, p.resource(), p.Version)
	return nil
}

// command returns a function that runs a command in the project.
func (p *project) command(arguments ...string) func(context.Context) error {
	return func(ctx context.Context) error {
		if strings.Contains(arguments[0], "/") {
			arguments[0] = filepath.Join(p.dir, arguments[0])
		}
		if p.tmp != "" {
			arguments = append([]string{"env", "TMPDIR=" + p.tmp}, arguments...)
		}
		_, err := output(ctx, p.dir, arguments...)
		return err
	}
}

// write writes everything that is not generated.
func (p *project) write(ctx context.Context, child builtInKind) error {
	mod, err := os.ReadFile(filepath.Join(p.root, "go.mod"))
	if err != nil {
		return err
	}
	// With the versions of the library. Tidying leaves what the project needs.
	mod = bytes.Replace(mod, []byte("module "+library), []byte("module "+p.Module), 1)
	mod = append(ignored.ReplaceAll(mod, nil), "\nrequire "+library+" v0.0.0\n"...)
	sum, err := os.ReadFile(filepath.Join(p.root, "go.sum"))
	err = errors.Join(err, p.put("go.mod", mod), p.put("go.sum", sum), p.copyFiles(ctx, p.dir, asTheyAre...),
		p.fill(child, true), p.copyManifests(ctx), p.setLibrary(ctx), p.record())
	if err != nil {
		return err
	}
	loop, err := p.loop(ctx)
	for name, text := range loop {
		err = errors.Join(err, p.put(name, text))
	}
	return err
}

// put writes a file of the project.
func (p *project) put(name string, data []byte) error {
	mode := fs.FileMode(0o644)
	if path.Ext(name) == ".sh" {
		mode = 0o755
	}
	name = filepath.Join(p.dir, filepath.FromSlash(name))
	return errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, data, mode))
}

// copyFiles copies the files of this clone that match patterns of git ls-files to a directory.
func (p *project) copyFiles(ctx context.Context, to string, patterns ...string) error {
	names, err := p.tracked(ctx, patterns...)
	for _, name := range names {
		data, readErr := os.ReadFile(filepath.Join(p.root, name))
		err = errors.Join(err, readErr, (&project{dir: to}).put(name, data))
	}
	return err
}

// tracked returns the files of this clone that match patterns of git ls-files.
func (p *project) tracked(ctx context.Context, patterns ...string) ([]string, error) {
	list, err := output(ctx, p.root, append([]string{"git", "--glob-pathspecs", "ls-files", "--"}, patterns...)...)
	return strings.Fields(list), err
}

// setLibrary copies the library into the project and records its sum, or makes the project use a
// module.
func (p *project) setLibrary(ctx context.Context) error {
	at := filepath.Join(p.dir, copyDir)
	if err := errors.Join(os.RemoveAll(at), os.RemoveAll(at+".sum")); err != nil {
		return err
	}
	if p.request.Commit = ""; p.request.Library != copyDir {
		return p.command("go", "mod", "edit", "-replace="+library+"="+p.request.Library)(ctx)
	}
	if err := p.copyFiles(ctx, at, append(slices.Clone(inLibrary), notInLibrary...)...); err != nil {
		return err
	}
	p.request.Commit, _ = output(ctx, p.root, "git", "describe", "--always", "--exclude=*", "--abbrev=40", "--dirty")
	sum, err := output(ctx, p.dir, filepath.Join(p.dir, "hack/library.sh"), "sum")
	return errors.Join(err, p.put(copyDir+".sum", []byte(sum+"\n")), p.command("go", "mod", "edit", "-replace="+library+"=./"+copyDir)(ctx))
}

// loop returns the files of the library's loop, with the imports of the project's own packages.
func (p *project) loop(ctx context.Context) (map[string][]byte, error) {
	dir, err := output(ctx, p.dir, filepath.Join(p.dir, "hack/library.sh"), "dir")
	if err != nil {
		return nil, err
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	loop := map[string][]byte{}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		text, readErr := os.ReadFile(file)
		for _, own := range []string{"internal", "pkg/generated"} {
			text = bytes.ReplaceAll(text, []byte(`"`+library+"/"+own), []byte(`"`+p.Module+"/"+own))
		}
		text, formatErr := format.Source(p.withClients(text))
		loop[filepath.Base(file)], err = text, errors.Join(err, readErr, formatErr)
	}
	return loop, err
}

// withClients returns Go code that imports client-go's clients in the place of generated ones, if the kind is one of
// Kubernetes' own: they have the same methods.
func (p *project) withClients(text []byte) []byte {
	if p.Of == nil {
		return text
	}
	for _, pair := range [][2]string{{"clientset/versioned/", "kubernetes/"}, {"clientset/versioned", "kubernetes"}, {"informers/externalversions", "informers"}} {
		text = bytes.ReplaceAll(text, []byte(`"`+p.Module+"/pkg/generated/"+pair[0]), []byte(`"k8s.io/client-go/`+pair[1]))
	}
	return text
}

// fill writes the files of the templates: of the kind, and, if it is the project's first, all others.
func (p *project) fill(child builtInKind, isFirst bool) error {
	data := struct {
		names

		Child        builtInKind
		IsDeployment bool
	}{p.names, child, p.Of == nil && child.isDeployment()}
	return fs.WalkDir(templates, "template", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !isFirst && !strings.Contains(name, "KIND") || p.Of != nil && notOfOthers.MatchString(name) {
			return err
		}
		if of := strings.Replace(name, "template/", "template-of/", 1); p.Of != nil {
			if _, err := fs.Stat(templates, of); err == nil {
				name = of
			}
		}
		return p.fillFile(name, data)
	})
}

// fillFile writes the file of a template.
func (p *project) fillFile(name string, data any) error {
	text, err := templates.ReadFile(name)
	if err != nil {
		return err
	}
	filled, err := template.New(name).Delims("<%", "%>").Parse(string(text))
	if err != nil {
		return err
	}
	var out bytes.Buffer
	if err := filled.Execute(&out, data); err != nil {
		return err
	}
	_, name, _ = strings.Cut(strings.TrimSuffix(name, ".txt"), "/")
	name = strings.NewReplacer("GROUP", p.Package, "VERSION", p.Version, "KIND", p.Singular()).Replace(name)
	result := out.Bytes()
	if path.Ext(name) == ".go" {
		if result, err = format.Source(p.withClients(result)); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return p.put(name, result)
}

// ignored matches what a go.mod says about folders that a project lacks.
var ignored = regexp.MustCompile(`(?m)^(//.*\n)*ignore \([^)]*\)\n`)

var (
	comments = regexp.MustCompile(`(?m)(^ *#.*\n)+`)
	// aboutMore matches comments about what a project lacks.
	aboutMore = regexp.MustCompile(`admission.policy|docs/|spec\.|tests?\b`)
)

// copyManifests copies the manifests of the installation under the project's names. The admission policy
// stays: it is about the fields that a Foo owns.
func (p *project) copyManifests(ctx context.Context) error {
	manifests, err := p.tracked(ctx, append([]string{"artifacts/deploy/**", ":!artifacts/deploy/permissions/admission-policy.yaml"}, p.notDeployed()...)...)
	rename := strings.NewReplacer("- admission-policy.yaml\n", "", "sample-controller", p.Program, "samplecontroller.k8s.io", p.Group,
		"foos", p.Plural, "FOO_", "", "Foos", p.Kinds, "Foo", p.Kind, "foo", p.Singular())
	for _, name := range manifests {
		text, readErr := os.ReadFile(filepath.Join(p.root, name))
		kept := comments.ReplaceAllStringFunc(string(text), func(comment string) string {
			if aboutMore.MatchString(comment) {
				return ""
			}
			return comment
		})
		err = errors.Join(err, readErr, p.put(name, []byte(rename.Replace(p.withoutAPI(kept)))))
	}
	return err
}

// notDeployed lists the manifests that only projects with an API of their own have.
func (p *project) notDeployed() []string {
	switch {
	case p.Of == nil:
		return nil
	case p.Of.ClusterScoped: // a Role can't grant anything on them
		return []string{":!artifacts/deploy/permissions/users.yaml", ":!artifacts/deploy/namespaced/**"}
	}
	return []string{":!artifacts/deploy/permissions/users.yaml"}
}

// aboutAPI matches what manifests say about a CustomResourceDefinition, permissions that "go test -update" adds, and the
// flag -image.
var aboutAPI = regexp.MustCompile(`(?m)^- (?:\.\./)+crd\n|^- users.yaml\n|^(rules:\n)(?:#.*\n)*- apiGroups: \[samplecontroller(?s:.*?)(- apiGroups: \[""\])|` +
	`^ +annotations:\n(?: +#.*\n)*.*/image: .*\n|^ +- -image=.*\n|^ +- name: FOO_IMAGE\n(?: {10}.*\n)+`)

// withoutAPI returns a manifest of a project for one of Kubernetes' own kinds.
func (p *project) withoutAPI(manifest string) string {
	if p.Of == nil {
		return manifest
	}
	return strings.Replace(aboutAPI.ReplaceAllString(manifest, "$1$2"), "containers.0.args.6", "containers.0.args.5", 1)
}

// errTaken explains compiler errors. Since the library compiles, only the new names can be the cause.
var errTaken = errors.New("one of the project's names has another meaning in this code or in generated code: choose another kind, plural or group, or add a word to it")

// compile writes the golden files of the children, and compiles the project with its tests.
func (p *project) compile(ctx context.Context) error {
	err := p.command("go", "test", "-vet=off", "./internal/kinds", "-update")(ctx)
	if err == nil { // go list compiles without linking; go vet would also analyze all imported packages
		err = p.command("go", "list", "-export", "-test", "-f=", "./...")(ctx)
	}
	if err != nil {
		return fmt.Errorf("%w\n%w", err, errTaken)
	}
	return nil
}

// commit creates the project's repository.
func (p *project) commit(ctx context.Context) error {
	message := fmt.Sprintf("%s: a controller for %s\n\n%s, %s, as generated by newproject.", p.Program, p.Kinds, p.resource(), p.Version)
	commit := []string{"git", "-c", "core.hooksPath=" + os.DevNull, "-c", "commit.gpgSign=false"}
	if _, err := output(ctx, p.dir, "git", "var", "GIT_COMMITTER_IDENT"); err != nil { // git does not know the user
		commit = append(commit, "-c", "user.name=newproject", "-c", "user.email=newproject@localhost")
	}
	for _, command := range [][]string{{"git", "init", "--quiet"}, {"git", "add", "--all"}, append(commit, "commit", "--quiet", "--message", message)} {
		if _, err := output(ctx, p.dir, command...); err != nil {
			return err
		}
	}
	return nil
}
