// SPDX-License-Identifier: Apache-2.0

// Package test has tests of the devcluster binary, with real clusters and processes.
//
// DEVCLUSTER_BIN is the path of the binary. Without it the tests are skipped.
package test

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
)

const (
	// startLimit is for a busy machine: a start takes about 5 s.
	startLimit = 90 * time.Second
	waitLimit  = 30 * time.Second
)

// binary returns the path of devcluster.
func binary(t *testing.T) string {
	t.Helper()
	path := os.Getenv("DEVCLUSTER_BIN")
	if path == "" {
		t.Skip("DEVCLUSTER_BIN is not set: build devcluster with hack/build.sh and set it to the binary's absolute path")
	}
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("DEVCLUSTER_BIN: %v", err)
	}
	return path
}

// devcluster is a running supervisor.
type devcluster struct {
	t      *testing.T
	bin    string
	dir    string // the data folder
	cmd    *exec.Cmd
	stdout output
	stderr output
	ended  chan struct{}
}

// launch starts devcluster with a data folder of the test, and kills it after the test.
func launch(t *testing.T, dir, command string, args ...string) *devcluster {
	t.Helper()
	out := t.TempDir()
	d := &devcluster{
		t: t, bin: binary(t), dir: dir, ended: make(chan struct{}),
		stdout: output(filepath.Join(out, "stdout")), stderr: output(filepath.Join(out, "stderr")),
	}
	d.cmd = exec.CommandContext(t.Context(), d.bin, append([]string{command, "-data-dir", dir}, args...)...)
	d.cmd.Stdout, d.cmd.Stderr = d.stdout.open(t), d.stderr.open(t)
	if err := d.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = d.cmd.Wait() // exitCode reads the state
		close(d.ended)
	}()
	t.Cleanup(func() {
		_ = d.cmd.Process.Kill()
		<-d.ended
		if t.Failed() {
			t.Logf("standard output:\n%s\nstandard error:\n%s", d.stdout, d.stderr)
		}
	})
	return d
}

// up starts a cluster and waits until it is ready.
func up(t *testing.T, dir string, args ...string) *devcluster {
	t.Helper()
	d := launch(t, dir, "up", args...)
	d.await(startLimit, "up prints how to use the cluster", func() bool {
		return strings.Contains(d.stdout.String(), "export KUBECONFIG=")
	})
	return d
}

// await waits for a condition while devcluster runs.
func (d *devcluster) await(limit time.Duration, what string, condition func() bool) {
	d.t.Helper()
	eventually(d.t, limit, what, func() bool {
		select {
		case <-d.ended:
			if !condition() {
				d.t.Fatalf("devcluster exited (%s) before: %s", d.cmd.ProcessState, what)
			}
			return true
		default:
			return condition()
		}
	})
}

// eventually waits until condition is true.
func eventually(t *testing.T, limit time.Duration, what string, condition func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for !condition() {
		select {
		case <-ctx.Done():
			t.Fatalf("not within %s: %s", limit, what)
		case <-ticker.C:
		}
	}
}

// exitCode waits until devcluster exits.
func (d *devcluster) exitCode() int {
	d.t.Helper()
	select {
	case <-d.ended:
		return d.cmd.ProcessState.ExitCode()
	case <-time.After(startLimit):
		d.t.Fatal("devcluster does not exit")
		return 0
	}
}

// stop sends SIGTERM to devcluster, and returns its exit code.
func (d *devcluster) stop() int {
	d.t.Helper()
	d.signal(syscall.SIGTERM)
	return d.exitCode()
}

func (d *devcluster) signal(sig syscall.Signal) {
	d.t.Helper()
	if err := d.cmd.Process.Signal(sig); err != nil {
		d.t.Fatal(err)
	}
}

// kubectl runs kubectl against the cluster and returns what it prints.
func (d *devcluster) kubectl(args ...string) string {
	d.t.Helper()
	out, err := d.tryKubectl(args...)
	if err != nil {
		d.t.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

func (d *devcluster) tryKubectl(args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(d.t.Context(), waitLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, d.bin, append([]string{"kubectl"}, args...)...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+filepath.Join(d.dir, "kubeconfig"))
	out, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

// processes returns the processes whose command line contains the data folder, one per
// line: the components and the supervisor.
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

// commandLines lists all processes, each as its id, a space and its command line. It runs
// ps only without /proc, because not every machine has ps.
func commandLines(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil || len(files) == 0 {
		out, err := exec.CommandContext(t.Context(), "ps", "-A", "-o", "pid=,args=").Output()
		if err != nil {
			t.Fatal(err)
		}
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

func (d *devcluster) checkNoProcess() {
	d.t.Helper()
	eventually(d.t, waitLimit, "all processes have ended", func() bool { return processes(d.t, d.dir) == "" })
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

// output is the file with what a process has printed. To a file, and not to a pipe: Wait
// would wait for all processes that inherit the pipe.
type output string

// open returns the file to print to.
func (o output) open(t *testing.T) *os.File {
	t.Helper()
	file, err := os.Create(string(o))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Close() })
	return file
}

func (o output) String() string {
	data, err := os.ReadFile(string(o))
	if err != nil {
		return err.Error()
	}
	return string(data)
}
