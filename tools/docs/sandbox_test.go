// SPDX-License-Identifier: Apache-2.0

// Tests of the sandbox.

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// newTree makes a repository with some files. One of them is a built program.
func newTree(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	write(t, root, ".gitignore", "/bin/\n/_output/\n")
	write(t, root, "README.md", "old\n")
	write(t, root, "gone.md", "a\n")
	write(t, root, "bin/devcluster", "#!/bin/sh\necho devcluster \"$@\"\n")
	write(t, root, "_output/log", "a\n")
	if err := os.Chmod(filepath.Join(root, "bin/devcluster"), 0o755); err != nil {
		t.Fatal(err)
	}
	git(t, root, "init", "--quiet")
	git(t, root, "add", ".")
	git(t, root, "commit", "--quiet", "-m", "a")
	return root
}

func write(t *testing.T, root, name, text string) {
	t.Helper()
	path := filepath.Join(root, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func git(t *testing.T, root string, args ...string) {
	t.Helper()
	command := exec.Command("git", append([]string{"-c", "user.name=a", "-c", "user.email=a@example.com"}, args...)...)
	command.Dir = root
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
}

func enter(t *testing.T, root string) *sandbox {
	t.Helper()
	box, err := newSandbox(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := box.remove(); err != nil {
			t.Error(err)
		}
	})
	return box
}

// wantFiles compares files in a folder with the wanted texts. An empty text means that
// the file must not exist.
func wantFiles(t *testing.T, root string, want map[string]string) {
	t.Helper()
	for name, text := range want {
		got, err := os.ReadFile(filepath.Join(root, name))
		if text == "" && err == nil {
			t.Errorf("%s should not exist", name)
		}
		if text != "" && string(got) != text {
			t.Errorf("%s has %q, want %q (%v)", name, got, text, err)
		}
	}
}

func TestCopyContainsUncommittedChanges(t *testing.T) {
	root := newTree(t)
	write(t, root, "README.md", "new\n")
	write(t, root, "docs/added.md", "b\n")
	if err := os.Remove(filepath.Join(root, "gone.md")); err != nil {
		t.Fatal(err)
	}
	box := enter(t, root)
	wantFiles(t, box.copy, map[string]string{"README.md": "new\n", "docs/added.md": "b\n", "gone.md": "", "_output/log": ""})
	if _, err := os.Stat(filepath.Join(box.copy, ".git")); err != nil {
		t.Error(err)
	}
	r, out := runDocument(t, box, "'''console\n$ kubectl get foo\ndevcluster kubectl get foo\n$ echo changed >README.md\n'''\n")
	if len(r.failed) > 0 {
		t.Error(out)
	}
	wantFiles(t, root, map[string]string{"README.md": "new\n"})
}

func TestCallersVariablesAreNotPassedOn(t *testing.T) {
	t.Setenv("KUBECONFIG", "/a")
	t.Setenv("GO_TEST_FLAGS", "-v")
	t.Setenv("GOFLAGS", "-trimpath")
	box := enter(t, newTree(t))
	for _, variable := range box.env {
		if strings.HasPrefix(variable, "KUBECONFIG=") || strings.HasPrefix(variable, "GO_TEST_FLAGS=") {
			t.Error(variable)
		}
	}
	r, out := runDocument(t, box, "'''console\n$ echo $GOFLAGS $HOME $TMPDIR\n-trimpath ~ "+box.in("tmp")+"\n$ go env GOMODCACHE >/dev/null\n'''\n")
	if len(r.failed) > 0 {
		t.Error(out)
	}
}
