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

// written returns a project of which nothing is generated.
func written(t *testing.T) *project {
	t.Helper()
	root, err := findRoot()
	if err != nil {
		t.Fatal(err)
	}
	r := request{"github.com/acme/edge-mice/v2", "my-team.mice.acme.dev", "v1beta1", "HTTPMouse", "httpmice", "hm", copyDir, ""}
	p := &project{names: deriveNames(r), request: r, root: root, dir: t.TempDir()}
	if err := p.write(t.Context()); err != nil {
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
	p := written(t)
	foreign := regexp.MustCompile(`<%|\b[Ff]oos?\b|samplecontroller\.k8s|docs/|admission-policy|sample-controller/(internal|pkg/apis|pkg/generated)`)
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
	for _, name := range []string{"pkg/reconcile/plan/row.go", "pkg/process/options/options.go", "hack/codegen.sh", "hack/codegen/go.mod", "devcluster/main.go", "LICENSE"} {
		p.text(t, filepath.Join(copyDir, name))
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
		"an interrupt":            {awkward, "context canceled"},
		"a bad name":              {awkward + " -group=acme", "must have a dot"},
		"a library of no version": {awkward + " -library=github.com/acme/lib", "a module and a version"},
		"a bad flag":              {"-modul=github.com/acme/widgets", "-modul"},
		"an argument":             {"Widget", "unexpected argument"},
		"no project":              {"-update", "must be the work tree of a git repository"},
		"a kind for no project":   {"-add-kind=Gadget", "-add-kind needs -into"},
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

func TestAProjectOfAnEarlierNewprojectIsRefused(t *testing.T) {
	p := &project{dir: t.TempDir()}
	if err := errors.Join(p.put(stateFile, []byte(`{"commit": "1", "module": "github.com/acme/widgets"}`)), p.command("git", "init", "-q")(t.Context())); err != nil {
		t.Fatal(err)
	}
	if err := p.commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := run(t.Context(), []string{"-update", "-dir=" + p.dir}, t.Output()); err == nil || !strings.Contains(err.Error(), "docs/move-to-library.md") {
		t.Errorf("got %v", err)
	}
}

// TestNewProject makes a project, runs its tests and its demo, edits its copy of the library, adds a kind
// that owns Deployments, too, and updates the project to another version of the library.
// docs/second-kind.md adds a kind that owns something else.
func TestNewProject(t *testing.T) {
	if os.Getenv("NEW_PROJECT") == "" {
		t.Skip("make test-new-project sets NEW_PROJECT: it takes minutes")
	}
	p := &project{dir: filepath.Join(t.TempDir(), "project")}
	newproject := func(args string) {
		if err := run(t.Context(), strings.Fields(args), t.Output()); err != nil {
			t.Fatal(err)
		}
	}
	in := func(command string) {
		t.Helper()
		if out, err := output(t.Context(), p.dir, "bash", "-c", command); err != nil {
			t.Fatal(err)
		} else {
			t.Log(out)
		}
	}
	newproject(awkward + " -dir=" + p.dir)
	in("git config user.name a && git config user.email a@example.com")
	in(`lines=$(make -s count); echo "${lines} lines"; ((lines <= 2000))`)
	in("make test")
	in("make demo DEMO_FLAGS=-exit")
	in("for dir in . namespaced; do bin/devcluster kubectl kustomize artifacts/deploy/${dir} | grep -c ^kind: || exit; done")
	in(`echo "// edited" >>` + copyDir + `/pkg/signals/signal.go; ! make test 2>err; grep "is not the copy" err; git checkout -q .; rm err; git diff --exit-code`)

	newproject("-add-kind=Gadget -child=apps/v1/Deployment -into=" + p.dir)
	in("make test && git add -A && git commit -qm 'A second kind'")

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
