// SPDX-License-Identifier: Apache-2.0

// The contract: kubectl wait waits for the newest spec.

package e2e

import "testing"

// TestKubectlWaitAfterAScaleWaitsForTheNewSize runs kubectl wait while the status still
// reports Ready for the old size.
func TestKubectlWaitAfterAScaleWaitsForTheNewSize(t *testing.T) {
	t.Parallel()
	needsNoOtherController(t)
	ns := newNamespace(t)
	first := ns.startController(t)
	ns.createReadyFoo(t, newFoo("foo", withReplicas(1)))
	first.stop(t)
	ns.kubectl(t, "scale", "foo/foo", "--replicas=3")
	command := kubectlCommand(t, []string{"--namespace=" + ns.name, "wait", "foo/foo", "--for=condition=Ready", "--timeout=1s"})
	if out, err := command.CombinedOutput(); err == nil {
		t.Errorf("kubectl wait accepted a status that belongs to an older spec: %s", out)
	}

	ns.startController(t)
	ns.kubectl(t, "wait", "foo/foo", "--for=condition=Ready", "--timeout="+cluster.patience().String())
	if got := ns.getFoo(t, "foo").Status.AvailableReplicas; got != 3 {
		t.Errorf("When kubectl wait returns, %d Pods are available, want 3", got)
	}
}
