// SPDX-License-Identifier: Apache-2.0

// The contract of each kind of children, from the rows of test/footest.

package e2e

import (
	"errors"
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/util/retry"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/test/footest"
)

// TestEachKindOfChildren checks what every kind of children has in common, for each kind of
// owners. What is particular to a kind has tests of its own.
func TestEachKindOfChildren(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t)
	ns.startController(t)
	_ = forEachKind(func(kind *footest.Kind) error {
		t.Run(kind.Kind, func(t *testing.T) {
			t.Parallel()
			children := kindIn{ns, kind}
			checkAll(t, ns, []scenario{
				{"drift is undone, and what belongs to others stays", children.checkDrift},
				{"a deleted child is created again, and goes with its owner", children.checkDeleted},
				{"the child of somebody else stays as it is, and is reported", children.checkForeign},
				{"a child that is handed over is adopted", children.checkHandedOver},
			})
		})
		return nil
	})
}

// kindIn is a kind of children in a namespace.
type kindIn struct {
	*namespace
	*footest.Kind
}

func (k kindIn) client() dynamic.ResourceInterface {
	return k.in.dynamic.Resource(k.Resource).Namespace(k.name)
}

// forEachKind calls a function for each kind of children, until it returns an error.
func forEachKind(do func(kind *footest.Kind) error) error {
	for _, owner := range footest.Owners {
		for _, kind := range owner.Kinds {
			if err := do(kind); err != nil {
				return err
			}
		}
	}
	return nil
}

// typed returns an object as one of the kind's type.
func (k kindIn) typed(t *testing.T, object *unstructured.Unstructured) footest.Object {
	t.Helper()
	child, err := scheme.Scheme.New(k.Resource.GroupVersion().WithKind(k.Kind.Kind))
	if err == nil {
		err = runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, child)
	}
	if err != nil {
		t.Fatalf("Reading a %s: %v", k.Kind, err)
	}
	return child.(footest.Object)
}

// untyped is the inverse of typed.
func (k kindIn) untyped(t *testing.T, child footest.Object) *unstructured.Unstructured {
	t.Helper()
	return untyped(t, child, k.Kind)
}

func untyped(t *testing.T, typed footest.Object, kind *footest.Kind) *unstructured.Unstructured {
	t.Helper()
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
	if err != nil {
		t.Fatalf("Writing a %s: %v", kind, err)
	}
	object := &unstructured.Unstructured{Object: fields}
	object.SetGroupVersionKind(kind.Resource.GroupVersion().WithKind(kind.Kind))
	return object
}

// await waits until an object of the kind exists and check accepts it.
func (k kindIn) await(t *testing.T, want, name string, check func(footest.Object) error) footest.Object {
	t.Helper()
	var found footest.Object
	awaitOne(t, want, k.client(), name, func(object *unstructured.Unstructured) error {
		found = k.typed(t, object)
		return check(found)
	})
	return found
}

// isAsAsked returns a check that a Foo controls an object, which is as the Foo asks.
func (k kindIn) isAsAsked(foo footest.Object) func(footest.Object) error {
	return func(child footest.Object) error {
		if !metav1.IsControlledBy(child, foo) {
			return fmt.Errorf("its owners are %v, want %s %s", child.GetOwnerReferences(), k.Owner(), foo.GetName())
		}
		if differs := k.Differs(child, foo); differs != "" {
			return errors.New(differs)
		}
		return nil
	}
}

// hasChild returns an error unless a Foo has a child of the kind, as it asks.
func (k kindIn) hasChild(t *testing.T, foo footest.Object) error {
	t.Helper()
	child, err := k.client().Get(t.Context(), k.Name(foo), metav1.GetOptions{})
	if err == nil {
		err = k.isAsAsked(foo)(k.typed(t, child))
	}
	if err != nil {
		return fmt.Errorf("the %s: %w", k.Kind, err)
	}
	return nil
}

// update changes an object as a user would.
func (k kindIn) update(t *testing.T, name string, change func(footest.Object)) footest.Object {
	t.Helper()
	var updated *unstructured.Unstructured
	often := wait.Backoff{Duration: 10 * time.Millisecond, Steps: 100} // others may write at any time
	err := retry.RetryOnConflict(often, func() error {
		object, err := k.client().Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		child := k.typed(t, object)
		change(child)
		updated, err = k.client().Update(t.Context(), k.untyped(t, child), metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		t.Fatalf("Changing %s %s: %v", k.Kind, name, err)
	}
	return k.typed(t, updated)
}

// othersPart returns what a user may write of an object, without the fields that a Foo
// owns.
func (k kindIn) othersPart(t *testing.T, child, foo footest.Object) map[string]any {
	t.Helper()
	part := child.DeepCopyObject().(footest.Object)
	if foo != nil {
		k.ClearOwned(part, foo)
	}
	fields := k.untyped(t, part).Object
	delete(fields, "status")
	fields["metadata"] = map[string]any{"note": part.GetAnnotations()["note"], "team": part.GetLabels()["team"]}
	return fields
}

func (k kindIn) checkDrift(t *testing.T, _ *namespace) {
	foo := k.createAsking(t, "drifts")
	child := k.await(t, "the child is created", k.Name(foo), k.isAsAsked(foo))
	k.awaitReady(t, foo.GetName())
	drifted := k.update(t, child.GetName(), func(child footest.Object) {
		k.Drift(child, foo)
		k.Edit(child, "kept")
	})
	if k.Differs(drifted, foo) == "" {
		t.Fatal("The API server did not store the drift, so this test shows nothing")
	}
	repaired := k.await(t, "the drift is undone", child.GetName(), k.isAsAsked(foo))
	footest.ExpectEqual(t, "what belongs to others", k.othersPart(t, drifted, foo), k.othersPart(t, repaired, foo))
	k.awaitReady(t, foo.GetName())
}

func (k kindIn) checkDeleted(t *testing.T, _ *namespace) {
	foo := k.createAsking(t, "loses")
	child := k.await(t, "the child is created", k.Name(foo), k.isAsAsked(foo))
	background := metav1.DeletePropagationBackground
	if err := k.client().Delete(t.Context(), child.GetName(), metav1.DeleteOptions{PropagationPolicy: &background}); err != nil {
		t.Fatal(err)
	}
	k.await(t, "the child is created again", child.GetName(), func(again footest.Object) error {
		if again.GetUID() == child.GetUID() {
			return errors.New("it is still the first")
		}
		return k.isAsAsked(foo)(again)
	})
	if err := k.owners().Delete(t.Context(), foo.GetName(), metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	awaitGone(t, k.client(), child.GetName())
}

// createForeign creates the object that a Foo is going to ask for, as somebody else.
func (k kindIn) createForeign(t *testing.T, foo footest.Object) footest.Object {
	t.Helper()
	foreign := k.ForeignNamed(k.Name(foo))
	foreign.SetNamespace(k.name)
	created, err := k.client().Create(t.Context(), k.untyped(t, foreign), metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("Creating a %s: %v", k.Kind, err)
	}
	return k.typed(t, created)
}

func (k kindIn) checkForeign(t *testing.T, _ *namespace) {
	foo := k.asking("taken")
	foreign := k.createForeign(t, foo)
	k.createOwner(t, foo)
	k.awaitCondition(t, foo.GetName(), metav1.ConditionFalse, k.Kind.Kind+"Conflict")
	expect := func(want footest.Object) footest.Object {
		now := k.await(t, "it is there", foreign.GetName(), func(footest.Object) error { return nil })
		footest.ExpectEqual(t, "the object of somebody else", k.othersPart(t, want, nil), k.othersPart(t, now, nil))
		return now
	}
	expect(foreign)
	edited := k.update(t, foreign.GetName(), func(child footest.Object) { k.Edit(child, "touched") })
	k.awaitSyncs(t)
	now := expect(edited)
	if now.GetOwnerReferences() != nil {
		t.Errorf("Its owners are %v", now.GetOwnerReferences())
	}
}

func (k kindIn) checkHandedOver(t *testing.T, _ *namespace) {
	foo := k.asking("adopts")
	foreign := k.createForeign(t, foo)
	foo = k.createOwner(t, foo)
	k.handOver(t, foo)
	adopted := k.await(t, "it is adopted", foreign.GetName(), k.isAsAsked(foo))
	if adopted.GetUID() != foreign.GetUID() {
		t.Error("It was replaced, not adopted")
	}
}

// handOver lets an owner adopt the object that has the name of its child.
func (k kindIn) handOver(t *testing.T, to footest.Object) {
	t.Helper()
	k.update(t, k.Name(to), func(child footest.Object) {
		child.SetAnnotations(map[string]string{samplev1alpha1.AnnotationAdoptBy: to.GetName()})
	})
}
