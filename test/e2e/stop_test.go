// SPDX-License-Identifier: Apache-2.0

// Orderly stops of the controller.

package e2e

import (
	"net/http"
	"strings"
	"syscall"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// stopping is the message that the controller logs after a signal.
const stopping = "Stopping: waiting for the syncs under way"

func TestAStopFinishesTheSyncsUnderWay(t *testing.T) {
	t.Parallel()
	needsNoOtherController(t)
	ns := newNamespace(t)
	p, gate := startHeldUp(t, ns)
	p.signal(t, syscall.SIGTERM)
	p.awaitLog(t, stopping, 1)
	if p.HasEnded() {
		t.Fatal("The controller has ended although its write is still under way")
	}

	gate.open()
	if code := p.exitCode(t); code != 0 {
		t.Errorf("The exit code is %d, want 0", code)
	}
	if _, err := ns.children().Get(t.Context(), "slow", metav1.GetOptions{}); err != nil {
		t.Errorf("The write under way was not finished: %v", err)
	}
	if got := ns.getFoo(t, "slow"); got.Status.ObservedGeneration != got.Generation {
		t.Error("The sync under way was not finished: its status is missing")
	}
	// Do not wait for the event, because no controller is left to write it.
	if len(fooEvents(t, []*namespace{ns})) != 1 {
		t.Error("The event of the sync under way was not written before the end")
	}
}

func TestASecondSignalEndsTheControllerAtOnce(t *testing.T) {
	t.Parallel()
	needsNoOtherController(t)
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		t.Run(signal.String(), func(t *testing.T) {
			t.Parallel()
			p, _ := startHeldUp(t, newNamespace(t))
			p.signal(t, signal)
			p.awaitLog(t, stopping, 1)
			p.signal(t, signal)
			// The gate stays closed, so the controller can't have waited for the write.
			if code := p.exitCode(t); code != 1 {
				t.Errorf("The exit code is %d, want 1", code)
			}
		})
	}
}

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
