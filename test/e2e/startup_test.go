/*
Copyright The Sample Controller Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

package e2e

import (
	"bytes"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// What the process' exit code says.
const (
	exitOK      = 0
	exitFailure = 1
	exitUsage   = 2
)

func TestAWrongStartIsOneClearLine(t *testing.T) {
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
		{"a flag that is no number", []string{"-workers=many"}, exitUsage, []string{"-workers", `"many"`}},
		{"no workers", []string{"-workers=0"}, exitUsage, []string{"-workers=0", "1 or more"}},
		{"too short a resync", []string{"-resync=1ms"}, exitUsage, []string{"-resync=1ms", "1s or more"}},
		{"a namespace that can't be", []string{"-namespace=Web"}, exitUsage, []string{`-namespace="Web"`, "lower case"}},
		{"two wrong flags", []string{"-workers=0", "-kube-api-burst=0"}, exitUsage, []string{"-workers=0", "-kube-api-burst=0"}},
		{"an unknown format of the log", []string{"-logging-format=xml"}, exitUsage, []string{`-logging-format="xml"`, "text or json"}},
		{"an argument", []string{"start"}, exitUsage, []string{`"start"`, "flags only"}},
		{"no kubeconfig", []string{"-kubeconfig=" + missing}, exitFailure, []string{missing, "no such file"}},
		{"a kubeconfig of garbage", []string{"-kubeconfig=" + garbage}, exitFailure, []string{garbage}},
		{"an empty kubeconfig", []string{"-kubeconfig=" + empty}, exitFailure, []string{empty, "no cluster is configured"}},
		{"nothing configured", nil, exitFailure, []string{"no cluster is configured", "-kubeconfig", "KUBECONFIG"}},
		{"an unreachable server", []string{"-master=" + unreachable}, exitFailure, []string{unreachable, "can't be reached", "-kubeconfig or -master"}},
		{"a server that knows us not", []string{"-kubeconfig=" + stranger}, exitFailure, []string{"does not accept the credentials", "renew"}},
	}
	for _, test := range tests {
		t.Run(test.what, func(t *testing.T) {
			t.Parallel()
			stdout, stderr, code := runController(t, "", test.flags...)
			if code != test.code {
				t.Errorf("The exit code is %d, want %d", code, test.code)
			}
			if strings.Count(stderr, "\n") != 1 || stdout != "" {
				t.Errorf("It prints more than one line:\n%s%s", stdout, stderr)
			}
			for _, want := range test.says {
				if !strings.Contains(stderr, want) {
					t.Errorf("It says %q, want it to name %q", stderr, want)
				}
			}
		})
	}
}

func TestHelpListsTheFlags(t *testing.T) {
	t.Parallel()
	stdout, stderr, code := runController(t, "", "-help")
	if code != exitOK || stderr != "" {
		t.Errorf("The exit code is %d with %q, want %d and no error", code, stderr, exitOK)
	}
	for _, name := range []string{"kubeconfig", "master", "workers", "resync", "kube-api-qps", "kube-api-burst", "namespace", "v"} {
		if !strings.Contains(stdout, "\n  -"+name+" ") {
			t.Errorf("The help does not have -%s:\n%s", name, stdout)
		}
	}
}

func TestVersionNamesWhatThisBuildIsMadeOf(t *testing.T) {
	t.Parallel()
	module, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	stdout, _, code := runController(t, "", "-version")
	_, clientGo, _ := strings.Cut(stdout, "\nk8s.io/client-go ")
	clientGo, _, _ = strings.Cut(strings.TrimSpace(clientGo), "\n")
	if code != 0 || !strings.Contains(string(module), "k8s.io/client-go "+clientGo+"\n") || !strings.Contains(stdout, " "+runtime.Version()+" ") {
		t.Errorf("It exited with %d, and does not say what go.mod does of client-go, or not %s:\n%s", code, runtime.Version(), stdout)
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

// runController runs a controller that ends by itself, in an environment that
// names no cluster but the given kubeconfig.
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

// closedServer returns an address at which nothing listens any more.
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
