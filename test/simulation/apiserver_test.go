// SPDX-License-Identifier: Apache-2.0

// Tests of the simulated API server: preconditions, subresources and history.

package simulation

import (
	"slices"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/test/footest"
)

func TestAStaleWriteIsRefused(t *testing.T) {
	api := newAPIServer()
	first := must(api.create(web.ForeignNamed("web"), noInspection))(t)
	second := first.DeepCopyObject().(footest.Object)
	second.SetLabels(map[string]string{"a": "b"})
	must(api.update(second, "", noInspection))(t)
	if _, err := api.update(first, "", noInspection); !apierrors.IsConflict(err) {
		t.Errorf("an update of an old version returned %v, want Conflict", err)
	}
	version := metaOf(first).GetResourceVersion()
	only := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{ResourceVersion: &version}}
	if err := api.delete(idOf(first), only, noInspection); !apierrors.IsConflict(err) {
		t.Errorf("a delete of an old version returned %v, want Conflict", err)
	}
	if _, err := api.create(web.ForeignNamed("web"), noInspection); !apierrors.IsAlreadyExists(err) {
		t.Errorf("a second create returned %v, want AlreadyExists", err)
	}
}

func TestStatusAndSpecAreWrittenSeparately(t *testing.T) {
	api := newAPIServer()
	foo := must(api.create(footest.FooOwner.Asking("a", "web", 1), noInspection))(t).(*samplev1alpha1.Foo)
	three := int32(3)
	foo.Spec.Replicas = &three
	foo.Status.Replicas = 3
	stored := must(api.update(foo, "status", noInspection))(t).(*samplev1alpha1.Foo)
	if *stored.Spec.Replicas != 1 || stored.Status.Replicas != 3 || stored.Generation != 1 {
		t.Errorf("an update of the status stored %+v", stored)
	}
	stored.Spec.Replicas, stored.Status.Replicas = &three, 0
	stored = must(api.update(stored, "", noInspection))(t).(*samplev1alpha1.Foo)
	if *stored.Spec.Replicas != 3 || stored.Status.Replicas != 3 || stored.Generation != 2 {
		t.Errorf("an update of the spec stored %+v", stored)
	}
}

func TestAListShowsTheStateOfItsVersion(t *testing.T) {
	api := newAPIServer()
	must(api.create(footest.FooOwner.Asking("a", "web", 1), noInspection))(t)
	version := api.version()
	must(api.create(footest.FooOwner.Asking("b", "web", 1), noInspection))(t)
	if err := api.delete(idIn(footest.FooOwner.Kind, "a"), metav1.DeleteOptions{}, noInspection); err != nil {
		t.Fatal(err)
	}
	for version, want := range map[int][]string{version: {"a"}, api.version(): {"b"}} {
		var names []string
		for _, object := range api.list("foos", version) {
			names = append(names, metaOf(object).GetName())
		}
		if !slices.Equal(names, want) {
			t.Errorf("the list of version %d has %v, want %v", version, names, want)
		}
	}
}

func TestFinalizersDelayADeletion(t *testing.T) {
	api := newAPIServer()
	held, id := footest.FooOwner.Asking("a", "web", 1), idIn(footest.FooOwner.Kind, "a")
	held.SetFinalizers([]string{"example.com/first", "example.com/second"})
	must(api.create(held, noInspection))(t)
	for range 2 { // the second delete changes nothing
		if err := api.delete(id, metav1.DeleteOptions{}, noInspection); err != nil {
			t.Fatal(err)
		}
	}
	for _, left := range [][]string{{"example.com/second"}, nil} {
		object := metaOf(must(api.get(id))(t))
		if !isTerminating(object) || object.GetGeneration() != 2 {
			t.Fatalf("an object with finalizers has generation %d after its deletion, and the timestamp %v", object.GetGeneration(), object.GetDeletionTimestamp())
		}
		object.SetFinalizers(left)
		object.SetDeletionTimestamp(nil) // nobody can take it back
		must(api.update(object, "", noInspection))(t)
	}
	if _, err := api.get(id); !apierrors.IsNotFound(err) {
		t.Errorf("an object without finalizers is not deleted: %v", err)
	}
}

func TestAForegroundDeletionWaitsForItsFinalizer(t *testing.T) {
	api, foreground := newAPIServer(), metav1.DeletePropagationForeground
	must(api.create(footest.FooOwner.Asking("a", "web", 1), noInspection))(t)
	if err := api.delete(idIn(footest.FooOwner.Kind, "a"), metav1.DeleteOptions{PropagationPolicy: &foreground}, noInspection); err != nil {
		t.Fatal(err)
	}
	foo := metaOf(must(api.get(idIn(footest.FooOwner.Kind, "a")))(t))
	if !slices.Equal(foo.GetFinalizers(), []string{metav1.FinalizerDeleteDependents}) {
		t.Errorf("the Foo has the finalizers %v", foo.GetFinalizers())
	}
}

// must returns a function that returns the object, or fails the test.
func must(object runtime.Object, err error) func(*testing.T) runtime.Object {
	return func(t *testing.T) runtime.Object {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return object
	}
}
