// SPDX-License-Identifier: Apache-2.0

// Tests of the runner and of the copy of the tree.

package docs

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// newTestSandbox returns a sandbox with an empty directory instead of a tree, and the caller's
// PATH.
func newTestSandbox(t *testing.T) *sandbox {
	t.Helper()
	scratch := t.TempDir()
	box := &sandbox{scratch: scratch, copy: filepath.Join(scratch, "a tree"), home: filepath.Join(scratch, "home")}
	for _, dir := range []string{box.copy, box.home, filepath.Join(scratch, "run")} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	box.env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + box.home}
	return box
}

// runDocument runs a document in a sandbox, and returns why it skips steps, and the error of the
// one that fails.
func runDocument(t *testing.T, box *sandbox, document string) (skipped []string, failed error) {
	t.Helper()
	steps, err := parseDocument([]byte(fences(document)))
	if err != nil {
		t.Fatal(err)
	}
	r, err := newRunner("doc.md", box)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range steps {
		why, err := r.do(t.Context(), s)
		failed = errors.Join(failed, err)
		if why != "" {
			skipped = append(skipped, why)
		}
	}
	if err := r.shell.close(); err != nil {
		t.Fatal(err)
	}
	return skipped, failed
}

func TestDocumentsThatPass(t *testing.T) {
	for name, document := range map[string]string{
		"variables, functions and the directory stay": "'''sh\na=1\nexport b=2\nf() { echo \"$a$b$1\"; }\nmkdir 'c d'\ncd 'c d'\n'''\n" +
			"'''console\n$ f 3; basename \"$PWD\"\n123\nc d\n'''\n",
		"the session survives a failure":                  "<!-- run: fails -->\n'''sh\na=1\nfalse\n'''\n'''console\n$ echo $a\n1\n'''\n",
		"both outputs":                                    "'''sh\necho a\necho b >&2\n'''\n<!-- prints -->\n'''text\na\nb\n'''\n",
		"standard input is empty":                         "'''sh\ncat\n'''\n",
		"the output of a block with an id":                "<!-- run: id=x -->\n'''sh\necho a\n'''\n'''sh\necho b\n'''\n<!-- prints: of=x -->\n'''text\na\n'''\n",
		"repeated until the output is correct":            "'''sh\necho x >>n\nwc -l <n\n'''\n<!-- prints: within=10s -->\n'''text\n3\n'''\n",
		"a console, repeated until the output is correct": "<!-- run: within=10s -->\n'''console\n$ echo x >>n; wc -l <n\n2\n'''\n",
		"a background block, until it's up":               "<!-- run: background until=up -->\n'''sh\nsleep 0.1; echo is up; sleep 0.2; mkfifo fifo; echo more; read -r <>fifo\n'''\n<!-- prints -->\n'''text\nmore\n'''\n",
		"a background block has the session's variables":  "'''sh\na=1\n'''\n<!-- run: background -->\n'''sh\nmkfifo fifo; echo \"<$a>\"; read -r <>fifo\n'''\n<!-- prints -->\n'''text\n<1>\n'''\n",
		"interrupt is Ctrl-C": "<!-- run: background until=up -->\n'''sh\ntrap 'echo bye >bye; exit' INT\necho up\nwhile true; do sleep 0.05; done\n'''\n" +
			"<!-- run: interrupt -->\n'''console\n$ cat bye\nbye\n'''\n",
		"an interrupted block does not change the session": "'''sh\na=1\n'''\n'''sh\ntrue\n'''\n<!-- run: background until=up -->\n'''sh\ntrap 'exit' INT\necho up\nwhile true; do sleep 0.05; done\n'''\n" +
			"'''sh\nb=2\n'''\n<!-- run: interrupt -->\n'''sh\nc=3\n'''\n'''console\n$ echo $a$b$c\n123\n'''\n",
		"interrupt by id, then the last one that runs": "<!-- run: background until=up id=a -->\n'''sh\ntrap 'touch a; exit' INT\necho up\nwhile true; do sleep 0.05; done\n'''\n" +
			"<!-- run: background until=up id=b -->\n'''sh\ntrap 'touch b; exit' INT\necho up\nwhile true; do sleep 0.05; done\n'''\n" +
			"<!-- run: interrupt=b -->\n'''console\n$ echo *\nb\n'''\n<!-- run: interrupt -->\n'''console\n$ echo *\na b\n'''\n",
		"hidden commands":                    "<!-- hidden:\necho a >b\n-->\n\n'''console\n$ cat b\na\n'''\n",
		"home has another name in documents": "'''sh\necho $HOME/x\n'''\n<!-- prints -->\n'''text\n~/x\n'''\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if skipped, err := runDocument(t, newTestSandbox(t), document); err != nil || skipped != nil {
				t.Errorf("skipped %v; %v", skipped, err)
			}
		})
	}
}

func TestDocumentsThatFail(t *testing.T) {
	for name, test := range map[string]struct{ document, want string }{
		"a command that fails": {
			"'''sh\necho a\nfalse b\necho c\n'''\n",
			"exit code 1, at doc.md:3: false b\nprinted by doc.md:1:\n    a",
		},
		"a command that does not exist":  {"'''sh\nkubektl get foo\n'''\n", "exit code 127, at doc.md:2: kubektl get foo\n"},
		"a command that fails in a pipe": {"'''sh\nfalse | cat\n'''\n", "exit code 1, at doc.md:2: false | cat\n"},
		"an exit without a failed command": {
			"<!-- run: fails -->\n'''sh\nfalse\n'''\n'''sh\nexit 4\n'''\n", "it ended the shell, with exit code 4\nprinted by doc.md:5:\n",
		},
		"no failure": {"<!-- run: fails -->\n'''sh\ntrue\n'''\n", "should have failed, but did not"},
		"only the last command of a console may fail": {
			"<!-- run: fails -->\n'''console\n$ false\n$ false\n'''\n", "exit code 1, at doc.md:3: false\n",
		},
		"a wrong output": {
			"'''sh\necho a\necho c\n'''\n<!-- prints -->\n'''text\na\nb\n'''\n",
			"not printed: doc.md:8: b\nprinted by doc.md:1:\n    a\n    c",
		},
		"a wrong output of a console":        {"'''console\n$ echo a\nb\n'''\n", "not printed: doc.md:3: b\n"},
		"the output does not become correct": {"'''sh\necho a\n'''\n<!-- prints: within=1s -->\n'''text\nb\n'''\n", "not printed: doc.md:6: b\n"},
		"a timeout":                          {"<!-- run: timeout=1s -->\n'''sh\necho a; sleep 100\n'''\n", "took longer than 1s\nprinted by doc.md:2:\n    a"},
		"a background block ends early": {
			"<!-- run: background until=up -->\n'''sh\necho a; exit 5\n'''\n", `ended before it printed "up"`,
		},
		"a background block does not come up": {
			"<!-- run: background until=up timeout=100ms -->\n'''sh\nsleep 100\n'''\n", `did not print "up" within 100ms`,
		},
		"a background block ends before Ctrl-C": {
			"<!-- run: background until=up -->\n'''sh\necho up\n'''\n'''sh\nsleep 0.3\n'''\n<!-- run: interrupt -->\n", "should still be running, but has ended",
		},
		"nothing to interrupt":      {"<!-- run: interrupt=a -->\n", `nothing to interrupt: no block "a" is in the background`},
		"an output without a block": {"<!-- prints -->\n'''text\na\n'''\n", `no block "" has been run before this`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := runDocument(t, newTestSandbox(t), test.document); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got\n%v\nwant\n%s", err, test.want)
			}
		})
	}
}

func TestSkippedSteps(t *testing.T) {
	for document, want := range map[string]string{
		"'''sh\nfalse\n'''\n'''sh\ntouch ran\n'''\n":                                                  "a step before it failed",
		"<!-- run: skip=\"no Docker\" -->\n'''sh\ntouch ran\n'''\n<!-- prints -->\n'''text\na\n'''\n": "no Docker, the block that prints it is skipped",
	} {
		box := newTestSandbox(t)
		skipped, err := runDocument(t, box, document)
		if got := strings.Join(skipped, ", "); got != want {
			t.Errorf("got %q (%v), want %q", got, err, want)
		}
		if _, err := os.Stat(filepath.Join(box.copy, "ran")); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the block was run (%v)", err)
		}
	}
}

func TestNothingIsLeftRunning(t *testing.T) {
	for name, document := range map[string]string{
		"in the background":             "<!-- run: background until=up -->\n'''sh\nsleep 100 & echo $! >pid\necho up\nwait\n'''\n",
		"in the background, and ended":  "<!-- run: background until=up -->\n'''sh\nsleep 100 & echo $! >pid\necho up\n'''\n",
		"by a block that has ended":     "'''sh\nsleep 100 & echo $! >pid\n'''\n'''sh\ntrue\n'''\n",
		"by a block that took too long": "<!-- run: timeout=2s -->\n'''sh\nsleep 100 & echo $! >pid\nwait\n'''\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			box := newTestSandbox(t)
			_, failed := runDocument(t, box, document)
			text, err := os.ReadFile(filepath.Join(box.copy, "pid"))
			if err != nil {
				t.Fatal(err, failed)
			}
			pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
			if err != nil {
				t.Fatal(err)
			}
			waitUntilGone(t, pid)
		})
	}
}

// waitUntilGone fails the test if a process keeps running. A killed process remains as a
// zombie until its parent has waited for it.
func waitUntilGone(t *testing.T, pid int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	for syscall.Kill(pid, 0) == nil {
		if stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat"); err == nil && strings.Contains(string(stat), ") Z ") {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("process %d still runs", pid)
		case <-time.After(lookEvery):
		}
	}
}

// fakeDevcluster prints what devcluster prints, and waits for Ctrl-C.
const fakeDevcluster = `#!/usr/bin/env bash
echo "$@" >>started
trap 'echo stopped >>started; exit' INT
echo "export KUBECONFIG=x"
while true; do sleep 0.05; done
`

func TestCluster(t *testing.T) {
	box := newTestSandbox(t)
	bin := filepath.Join(box.copy, "bin")
	if err := os.Mkdir(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(bin, "devcluster"), []byte(fakeDevcluster), 0o700); err != nil {
		t.Fatal(err)
	}
	_, failed := runDocument(t, box, "'''sh\nexport KUBECONFIG=mine other=1\n'''\n<!-- run: cluster -->\n\n"+
		"'''console\n$ echo $other $KUBECONFIG $AUDIT_LOG\n1 ~/.kube/config ~/devcluster/audit.log\n'''\n"+
		"'''console\n$ bash -c 'echo $KUBECONFIG'\n~/.kube/config\n'''\n<!-- run: cluster -->\n")
	if failed != nil {
		t.Error(failed)
	}
	started, err := os.ReadFile(filepath.Join(box.copy, "started"))
	kubeconfig := filepath.Join(box.home, ".kube", "config")
	flags := " -data-dir=" + filepath.Join(box.home, "devcluster") + " -kubeconfig=" + kubeconfig
	want := "up" + flags + "\nstopped\nup" + flags + "\nstopped\n"
	if err != nil || string(started) != want {
		t.Errorf("%v, got\n%swant\n%s", err, started, want)
	}
}

// newTestTree returns a sandbox of a repository that has a built program and uncommitted
// changes.
func newTestTree(t *testing.T) *sandbox {
	t.Helper()
	command := exec.CommandContext(t.Context(), "bash", "-e", "-c", `
git init --quiet
echo /bin/ >.gitignore
echo old | tee README.md gone.md ignored >/dev/null
mkdir bin docs
echo 'echo devcluster "$@"' >bin/devcluster
chmod +x bin/devcluster
git add --force .gitignore README.md gone.md ignored
git -c user.name=a -c user.email=a@example.com commit --quiet --message=a
echo new >README.md
echo added >docs/added.md
rm gone.md
echo ignored >>.gitignore`)
	command.Dir = t.TempDir()
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	box, err := newSandbox(t.Context(), command.Dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := box.remove(); err != nil {
			t.Error(err)
		}
		if text, err := os.ReadFile(filepath.Join(command.Dir, "README.md")); err != nil || string(text) != "new\n" {
			t.Errorf("a document changed the tree: README.md has %q (%v)", text, err)
		}
	})
	return box
}

func TestDocumentsInACopyOfATree(t *testing.T) {
	t.Setenv("KUBECONFIG", "/a")
	t.Setenv("GO_TEST_FLAGS", "-v")
	t.Setenv("GOFLAGS", "-trimpath")
	box := newTestTree(t)
	for name, document := range map[string]string{
		"uncommitted changes are committed": "'''console\n$ cat README.md docs/added.md ignored\nnew\nadded\nold\n$ test ! -e gone.md\n" +
			"$ git status --short | wc -l\n0\n$ echo changed >README.md\n'''\n",
		"kubectl is the built program's": "'''console\n$ kubectl get foo\ndevcluster kubectl get foo\n'''\n",
		"the caller's variables": "'''console\n$ echo \"<$KUBECONFIG$GO_TEST_FLAGS>\" $GOFLAGS $HOME $TMPDIR\n<> -trimpath ~ " + filepath.Join(box.scratch, "tmp") + "\n" +
			"$ go env GOMODCACHE >/dev/null\n'''\n",
	} {
		if _, err := runDocument(t, box, document); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
