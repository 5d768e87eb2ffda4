// SPDX-License-Identifier: Apache-2.0

// Foos whose children can't be written.

package e2e

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/sample-controller/internal/footest"
	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// TestNothingIsReadyWhileWritesFail breaks all writes of children with an error that
// may pass. The old children run, but not what the Foos ask for.
func TestNothingIsReadyWhileWritesFail(t *testing.T) {
	t.Parallel()
	needsAdmission(t)
	ns := newNamespace(t)
	ns.startController(t, "-resync=0")
	for _, name := range []string{"scaled", "renamed"} {
		ns.createReadyFoo(t, newFoo(name, withReplicas(2)))
	}
	repair := ns.breakWebhook(t)
	ns.createFoo(t, newFoo("new", withReplicas(1)))
	ns.rename(t, "renamed", "another")
	ns.kubectl(t, "scale", "foo/scaled", "--replicas=5")
	waits := kubectlCommand(t, []string{"--namespace=" + ns.name, "wait", "foo/scaled", "--for=condition=Ready", "--timeout=1s"})
	if out, err := waits.CombinedOutput(); err == nil {
		t.Errorf("kubectl wait succeeded although nothing was scaled: %s", out)
	}

	for name, begins := range map[string]string{
		"scaled":  footest.Primary.Kind + ` "scaled" could not be updated yet: `,
		"renamed": footest.Primary.Kind + ` "another" could not be created yet: `,
		"new":     footest.Primary.Kind + ` "new" could not be created yet: `,
	} {
		ns.awaitMessage(t, name, samplev1alpha1.ReasonProgressing, begins, webhookDown)
	}
	if got := ns.eventCount(t, "scaled", samplev1alpha1.ReasonProgressing); got > 2 {
		t.Errorf("%d events report that Foo scaled is progressing, want at most 2, one of them from its creation", got)
	}

	repair()
	for name, replicas := range map[string]int32{"scaled": 5, "new": 1} {
		ns.awaitReplicas(t, name, replicas)
	}
	ns.awaitOnly(t, ns.awaitReady(t, "renamed"), "another")
}

// awaitMessage waits until a Foo reports Ready=False for its newest spec, with a reason
// and a message that begins with one text and contains another.
func (ns *namespace) awaitMessage(t *testing.T, name, reason, begins, has string) *samplev1alpha1.Foo {
	t.Helper()
	want := fmt.Sprintf("Foo %s reports %q", name, begins+"…"+has)
	return awaitOne(t, want, ns.foos(), name, func(foo *samplev1alpha1.Foo) error {
		if message := readyOf(foo).Message; !strings.HasPrefix(message, begins) || !strings.Contains(message, has) {
			return fmt.Errorf("the message is %q", message)
		}
		return hasReady(foo, metav1.ConditionFalse, reason)
	})
}
