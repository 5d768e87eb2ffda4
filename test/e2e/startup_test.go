// SPDX-License-Identifier: Apache-2.0

// The command line and the log: failed starts, -help, -version, the kubeconfig from the
// environment, and a start without permissions.

package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/sample-controller/test/footest"
)

// The exit codes of the controller.
const (
	exitOK      = 0
	exitFailure = 1
	exitUsage   = 2
)

func TestAFailedStartPrintsOneClearLine(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	garbage := writeFile(t, folder, "garbage", "apiVersion: v1\nkind: Config\nclusters: 7\n")
	empty := writeFile(t, folder, "empty", "")
	missing := filepath.Join(folder, "missing")
	unreachable := closedServer()
	stranger := kubeconfigFor(t, unauthorizedServer(t))

	tests := []struct {
		what  string
		flags []string
		code  int
		says  []string
	}{
		{"an unknown flag", []string{"-bogus"}, exitUsage, []string{"-bogus", "-help"}},
		{"a flag that is not a number", []string{"-workers=many"}, exitUsage, []string{"-workers", `"many"`}},
		{"no workers", []string{"-workers=0"}, exitUsage, []string{"-workers=0", "1 or more"}},
		{"too short a resync", []string{"-resync=1ms"}, exitUsage, []string{"-resync=1ms", "1s or more"}},
		{"an invalid namespace", []string{"-namespace=Web"}, exitUsage, []string{`-namespace="Web"`, "lower case"}},
		{"two wrong flags", []string{"-workers=0", "-kube-api-burst=0"}, exitUsage, []string{"-workers=0", "-kube-api-burst=0"}},
		{"an unknown log format", []string{"-logging-format=xml"}, exitUsage, []string{`-logging-format="xml"`, "text or json"}},
		{"an argument", []string{"start"}, exitUsage, []string{`"start"`, "flags only"}},
		{"no kubeconfig", []string{"-kubeconfig=" + missing}, exitFailure, []string{missing, "no such file"}},
		{"a kubeconfig of garbage", []string{"-kubeconfig=" + garbage}, exitFailure, []string{garbage}},
		{"an empty kubeconfig", []string{"-kubeconfig=" + empty}, exitFailure, []string{empty, "no cluster is configured"}},
		{"nothing configured", nil, exitFailure, []string{"no cluster is configured", "-kubeconfig", "KUBECONFIG"}},
		{"an unreachable server", []string{"-master=" + unreachable}, exitFailure, []string{unreachable, "can't be reached", "-kubeconfig or -master"}},
		{"a server that does not accept the credentials", []string{"-kubeconfig=" + stranger}, exitFailure, []string{"does not accept the credentials", "renew"}},
	}
	for _, test := range tests {
		t.Run(test.what, func(t *testing.T) {
			t.Parallel()
			stdout, stderr, code := runController(t, "", test.flags...)
			if code != test.code {
				t.Errorf("The exit code is %d, want %d", code, test.code)
			}
			if strings.Count(stderr, "\n") != 1 || stdout != "" {
				t.Errorf("The output is not a single line on stderr:\n%s%s", stdout, stderr)
			}
			for _, want := range test.says {
				if !strings.Contains(stderr, want) {
					t.Errorf("The output is %q, want %q in it", stderr, want)
				}
			}
		})
	}
}

func TestHelpListsTheFlags(t *testing.T) {
	t.Parallel()
	stdout, stderr, code := runController(t, "", "-help")
	if code != exitOK || stderr != "" {
		t.Errorf("The exit code is %d and stderr is %q, want %d and nothing", code, stderr, exitOK)
	}
	for _, name := range []string{"kubeconfig", "master", "workers", "resync", "kube-api-qps", "kube-api-burst", "namespace", "v"} {
		if !strings.Contains(stdout, "\n  -"+name+" ") {
			t.Errorf("The help does not list -%s:\n%s", name, stdout)
		}
	}
}

func TestVersionNamesGoAndClientGo(t *testing.T) {
	t.Parallel()
	module, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	stdout, _, code := runController(t, "", "-version")
	_, clientGo, _ := strings.Cut(stdout, "\nk8s.io/client-go ")
	clientGo, _, _ = strings.Cut(strings.TrimSpace(clientGo), "\n")
	if code != 0 || !strings.Contains(string(module), "k8s.io/client-go "+clientGo+"\n") || !strings.Contains(stdout, " "+runtime.Version()+" ") {
		t.Errorf("The exit code is %d, or the output lacks go.mod's version of client-go or %s:\n%s", code, runtime.Version(), stdout)
	}
}

func TestWithoutAFlagTheClusterComesFromTheEnvironment(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t)
	command := exec.CommandContext(cluster.ctx, cluster.controller, "-namespace="+ns.name)
	command.Env = append(os.Environ(), "KUBECONFIG="+cluster.account.kubeconfig)
	p := startProcess(t, command)
	ns.createReadyFoo(t, newFoo("from-environment"))
	p.stop(t)
}

// TestAControllerWithoutPermissionsSaysWhichAndWaits takes away two permissions of the
// informers, and grants them while the controller waits.
func TestAControllerWithoutPermissionsSaysWhichAndWaits(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t)
	objects, err := shippedPermissions()
	if err != nil {
		t.Fatal(err)
	}
	var rules []rbacv1.PolicyRule
	grants, err := grantsOf(objects)
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range grants {
		if g.String() == "list foos" || g.String() == "watch "+childResource {
			objects = without(t, objects, g)
			rules = append(rules, *g.rule())
		}
	}
	a := newAccountWith(t, cluster.kubeconfig, ns.name, rolesAlone(objects))
	p := startController(t, "-kubeconfig="+a.kubeconfig, "-namespace="+ns.name)
	for _, verb := range []string{"list foos.samplecontroller.k8s.io", "watch " + childGR} {
		p.awaitLog(t, "the permission to "+verb+" in the namespace "+ns.name+" is missing", 1)
	}

	ns.grant(t, rules)
	p.awaitLog(t, "Starting workers", 1)
	ns.createReadyFoo(t, newFoo("permitted"))
	p.stop(t)
	if said := p.log.String(); strings.Count(said, "is missing") != len(rules) || strings.Contains(said, "Failed to watch") {
		t.Errorf("The log does not have each missing permission once, and nothing of informers:\n%s", said)
	}
}

// grant gives the controller's account of the namespace more permissions in it.
func (ns *namespace) grant(t *testing.T, rules []rbacv1.PolicyRule) {
	t.Helper()
	meta := metav1.ObjectMeta{Name: "granted", Namespace: ns.name}
	role := &rbacv1.Role{ObjectMeta: meta, Rules: rules}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: meta,
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: meta.Name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: ns.name, Name: shippedName}},
	}
	if _, err := cluster.kube.RbacV1().Roles(ns.name).Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := cluster.kube.RbacV1().RoleBindings(ns.name).Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// runController runs a controller that exits by itself. Its environment names no cluster
// except the given kubeconfig.
func runController(t *testing.T, kubeconfig string, flags ...string) (stdout, stderr string, code int) {
	t.Helper()
	command := exec.CommandContext(t.Context(), cluster.controller, flags...)
	command.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "HOME="+t.TempDir(), "KUBERNETES_SERVICE_HOST=")
	var out, errs bytes.Buffer
	command.Stdout, command.Stderr = &out, &errs
	if err := command.Run(); err != nil && !errors.As(err, new(*exec.ExitError)) {
		t.Fatal(err)
	}
	return out.String(), errs.String(), command.ProcessState.ExitCode()
}

func writeFile(t *testing.T, folder, name, content string) string {
	t.Helper()
	path := filepath.Join(folder, name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// closedServer returns the URL of a server that no longer listens.
func closedServer() string {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	return server.URL
}

func unauthorizedServer(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusUnauthorized)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// logEntry is a line of the JSON log.
type logEntry struct {
	Time    float64 `json:"ts"` // milliseconds
	Caller  string  `json:"caller"`
	Message string  `json:"msg"`
	Level   *int    `json:"v"`
	Error   string  `json:"err"`
	Foo     struct {
		Name      string `json:"name"`
		Namespace string `json:"namespace"`
	} `json:"foo"`
}

// parseLog parses a log in which each line must be an entry.
func parseLog(t *testing.T, log string) []logEntry {
	t.Helper()
	var entries []logEntry
	for line := range strings.Lines(log) {
		var entry logEntry
		if err := json.Unmarshal([]byte(line), &entry); err != nil {
			t.Errorf("A line is not JSON: %s: %q", err, line)
			continue
		}
		if entry.Time < 1e12 || entry.Message == "" || entry.Caller == "" {
			t.Errorf("An entry lacks a time, a message or a caller: %q", line)
		}
		// An error has no level.
		if entry.Level == nil && entry.Error == "" && !strings.Contains(line, `"err":`) {
			t.Errorf("An entry is neither an error nor has a level: %q", line)
		}
		entries = append(entries, entry)
	}
	return entries
}

func TestTheLogIsJSONIfRequested(t *testing.T) {
	t.Parallel()
	needsNoOtherController(t)
	ns := newNamespace(t)
	p := startController(t, "-kubeconfig="+ns.newAccount(t).kubeconfig, "-namespace="+ns.name, "-leader-elect",
		"-health-probe-bind-address="+anyPort, "-metrics-bind-address="+anyPort, "-logging-format=json", "-v=6")
	ns.createReadyFoo(t, newFoo("logged"))
	p.stop(t)

	// The controller's own lines from start to stop, and those of client-go.
	wanted := map[string]func(logEntry) bool{
		"the start":                func(e logEntry) bool { return e.Message == "Serving metrics" && *e.Level == 0 },
		"a request of the library": func(e logEntry) bool { return strings.HasPrefix(e.Caller, "transport/") && *e.Level == 6 },
		"a write": func(e logEntry) bool {
			return e.Message == "Created "+footest.Primary.Kind && e.Foo.Name == "logged" && e.Foo.Namespace == ns.name && *e.Level == 2
		},
		"the stop": func(e logEntry) bool { return e.Message == stopping },
	}
	for _, entry := range parseLog(t, p.log.String()) {
		for what, isIt := range wanted {
			if entry.Level != nil && isIt(entry) {
				delete(wanted, what)
			}
		}
	}
	for what := range wanted {
		t.Errorf("The log has no line for %s", what)
	}
}

// TestAFailureIsAlsoLoggedInJSON checks the last line before a failed exit. It is the
// easiest to lose and the most useful.
func TestAFailureIsAlsoLoggedInJSON(t *testing.T) {
	t.Parallel()
	garbage := writeFile(t, t.TempDir(), "garbage", "apiVersion: v1\nkind: Config\nclusters: 7\n")
	unreachable := closedServer()
	for _, test := range []struct {
		what  string
		flags []string
		code  int
		says  string
	}{
		{"a wrong flag", []string{"-workers=0"}, exitUsage, "-workers=0"},
		{"an unknown flag", []string{"-bogus"}, exitUsage, "-bogus"},
		{"a flag that the JSON format does not support", []string{"-vmodule=controller=4"}, exitUsage, "-vmodule=controller=4"},
		{"a kubeconfig of garbage", []string{"-kubeconfig=" + garbage}, exitFailure, filepath.Base(garbage)},
		{"an unreachable server", []string{"-master=" + unreachable, "-v=4"}, exitFailure, unreachable},
	} {
		t.Run(test.what, func(t *testing.T) {
			t.Parallel()
			stdout, stderr, code := runController(t, "", append([]string{"-logging-format=json"}, test.flags...)...)
			if code != test.code || stdout != "" {
				t.Errorf("The exit code is %d, want %d, and stdout is %q, want none", code, test.code, stdout)
			}
			entries := parseLog(t, stderr)
			if len(entries) == 0 || !strings.Contains(entries[len(entries)-1].Error, test.says) {
				t.Errorf("The last line does not name %s:\n%s", test.says, stderr)
			}
		})
	}
}
