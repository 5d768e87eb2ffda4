// SPDX-License-Identifier: Apache-2.0

// The contract: the controller does not work against a deletion.

package e2e

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

func TestADeletionIsNotFought(t *testing.T) {
	t.Parallel()
	needsNoOtherController(t)
	ns := newNamespace(t)
	ns.startController(t, "-resync=0")
	checkAll(t, ns, []scenario{
		{"a Foo that is being deleted gets no update and no create", checkTerminatingFoo},
		{"a Foo deleted in the foreground waits for its child, which is left alone", checkForegroundFoo},
		{"an orphaned child stays as it is", checkOrphaned},
		{"a child that is being deleted is recreated when it is gone", checkTerminatingChild},
		{"a Foo deleted and recreated at once gets a child of its own", checkRecreatedAtOnce},
	})
}

// patcher patches objects. Every typed client is one.
type patcher[T any] interface {
	Patch(ctx context.Context, name string, kind types.PatchType, data []byte, opts metav1.PatchOptions, subresources ...string) (T, error)
}

// releaseAtEnd removes an object's finalizers when the test ends.
func releaseAtEnd[T any](t *testing.T, client patcher[T], name string) {
	t.Helper()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		if err := releaseNow(ctx, client, name); err != nil {
			t.Error(err)
		}
	})
}

// releaseNow removes the finalizers of an object, if it still exists.
func releaseNow[T any](ctx context.Context, client patcher[T], name string) error {
	_, err := client.Patch(ctx, name, types.MergePatchType, []byte(releasedPatch), metav1.PatchOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("releasing %s: %w", name, err)
	}
	return nil
}

// checkTerminatingFoo holds the Foo by a finalizer. As long as the Foo exists, the
// garbage collector leaves its child alone, so only the controller could change it.
func checkTerminatingFoo(t *testing.T, ns *namespace) {
	ns.createReadyFoo(t, newFoo("held", withReplicas(1)))
	releaseAtEnd(t, ns.foos(), "held")
	mergePatch(t, ns.foos(), "held", heldPatch)
	ns.deleteFoo(t, "held", metav1.DeletePropagationBackground)
	before := ns.awaitSettledOne(t, "held")
	mergePatch(t, ns.foos(), "held", `{"spec":{"replicas":3}}`)
	ns.awaitReason(t, "held", samplev1alpha1.ReasonTerminating)
	ns.awaitSyncs(t)
	ns.isSameVersion(t, before)

	deleteChildInBackground(t, ns, "held")
	awaitGone(t, ns.children(), "held")
	ns.awaitSyncs(t)
	awaitGone(t, ns.children(), "held")
}

func checkForegroundFoo(t *testing.T, ns *namespace) {
	ns.createReadyFoo(t, newFoo("foreground", withReplicas(1)))
	releaseAtEnd(t, ns.children(), "foreground")
	mergePatch(t, ns.children(), "foreground", heldPatch)
	ns.deleteFoo(t, "foreground", metav1.DeletePropagationForeground)
	terminating := awaitOne(t, "the child is being deleted", ns.children(), "foreground", isTerminating)
	mergePatch(t, ns.foos(), "foreground", `{"spec":{"replicas":3}}`)
	ns.awaitReason(t, "foreground", samplev1alpha1.ReasonTerminating)
	ns.awaitSyncs(t)
	if got := ns.getChild(t, "foreground"); !equality.Semantic.DeepEqual(contentOf(got), contentOf(terminating)) {
		t.Errorf("The child's spec has changed: %s", show(got))
	}

	mergePatch(t, ns.children(), "foreground", releasedPatch)
	awaitGone(t, ns.foos(), "foreground")
	ns.awaitSyncs(t)
	awaitGone(t, ns.children(), "foreground")
}

func isTerminating(found *child) error {
	if found.GetDeletionTimestamp() == nil {
		return errors.New("it is not being deleted")
	}
	return nil
}

func checkOrphaned(t *testing.T, ns *namespace) {
	ns.createReadyFoo(t, newFoo("parent", withReplicas(2)))
	before := ns.awaitSettledOne(t, "parent")
	ns.deleteFoo(t, "parent", metav1.DeletePropagationOrphan)
	awaitGone(t, ns.foos(), "parent")
	ns.awaitSyncs(t)
	after := ns.getChild(t, "parent")
	if owners := after.GetOwnerReferences(); len(owners) > 0 {
		t.Errorf("It still has the owners %v", owners)
	}
	if !equality.Semantic.DeepEqual(withoutOwner(after), withoutOwner(before)) {
		t.Errorf("The orphan has changed:\n%s\nbefore:\n%s", show(after), show(before))
	}
}

// withoutOwner returns a copy of a child without the fields that change when its
// owner reference is removed.
func withoutOwner(found *child) *child {
	bare := found.DeepCopy()
	bare.SetOwnerReferences(nil)
	bare.SetManagedFields(nil)
	bare.SetResourceVersion("")
	return bare
}

func checkTerminatingChild(t *testing.T, ns *namespace) {
	foo := ns.createReadyFoo(t, newFoo("waited", withReplicas(1)))
	releaseAtEnd(t, ns.children(), "waited")
	first := mergePatch(t, ns.children(), "waited", heldPatch)
	foreground := metav1.DeletePropagationForeground
	if err := ns.children().Delete(t.Context(), "waited", metav1.DeleteOptions{PropagationPolicy: &foreground}); err != nil {
		t.Fatal(err)
	}
	ns.awaitReason(t, "waited", samplev1alpha1.ReasonTerminating)
	mergePatch(t, ns.foos(), "waited", `{"spec":{"replicas":2}}`)
	ns.awaitReason(t, "waited", samplev1alpha1.ReasonTerminating)
	ns.awaitSyncs(t)
	if got := ns.getChild(t, "waited"); !equality.Semantic.DeepEqual(contentOf(got), contentOf(first)) {
		t.Errorf("The child's spec has changed: %s", show(got))
	}

	mergePatch(t, ns.children(), "waited", releasedPatch)
	awaitOne(t, "there is another child", ns.children(), "waited", func(d *child) error {
		if d.GetUID() == first.GetUID() {
			return errors.New("it is still the first one")
		}
		return ns.isChildOf(t, ns.getFoo(t, foo.Name))(d)
	})
	ns.awaitReady(t, "waited")
}

// checkRecreatedAtOnce recreates a Foo so fast that the controller may see one Foo that
// changes. The child of the first Foo exists until the garbage collector deletes it.
func checkRecreatedAtOnce(t *testing.T, ns *namespace) {
	ns.createReadyFoo(t, newFoo("phoenix"))
	var last *samplev1alpha1.Foo
	for range 3 {
		ns.deleteFoo(t, "phoenix", metav1.DeletePropagationBackground)
		last = ns.createFoo(t, newFoo("phoenix", withReplicas(2)))
	}
	awaitOne(t, "the last Foo has a child", ns.children(), "phoenix", ns.isChildOf(t, last))
	ns.awaitReady(t, "phoenix")
	ns.awaitOnly(t, last, "phoenix")
}

func TestAChildOfADeletedFooIsLeftToTheGarbageCollector(t *testing.T) {
	t.Parallel()
	needsNoOtherController(t)
	ns := newNamespace(t)
	p, sent := ns.startRecorded(t, nil, "-resync=1s", "-v=4")
	ns.createReadyFoo(t, newFoo("alive"))
	ns.awaitSettledOne(t, "alive")
	awaitEvent(t, ns, "alive", "Normal", samplev1alpha1.ReasonAvailable)
	before := sent.writes(childResource) + sent.writes("foos")

	ns.createForeignChild(t, "left")
	mergePatch(t, ns.children(), "left", ownedBy(samplev1alpha1.GroupName, "ghost", "00000000-0000-0000-0000-000000000000"))
	awaitGone(t, ns.children(), "left")
	p.awaitResyncs(t, 2)
	if got := sent.writes(childResource) + sent.writes("foos") - before; got != 0 {
		t.Errorf("The controller sent %d writes, want none", got)
	}
}
