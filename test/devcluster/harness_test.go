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

	"example.com/sample-controller/test/footest"
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
	dir            string // the data directory
	stdout, stderr testcluster.Log
}

// launch starts devcluster with a data directory of the test, and kills it after the test.
func launch(t *testing.T, dir, command string, args ...string) *supervisor {
	t.Helper()
	d := &supervisor{t: t, dir: dir}
	cmd := exec.CommandContext(t.Context(), testcluster.Devcluster(t), append([]string{command, "-data-dir", dir}, args...)...)
	cmd.Stdout, cmd.Stderr = &d.stdout, &d.stderr
	var err error
	d.Process, err = testcluster.StartProcess(cmd)
	footest.Must(t, err)
	t.Cleanup(func() {
		d.Kill()
		if t.Failed() {
			t.Logf("standard output:\n%s\nstandard error:\n%s", &d.stdout, &d.stderr)
		}
	})
	return d
}

// up starts a cluster for kubectl, and waits until it is ready.
func up(t *testing.T, dir string, args ...string) *supervisor {
	t.Helper()
	t.Setenv("KUBECONFIG", filepath.Join(dir, "kubeconfig"))
	d := launch(t, dir, "up", args...)
	d.awaitText("export KUBECONFIG=")
	return d
}

// awaitText waits until devcluster, or the command that it runs, has printed a text.
func (d *supervisor) awaitText(text string) {
	d.t.Helper()
	ctx, cancel := context.WithTimeout(d.t.Context(), startLimit)
	defer cancel()
	footest.Must(d.t, d.stdout.Await(ctx, d.Process, text, 1))
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
	footest.Must(d.t, d.Signal(syscall.SIGTERM))
	return d.exitCode()
}

// kubectl runs kubectl against the cluster and returns what it prints.
func (d *supervisor) kubectl(args ...string) string {
	d.t.Helper()
	out, code := run(d.t, append([]string{"kubectl"}, args...)...)
	if code != 0 {
		d.t.Fatalf("kubectl %s: exit code %d\n%s", strings.Join(args, " "), code, out)
	}
	return out
}

// run runs a devcluster command that ends by itself, and returns its output and exit code.
func run(t *testing.T, args ...string) (out string, code int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), waitLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, testcluster.Devcluster(t), args...)
	printed, err := cmd.CombinedOutput()
	if err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(printed)), cmd.ProcessState.ExitCode()
}

// processes returns the processes whose command line contains the data directory, one per
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

// commandLines lists all processes. It runs ps only if there is no /proc, because not every machine
// has ps.
func commandLines(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil || len(files) == 0 {
		out, err := exec.CommandContext(t.Context(), "ps", "-A", "-o", "pid=,args=").Output()
		footest.Must(t, err)
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
	footest.Must(d.t, testcluster.Await(d.t.Context(), waitLimit, "all processes have ended", func(context.Context) error {
		if left := processes(d.t, d.dir); left != "" {
			return errors.New(left)
		}
		return nil
	}))
}

func checkGone(t *testing.T, path string) {
	t.Helper()
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("%s still exists (%v)", path, err)
	}
}
