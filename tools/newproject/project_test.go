// SPDX-License-Identifier: Apache-2.0

// Tests of new projects: of what is written, in seconds, and of a whole one.

package main

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// awkward is a request with names that need care: an acronym, an irregular plural, a group with a dash
// and a label more, a major version.
const awkward = "-module=github.com/acme/edge-mice/v2 -group=my-team.mice.acme.dev -version=v1beta1 -kind=HTTPMouse -plural=httpmice -short=hm"

// ofKubernetes is a request for a project for one of Kubernetes' own kinds, whose name follows.
const ofKubernetes = "-module=github.com/acme/edge-mice -group=acme.dev -kind-of="

// written returns a project with awkward names of which nothing is generated.
func written(t *testing.T) *project {
	t.Helper()
	return writtenFor(t, request{
		Module: "github.com/acme/edge-mice/v2", Group: "my-team.mice.acme.dev", Version: "v1beta1", Kind: "HTTPMouse", Plural: "httpmice", Short: "hm",
	}, "apps/v1/Deployment")
}

func writtenFor(t *testing.T, r request, childName string) *project {
	t.Helper()
	root, err := findRoot()
	child, childErr := childOf(childName)
	r.Library = copyDir
	p := &project{names: deriveNames(r), request: r, root: root, dir: t.TempDir()}
	if err := errors.Join(err, childErr); err != nil {
		t.Fatal(err)
	}
	if err := p.write(t.Context(), child); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *project) text(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(p.dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestAProjectNamesNeitherFoosNorPackagesThatItLacks(t *testing.T) {
	checkForeign(t, written(t), ``)
}

// checkForeign fails if a project names what it lacks.
func checkForeign(t *testing.T, p *project, more string) {
	t.Helper()
	foreign := regexp.MustCompile(more + `<%|\b[Ff]oos?\b|samplecontroller\.k8s|docs/|admission-policy|sample-controller/(internal|pkg/apis|pkg/generated)`)
	err := filepath.WalkDir(p.dir, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			if entry.Name() == "third_party" {
				return fs.SkipDir
			}
			return err
		}
		at, _ := filepath.Rel(p.dir, name)
		for i, line := range strings.Split(p.text(t, at), "\n") {
			// Comments of the loop are about Foos.
			if _, comment, _ := strings.Cut(line, "//"); foreign.MatchString(strings.TrimSuffix(line, comment)) {
				t.Errorf("%s:%d: %s", at, i+1, line)
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// Each has an owner or a child with another scope, group or name.
func TestAProjectForAKindOfKubernetesHasNoAPI(t *testing.T) {
	for kind, child := range map[string]string{
		"v1/Node": "v1/ConfigMap", "rbac.authorization.k8s.io/v1/ClusterRole": "apps/v1/Deployment", "v1/Endpoints": "v1/ConfigMap",
	} {
		t.Run(kind, func(t *testing.T) {
			p := writtenFor(t, request{Module: "github.com/acme/edge-mice", Group: "acme.dev", KindOf: kind}, child)
			checkForeign(t, p, `edge-mice/pkg|artifacts/crd$|- (\.\./)+crd|hack/update-codegen|users\.yaml|\bIMAGE\b|-image=|`)
			for _, name := range []string{"pkg", "artifacts/examples", "hack/update-codegen.sh", "artifacts/deploy/permissions/users.yaml"} {
				if _, err := os.Stat(filepath.Join(p.dir, name)); err == nil {
					t.Errorf("the project has %s", name)
				}
			}
			if args := p.text(t, "artifacts/deploy/workload/deployment.yaml"); !strings.Contains(args, "- edge-mice\n        env:\n        # In bytes.") {
				t.Errorf("the Deployment is\n%s", args)
			}
			if err := p.command("go", "build", "./internal/kinds")(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestAProjectHasTheLibraryWithoutTests(t *testing.T) {
	p := written(t)
	err := filepath.WalkDir(filepath.Join(p.dir, copyDir), func(name string, _ fs.DirEntry, err error) error {
		if strings.HasSuffix(name, "_test.go") || strings.HasSuffix(name, ".md") {
			t.Errorf("the copy has %s", name)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	for _, name := range []string{"pkg/reconcile/plan/row.go", "pkg/process/options/options.go", "hack/codegen.sh", "hack/codegen/go.mod", "hack/tools/go.mod", "devcluster/main.go", "LICENSE"} {
		p.text(t, filepath.Join(copyDir, name))
	}
	for _, name := range []string{".editorconfig", ".devcontainer/devcontainer.json", ".github/CODEOWNERS", ".github/dependabot.yml", ".github/workflows/test.yml"} {
		p.text(t, name)
	}
	if err := p.command("hack/library.sh", "check")(t.Context()); err != nil {
		t.Error(err)
	}
	if err := p.put(copyDir+"/pkg/reconcile/plan/row.go", []byte("package plan")); err != nil {
		t.Fatal(err)
	}
	if err := p.command("hack/library.sh", "check")(t.Context()); err == nil || !strings.Contains(err.Error(), "make it in a\nfork") {
		t.Errorf("the copy was edited, and the check says %v", err)
	}
}

func TestAnUpdateMergesTheLoop(t *testing.T) {
	for say, test := range map[string]struct {
		base, own, want string
		conflict        bool
	}{
		"only the library changed":    {"old", "old", "new", false},
		"only the project changed":    {"new", "own", "own", false},
		"both changed the same line":  {"old", "own", "<<<<<<< yours\nown\n=======\nnew\n>>>>>>> library", true},
		"the library has a new file":  {"", "", "new", false},
		"the project deleted its own": {"new", "", "", false},
	} {
		t.Run(say, func(t *testing.T) {
			p := &project{names: names{Module: "github.com/acme/widgets"}, dir: t.TempDir()}
			text := func(s string) []byte { return []byte(strings.Replace("package main\n\n// S\n", "S", s, 1)) }
			err := errors.Join(p.put("lib/main.go", text("new")), p.put("hack/library.sh", []byte("#!/bin/sh\necho lib\n")))
			base := map[string][]byte{}
			if test.base != "" {
				base["main.go"] = text(test.base)
			}
			if test.own != "" {
				err = errors.Join(err, p.put("main.go", text(test.own)))
			}
			t.Chdir(p.dir)
			conflicts, mergeErr := p.merge(t.Context(), base)
			if err := errors.Join(err, mergeErr); err != nil || len(conflicts) > 0 != test.conflict {
				t.Fatalf("got %v, conflicts %q", err, conflicts)
			}
			got, _ := os.ReadFile("main.go")
			want := string(text(test.want))
			if test.conflict {
				want = strings.ReplaceAll(test.want, "own\n", "// own\n")
				want = "package main\n\n" + strings.ReplaceAll(want, "new\n", "// new\n") + "\n"
			}
			if test.want != "" && string(got) != want || test.want == "" && len(got) > 0 {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

func TestTwoKindsOfAProjectMayOwnTheSameType(t *testing.T) {
	p := written(t)
	add := p.request
	add.Kind, add.Plural, add.Short = "Gadget", "", ""
	n := deriveNames(add)
	child, err := childOf("apps/v1/Deployment")
	if err := errors.Join(err, p.checkKind(n)); err != nil {
		t.Fatal(err)
	}
	p.names = n
	err = p.fill(child, false)
	for _, addition := range p.additions(n, child) {
		err = errors.Join(err, p.add(addition))
	}
	if err != nil {
		t.Fatal(err)
	}
	// The permissions on Deployments are there once.
	if permissions := p.text(t, "artifacts/deploy/permissions/controller.yaml"); strings.Count(permissions, "deployments]") != 1 || !strings.Contains(permissions, "[gadgets/status]") {
		t.Errorf("the controller may:\n%s", permissions)
	}
	if permissions := p.text(t, "artifacts/deploy/permissions/users.yaml"); !strings.Contains(permissions, "[gadgets/scale]") {
		t.Errorf("users may:\n%s", permissions)
	}
	declared := map[string]string{}
	for _, name := range []string{"httpmouse", "gadget"} {
		for _, function := range regexp.MustCompile(`(?m)^func (\w+)`).FindAllStringSubmatch(p.text(t, "internal/kinds/"+name+".go"), -1) {
			if other := declared[function[1]]; other != "" {
				t.Errorf("the files of %s and %s both declare %s", other, name, function[1])
			}
			declared[function[1]] = name
		}
	}
	if err := p.checkKind(n); err == nil {
		t.Error("a kind that exists is not refused")
	}
}

// TestFailureLeavesNothingBehind interrupts the work, and makes requests that are refused.
func TestFailureLeavesNothingBehind(t *testing.T) {
	for say, test := range map[string]struct{ args, want string }{
		"an interrupt":                  {awkward, "context canceled"},
		"a bad name":                    {awkward + " -group=acme", "must have a dot"},
		"a library of no version":       {awkward + " -library=github.com/acme/lib", "a module and a version"},
		"a bad flag":                    {"-modul=github.com/acme/widgets", "-modul"},
		"an argument":                   {"Widget", "unexpected argument"},
		"no project":                    {"-update", "must be the work tree of a git repository"},
		"a kind for no project":         {"-add-kind=Gadget", "-add-kind needs -into"},
		"a kind, and one of Kubernetes": {awkward + " -kind-of=v1/Namespace", "-kind-of takes the kind, its version and its names from Kubernetes"},
		"a child of the owner's kind":   {ofKubernetes + "v1/ConfigMap", "-child=v1/ConfigMap: is the kind of the owners, too"},
		"a cluster-scoped child":        {ofKubernetes + "v1/Namespace -child=v1/Node", "-child=v1/Node: Nodes are cluster-scoped"},
		"a child for no kind":           {awkward + " -child=v1/ConfigMap", "-child only with -add-kind or -kind-of"},
		"no kind of Kubernetes":         {ofKubernetes + "acme.dev/v1/Widget", "-kind-of=acme.dev/v1/Widget: client-go does not know this kind"},
		"a kind without a version":      {ofKubernetes + "Namespace", "-kind-of=Namespace: must be GROUP/VERSION/Kind"},
		"a part of requests":            {ofKubernetes + "v1/ListOptions", "client-go has no client and informer for it"},
		"a kind that can't be watched":  {ofKubernetes + "authorization.k8s.io/v1/SubjectAccessReview", "client-go has no client and informer for it"},
	} {
		t.Run(say, func(t *testing.T) {
			beside := t.TempDir()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			err := run(ctx, append(strings.Fields(test.args), "-dir="+filepath.Join(beside, "project")), cancelAt{"Generating", cancel})
			if err == nil || !strings.Contains(err.Error(), test.want) || errors.As(err, new(refusal)) != (say != "an interrupt") {
				t.Errorf("got %v, want %q in it", err, test.want)
			}
			if entries, err := os.ReadDir(beside); err != nil || len(entries) > 0 {
				t.Errorf("there are %v (%v), want nothing", entries, err)
			}
		})
	}
}

// cancelAt is a writer that cancels a context when a text is written.
type cancelAt struct {
	text   string
	cancel context.CancelFunc
}

func (c cancelAt) Write(written []byte) (int, error) {
	if bytes.Contains(written, []byte(c.text)) {
		c.cancel()
	}
	return len(written), nil
}

func TestProjectsThatAreRefused(t *testing.T) {
	for say, test := range map[string]struct{ state, args, want string }{
		"that of an earlier newproject": {`{"commit": "1", "module": "github.com/acme/widgets"}`, "-update -dir=", "tools/newproject/README.md shows how to move it"},
		"an added kind beside one of Kubernetes": {
			`{"module": "github.com/acme/quotas", "group": "acme.dev", "kindOf": "v1/Namespace", "library": "third_party/sample-controller"}`,
			"-add-kind=Gadget -into=", "is for Namespaces of Kubernetes, and has no API for kinds of its own",
		},
	} {
		t.Run(say, func(t *testing.T) {
			p := &project{dir: t.TempDir()}
			if err := errors.Join(p.put(stateFile, []byte(test.state)), p.command("git", "init", "-q")(t.Context()), p.commit(t.Context())); err != nil {
				t.Fatal(err)
			}
			if err := run(t.Context(), strings.Fields(test.args+p.dir), t.Output()); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// TestNewProjectForAKindOfKubernetes makes a project for Ingresses, runs its tests and its demo, and updates it.
// examples/namespaces is one for a cluster-scoped kind.
func TestNewProjectForAKindOfKubernetes(t *testing.T) {
	p, newproject, in := built(t)
	newproject(ofKubernetes + "networking.k8s.io/v1/Ingress -dir=" + p.dir)
	in("make test lint && make demo DEMO_FLAGS=-exit")
	in("for dir in . namespaced; do bin/devcluster kubectl kustomize artifacts/deploy/${dir} | grep -c ^kind: || exit; done")
	newproject("-update -dir=" + p.dir)
	in(`test -z "$(git diff --name-only -- ":!third_party" ":!.newproject.json")"`)
}

// TestNewProjectForItsOwnKind makes a project, runs its tests and its demo, edits its copy of the library, adds a kind
// that owns Deployments, too, and updates the project to another version of the library.
// docs/second-kind.md adds a kind that owns something else.
func TestNewProjectForItsOwnKind(t *testing.T) {
	p, newproject, in := built(t)
	newproject(awkward + " -dir=" + p.dir)
	in("git config user.name a && git config user.email a@example.com")
	readme, err := filepath.Abs("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	in(`lines=$(make -s count) && ((lines <= 2000)) && printf -v about '1,%03d lines of Go' $(((lines + 50) / 100 * 100 - 1000)) && echo "${about}" && grep "${about}" ` + readme)
	in("make test lint")
	in("make demo DEMO_FLAGS=-exit")
	in("for dir in . namespaced; do bin/devcluster kubectl kustomize artifacts/deploy/${dir} | grep -c ^kind: || exit; done")
	in(`echo "// edited" >>` + copyDir + `/pkg/signals/signal.go; ! make test 2>err; grep "is not the copy" err; git checkout -q .; rm err; git diff --exit-code`)

	newproject("-add-kind=Gadget -child=apps/v1/Deployment -into=" + p.dir)
	in("make test lint && git add -A && git commit -qm 'A second kind'")

	root, err := findRoot()
	second := t.TempDir()
	library := &project{root: root, dir: second}
	signal := "pkg/signals/signal.go"
	err = errors.Join(err, library.copyFiles(t.Context(), second, "**"), library.put(signal, []byte(library.text(t, signal)+"\n// A second version.\n")), library.commit(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(second)
	newproject("-update -dir=" + p.dir)
	in(`git status --porcelain; test -z "$(git diff --name-only -- ":!third_party" ":!.newproject.json")" && tail -1 ` + copyDir + "/" + signal + " | grep 'second version' && go vet ./...")
}

// built returns a project that does not exist yet, a function that runs newproject, and one that runs a command in the
// project.
func built(t *testing.T) (p *project, newproject, in func(string)) {
	t.Helper()
	if os.Getenv("NEW_PROJECT") == "" {
		t.Skip("make test-new-project sets NEW_PROJECT: it takes minutes")
	}
	p = &project{dir: filepath.Join(t.TempDir(), "project")}
	newproject = func(args string) {
		t.Helper()
		if err := run(t.Context(), strings.Fields(args), t.Output()); err != nil {
			t.Fatal(err)
		}
	}
	in = func(command string) {
		t.Helper()
		out, err := output(t.Context(), p.dir, "bash", "-c", command)
		if err != nil {
			t.Fatal(err)
		}
		t.Log(out)
	}
	return p, newproject, in
}
