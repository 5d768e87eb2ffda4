// SPDX-License-Identifier: Apache-2.0

// Tests of the steps, and of failures in each of them.

package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// small returns a project that is made quickly: its generator is one line of shell.
func small(script string, more ...treeFile) *project {
	return &project{names: widget, files: append([]treeFile{
		{"go.mod", []byte("module " + widget.Module + "\n\ngo 1.26.0\n"), 0o644},
		{"main.go", []byte("package main\n\nfunc main() {}\n"), 0o644},
		{"test/fuzz/go.mod", []byte("module " + widget.Module + "/test/fuzz\n\ngo 1.26.0\n"), 0o644},
		{"test/fuzz/doc.go", []byte("package fuzz\n"), 0o644},
		{"hack/update-chart.sh", []byte("#!/usr/bin/env bash\n"), 0o755},
		{"hack/update-codegen.sh", []byte("#!/usr/bin/env bash\n" + script + "\n"), 0o755},
	}, more...)}
}

func withIdentity(t *testing.T) {
	t.Helper()
	t.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
	t.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	for _, who := range []string{"AUTHOR", "COMMITTER"} {
		t.Setenv("GIT_"+who+"_NAME", "someone")
		t.Setenv("GIT_"+who+"_EMAIL", "someone@example.com")
	}
}

// list returns the names of a folder's entries.
func list(t *testing.T, folder string) []string {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, entry := range entries {
		found = append(found, entry.Name())
	}
	return found
}

func TestMake(t *testing.T) {
	withIdentity(t)
	for say, prepare := range map[string]func(dir string) error{
		"a new folder":    func(string) error { return nil },
		"an empty folder": func(dir string) error { return os.Mkdir(dir, 0o755) },
	} {
		t.Run(say, func(t *testing.T) {
			base := t.TempDir()
			dir := filepath.Join(base, "a new project")
			if err := prepare(dir); err != nil {
				t.Fatal(err)
			}
			var out bytes.Buffer
			m := &maker{project: small("echo generated >generated"), dir: dir, out: &out}
			if err := m.make(t.Context(), step{"Creating a git repository", m.finish}); err != nil {
				t.Fatal(err)
			}
			m.sayNext()
			if got, want := list(t, dir), []string{".git", "generated", "go.mod", "hack", "main.go", "test"}; !slices.Equal(got, want) {
				t.Errorf("the project has %v, want %v", got, want)
			}
			if got := list(t, base); len(got) != 1 {
				t.Errorf("the folder of the project has %v, want only the project", got)
			}
			for _, want := range []string{"The first commit contains all files", "deployment.go", "pkg/apis/acme/v1/types.go", dir} {
				if !strings.Contains(out.String(), want) {
					t.Errorf("the output lacks %q:\n%s", want, out.String())
				}
			}
			if _, err := git(t.Context(), dir, "diff", "--exit-code", "HEAD", stateBranch); err != nil {
				t.Error(err)
			}
			if changes, err := git(t.Context(), dir, "status", "--porcelain"); err != nil || changes != "" {
				t.Errorf("the work tree has changes: %v\n%s", err, changes)
			}
		})
	}
}

func TestMakeWithoutAGitIdentity(t *testing.T) {
	t.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
	t.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	t.Setenv("GIT_CONFIG_COUNT", "1")
	t.Setenv("GIT_CONFIG_KEY_0", "user.useConfigOnly")
	t.Setenv("GIT_CONFIG_VALUE_0", "true")
	for _, variable := range []string{"GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL", "EMAIL"} {
		t.Setenv(variable, "") // restored at the end
		if err := os.Unsetenv(variable); err != nil {
			t.Fatal(err)
		}
	}
	m := &maker{project: small("true"), dir: filepath.Join(t.TempDir(), "new"), out: &bytes.Buffer{}}
	if err := m.make(t.Context(), step{"Creating a git repository", m.finish}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(m.hint, "its author is newproject") {
		t.Errorf("the hint is %q", m.hint)
	}
}

// TestFailureLeavesNothingBehind makes each step fail.
func TestFailureLeavesNothingBehind(t *testing.T) {
	withIdentity(t)
	for say, test := range map[string]struct {
		project *project
		want    string
	}{
		"a file in the place of a folder": {small("true", treeFile{"main.go/file", nil, 0o644}), "writing"},
		"a generator that fails":          {small("echo 'it is broken' >&2; touch half; exit 3"), "it is broken"},
		"a module that does not tidy":     {small("echo rubbish >go.mod"), "go mod tidy"},
		"code that does not compile":      {small("true", treeFile{"other.go", []byte("package main\n\nvar x int = \"\"\n"), 0o644}), "go list -export"},
		"tests that do not compile":       {small("true", treeFile{"test/fuzz/a_test.go", []byte("package fuzz\n\nvar x int = \"\"\n"), 0o644}), "go list -export"},
		"a trace in a generated file":     {small("echo 'a Foo' >made"), "made:1: a Foo"},
	} {
		t.Run(say, func(t *testing.T) {
			base := t.TempDir()
			m := &maker{project: test.project, dir: filepath.Join(base, "new"), out: &bytes.Buffer{}}
			if err := m.make(t.Context(), step{"Creating a git repository", m.finish}); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q in it", err, test.want)
			}
			if got := list(t, base); len(got) != 0 {
				t.Errorf("it left %v behind", got)
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

func TestInterruptLeavesNothingBehind(t *testing.T) {
	withIdentity(t)
	for _, at := range []string{"Writing", "Generating", "Compiling", "git repository"} {
		t.Run(at, func(t *testing.T) {
			base := t.TempDir()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			m := &maker{project: small("true"), dir: filepath.Join(base, "new"), out: cancelAt{at, cancel}}
			if err := m.make(ctx, step{"Creating a git repository", m.finish}); !errors.Is(err, context.Canceled) {
				t.Errorf("got %v", err)
			}
			if got := list(t, base); len(got) != 0 {
				t.Errorf("it left %v behind", got)
			}
		})
	}
}

// TestRefusalsWriteNothing runs the whole command with requests that it refuses.
func TestRefusalsWriteNothing(t *testing.T) {
	base := t.TempDir()
	dir := filepath.Join(base, "new")
	for say, arguments := range map[string][]string{
		"a bad name":          {"-module=widgets", "-group=acme.dev", "-kind=Widget", "-dir=" + dir},
		"a name that is used": {"-module=github.com/acme/demo", "-group=acme.dev", "-kind=Widget", "-dir=" + dir},
		"a bad flag":          {"-modul=github.com/acme/widgets"},
		"an argument":         {"-module=github.com/acme/widgets", "-group=acme.dev", "-kind=Widget", "-dir=" + dir, "Widget"},
	} {
		if err := run(t.Context(), arguments, &bytes.Buffer{}); !errors.As(err, new(refusal)) {
			t.Errorf("%s: got %v", say, err)
		}
		if got := list(t, base); len(got) != 0 {
			t.Errorf("%s: it left %v behind", say, got)
		}
	}
}

func TestTraces(t *testing.T) {
	for line, want := range map[string]bool{
		"a Foo": true, "foos": true, "newFoo": true, "FOO": true, "foo_bar": true, "fooinformers": true, "foolisters": true, "typedfoo": true,
		"samplecontroller.k8s.io": true, "SampleController": true, "sample_controller": true, "The Sample Controller Authors": true, "samplev1alpha1": true,
		"example.com/sample-controller/pkg": true, "com.example.sample-controller": true, "kubernetes/sample-controller": true, "footest": true,
		"a FoodTruck": false, "food for a footprint": false, "type of condition in CamelCase or in foo.example.com/CamelCase.": false,
		"a sample of a controller": false, "registry.example.com/team/widgets": false,
	} {
		got := findTraces([]treeFile{{path: "a", data: []byte("first\n" + line + "\n")}}, widget)
		if len(got) > 0 != want {
			t.Errorf("%q: got %v", line, got)
		}
		if want && len(got) == 1 && (got[0].line != 2 || got[0].file != "a") {
			t.Errorf("%q: found in %s:%d, want a:2", line, got[0].file, got[0].line)
		}
	}
}

// TestChosenNamesAreNoTrace uses names that look like the old ones.
func TestChosenNamesAreNoTrace(t *testing.T) {
	for line, want := range map[string]bool{
		"FooBar, foobars, newFooBar and NewFooBars": false, "github.com/acme/foo-controller, foo_controller_foobars": false, "samplecontroller.acme.dev/v1": false,
		"foo":                           true,
		"example.com/sample-controller": true,
		"FooBar and Foo":                true,
		"foos of samplecontroller.dev":  true,
	} {
		if got := findTraces([]treeFile{{path: "a", data: []byte(line)}}, bar); len(got) > 0 != want {
			t.Errorf("%q: got %v", line, got)
		}
	}
	for _, line := range []string{"foodtruck", "FoodTrucks", "example-foodtruck-1", "newFoodTruck", "foodTrucksDeployment", "fakefoodv1alpha1"} {
		if got := findTraces([]treeFile{{path: line, data: []byte(line)}}, truck); len(got) > 0 {
			t.Errorf("%q: got %v", line, got)
		}
	}
}

func TestTracesInPathsAndOtherFiles(t *testing.T) {
	got := findTraces([]treeFile{{path: "docs/foo.md"}, {path: "go.sum", data: []byte("foo")}, {path: "image", data: []byte("foo\x00")}}, widget)
	if len(got) != 1 || got[0].file != "docs/foo.md" {
		t.Errorf("got %v, want only docs/foo.md", got)
	}
}
