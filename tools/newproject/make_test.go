// SPDX-License-Identifier: Apache-2.0

// Tests of the steps and their failures, with a small project instead of this one.

package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// fixture is a source and a project that was generated from it.
type fixture struct {
	*testing.T

	source, project string
}

// lines is a file in which changes at the beginning and at the end do not conflict.
const lines = "first\n\n\n\n\nmiddle of the Foo\n\n\n\n\nlast\n"

// toMake are the arguments for the project, without its directory.
var toMake = []string{"-module=github.com/acme/widgets", "-group=acme.dev", "-kind=Widget"}

// newSource returns a fixture without a project.
func newSource(t *testing.T) *fixture {
	t.Helper()
	t.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
	t.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	for _, who := range []string{"AUTHOR", "COMMITTER"} {
		t.Setenv("GIT_"+who+"_NAME", "someone")
		t.Setenv("GIT_"+who+"_EMAIL", "someone@example.com")
	}
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{t, filepath.Join(base, "source"), filepath.Join(base, "a project")}
	for name, text := range map[string]string{
		"go.mod": "module " + sample.Module + "\n\ngo 1.26.0\n", "main.go": "package main\n\nfunc main() {}\n",
		"hack/update-codegen.sh":         "#!/usr/bin/env bash\necho generated >generated\n",
		"artifacts/chart/files/file.txt": "old\n",
		"both.txt":                       lines, "deleted.txt": "old\n", "foo.txt": "one\n", "before.txt": strings.Repeat("a long text about a Foo\n", 9),
	} {
		f.write(f.source, name, text)
	}
	f.git(f.source, "init", "--quiet")
	f.commit(f.source)
	return f
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := newSource(t)
	f.mustRun(append(toMake, "-dir="+f.project)...)
	return f
}

func (f *fixture) write(dir, name, text string) {
	f.Helper()
	name = filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		f.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o755); err != nil {
		f.Fatal(err)
	}
}

func (f *fixture) git(dir string, arguments ...string) string {
	f.Helper()
	out, err := git(f.Context(), dir, arguments...)
	if err != nil {
		f.Fatal(err)
	}
	return strings.TrimSpace(out)
}

func (f *fixture) commit(dir string) {
	f.Helper()
	f.git(dir, "add", "--all")
	f.git(dir, "commit", "--quiet", "--message=change")
}

// run runs the command in the source.
func (f *fixture) run(arguments ...string) (string, error) {
	f.Chdir(f.source)
	var out bytes.Buffer
	err := run(f.Context(), arguments, &out)
	return out.String(), err
}

func (f *fixture) mustRun(arguments ...string) string {
	f.Helper()
	out, err := f.run(arguments...)
	if err != nil {
		f.Fatalf("%v\n%s", err, out)
	}
	return out
}

// expectBeside checks that the source's parent directory contains only the given names besides it.
func (f *fixture) expectBeside(want string) {
	f.Helper()
	entries, err := os.ReadDir(filepath.Dir(f.source))
	var found []string
	for _, entry := range entries {
		found = append(found, entry.Name())
	}
	if got := strings.Join(found, ", "); err != nil || got != want {
		f.Errorf("there are %s (%v), want %s", got, err, want)
	}
}

func TestMake(t *testing.T) {
	f := newSource(t)
	if err := os.Mkdir(f.project, 0o755); err != nil { // an empty directory
		t.Fatal(err)
	}
	out := f.mustRun(append(toMake, "-dir="+f.project)...)
	for _, want := range []string{"The first commit contains all files", "widgets.acme.dev, v1alpha1", f.project} {
		if !strings.Contains(out, want) {
			t.Errorf("the output lacks %q:\n%s", want, out)
		}
	}
	f.expectBeside("a project, source")
	want := ".newproject.json README.md artifacts/chart/files/file.txt before.txt both.txt deleted.txt generated go.mod hack/update-codegen.sh main.go widget.txt"
	if got := f.git(f.project, "ls-files"); got != strings.ReplaceAll(want, " ", "\n") {
		t.Errorf("the project has\n%s", got)
	}
	f.git(f.project, "diff", "--exit-code", "HEAD", stateBranch)
	if changes := f.git(f.project, "status", "--porcelain"); changes != "" {
		t.Errorf("the work tree has changes:\n%s", changes)
	}
}

func TestMakeWithoutAGitIdentity(t *testing.T) {
	f := newSource(t)
	t.Setenv("GIT_CONFIG_COUNT", "1")
	t.Setenv("GIT_CONFIG_KEY_0", "user.useConfigOnly")
	t.Setenv("GIT_CONFIG_VALUE_0", "true")
	for _, variable := range []string{"GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL", "EMAIL"} {
		t.Setenv(variable, "") // restored at the end
		if err := os.Unsetenv(variable); err != nil {
			t.Fatal(err)
		}
	}
	if out := f.mustRun(append(toMake, "-dir="+f.project)...); !strings.Contains(out, "its author is newproject") {
		t.Errorf("the output is\n%s", out)
	}
}

// TestFailureLeavesNothingBehind makes steps fail, interrupts them, and has requests that are
// refused.
func TestFailureLeavesNothingBehind(t *testing.T) {
	script := "#!/usr/bin/env bash\n"
	for say, test := range map[string]struct {
		file, text string
		more, want string
	}{
		"a generator that fails":      {"hack/update-codegen.sh", script + "echo 'it is broken' >&2; touch half; exit 3\n", "", "it is broken"},
		"a module that does not tidy": {"hack/update-codegen.sh", script + "echo rubbish >go.mod\n", "", "go mod tidy"},
		"code that does not compile":  {"other.go", "package main\n\nvar x int = \"\"\n", "", "choose another kind"},
		"tests that do not compile":   {"a_test.go", "package main\n\nvar x int = \"\"\n", "", "go list -export"},
		"an old name":                 {"new.txt", "kubernetes/sample-controller\n", "", "new.txt:1: "},
		"two files of one path":       {"foos.txt", "", "-kind=Sheep -plural=sheep -module=github.com/acme/farm", "two files would have the path"},
		"an interrupt":                {"x", "", "", "context canceled"},
		"a bad name":                  {"x", "", "-group=acme", "must have a dot"},
		"a directory of the project":  {"x", "", "-module=github.com/acme/hack", "must not be hack"},
		"a bad flag":                  {"x", "", "-modul=github.com/acme/widgets", "-modul"},
		"an argument":                 {"x", "", "Widget", "unexpected argument"},
	} {
		t.Run(say, func(t *testing.T) {
			f := newSource(t)
			f.write(f.source, test.file, test.text)
			f.commit(f.source)
			f.Chdir(f.source)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			out := cancelAt{"Compiling", cancel}
			if say != "an interrupt" {
				out.text = "never"
			}
			arguments := append(append(toMake[:3:3], "-dir="+f.project), strings.Fields(test.more)...)
			err := run(ctx, arguments, out)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q in it", err, test.want)
			}
			if errors.As(err, new(refusal)) != (test.more != "") {
				t.Errorf("%v: whether it is a refusal is wrong", err)
			}
			f.expectBeside("source")
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

// examples are projects to make. Those called quick are made by make test-new-project; the full
// ones among them run on a cluster with NEW_PROJECTS=all.
var examples = []struct {
	say   string
	args  string
	quick bool
	all   bool // run make test if NEW_PROJECTS=all
}{
	{
		"an acronym, a major version, a group with a dash, and a second kind",
		"-module=github.com/acme/edge-routes/v2 -group=my-team.acme.dev -version=v1beta1 -kind=HTTPRoute -short=hr -add-kind=Redirect -child=networking.k8s.io/v1/Ingress", true, true,
	},
	{"a kind that begins with the old one, lean", "-lean -module=example.org/food.trucks -group=food.example.org -kind=FoodTruck -short=truck", true, true},
	{"taken names, an irregular plural, a group like one of Kubernetes'", "-module=github.com/acme/policies -group=apps.acme.dev -version=v1 -kind=Policy", false, false},
	{"several words, one of which is a variable", "-module=github.com/acme/cache-controller -group=cache.acme.dev -version=v2alpha1 -kind=CacheCluster -plural=cacheclusters", false, false},
	{"a plural that equals the kind", "-module=example.org/Farm/v3 -group=farm.example.org -version=v1 -kind=Sheep -plural=sheep", false, false},
}

// quickChecks must succeed in a new project. They compile with the flags of hack/build.sh and
// without the race detector, so that most imported packages are in the build cache. All of the
// simulation is run with the added kind, of which docs/second-kind.md runs a part.
var quickChecks = []string{"hack/check.sh fmt", "hack/check.sh shellcheck", "hack/check.sh tidy", `
export GOFLAGS="-trimpath -buildvcs=false" CGO_ENABLED=0 GOWORK=off
statuses=${PWD}/_output/statuses # that the simulation records, for test/waiters
mkdir -p "${statuses}"
RECORDED_STATUSES="${statuses}" go test -vet=off . || exit
go test -vet=off $(go list ./... | sed 1d) || exit
for module in test/policy test/waiters test/chart; do
	[[ ! -d "${module}" ]] || (cd "${module}" && RECORDED_STATUSES="${statuses}" go test -vet=off .) || exit
done`}

// TestNewProjects makes projects and runs their own checks. NEW_PROJECTS selects the
// projects: quick or all. Each takes minutes.
func TestNewProjects(t *testing.T) {
	which := os.Getenv("NEW_PROJECTS")
	if which != "quick" && which != "all" {
		t.Skip("NEW_PROJECTS is neither quick nor all: make test-new-project sets it")
	}
	for _, a := range examples {
		if which == "quick" && !a.quick {
			continue
		}
		t.Run(a.say, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "new")
			if err := run(t.Context(), append(strings.Fields(a.args), "-dir="+dir), t.Output()); err != nil {
				t.Fatal(err)
			}
			checks := quickChecks
			if which == "all" && a.all {
				checks = []string{"make test"}
			}
			for _, check := range append(checks, "git diff --exit-code") {
				t.Run(check, func(t *testing.T) { runIn(t, dir, check) })
			}
		})
	}
}

// runIn runs a command in a directory.
func runIn(t *testing.T, dir, command string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "bash", "-c", command)
	cmd.Dir = dir
	// The new project's make must not get the variables of the make that runs this test.
	for _, variable := range gitEnvironment() {
		name, _, _ := strings.Cut(variable, "=")
		if !strings.HasPrefix(name, "MAKE") && !slices.Contains([]string{"MFLAGS", "KUBECONFIG", "E2E_KUBECONFIG", "GO_TEST_FLAGS", "NEW_PROJECTS", "GOFLAGS", "GOWORK"}, name) {
			cmd.Env = append(cmd.Env, variable)
		}
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", command, err, out)
	}
}
