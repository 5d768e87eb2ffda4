// SPDX-License-Identifier: Apache-2.0

// Test of a running cluster.

package devcluster

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"example.com/sample-controller/test/footest"
)

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
	t.Run("another cluster can't use the port", d.testRefusals)

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
		{"devcluster-admin", "get", "pods", "", "no"}, // the permissions are those of its group, not of its name
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

// testRefusals tries to start another cluster at the same port. The tests of the package
// cluster try the same folder.
func (d *supervisor) testRefusals(t *testing.T) {
	server := d.kubectl("config", "view", "-o", "jsonpath={.clusters[0].cluster.server}")
	_, port, _ := strings.Cut(server, "127.0.0.1:")
	other := t.TempDir()
	out, code := run(t, "up", "-data-dir", other, "-api-port", port)
	if want := "-api-port: port " + port + " is in use"; code != 1 || !strings.Contains(out, want) || strings.Contains(out, "\n") {
		t.Errorf("exit code %d, %s", code, out)
	}
	checkGone(t, other)
}
