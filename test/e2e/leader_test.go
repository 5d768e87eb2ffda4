// SPDX-License-Identifier: Apache-2.0

// Leader election: takeovers, and leaders that stop or lose the Lease.

package e2e

import (
	"syscall"
	"testing"
	"time"
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
