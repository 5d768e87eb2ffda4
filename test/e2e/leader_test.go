// SPDX-License-Identifier: Apache-2.0

// Leader election: takeovers, and leaders that stop or lose the Lease.

package e2e

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	typedcoordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/utils/ptr"

	"example.com/sample-controller/internal/footest"
)

// Messages that the controller logs during leader election.
const (
	standingBy = "Standing by for the Lease"
	newHolder  = "The Lease has a new holder"
	working    = "Starting workers"
)

// replicas are controllers of the Foos of one namespace that compete for one Lease.
type replicas struct {
	ns      *namespace
	account *account
}

func newReplicas(t *testing.T) *replicas {
	t.Helper()
	ns := newNamespace(t)
	return &replicas{ns: ns, account: ns.newAccount(t)}
}

// start runs one more controller, and waits until its caches are filled.
func (r *replicas) start(t *testing.T, flags ...string) *process {
	t.Helper()
	return r.startWith(t, r.account.kubeconfig, flags...)
}

func (r *replicas) startWith(t *testing.T, kubeconfig string, flags ...string) *process {
	t.Helper()
	p := startController(t, append([]string{"-kubeconfig=" + kubeconfig, "-namespace=" + r.ns.name,
		"-leader-elect", "-leader-elect-resource-namespace=" + r.account.namespace, "-resync=1s", "-v=4"}, flags...)...)
	p.awaitLog(t, standingBy, 1)
	return p
}

func (r *replicas) leases() typedcoordinationv1.LeaseInterface {
	return cluster.kube.CoordinationV1().Leases(r.account.namespace)
}

func (r *replicas) holder(t *testing.T) string {
	t.Helper()
	lease, err := r.leases().Get(t.Context(), shippedName, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return ptr.Deref(lease.Spec.HolderIdentity, "")
}

// awaitOtherHolder waits until the Lease has another holder than before.
func (r *replicas) awaitOtherHolder(t *testing.T, before string) {
	t.Helper()
	awaitOne(t, "another controller holds the Lease", r.leases(), shippedName, func(lease *coordinationv1.Lease) error {
		if now := ptr.Deref(lease.Spec.HolderIdentity, ""); now == "" || now == before {
			return fmt.Errorf("%q holds it", now)
		}
		return nil
	})
}

// seize writes another holder into the Lease.
func (r *replicas) seize(t *testing.T) {
	t.Helper()
	_, err := r.leases().Patch(t.Context(), shippedName, types.MergePatchType, []byte(`{"spec":{"holderIdentity":"another"}}`), metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

// TestAStandbyTakesOver is not parallel, because on a busy machine it would measure more
// than the controllers' own time.
func TestAStandbyTakesOver(t *testing.T) {
	for name, row := range map[string]struct {
		end    syscall.Signal
		within time.Duration
		code   int
	}{
		"from a leader that is killed":  {syscall.SIGKILL, 17 * time.Second, -1},
		"from a leader that is stopped": {syscall.SIGTERM, 2 * time.Second, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newReplicas(t)
			leader := r.start(t)
			leader.awaitLog(t, working, 1)
			r.ns.createReadyFoo(t, newFoo("before", withReplicas(1)))
			standby := r.start(t)

			began := time.Now()
			leader.signal(t, row.end)
			standby.awaitLog(t, working, 1)
			if took := time.Since(began); took > row.within {
				t.Errorf("The takeover took %v, want at most %v", took, row.within)
			}
			r.ns.createReadyFoo(t, newFoo("after", withReplicas(1)))
			if code := leader.exitCode(t); code != row.code {
				t.Errorf("The leader's exit code is %d, want %d", code, row.code)
			}
		})
	}
}

// TestTheLeaseIsKeptWhileAWriteIsUnderWay checks that a leader which stops renews the
// Lease until its last write is done.
func TestTheLeaseIsKeptWhileAWriteIsUnderWay(t *testing.T) {
	t.Parallel()
	r := newReplicas(t)
	gate := newGateFor(t, r.account, isCreateOfChild)
	leader := r.startWith(t, gate.kubeconfig, quick...)
	r.ns.createFoo(t, newFoo("slow"))
	receive(t, gate.arrived)
	standby := r.start(t, quick...)

	held := r.holder(t)
	leader.signal(t, syscall.SIGTERM)
	leader.awaitLog(t, stopping, 1)
	renewed := r.renewals(t, 7) // longer than the Lease's duration
	if renewed != held || standby.log.Count(working) != 0 {
		t.Fatalf("While the leader %q still writes, the holder of the Lease is %q, and the standby works: %v", held, renewed, standby.log.Count(working) != 0)
	}
	gate.open()
	if code := leader.exitCode(t); code != 0 {
		t.Errorf("The leader's exit code is %d, want 0", code)
	}
	standby.awaitLog(t, working, 1)
	r.ns.awaitReady(t, "slow")
}

// renewals waits until the Lease has been renewed a number of times, and returns its
// holder at the end.
func (r *replicas) renewals(t *testing.T, times int) string {
	t.Helper()
	var last metav1.MicroTime
	seen := 0
	lease := awaitOne(t, fmt.Sprintf("the Lease is renewed %d times", times), r.leases(), shippedName, func(lease *coordinationv1.Lease) error {
		if renewed := ptr.Deref(lease.Spec.RenewTime, metav1.MicroTime{}); !renewed.Equal(&last) {
			last = renewed
			seen++
		}
		if seen <= times {
			return errors.New("not yet")
		}
		return nil
	})
	return ptr.Deref(lease.Spec.HolderIdentity, "")
}

// quick are flags for a Lease of a few seconds, long enough not to be lost on a busy
// machine.
var quick = []string{"-leader-elect-lease-duration=6s", "-leader-elect-renew-deadline=5s", "-leader-elect-retry-period=1s"}

func isCreateOfChild(r *http.Request) bool {
	return r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/"+childResource)
}

func TestALeaderThatLosesTheLeaseExitsAtOnce(t *testing.T) {
	t.Parallel()
	r := newReplicas(t)
	gate := newGateFor(t, r.account, isCreateOfChild)
	leader := r.startWith(t, gate.kubeconfig)
	r.ns.createFoo(t, newFoo("slow"))
	receive(t, gate.arrived)

	began := time.Now()
	r.seize(t)
	if code := leader.exitCode(t); code != exitFailure {
		t.Errorf("The exit code is %d, want %d", code, exitFailure)
	}
	// It reads the Lease every 2 s. It does not take the 20 s of an orderly stop.
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("It continued for %v with a write under way", took)
	}
	if leader.log.Count("lost the Lease") != 1 {
		t.Error("The log does not say that it lost the Lease")
	}
	if holder := r.holder(t); holder != "another" {
		t.Errorf("The holder of the Lease is %q, want another: the former leader released a Lease that it no longer held", holder)
	}
}

func TestALeaderRecreatesADeletedLease(t *testing.T) {
	t.Parallel()
	r := newReplicas(t)
	leader := r.start(t)
	leader.awaitLog(t, working, len(footest.Owners))
	holder := r.holder(t)
	if err := r.leases().Delete(t.Context(), shippedName, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if now := r.renewals(t, 1); now != holder {
		t.Errorf("The holder of the Lease is %q, want %q", now, holder)
	}
	if leader.log.Count(working) != len(footest.Owners) {
		t.Error("The leader started its workers again")
	}
}
