// SPDX-License-Identifier: Apache-2.0

// Package hack tests the scripts of this folder. hack/codegen tests those that generate
// code.
package hack

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Each of these is a package whose test fails unless the file "policy" at the root of the
// tree says strict.
var (
	readsFile = map[string]string{"x_test.go": `package x

import (
	"os"
	"testing"
)

func TestPolicy(t *testing.T) {
	if text, err := os.ReadFile("../../policy"); err != nil || string(text) != "strict" {
		t.Errorf("%q, %v", text, err)
	}
}
`}
	testStartsProgram = map[string]string{"x_test.go": `package x

import (
	"os/exec"
	"testing"
)

func TestPolicy(t *testing.T) {
	if text, err := exec.Command("cat", "../../policy").Output(); err != nil || string(text) != "strict" {
		t.Errorf("%q, %v", text, err)
	}
}
`}
	codeStartsProgram = map[string]string{"x.go": `package x

import "os/exec"

func policy() ([]byte, error) { return exec.Command("cat", "../../policy").Output() }
`, "x_test.go": `package x

import "testing"

func TestPolicy(t *testing.T) {
	if text, err := policy(); err != nil || string(text) != "strict" {
		t.Errorf("%q, %v", text, err)
	}
}
`}
)

// TestCachedResultsAreOfThisTree makes trees with one test that reads a file, which the go
// command sees only in the last row. The check must repeat the result while nothing
// changes, and must fail as soon as the file does.
func TestCachedResultsAreOfThisTree(t *testing.T) {
	for name, test := range map[string]struct {
		check, folder string
		code          map[string]string
		module        bool // the folder is a module of its own
		seen          bool // the go command sees that the file is read
	}{
		"the policy's module":          {"policy", "test/policy", readsFile, true, false},
		"another module's unit tests":  {"unit", "tools/x", readsFile, true, false},
		"a test that starts a program": {"unit", "tools/x", testStartsProgram, false, false},
		"code that starts a program":   {"unit", "tools/x", codeStartsProgram, false, false},
		"a file of the same module":    {"unit", "tools/x", readsFile, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tree := filepath.Join(t.TempDir(), "a tree & more")
			script, err := os.ReadFile("check.sh")
			if err != nil {
				t.Fatal(err)
			}
			write(t, tree, "hack/check.sh", string(script))
			write(t, tree, "go.mod", "module example.com/tree\n\ngo 1.26\n")
			for file, text := range test.code {
				write(t, tree, test.folder+"/"+file, text)
			}
			if test.module {
				write(t, tree, test.folder+"/go.mod", "module example.com/tree/x\n\ngo 1.26\n")
			}
			write(t, tree, "policy", "strict")

			if out, err := check(t, tree, test.check); err != nil {
				t.Fatalf("first run: %v\n%s", err, out)
			}
			if !test.seen { // otherwise the file is too new for a cached result
				if out, err := check(t, tree, test.check); err != nil || !strings.Contains(out, "(cached)") {
					t.Errorf("second run of the same tree: %v, want a cached result\n%s", err, out)
				}
			}
			write(t, tree, "policy", "loose!")
			if out, err := check(t, tree, test.check); err == nil || !strings.Contains(out, "--- FAIL: TestPolicy") {
				t.Errorf("run with another policy: %v, want a failure\n%s", err, out)
			}
		})
	}
}

// check runs a check of hack/check.sh in the tree, and returns its output.
func check(t *testing.T, tree, name string) (string, error) {
	t.Helper()
	command := exec.CommandContext(t.Context(), "bash", filepath.Join(tree, "hack", "check.sh"), name)
	command.Env = append(os.Environ(), "GO_TEST_FLAGS=")
	out, err := command.CombinedOutput()
	return string(out), err
}

func write(t *testing.T, tree, file, text string) {
	t.Helper()
	path := filepath.Join(tree, file)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
