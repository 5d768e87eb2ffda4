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
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

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

// expectHealth checks the response of a health endpoint.
func (p *process) expectHealth(t *testing.T, path string, code int, says ...string) {
	t.Helper()
	got := ask(t, "http://"+p.servedAt(t, "health")+path, "")
	if got.code != code {
		t.Errorf("%s returned %d: %s, want %d", path, got.code, got.body, code)
	}
	for _, text := range says {
		if !strings.Contains(got.body, text) {
			t.Errorf("%s returned no %q, but: %s", path, text, got.body)
		}
	}
}

// TestTheControllerWaitsForAMissingCRD checks that a controller which waits for the CRD
// already serves health and metrics, and can be stopped. It is healthy, but not ready until
// the CRD is installed and its caches are filled.
func TestTheControllerWaitsForAMissingCRD(t *testing.T) {
	t.Parallel()
	own := newOwnCluster(t, testcluster.ControlPlaneOnly)
	flags := []string{"-kubeconfig=" + own.inDefault().newAccount(t).kubeconfig,
		"-health-probe-bind-address=" + anyPort, "-metrics-bind-address=" + anyPort}
	stopped := startController(t, flags...)
	stopped.awaitLog(t, "is not installed", 1)
	stopped.stop(t)

	p := startController(t, flags...)
	p.awaitLog(t, "CustomResourceDefinition "+crdName+" is not installed", 1)
	p.awaitLog(t, "kubectl apply --server-side -f artifacts/crd", 1)
	p.expectHealth(t, "/healthz", http.StatusOK)
	p.expectHealth(t, "/readyz", http.StatusInternalServerError, "[-]caches failed", "[+]shutdown ok")
	p.expectHealth(t, "/readyz/caches", http.StatusInternalServerError, "not filled")
	if got := ask(t, p.metricsURL(t), ""); got.code != http.StatusUnauthorized {
		t.Errorf("The metrics endpoint returned %d: %s", got.code, got.body)
	}

	footest.Must(t, own.installCRDs(t.Context()))
	p.awaitLog(t, working, 1)
	if got, kinds := p.log.Count("is not installed"), len(footest.Owners); got != kinds {
		t.Errorf("The log says %d times that the CRD of one of %d kinds is missing, want once for each", got, kinds)
	}
	p.expectHealth(t, "/readyz", http.StatusOK)
	p.expectHealth(t, "/healthz?verbose", http.StatusOK, "[+]ping ok", "[+]leaderElection ok")
}

// TestAStandbyTakesOver checks that a standby is ready, because it could take over, that it
// counts the Foos, too, and that it takes over from a leader that is killed.
// TestEachPermissionIsNeeded stops one.
func TestAStandbyTakesOver(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t)
	flags := append(ns.newAccount(t).flags(), "-namespace="+ns.name,
		"-health-probe-bind-address="+anyPort, "-metrics-bind-address="+anyPort)
	leader := startController(t, flags...)
	leader.awaitLog(t, working, 1)
	ns.createReadyFoo(t, newFoo("before", 1))
	standby := startController(t, flags...)
	standby.awaitLog(t, standingBy, 1)
	standby.expectHealth(t, "/readyz", http.StatusOK)
	standby.expectHealth(t, "/healthz", http.StatusOK)
	token := ns.newReader(t, "reader", metricsReader+ns.name, "/metrics")
	standby.awaitMetrics(t, token, masterStatus(ns, 0), `sample_controller_foos{ready="True"} 1`,
		`sample_controller_sync_duration_seconds_count{result="success"} 0`)
	leader.awaitMetrics(t, token, masterStatus(ns, 1), `sample_controller_foos{ready="True"} 1`)
	if standby.log.Count(working) > 0 {
		t.Error("The standby has started its workers")
	}
	leader.end(t, syscall.SIGKILL)
	standby.awaitLog(t, working, 1)
	ns.createReadyFoo(t, newFoo("after", 1))
}

// masterStatus is the metric of leader election for the Lease in the namespace.
func masterStatus(ns *namespace, leads int) string {
	return `leader_election_master_status{name="` + shippedName + "-" + ns.name + `"} ` + strconv.Itoa(leads)
}

// TestAControllerThatStopsIsNotReady checks that a controller which waits for its last
// sync is healthy, but not ready.
func TestAControllerThatStopsIsNotReady(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t)
	arrived, opened := make(chan struct{}), make(chan struct{})
	arrive, open := sync.OnceFunc(func() { close(arrived) }), sync.OnceFunc(func() { close(opened) })
	kubeconfig := behindProxy(t, cluster.account, func(r *http.Request) {
		if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/"+footest.Primary.Resource.Resource) {
			arrive()
			<-opened
		}
	}, nil)
	t.Cleanup(open) // before the proxy closes
	p := startController(t, "-kubeconfig="+kubeconfig, "-namespace="+ns.name, "-health-probe-bind-address="+anyPort)
	ns.primary().createOwner(t, newFoo("slow", 1))
	<-arrived
	p.expectHealth(t, "/readyz", http.StatusOK)
	footest.Must(t, p.Signal(syscall.SIGTERM))
	p.awaitLog(t, stopping, 1)
	p.expectHealth(t, "/readyz", http.StatusInternalServerError, "[-]shutdown failed")
	p.expectHealth(t, "/healthz", http.StatusOK)
	open()
	p.expectStop(t) // a second signal would end it at once
}

// behindProxy returns a kubeconfig that leads to the API server through a proxy, which
// calls a function with each request and, if it is not nil, with each response, and sends the
// requests as an account.
func behindProxy(t *testing.T, as *account, see func(*http.Request), seeResponse func(*http.Response) error) (kubeconfig string) {
	t.Helper()
	transport, err := rest.TransportFor(as.config)
	footest.Must(t, err)
	target, err := url.Parse(as.config.Host)
	footest.Must(t, err)
	server := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			see(r.Out)
			r.SetURL(target)
		},
		Transport:      transport,
		FlushInterval:  -1, // watches
		ModifyResponse: seeResponse,
		ErrorHandler:   func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
	})
	t.Cleanup(server.Close)
	kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	footest.Must(t, testcluster.WriteKubeconfig(kubeconfig, server.URL, nil, clientcmdapi.AuthInfo{}))
	return kubeconfig
}

func TestNoPortIsOpenByDefault(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("this test reads the ports of a process from /proc")
	}
	ns := newNamespace(t)
	for flags, want := range map[string]int{
		"": 0,
		"-health-probe-bind-address=" + anyPort + " -metrics-bind-address=" + anyPort: 2,
	} {
		p := ns.startController(t, strings.Fields(flags)...)
		p.awaitLog(t, working, 1)
		if got := p.listening(t); got != want {
			t.Errorf("With the flags %q it listens on %d ports, want %d", flags, got, want)
		}
		p.stop(t)
	}
}

// listening returns the number of sockets on which a process listens.
func (p *process) listening(t *testing.T) int {
	t.Helper()
	proc := filepath.Join("/proc", strconv.Itoa(p.ID()))
	descriptors, err := filepath.Glob(proc + "/fd/*")
	footest.Must(t, err)
	sockets := map[string]bool{}
	for _, descriptor := range descriptors {
		target, err := os.Readlink(descriptor)
		if number, isSocket := strings.CutPrefix(target, "socket:["); err == nil && isSocket {
			sockets[strings.TrimSuffix(number, "]")] = true
		}
	}
	if len(sockets) == 0 {
		t.Fatal("The process has no socket, not even to the API server")
	}
	listening := 0
	tables, err := filepath.Glob(proc + "/net/[tu][cd]p*")
	footest.Must(t, err)
	for _, table := range tables {
		content, err := os.ReadFile(table)
		footest.Must(t, err)
		for line := range strings.Lines(string(content)) {
			// sl local_address rem_address st tx:rx tr:when retrnsmt uid timeout inode
			fields := strings.Fields(line)
			if len(fields) >= 10 && sockets[fields[9]] && strings.HasSuffix(fields[2], ":0000") {
				listening++
			}
		}
	}
	return listening
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
		{"the version", []string{"-workers=0", "--version"}, ok, []string{"\nk8s.io/client-go ", " " + runtime.Version() + " "}},
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
