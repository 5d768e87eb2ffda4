// SPDX-License-Identifier: Apache-2.0

// The program: its command line and log, when it is healthy and ready, and what it does while it waits,
// stands by and stops.

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
	"strconv"
	"strings"
	"syscall"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/sample-controller/test/faults/proxy"
	"example.com/sample-controller/test/footest"
	"example.com/sample-controller/test/testcluster"
)

// Messages that the controller logs.
const (
	standingBy = "Waiting to become leader"
	newHolder  = "The Lease has a new holder"
	working    = "Starting workers"
	stopping   = "Stopping: waiting for syncs in progress"
)

// Flags that serve health and metrics on free ports, which the controller logs.
const (
	anyPort       = "127.0.0.1:0"
	servesHealth  = "-health-probe-bind-address=" + anyPort
	servesMetrics = "-metrics-bind-address=" + anyPort
)

// mustAnswer checks the response of a health endpoint.
func (tr *trial) mustAnswer(r *replica, path string, code int, says ...string) {
	tr.t.Helper()
	got := ask(tr.t, "http://"+tr.servedAt(r, "health")+path, "")
	if got.code != code {
		tr.t.Errorf("%s returned %d: %s, want %d", path, got.code, got.body, code)
	}
	for _, text := range says {
		if !strings.Contains(got.body, text) {
			tr.t.Errorf("%s returned no %q, but: %s", path, text, got.body)
		}
	}
}

// TestTheControllerWaitsForAMissingCRD checks that a controller which waits for the CRD
// already serves health and metrics, and can be stopped. It is healthy, but not ready until
// the CRD is installed and its caches are filled.
func TestTheControllerWaitsForAMissingCRD(t *testing.T) {
	t.Parallel()
	own := newOwnCluster(t, testcluster.ControlPlaneOnly)
	own.kubectl(t, "apply", "--server-side", "-k="+permissionsFolder)
	account, err := own.accountOf(t.Context(), shipped, shipped)
	footest.Must(t, err)
	tr := inNamespaceOf(t, own, metav1.NamespaceDefault)
	tr.account = account
	stopped := tr.start(servesHealth, servesMetrics)
	tr.awaitLog(stopped, "is not installed", 1)
	tr.stop(stopped)

	r := tr.start(servesHealth, servesMetrics)
	tr.awaitLog(r, "CustomResourceDefinition "+crdName+" is not installed", 1)
	tr.awaitLog(r, "kubectl apply --server-side -f artifacts/crd", 1)
	tr.mustAnswer(r, "/healthz", http.StatusOK)
	tr.mustAnswer(r, "/readyz", http.StatusInternalServerError, "[-]caches failed", "[+]shutdown ok")
	tr.mustAnswer(r, "/readyz/caches", http.StatusInternalServerError, "not filled")
	if got := ask(t, tr.metricsURL(r), ""); got.code != http.StatusUnauthorized {
		t.Errorf("The metrics endpoint returned %d: %s", got.code, got.body)
	}

	footest.Must(t, testcluster.InstallCRDs(t.Context(), testcluster.Devcluster(t), own.kubeconfig, moduleRoot))
	tr.awaitLog(r, working, 1)
	if got, kinds := r.log.Count("is not installed"), len(footest.Owners); got != kinds {
		t.Errorf("The log says %d times that the CRD of one of %d kinds is missing, want once for each", got, kinds)
	}
	tr.mustAnswer(r, "/readyz", http.StatusOK)
	tr.mustAnswer(r, "/healthz?verbose", http.StatusOK, "[+]ping ok", "[+]leaderElection ok")
}

// TestAStandbyTakesOver checks that a standby is ready, because it could take over, and that it
// counts the Foos, too. The rows E are about how it takes over.
func TestAStandbyTakesOver(t *testing.T) {
	t.Parallel()
	tr := newTrial(t)
	flags := append(tr.electionFlags(), servesHealth, servesMetrics)
	leader := tr.start(flags...)
	tr.awaitLog(leader, working, 1)
	tr.settledFoo("before", "before", 1)
	standby := tr.start(flags...)
	tr.awaitLog(standby, standingBy, 1)
	tr.mustAnswer(standby, "/readyz", http.StatusOK)
	tr.mustAnswer(standby, "/healthz", http.StatusOK)
	token := tr.newReader("reader", metricsReader, "/metrics")
	tr.awaitMetrics(standby, token, masterStatus(0), `sample_controller_foos{ready="True"} 1`,
		`sample_controller_sync_duration_seconds_count{result="success"} 0`)
	tr.awaitMetrics(leader, token, masterStatus(1), `sample_controller_foos{ready="True"} 1`)
	if standby.log.Count(working) > 0 {
		t.Error("The standby has started its workers")
	}
	leader.kill()
	tr.awaitLog(standby, working, 1)
	tr.settledFoo("after", "after", 1)
}

// masterStatus is the metric of leader election.
func masterStatus(leads int) string {
	return `leader_election_master_status{name="` + shipped + `"} ` + strconv.Itoa(leads)
}

// TestAControllerThatStopsIsNotReady checks that a controller which waits for its last
// sync is healthy, but not ready.
func TestAControllerThatStopsIsNotReady(t *testing.T) {
	t.Parallel()
	tr := newTrial(t)
	r := tr.start(servesHealth)
	open := tr.holdNext(r, attempted(footest.Primary.Resource.Resource, "create"), proxy.Forward, func() { tr.createFoo("slow", "slow", 1) })
	tr.mustAnswer(r, "/readyz", http.StatusOK)
	r.signal(syscall.SIGTERM)
	tr.awaitLog(r, stopping, 1)
	tr.mustAnswer(r, "/readyz", http.StatusInternalServerError, "[-]shutdown failed")
	tr.mustAnswer(r, "/healthz", http.StatusOK)
	open()
	tr.mustExit(r, "after SIGTERM", 0) // a second signal would end it at once
}

// TestNoPortIsOpenByDefault rests on the log, which says of each server where it is.
func TestNoPortIsOpenByDefault(t *testing.T) {
	t.Parallel()
	tr := newTrial(t)
	for want, flags := range map[int][]string{0: nil, 2: {servesHealth, servesMetrics}} {
		r := tr.start(flags...)
		tr.awaitLog(r, working, 1)
		if got := r.log.Count(`"Serving `); got != want {
			t.Errorf("With the flags %q it serves on %d ports, want %d", flags, got, want)
		}
		tr.stop(r)
	}
}

// TestAFailedStartPrintsOneClearLine starts the program in ways in which it exits by itself.
// With the JSON format, each line of a failed start is an entry of the log. The last one,
// which is the easiest to lose and the most useful, says what is wrong.
func TestAFailedStartPrintsOneClearLine(t *testing.T) {
	t.Parallel()
	server := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(server.Close)
	const ok, failure, usage = 0, 1, 2

	for _, test := range []struct {
		what  string
		flags []string
		code  int
		says  []string
	}{
		{"help", []string{"-workers=0", "-help"}, ok, []string{"\n  -kubeconfig ", "\n  -workers ", "\n  -v "}},
		{"the version", []string{"-workers=0", "--version"}, ok, []string{"\tk8s.io/client-go\t", "\t" + runtime.Version() + "\n"}},
		{"two wrong flags", []string{"-workers=0", "-kube-api-qps=0"}, usage, []string{"-workers=0", "-kube-api-qps=0"}},
		{"nothing configured", nil, failure, []string{"no cluster is configured", "-kubeconfig", "KUBECONFIG"}},
		{"an unknown server", []string{"-master=" + server.URL}, failure, []string{server.URL, "a certificate of an unknown authority"}},
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
	command := exec.CommandContext(t.Context(), run.ours.path, flags...)
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
	tr := newTrial(t)
	r := tr.start(append(tr.electionFlags(), servesHealth, servesMetrics, "-logging-format=json", "-v=6")...)
	tr.settledFoo("logged", "logged", 1)
	tr.stop(r)

	// The controller's own lines from start to stop, and those of client-go.
	wanted := map[string]func(logEntry) bool{
		"the start":                func(e logEntry) bool { return e.Message == "Serving metrics" && *e.Level == 0 },
		"a request of the library": func(e logEntry) bool { return strings.HasPrefix(e.Caller, "transport/") && *e.Level > 5 },
		"a write": func(e logEntry) bool {
			isOfFoo := e.Foo.Name == "logged" && e.Foo.Namespace == tr.ns
			return e.Message == "Created "+footest.Primary.Kind && isOfFoo && *e.Level == 2
		},
		"the stop": func(e logEntry) bool { return e.Message == stopping },
	}
	for _, entry := range parseLog(t, r.log.String()) {
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
