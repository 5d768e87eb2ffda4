// SPDX-License-Identifier: Apache-2.0

// The generated informer and lister.

package e2e

import (
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/watch"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	fooinformers "example.com/sample-controller/pkg/generated/informers/externalversions"
	typedinformers "example.com/sample-controller/pkg/generated/informers/externalversions/samplecontroller/v1alpha1"
)

// seen is an event that the informer's handler received.
type seen struct {
	event    watch.EventType
	name     string
	replicas int32
}

func TestTheInformerAndListerFollowFoos(t *testing.T) {
	t.Parallel()
	needsNoOtherController(t)
	ns := newNamespace(t)
	ns.createFoo(t, newFoo("first", withReplicas(1)))

	factory := fooinformers.NewSharedInformerFactoryWithOptions(cluster.foos, 0, fooinformers.WithNamespace(ns.name))
	foos := factory.Samplecontroller().V1alpha1().Foos()
	lister := foos.Lister().Foos(ns.name)
	received := make(chan seen, 16)
	handle := func(event watch.EventType, foo *samplev1alpha1.Foo) {
		received <- seen{event, foo.Name, *foo.Spec.Replicas}
	}
	if _, err := foos.TypedInformer().AddTypedEventHandler(typedinformers.FooHandlerFuncs{
		AddFunc:    func(foo *samplev1alpha1.Foo) { handle(watch.Added, foo) },
		UpdateFunc: func(_, foo *samplev1alpha1.Foo) { handle(watch.Modified, foo) },
		DeleteFunc: func(deleted typedinformers.DeletedFoo) { handle(watch.Deleted, deleted.OptionalObj) },
	}); err != nil {
		t.Fatal(err)
	}
	factory.StartWithContext(t.Context())
	t.Cleanup(factory.Shutdown) // at that time the context has ended

	expectSeen(t, received, seen{watch.Added, "first", 1})
	ns.createFoo(t, newFoo("second", withReplicas(2)))
	expectSeen(t, received, seen{watch.Added, "second", 2})
	mergePatch(t, ns.foos(), "second", `{"spec":{"replicas":3}}`)
	expectSeen(t, received, seen{watch.Modified, "second", 3})
	if got, err := lister.Get("second"); err != nil || *got.Spec.Replicas != 3 {
		t.Errorf("The lister returned %v (%v), want 3 replicas", got, err)
	}
	if all, err := lister.List(labels.Everything()); err != nil || len(all) != 2 {
		t.Errorf("The lister returned %d Foos (%v), want 2", len(all), err)
	}
	if err := ns.foos().Delete(t.Context(), "first", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	expectSeen(t, received, seen{watch.Deleted, "first", 1})
	if got, err := lister.Get("first"); !apierrors.IsNotFound(err) {
		t.Errorf("The lister still returned %v (%v), want NotFound", got, err)
	}
}

func expectSeen(t *testing.T, received <-chan seen, want seen) {
	t.Helper()
	if got := receive(t, received); got != want {
		t.Errorf("The handler received %v, want %v", got, want)
	}
}
