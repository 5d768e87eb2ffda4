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

package e2e

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// No write of a Deployment gets through, and nobody says that it never will.
// What the old Deployments run is not what is asked for.
func TestWhileNothingCanBeWrittenNothingIsReady(t *testing.T) {
	t.Parallel()
	needsAdmission(t)
	ns := newNamespace(t)
	ns.startController(t, "-resync=0")
	for _, name := range []string{"scaled", "renamed"} {
		ns.createReadyFoo(t, newFoo(name, withReplicas(2)))
	}
	mend := ns.breakWebhook(t)
	ns.createFoo(t, newFoo("new", withReplicas(1)))
	ns.rename(t, "renamed", "another")
	ns.kubectl(t, "scale", "foo/scaled", "--replicas=5")
	waits := kubectlCommand(t, []string{"--namespace=" + ns.name, "wait", "foo/scaled", "--for=condition=Ready", "--timeout=1s"})
	if out, err := waits.CombinedOutput(); err == nil {
		t.Errorf("kubectl wait returns, and nothing was scaled: %s", out)
	}

	for name, begins := range map[string]string{
		"scaled":  `Deployment "scaled" could not be updated yet: `,
		"renamed": `Deployment "another" could not be created yet: `,
		"new":     `Deployment "new" could not be created yet: `,
	} {
		ns.awaitMessage(t, name, samplev1alpha1.ReasonProgressing, begins, webhookDown)
	}
	if got := ns.eventCount(t, "scaled", samplev1alpha1.ReasonProgressing); got > 2 {
		t.Errorf("%d events say that Foo scaled is not ready, want one beside that of its beginning", got)
	}

	mend()
	for name, replicas := range map[string]int32{"scaled": 5, "new": 1} {
		ns.awaitReplicas(t, name, replicas)
	}
	ns.awaitOnly(t, ns.awaitReady(t, "renamed"), "another")
}

// awaitMessage waits until a Foo is not ready for a reason, of its newest spec,
// and says so in words that begin with a text and have another.
func (ns *namespace) awaitMessage(t *testing.T, name, reason, begins, has string) *samplev1alpha1.Foo {
	t.Helper()
	want := fmt.Sprintf("Foo %s says %q", name, begins+"…"+has)
	return awaitOne(t, want, ns.foos(), name, func(foo *samplev1alpha1.Foo) error {
		if message := readyOf(foo).Message; !strings.HasPrefix(message, begins) || !strings.Contains(message, has) {
			return fmt.Errorf("it says %q", message)
		}
		return hasReady(foo, metav1.ConditionFalse, reason)
	})
}

// A Deployment's own controller does nothing for one that is paused but scale it.
func TestAPausedDeploymentIsSaidToBePaused(t *testing.T) {
	t.Parallel()
	needsToBeAlone(t)
	ns := newNamespace(t)
	ns.startController(t, "-resync=0")
	ns.createReadyFoo(t, newFoo("paused", withReplicas(2)))
	ns.kubectl(t, "rollout", "pause", "deployment/paused")
	ns.kubectl(t, "scale", "foo/paused", "--replicas=3")
	ns.awaitReplicas(t, "paused", 3)

	ns.kubectl(t, "set", "env", "deployment/paused", "A=B")
	foo := ns.awaitMessage(t, "paused", samplev1alpha1.ReasonProgressing, `Deployment "paused" is paused`, "kubectl rollout resume")
	ns.kubectl(t, commandIn(t, readyOf(foo).Message)...)
	ns.awaitReady(t, "paused")
}
