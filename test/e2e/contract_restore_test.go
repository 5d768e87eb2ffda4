// SPDX-License-Identifier: Apache-2.0

// The contract: Foos and children that are restored from a backup of objects.

package e2e

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/test/footest"
)

// TestAfterARestoreOfObjectsAFooGetsANewChild restores objects as Velero does: Foos
// get new UIDs. A child whose owner reference has the old UID has no owner any more.
// The garbage collector deletes it, and the Foo gets a new one.
func TestAfterARestoreOfObjectsAFooGetsANewChild(t *testing.T) {
	t.Parallel()
	needsNoOtherController(t)
	ns := newNamespace(t)
	ns.startController(t)
	foo, saved := ns.backUpAndDelete(t)
	restored := ns.restore(t, saved)
	created := ns.createFoo(t, newFoo(foo.Name))
	awaitOne(t, "the Foo has a child of its own", ns.children(), saved.GetName(), func(found *child) error {
		if !metav1.IsControlledBy(found, created) {
			return errNone
		}
		return nil
	})
	ns.awaitReady(t, foo.Name)
	if ns.getChild(t, saved.GetName()).GetUID() == restored.GetUID() {
		t.Error("The restored child still exists, with another owner")
	}
}

// TestAfterARestoreOfObjectsAnAnnotatedChildIsKept restores a child without its
// owner reference but with the annotation that consents to adoption. It and its Pods
// stay.
func TestAfterARestoreOfObjectsAnAnnotatedChildIsKept(t *testing.T) {
	t.Parallel()
	needsNoOtherController(t)
	ns := newNamespace(t)
	ns.startController(t)
	foo, saved := ns.backUpAndDelete(t)
	saved.SetOwnerReferences(nil)
	saved.SetAnnotations(map[string]string{samplev1alpha1.AnnotationAdoptBy: foo.Name})
	restored := ns.restore(t, saved)
	created := ns.createFoo(t, newFoo(foo.Name))
	ns.awaitReady(t, foo.Name)
	kept := ns.getChild(t, saved.GetName())
	if kept.GetUID() != restored.GetUID() || !metav1.IsControlledBy(kept, created) {
		t.Errorf("The child is %s, owned by %v; want %s, owned by the new Foo", kept.GetUID(), kept.GetOwnerReferences(), restored.GetUID())
	}
	if !equality.Semantic.DeepEqual(contentOf(kept), contentOf(restored)) {
		t.Errorf("The restored child has changed: %v", contentOf(kept))
	}
}

// backUpAndDelete creates a Foo, reads it and its child as a backup would, and
// deletes them.
func (ns *namespace) backUpAndDelete(t *testing.T) (*samplev1alpha1.Foo, *child) {
	t.Helper()
	foo := ns.createReadyFoo(t, newFoo("restored", withReplicas(1)))
	saved := ns.getChild(t, footest.Primary.Name(foo))
	ns.deleteFoo(t, foo.Name, metav1.DeletePropagationForeground)
	awaitGone(t, ns.foos(), foo.Name)
	awaitGone(t, ns.children(), saved.GetName())
	return foo, saved
}

// restore creates a child again, as an administrator.
func (ns *namespace) restore(t *testing.T, saved *child) *child {
	t.Helper()
	saved.SetUID("")
	saved.SetResourceVersion("")
	saved.SetManagedFields(nil)
	delete(saved.Object, "status")
	restored, err := ns.children().Create(t.Context(), saved, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return restored
}
