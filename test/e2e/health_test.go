// SPDX-License-Identifier: Apache-2.0

// The health endpoints and the ports: when a controller is healthy and ready, and what it
// does while it waits, stands by and stops.

package e2e

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
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
	standingBy = "Standing by for the Lease"
	newHolder  = "The Lease has a new holder"
	working    = "Starting workers"
	stopping   = "Stopping: waiting for the syncs under way"
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
	own := newBareCluster(t)
	flags := []string{"-kubeconfig=" + own.inDefault().newAccount(t).kubeconfig,
		"-health-probe-bind-address=" + anyPort, "-metrics-bind-address=" + anyPort}
	stopped := startController(t, flags...)
	stopped.awaitLog(t, "is not installed", 1)
	stopped.stop(t)

	p := startController(t, flags...)
	p.awaitLog(t, "CustomResourceDefinition "+crdName+" is not installed", 1)
	p.awaitLog(t, "kubectl apply -f artifacts/crd", 1)
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
// counts the Foos, too, and that it takes over.
func TestAStandbyTakesOver(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		signal syscall.Signal
		code   int
	}{
		"from a leader that is killed":  {syscall.SIGKILL, -1},
		"from a leader that is stopped": {syscall.SIGTERM, 0},
	} {
		t.Run(name, func(t *testing.T) {
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

			leader.end(t, row.signal)
			if code := leader.State().ExitCode(); code != row.code {
				t.Errorf("The leader's exit code is %d, want %d", code, row.code)
			}
			standby.awaitLog(t, working, 1)
			ns.createReadyFoo(t, newFoo("after", 1))
		})
	}
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
