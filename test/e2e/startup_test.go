// SPDX-License-Identifier: Apache-2.0

// The command line and the log: failed starts, -help, -version, and JSON.

package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"example.com/sample-controller/test/footest"
)

// TestAFailedStartPrintsOneClearLine starts the program in ways in which it exits by itself.
// With the JSON format, each line of a failed start is an entry of the log. The last one,
// which is the easiest to lose and the most useful, says what is wrong.
func TestAFailedStartPrintsOneClearLine(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.NotFoundHandler())
	unreachable := server.URL
	server.Close()
	const ok, failure, usage = 0, 1, 2

	for _, test := range []struct {
		what  string
		flags []string
		code  int
		says  []string
	}{
		{"help", []string{"-help"}, ok, []string{"\n  -kubeconfig ", "\n  -workers ", "\n  -v "}},
		{"the version", []string{"-version"}, ok, []string{"\nk8s.io/client-go ", " " + runtime.Version() + " "}},
		{"two wrong flags", []string{"-workers=0", "-kube-api-qps=0"}, usage, []string{"-workers=0", "-kube-api-qps=0"}},
		{"nothing configured", nil, failure, []string{"no cluster is configured", "-kubeconfig", "KUBECONFIG"}},
		{"an unreachable server", []string{"-master=" + unreachable}, failure, []string{unreachable, "can't be reached"}},
	} {
		for _, format := range []string{"text", "json"} {
			t.Run(test.what+" in "+format, func(t *testing.T) {
				t.Parallel()
				stdout, stderr, code := runController(t, append([]string{"-logging-format=" + format}, test.flags...)...)
				said, silent := stderr, stdout
				switch {
				case test.code == ok:
					said, silent = stdout, stderr
				case format == "json":
					entries := parseLog(t, stderr)
					said = entries[len(entries)-1].Error
				case strings.Count(stderr, "\n") != 1:
					t.Errorf("The output is not a single line:\n%s", stderr)
				}
				if code != test.code || silent != "" {
					t.Errorf("The exit code is %d, want %d, and there is other output: %q", code, test.code, silent)
				}
				for _, want := range test.says {
					if !strings.Contains(said, want) {
						t.Errorf("The output is %q, want %q in it", said, want)
					}
				}
			})
		}
	}
}

// runController runs a controller that exits by itself. Its environment names no cluster.
func runController(t *testing.T, flags ...string) (stdout, stderr string, code int) {
	t.Helper()
	command := exec.CommandContext(t.Context(), cluster.controller, flags...)
	command.Env = append(os.Environ(), "KUBECONFIG=", "HOME="+t.TempDir(), "KUBERNETES_SERVICE_HOST=")
	var out, errs bytes.Buffer
	command.Stdout, command.Stderr = &out, &errs
	if err := command.Run(); err != nil && !errors.As(err, new(*exec.ExitError)) {
		t.Fatal(err)
	}
	return out.String(), errs.String(), command.ProcessState.ExitCode()
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
		} else if entry.Time < 1e12 || entry.Message == "" || entry.Caller == "" {
			t.Errorf("An entry lacks a time, a message or a caller: %q", line)
		} else if entry.Level == nil && !strings.Contains(line, `"err":`) { // an error has no level
			t.Errorf("An entry is neither an error nor has a level: %q", line)
		}
		entries = append(entries, entry)
	}
	if len(entries) == 0 {
		t.Fatal("There is no entry")
	}
	return entries
}

func TestTheLogIsJSONIfRequested(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t)
	p := startController(t, append(ns.newAccount(t).flags(), "-namespace="+ns.name,
		"-health-probe-bind-address="+anyPort, "-metrics-bind-address="+anyPort, "-logging-format=json", "-v=6")...)
	ns.createReadyFoo(t, newFoo("logged", 1))
	p.stop(t)

	// The controller's own lines from start to stop, and those of client-go.
	wanted := map[string]func(logEntry) bool{
		"the start":                func(e logEntry) bool { return e.Message == "Serving metrics" && *e.Level == 0 },
		"a request of the library": func(e logEntry) bool { return strings.HasPrefix(e.Caller, "transport/") && *e.Level > 5 },
		"a write": func(e logEntry) bool {
			isOfFoo := e.Foo.Name == "logged" && e.Foo.Namespace == ns.name
			return e.Message == "Created "+footest.Primary.Kind && isOfFoo && *e.Level == 2
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
