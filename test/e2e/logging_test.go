// SPDX-License-Identifier: Apache-2.0

// The log in JSON.

package e2e

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"example.com/sample-controller/test/footest"
)

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
