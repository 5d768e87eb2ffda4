// SPDX-License-Identifier: Apache-2.0

// Tests of how clusters start, fail, stop and restart.

package test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestKilledSupervisor kills devcluster run with SIGKILL.
func TestKilledSupervisor(t *testing.T) {
	dir := t.TempDir()
	d := launch(t, dir, "run", "--", "sh", "-c", "echo ready; sleep 1000; true", dir)
	d.await(startLimit, "the command runs", func() bool { return strings.Contains(d.stdout.String(), "ready") })
	// The supervisor, five components, the command, and the process between it and the
	// supervisor.
	if found := processes(t, dir); strings.Count(found, "\n")+1 != 8 {
		t.Errorf("processes before the kill:\n%s", found)
	}
	d.signal(syscall.SIGKILL)
	d.exitCode()
	d.checkNoProcess()
}

func TestComponentExit(t *testing.T) {
	d := up(t, t.TempDir())
	killComponent(t, d, "kube-scheduler")
	if code := d.exitCode(); code != 1 {
		t.Errorf("exit code %d", code)
	}
	log := filepath.Join(d.dir, "logs", "kube-scheduler.log")
	for _, want := range []string{"kube-scheduler exited unexpectedly (signal: killed)", log, "Attempting to acquire leader lease"} {
		if !strings.Contains(d.stderr.String(), want) {
			t.Errorf("devcluster does not print %q", want)
		}
	}
	if _, err := os.Stat(log); err != nil {
		t.Errorf("the log was removed: %v", err)
	}
	checkGone(t, filepath.Join(d.dir, "etcd"))
	d.checkNoProcess()
}

func killComponent(t *testing.T, d *devcluster, component string) {
	t.Helper()
	for line := range strings.Lines(processes(t, d.dir)) {
		// The path of the program may contain spaces. Its first argument is the
		// component.
		if !strings.Contains(line, " "+component+" ") {
			continue
		}
		number, _, _ := strings.Cut(line, " ")
		pid, err := strconv.Atoi(number)
		if err != nil {
			t.Fatal(err)
		}
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Fatalf("no process of %s", component)
}

func TestRestartWithKeptData(t *testing.T) {
	dir := t.TempDir()
	kubeconfig := filepath.Join(t.TempDir(), "config")
	first := up(t, dir, "-keep")
	first.kubectl("create", "configmap", "a", "--from-literal=b=c")
	first.kubectl("create", "deployment", "web", "--image=nginx")
	first.kubectl("rollout", "status", "deployment/web", "--timeout=25s")
	token := first.kubectl("create", "token", "default")
	if code := first.stop(); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	first.checkNoProcess()

	second := up(t, dir, "-kubeconfig", kubeconfig)
	if got := second.kubectl("--kubeconfig", kubeconfig, "get", "configmap", "a", "-o", "jsonpath={.data.b}"); got != "c" {
		t.Errorf("the ConfigMap contains %q", got)
	}
	// A token from before the restart is valid, because the signing key and the authority
	// are the same.
	server := second.kubectl("--kubeconfig", kubeconfig, "config", "view", "-o", "jsonpath={.clusters[0].cluster.server}")
	user := second.kubectl("--kubeconfig", os.DevNull, "--server", server, "--token", token,
		"--certificate-authority", filepath.Join(dir, "pki", "ca.crt"), "auth", "whoami", "-o", "jsonpath={.status.userInfo.username}")
	if user != "system:serviceaccount:default:default" {
		t.Errorf("the user of the token is %q", user)
	}
	// The controllers work at once: they do not wait for the leases of processes that
	// have ended.
	second.kubectl("--kubeconfig", kubeconfig, "scale", "deployment/web", "--replicas=3")
	second.kubectl("--kubeconfig", kubeconfig, "rollout", "status", "deployment/web", "--timeout=25s")
	if code := second.stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	checkGone(t, dir)
	checkGone(t, kubeconfig)
}

// TestClustersAtOnce starts three clusters at the same time: each must get ports of its
// own.
func TestClustersAtOnce(t *testing.T) {
	const n = 3
	var clusters [n]*devcluster
	for i := range clusters {
		clusters[i] = launch(t, t.TempDir(), "run", "--",
			binary(t), "kubectl", "create", "configmap", "only-one", "-o", "name")
	}
	for _, d := range clusters {
		// AlreadyExists would mean that two of them share an API server.
		if code := d.exitCode(); code != 0 {
			t.Errorf("exit code %d: %s", code, d.stderr)
		}
		checkGone(t, d.dir)
	}
}

func TestRunReturnsTheExitCode(t *testing.T) {
	without := "-without=kube-controller-manager,kube-scheduler,kwok"
	d := launch(t, t.TempDir(), "run", without, "--", "sh", "-c", `test -f "$KUBECONFIG" && exit 7`)
	if code := d.exitCode(); code != 7 {
		t.Errorf("exit code %d, want 7", code)
	}
	if strings.Contains(d.stderr.String(), "kube-scheduler") {
		t.Error("-without has no effect")
	}
	d.checkNoProcess()
	checkGone(t, d.dir)
}

// TestSecondSignal runs a command that ignores SIGTERM: the second signal kills it at
// once.
func TestSecondSignal(t *testing.T) {
	without := "-without=kube-controller-manager,kube-scheduler,kwok"
	script := `trap 'echo heard' TERM; echo ready; while :; do sleep 0.1; done`
	d := launch(t, t.TempDir(), "run", without, "--", "sh", "-c", script)
	d.await(startLimit, "the command runs", func() bool { return strings.Contains(d.stdout.String(), "ready") })
	d.signal(syscall.SIGTERM)
	d.await(waitLimit, "the command gets the first signal", func() bool { return strings.Contains(d.stdout.String(), "heard") })
	began := time.Now()
	d.signal(syscall.SIGTERM)
	if code := d.exitCode(); code != 128+9 {
		t.Errorf("exit code %d, want that of a killed command", code)
	}
	if took := time.Since(began); took > 8*time.Second { // after the first signal alone it would take 10 s
		t.Errorf("the stop took %s", took)
	}
	d.checkNoProcess()
	checkGone(t, d.dir)
}

func TestBadCommandLines(t *testing.T) {
	bin := binary(t)
	for _, test := range []struct {
		args string
		want int
		says string
	}{
		{"up -nodes many", 2, "-nodes"},
		{"up -api-port 70000", 2, "-api-port 70000: must be a port from 0 to 65535"},
		{"up -without etcd", 2, "-without etcd: "},
		{"up -emulated-version 1.20", 2, "-emulated-version 1.20: out of range, the components can emulate "},
		{"up -kubeconfig /no/such/folder/config", 1, "-kubeconfig /no/such/folder/config: "},
		{"run", 2, "run needs a command"},
		{"run -- no-such-command", 127, "no-such-command"},
		{"dance", 2, `unknown command "dance"`},
	} {
		out, err := exec.CommandContext(t.Context(), bin, strings.Fields(test.args)...).CombinedOutput()
		if exitCode(err) != test.want || !strings.Contains(string(out), test.says) || strings.Count(string(out), "\n") != 1 {
			t.Errorf("devcluster %s: exit code %d, %s", test.args, exitCode(err), out)
		}
	}
}
