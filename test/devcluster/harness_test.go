// SPDX-License-Identifier: Apache-2.0

// Package devcluster has tests of the devcluster binary, with real clusters and processes.
//
// DEVCLUSTER_BIN is the path of the binary. Without it the tests are skipped.
package devcluster

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"example.com/sample-controller/test/testcluster"
)

const (
	// startLimit is for a busy machine: a start takes about 5 s.
	startLimit = 90 * time.Second
	waitLimit  = 30 * time.Second
)

// supervisor is a running devcluster.
type supervisor struct {
	*testcluster.Process
	t              *testing.T
	bin            string
	dir            string // the data folder
	stdout, stderr testcluster.Log
}

// launch starts devcluster with a data folder of the test, and kills it after the test.
func launch(t *testing.T, dir, command string, args ...string) *supervisor {
	t.Helper()
	d := &supervisor{t: t, bin: testcluster.Devcluster(t), dir: dir}
	cmd := exec.CommandContext(t.Context(), d.bin, append([]string{command, "-data-dir", dir}, args...)...)
	cmd.Stdout, cmd.Stderr = &d.stdout, &d.stderr
	var err error
	d.Process, err = testcluster.StartProcess(cmd)
	must(t, err)
	t.Cleanup(func() {
		d.Kill()
		if t.Failed() {
			t.Logf("standard output:\n%s\nstandard error:\n%s", &d.stdout, &d.stderr)
		}
	})
	return d
}

// up starts a cluster and waits until it is ready.
func up(t *testing.T, dir string, args ...string) *supervisor {
	t.Helper()
	d := launch(t, dir, "up", args...)
	d.awaitText("export KUBECONFIG=")
	return d
}

// awaitText waits until devcluster, or the command that it runs, has printed a text.
func (d *supervisor) awaitText(text string) {
	d.t.Helper()
	ctx, cancel := context.WithTimeout(d.t.Context(), startLimit)
	defer cancel()
	must(d.t, d.stdout.Await(ctx, d.Process, text, 1))
}

// exitCode waits until devcluster exits.
func (d *supervisor) exitCode() int {
	d.t.Helper()
	if !d.Wait(startLimit) {
		d.t.Fatal("devcluster does not exit")
	}
	return d.State().ExitCode()
}

// stop sends SIGTERM to devcluster, and returns its exit code.
func (d *supervisor) stop() int {
	d.t.Helper()
	must(d.t, d.Signal(syscall.SIGTERM))
	return d.exitCode()
}

// kubectl runs kubectl against the cluster and returns what it prints.
func (d *supervisor) kubectl(args ...string) string {
	d.t.Helper()
	out, err := d.tryKubectl(args...)
	if err != nil {
		d.t.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

// tryKubectl runs kubectl and returns what it prints, and its error.
func (d *supervisor) tryKubectl(args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(d.t.Context(), waitLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, d.bin, append([]string{"kubectl"}, args...)...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+filepath.Join(d.dir, "kubeconfig"))
	out, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

// processes returns the processes whose command line contains the data folder, one per
// line, each as its id, a space and its command line: the components and the supervisor.
func processes(t *testing.T, dir string) string {
	t.Helper()
	var found []string
	for _, line := range commandLines(t) {
		if strings.Contains(line, dir) {
			found = append(found, strings.TrimSpace(line))
		}
	}
	return strings.Join(found, "\n")
}

// commandLines lists all processes. It runs ps only without /proc, because not every
// machine has ps.
func commandLines(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil || len(files) == 0 {
		out, err := exec.CommandContext(t.Context(), "ps", "-A", "-o", "pid=,args=").Output()
		must(t, err)
		return strings.Split(strings.TrimSpace(string(out)), "\n")
	}
	var lines []string
	for _, file := range files {
		args, err := os.ReadFile(file)
		if err != nil {
			continue // the process has ended meanwhile
		}
		pid := filepath.Base(filepath.Dir(file))
		lines = append(lines, pid+" "+strings.ReplaceAll(strings.TrimRight(string(args), "\x00"), "\x00", " "))
	}
	return lines
}

func (d *supervisor) checkNoProcess() {
	d.t.Helper()
	must(d.t, testcluster.Await(d.t.Context(), waitLimit, "all processes have ended", func(context.Context) error {
		if left := processes(d.t, d.dir); left != "" {
			return errors.New(left)
		}
		return nil
	}))
}

func exitCode(err error) int {
	if err == nil {
		return 0
	}
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return exit.ExitCode()
	}
	return -1
}

func checkGone(t *testing.T, path string) {
	t.Helper()
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("%s still exists (%v)", path, err)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
