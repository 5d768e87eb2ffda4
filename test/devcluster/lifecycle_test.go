// SPDX-License-Identifier: Apache-2.0

// Tests of how clusters start, run, fail, stop and restart.

package devcluster

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"example.com/sample-controller/test/footest"
)

// TestKilledSupervisor kills devcluster run with SIGKILL.
func TestKilledSupervisor(t *testing.T) {
	dir := t.TempDir()
	const child = "echo ready; sleep 1000; true"
	d := launch(t, dir, "run", "--", "sh", "-c", `sh -c "$1" "$0"; true`, dir, child)
	d.awaitText("ready")
	// The supervisor, five components, the command with its child, and the process between it and the
	// supervisor.
	if found := processes(t, dir); strings.Count(found, "\n")+1 != 9 {
		t.Errorf("processes before the kill:\n%s", found)
	}
	footest.Must(t, d.Signal(syscall.SIGKILL))
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
	logged, err := os.ReadFile(log) // it stays
	footest.Must(t, err)
	lines := strings.Split(strings.TrimSpace(string(logged)), "\n")
	for _, want := range []string{"kube-scheduler exited unexpectedly (signal: killed)", log, lines[len(lines)-1]} {
		if !strings.Contains(d.stderr.String(), want) {
			t.Errorf("devcluster does not print %q", want)
		}
	}
	checkGone(t, filepath.Join(d.dir, "etcd"))
	d.checkNoProcess()
}

func killComponent(t *testing.T, d *supervisor, component string) {
	t.Helper()
	for line := range strings.Lines(processes(t, d.dir)) {
		// The path of the program may contain spaces. Its first argument is the
		// component.
		if !strings.Contains(line, " "+component+" ") {
			continue
		}
		number, _, _ := strings.Cut(line, " ")
		pid, err := strconv.Atoi(number)
		footest.Must(t, err)
		footest.Must(t, syscall.Kill(pid, syscall.SIGKILL))
		return
	}
	t.Fatalf("no process of %s", component)
}

func TestRestartWithKeptData(t *testing.T) {
	dir := t.TempDir()
	first := up(t, dir, "-keep")
	first.kubectl("create", "configmap", "a", "--from-literal=b=c")
	first.kubectl("create", "deployment", "web", "--image=nginx")
	first.kubectl("rollout", "status", "deployment/web", "--timeout=25s")
	token := first.kubectl("create", "token", "default")
	if code := first.stop(); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	first.checkNoProcess()

	second := up(t, dir)
	if got := second.kubectl("get", "configmap", "a", "-o", "jsonpath={.data.b}"); got != "c" {
		t.Errorf("the ConfigMap contains %q", got)
	}
	// A token from before the restart is valid, because the signing key and the authority
	// are the same.
	server := second.kubectl("config", "view", "-o", "jsonpath={.clusters[0].cluster.server}")
	user := second.kubectl("--kubeconfig", os.DevNull, "--server", server, "--token", token,
		"--certificate-authority", filepath.Join(dir, "pki", "ca.crt"), "auth", "whoami", "-o", "jsonpath={.status.userInfo.username}")
	if user != "system:serviceaccount:default:default" {
		t.Errorf("the user of the token is %q", user)
	}
	// The controllers start at once, without waiting for the leases of processes that have ended.
	second.kubectl("scale", "deployment/web", "--replicas=3")
	second.kubectl("rollout", "status", "deployment/web", "--timeout=25s")
	if code := second.stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	checkGone(t, dir)
}

// TestSecondSignal runs a command that ignores SIGTERM: the second signal kills it at
// once.
func TestSecondSignal(t *testing.T) {
	without := "-without=kube-controller-manager,kube-scheduler,kwok"
	script := `trap 'echo heard' TERM; echo ready; while :; do sleep 0.1; done`
	d := launch(t, t.TempDir(), "run", without, "--", "sh", "-c", script)
	d.awaitText("ready")
	footest.Must(t, d.Signal(syscall.SIGTERM))
	d.awaitText("heard")
	began := time.Now()
	footest.Must(t, d.Signal(syscall.SIGTERM))
	if code := d.exitCode(); code != 128+9 {
		t.Errorf("exit code %d, want the exit code of a killed command", code)
	}
	if took := time.Since(began); took > 8*time.Second { // after the first signal alone it would take 10 s
		t.Errorf("the stop took %s", took)
	}
	if strings.Contains(d.stderr.String(), "kube-scheduler") {
		t.Error("-without has no effect")
	}
	d.checkNoProcess()
	checkGone(t, d.dir)
}

func TestBadCommandLines(t *testing.T) {
	for _, test := range []struct {
		args string
		want int
		says string
	}{
		{"up -nodes many", 2, "-nodes"},
		{"up -data-dir /dev/null/data", 1, "-data-dir: "},
		{"run -- no-such-command", 127, "no-such-command"},
		{"dance", 2, `unknown command "dance"`},
	} {
		out, code := run(t, strings.Fields(test.args)...)
		if code != test.want || !strings.Contains(out, test.says) || strings.Contains(out, "\n") {
			t.Errorf("devcluster %s: exit code %d, %s", test.args, code, out)
		}
	}
}

// TestUp starts a cluster, uses it, and stops it.
func TestUp(t *testing.T) {
	d := up(t, filepath.Join(t.TempDir(), "data of a test"), "-nodes", "2", "-audit-bodies", "deployments.apps")
	t.Logf("%s", &d.stderr)

	kubeconfig := filepath.Join(d.dir, "kubeconfig")
	if want := "export KUBECONFIG='" + kubeconfig + "'"; !strings.Contains(d.stdout.String(), want) {
		t.Errorf("up does not print %s", want)
	}
	if info, err := os.Stat(kubeconfig); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("kubeconfig: %v, %v", info.Mode(), err)
	}
	// Pods become Ready, which needs the controllers, the scheduler and KWOK.
	d.kubectl("create", "deployment", "web", "--image=nginx", "--replicas=3")
	d.kubectl("rollout", "status", "deployment/web", "--timeout=25s")
	d.kubectl("create", "job", "once", "--image=nginx")
	d.kubectl("wait", "--for=condition=Complete", "job/once", "--timeout=25s")

	t.Run("listens on 127.0.0.1 only", d.testLoopback)
	t.Run("a component has only the permissions it needs", d.testPermissions)
	t.Run("the audit log has user and object of each write", d.testAudit)
	t.Run("kubectl behaves like its own binary", d.testKubectl)

	if code := d.stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	d.checkNoProcess()
	checkGone(t, d.dir)
}

func (d *supervisor) testLoopback(t *testing.T) {
	listeners, err := exec.CommandContext(t.Context(), "ss", "-Hltnp").Output()
	if err != nil {
		t.Skipf("ss, which lists listeners, is missing: %v", err)
	}
	count := 0
	for line := range strings.Lines(processes(t, d.dir)) {
		pid, _, _ := strings.Cut(line, " ")
		for listener := range strings.Lines(string(listeners)) {
			if !strings.Contains(listener, "pid="+pid+",") {
				continue
			}
			count++
			if address := strings.Fields(listener)[3]; !strings.HasPrefix(address, "127.0.0.1:") {
				t.Errorf("%s listens on %s", line, address)
			}
		}
	}
	if count < 5 {
		t.Errorf("found %d listeners, want at least 5", count)
	}
}

func (d *supervisor) testPermissions(t *testing.T) {
	for _, test := range []struct{ user, verb, resource, subresource, want string }{
		{"system:kube-scheduler", "create", "pods", "binding", "yes"},
		{"system:kube-scheduler", "create", "pods", "", "no"},
		{"kwok", "patch", "pods", "status", "yes"},
		{"kwok", "get", "secrets", "", "no"},
		{"nobody", "get", "pods", "", "no"},
		{"devcluster-admin", "get", "pods", "", "no"}, // the permissions belong to its group, not to its name
	} {
		out, _ := run(t, "kubectl", "auth", "can-i", test.verb, test.resource, "--subresource="+test.subresource,
			"--as="+test.user, "--all-namespaces")
		if lines := strings.Split(out, "\n"); lines[len(lines)-1] != test.want {
			t.Errorf("%s %s %s/%s: %s, want %s", test.user, test.verb, test.resource, test.subresource, out, test.want)
		}
	}
}

func (d *supervisor) testAudit(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(d.dir, "audit.log"))
	footest.Must(t, err)
	log := string(data)
	for _, user := range []string{
		"devcluster-admin", "system:kube-scheduler", "kwok",
		"system:serviceaccount:kube-system:deployment-controller", "system:serviceaccount:kube-system:replicaset-controller",
	} {
		if !strings.Contains(log, `"username":"`+user+`"`) {
			t.Errorf("no write by %s", user)
		}
	}
	if reads := regexp.MustCompile(`"verb":"(get|list|watch)"`).FindString(log); reads != "" {
		t.Errorf("the log contains reads: %s", reads)
	}
	type event struct {
		ObjectRef      struct{ Resource string }
		ResponseObject json.RawMessage
	}
	for line := range strings.Lines(log) {
		var e event
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		if has, wanted := e.ResponseObject != nil, e.ObjectRef.Resource == "deployments"; has != wanted {
			t.Errorf("the body is in the log: %t, want %t: %s", has, wanted, line)
		}
	}
}

func (d *supervisor) testKubectl(t *testing.T) {
	if out := d.kubectl("version"); !strings.Contains(out, "Server Version: v1.37.") || !strings.Contains(out, "Client Version: v1.37.") {
		t.Errorf("kubectl version: %s", out)
	}
	for _, test := range []struct {
		name string
		args []string
		want int
		says string
	}{
		{"an object that does not exist", []string{"get", "pod", "nope"}, 1, `Error from server (NotFound): pods "nope" not found`},
		{"a flag that does not exist", []string{"--version"}, 1, "unknown flag: --version"},
		{"a difference", []string{"diff", "-f", "testdata/configmap.yaml"}, 1, "+  name: a"},
		{"a plugin", []string{"dance", "slowly"}, 42, "dancing slowly"},
	} {
		t.Setenv("PATH", "testdata/plugins"+string(os.PathListSeparator)+os.Getenv("PATH"))
		out, code := run(t, append([]string{"kubectl"}, test.args...)...)
		if code != test.want || !strings.Contains(out, test.says) {
			t.Errorf("%s: exit code %d, %s", test.name, code, out)
		}
	}
}
