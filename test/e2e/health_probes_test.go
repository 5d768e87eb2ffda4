// SPDX-License-Identifier: Apache-2.0

// The health endpoints: when a controller is healthy and when it is ready.

package e2e

import (
	"net/http"
	"strings"
	"syscall"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

// TestAControllerIsReadyWhenItsCachesAreFilled checks that a controller which waits for
// the CRD already serves health and metrics. It is healthy, but not ready.
func TestAControllerIsReadyWhenItsCachesAreFilled(t *testing.T) {
	t.Parallel()
	own := newBareCluster(t)
	p := startController(t, "-kubeconfig="+newAccountIn(t, own.kubeconfig, metav1.NamespaceDefault).kubeconfig,
		"-health-probe-bind-address="+anyPort, "-metrics-bind-address="+anyPort)
	p.awaitLog(t, "is not installed", 1)
	p.expectHealth(t, "/healthz", http.StatusOK)
	p.expectHealth(t, "/readyz", http.StatusInternalServerError, "[-]caches failed", "[+]shutdown ok")
	p.expectHealth(t, "/readyz/caches", http.StatusInternalServerError, "not filled")
	if got := ask(t, "https://"+p.servedAt(t, "metrics")+"/metrics", ""); got.code != http.StatusUnauthorized {
		t.Errorf("The metrics endpoint returned %d: %s", got.code, got.body)
	}

	if err := own.installCRD(t.Context()); err != nil {
		t.Fatal(err)
	}
	awaitAnswer(t, "http://"+p.servedAt(t, "health")+"/readyz", http.StatusOK)
	p.expectHealth(t, "/healthz?verbose", http.StatusOK, "[+]ping ok", "[+]leaderElection ok")
}

// TestAStandbyIsReady checks that a standby is ready, because it could take over, and
// that it counts the Foos, too.
func TestAStandbyIsReady(t *testing.T) {
	t.Parallel()
	needsNoOtherController(t)
	ns := newNamespace(t)
	flags := []string{"-kubeconfig=" + ns.newAccount(t).kubeconfig, "-namespace=" + ns.name, "-leader-elect",
		"-health-probe-bind-address=" + anyPort, "-metrics-bind-address=" + anyPort}
	leader := startController(t, flags...)
	leader.awaitLog(t, "Starting workers", 1)
	ns.createReadyFoo(t, newFoo("foo"))
	standby := startController(t, flags...)
	awaitAnswer(t, "http://"+standby.servedAt(t, "health")+"/readyz", http.StatusOK)
	standby.expectHealth(t, "/healthz", http.StatusOK)
	token := ns.newReader(t)
	standby.awaitMetrics(t, token, `leader_election_master_status{name="sample-controller"} 0`, `sample_controller_foos{ready="True"} 1`,
		`sample_controller_sync_duration_seconds_count{result="success"} 0`)
	leader.awaitMetrics(t, token, `leader_election_master_status{name="sample-controller"} 1`, `sample_controller_foos{ready="True"} 1`)
	if standby.log.Count("Starting workers") > 0 {
		t.Error("The standby has started its workers")
	}
}

// TestAControllerThatStopsIsNotReady checks that a controller which waits for its last
// sync is healthy, but not ready.
func TestAControllerThatStopsIsNotReady(t *testing.T) {
	t.Parallel()
	needsNoOtherController(t)
	p, gate := startHeldUp(t, newNamespace(t), "-health-probe-bind-address="+anyPort)
	p.expectHealth(t, "/readyz", http.StatusOK)
	p.signal(t, syscall.SIGTERM)
	p.awaitLog(t, stopping, 1)
	p.expectHealth(t, "/readyz", http.StatusInternalServerError, "[-]shutdown failed")
	p.expectHealth(t, "/healthz", http.StatusOK)
	gate.open()
	if code := p.exitCode(t); code != 0 {
		t.Errorf("The exit code is %d, want 0", code)
	}
}

// stopping is the message that the controller logs after a signal.
const stopping = "Stopping: waiting for the syncs under way"

// startHeldUp starts a controller, with more flags, whose first write is held by a gate.
func startHeldUp(t *testing.T, ns *namespace, flags ...string) (*process, *gate) {
	t.Helper()
	gate := newGate(t, func(r *http.Request) bool {
		return r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/"+childResource)
	})
	p := startController(t, append([]string{"-kubeconfig=" + gate.kubeconfig, "-namespace=" + ns.name}, flags...)...)
	ns.createFoo(t, newFoo("slow"))
	receive(t, gate.arrived)
	return p, gate
}
