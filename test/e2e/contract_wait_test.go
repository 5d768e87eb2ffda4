/*
Copyright The Sample Controller Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

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
