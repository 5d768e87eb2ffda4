// SPDX-License-Identifier: Apache-2.0

// A Foo that asks for a child which it does not control.

package e2e

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/sample-controller/internal/footest"
	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

func TestAChildThatIsNotTheFoosIsLeftAlone(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t)
	// Without resyncs, only events cause syncs.
	ns.startController(t, "-resync=0")
	checkAll(t, ns, []scenario{
		{"and the Foo reports it, until the name is free", checkForeignChild},
		{"also when another Foo controls it", checkTwoFoosOneName},
		{"and a Foo that then asks for a free name gets its own at once", checkRenamedOff},
	})
}

// isConflicted returns an error unless a Foo reports that its child's name is taken.
func isConflicted(foo *samplev1alpha1.Foo) error {
	if err := hasReady(foo, metav1.ConditionFalse, reasonConflict); err != nil {
		return err
	}
	if message := readyOf(foo).Message; !strings.Contains(message, footest.Primary.Name(foo)) {
		return errors.New("the message does not name the child: " + message)
	}
	if foo.Status.AvailableReplicas != 0 {
		return errors.New("the status counts the Pods of a child that the Foo does not control")
	}
	return nil
}

func checkForeignChild(t *testing.T, ns *namespace) {
	foreign := ns.createForeignChild(t, "foreign")
	foo := ns.createFoo(t, newFoo("unlucky", withChild("foreign"), withReplicas(3)))
	awaitOne(t, "the Foo reports the conflict", ns.foos(), "unlucky", isConflicted)
	awaitEvent(t, ns, "unlucky", corev1.EventTypeWarning, reasonConflict)

	// Every change of the foreign object causes a sync, which must not write to it.
	mergePatch(t, ns.children(), "foreign", `{"metadata":{"annotations":{"touched":"yes"}}}`)
	ns.awaitSyncs(t)
	isUntouched(t, ns.getChild(t, "foreign"), foreign)

	deleteChildInBackground(t, ns, "foreign")
	awaitOne(t, "the Foo has its own child", ns.children(), "foreign", ns.isChildOf(t, foo))
	ns.awaitReady(t, "unlucky")
}

// isUntouched checks that the controller has not written to an object.
func isUntouched(t *testing.T, got, before *child) {
	t.Helper()
	if got.GetUID() != before.GetUID() || !equality.Semantic.DeepEqual(contentOf(got), contentOf(before)) || len(got.GetOwnerReferences()) > 0 {
		t.Errorf("The object has changed:\n%s", show(got))
	}
	for _, entry := range got.GetManagedFields() {
		if entry.Manager == "sample-controller" {
			t.Errorf("The controller has written to %s: %s", got.GetName(), entry.FieldsV1)
		}
	}
}

func checkTwoFoosOneName(t *testing.T, ns *namespace) {
	winner := ns.createReadyFoo(t, newFoo("winner", withChild("shared"), withReplicas(1)))
	loser := ns.createFoo(t, newFoo("loser", withChild("shared"), withReplicas(2)))
	awaitOne(t, "the second Foo reports the conflict", ns.foos(), "loser", isConflicted)
	if err := errors.Join(isControlled(ns.getChild(t, "shared"), winner), isReady(ns.getFoo(t, "winner"))); err != nil {
		t.Error(err)
	}

	if err := ns.foos().Delete(t.Context(), "winner", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	awaitOne(t, "the second Foo controls the child", ns.children(), "shared", ns.isChildOf(t, loser))
	ns.awaitReady(t, "loser")
}

func checkRenamedOff(t *testing.T, ns *namespace) {
	ns.createForeignChild(t, "occupied")
	foo := ns.createFoo(t, newFoo("mover", withChild("occupied")))
	awaitOne(t, "the Foo reports the conflict", ns.foos(), "mover", isConflicted)
	ns.rename(t, "mover", "vacant")
	awaitOne(t, "the Foo has its child", ns.children(), "vacant", func(d *child) error {
		return isControlled(d, foo)
	})
	ns.awaitReady(t, "mover")
}
