// SPDX-License-Identifier: Apache-2.0

// Tests of the parser and of the runner, with the documents in testdata, and of the copy of the tree.

package docs

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// newTestSandbox returns a sandbox with the caller's PATH, and a directory with a devcluster instead of a tree.
func newTestSandbox(t *testing.T) *sandbox {
	t.Helper()
	scratch := t.TempDir()
	box := &sandbox{scratch: scratch, copy: filepath.Join(scratch, "a tree"), home: filepath.Join(scratch, "home")}
	box.env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + box.home}
	if _, err := output(t.Context(), "testdata", "bash", "-ec", `cd "$0" && mkdir -p "a tree/bin" home run && cp "$OLDPWD/devcluster" "a tree/bin"`, scratch); err != nil {
		t.Fatal(err)
	}
	return box
}

// runDocument runs a document in a sandbox, and returns why it skips steps, and its mistakes or the error of
// the step that fails.
func runDocument(t *testing.T, box *sandbox, document string) (skipped []string, failed error) {
	t.Helper()
	steps, err := parseDocument([]byte(document))
	if err != nil {
		return nil, err
	}
	r, err := newRunner("doc.md", box)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range steps {
		why, err := r.do(t.Context(), s)
		if failed != nil && (err != nil || why != "a step before it failed") {
			t.Errorf("line %d was run after a failure: %v", s.line, err)
		} else if failed == nil && why != "" {
			skipped = append(skipped, why)
		}
		if err != nil {
			failed = err
		}
	}
	if err := r.shell.close(); err != nil {
		t.Error(err)
	}
	return skipped, failed
}

// testdata returns the text of a file.
func testdata(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestADocumentThatPasses(t *testing.T) {
	skipped, err := runDocument(t, newTestSandbox(t), testdata(t, "passes.md"))
	if want := []string{"no Docker", "the block that prints it is skipped"}; err != nil || !slices.Equal(skipped, want) {
		t.Errorf("skipped %q, want %q; %v", skipped, want, err)
	}
}

func TestDocumentsThatFail(t *testing.T) {
	for _, section := range strings.Split(testdata(t, "failures.txt"), "\n=== ")[1:] {
		name, rest, _ := strings.Cut(section, "\n")
		document, want, _ := strings.Cut(rest, "\n--- want\n")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := runDocument(t, newTestSandbox(t), document+"\n")
			if err == nil || !strings.Contains(err.Error(), strings.TrimSpace(want)) {
				t.Errorf("got\n%v\nwant\n%s", err, want)
			}
		})
	}
}

func TestLines(t *testing.T) {
	for line := range strings.Lines(testdata(t, "lines.txt")) {
		document, printed, isRow := strings.Cut(strings.TrimSuffix(line, "\n")[2:], " | ")
		missing := compare(printed, wantedLines(document, 1), false)
		if isRow && (missing == nil) != (line[0] == '=') {
			t.Errorf("%s with placeholders: %q and %q", line, alike(squeeze(document)), alike(squeeze(printed)))
		}
	}
}

func TestACluster(t *testing.T) {
	box := newTestSandbox(t)
	_, failed := runDocument(t, box, testdata(t, "cluster.md"))
	started, err := os.ReadFile(filepath.Join(box.copy, "started"))
	if failed != nil || err != nil || !strings.HasSuffix(string(started), "\nstopped\n") {
		t.Errorf("%v, %v, started %s", failed, err, started)
	}
}

// TestNothingIsLeftRunning reads from a pipe until no process can write to it.
func TestNothingIsLeftRunning(t *testing.T) {
	box := newTestSandbox(t)
	pipe := filepath.Join(box.copy, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	reader, err := os.OpenFile(pipe, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	if _, err := runDocument(t, box, testdata(t, "leftover.md")); err == nil || !strings.Contains(err.Error(), "took longer") {
		t.Error(err)
	}
	if err := reader.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(reader); err != nil || string(text) != "abcd" {
		t.Errorf("%q have written, and not all have ended: %v", text, err)
	}
}

// TestDocumentsInACopyOfATree runs a document in a sandbox of a repository that has a built program and
// uncommitted changes.
func TestDocumentsInACopyOfATree(t *testing.T) {
	t.Setenv("KUBECONFIG", "/a")
	t.Setenv("GO_TEST_FLAGS", "-v")
	t.Setenv("GOFLAGS", "-trimpath")
	tree := t.TempDir()
	if _, err := output(t.Context(), tree, "bash", "-ec", testdata(t, "tree.sh")); err != nil {
		t.Fatal(err)
	}
	box, err := newSandbox(t.Context(), tree)
	if err != nil {
		t.Fatal(err)
	}
	_, failed := runDocument(t, box, testdata(t, "copy.md"))
	if err := box.remove(); err != nil || failed != nil {
		t.Error(failed, err)
	}
	if text, err := os.ReadFile(filepath.Join(tree, "README.md")); err != nil || string(text) != "new\n" {
		t.Errorf("a document changed the tree: README.md has %q (%v)", text, err)
	}
}
