// SPDX-License-Identifier: Apache-2.0

// Tests of the simulated API server: preconditions, subresources, deletions and history.

package simulation

import (
	"slices"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/test/footest"
	"example.com/sample-controller/test/simulation/model"
)

// send sends a request about the Foo a, and fails if it is answered with another reason.
func send(t *testing.T, api *apiServer, action string, sent runtime.Object, reason metav1.StatusReason) *samplev1alpha1.Foo {
	t.Helper()
	r := model.Request{Verb: action, Kind: footest.FooKind, Name: "a", Sent: sent}
	if action == "update-status" {
		r.Verb, r.Subresource = "update", "status"
	}
	answer, err := api.write(r, noInspection)
	if apierrors.ReasonForError(err) != reason || (err == nil) != (reason == "") {
		t.Fatalf("%s is answered with %v, want the reason %q", r, err, reason)
	}
	foo, _ := answer.(*samplev1alpha1.Foo)
	return foo
}

func TestPreconditionsAndSubresources(t *testing.T) {
	api := newAPIServer()
	first := send(t, api, "create", footest.FooOwner.Asking("a", "web", 1), "")
	send(t, api, "create", first, metav1.StatusReasonAlreadyExists)
	changed := first.DeepCopy()
	changed.Spec.Replicas, changed.Status.Replicas = new(int32(3)), 3
	stored := send(t, api, "update-status", changed, "")
	if *stored.Spec.Replicas != 1 || stored.Status.Replicas != 3 || stored.Generation != 1 {
		t.Errorf("an update of the status stored %+v", stored)
	}
	send(t, api, "update", first, metav1.StatusReasonConflict)
	for _, only := range []*metav1.Preconditions{{ResourceVersion: &first.ResourceVersion}, metav1.NewUIDPreconditions("another")} {
		send(t, api, "delete", &metav1.DeleteOptions{Preconditions: only}, metav1.StatusReasonConflict)
	}
	stored.Spec.Replicas, stored.Status.Replicas = new(int32(3)), 0
	stored = send(t, api, "update", stored, "")
	if *stored.Spec.Replicas != 3 || stored.Status.Replicas != 3 || stored.Generation != 2 {
		t.Errorf("an update of the spec stored %+v", stored)
	}
}

func TestFinalizersDelayADeletion(t *testing.T) {
	api := newAPIServer()
	held := footest.FooOwner.Asking("a", "web", 1)
	held.SetFinalizers([]string{"example.com/first"})
	send(t, api, "create", held, "")
	for range 2 { // the second delete changes nothing
		send(t, api, "delete", &metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationForeground)}, "")
	}
	for _, left := range [][]string{{metav1.FinalizerDeleteDependents}, nil} {
		object, err := api.get(objectID{footest.FooKind, "a"})
		if err != nil {
			t.Fatal(err)
		}
		waits := slices.Contains(object.GetFinalizers(), metav1.FinalizerDeleteDependents)
		if object.GetDeletionTimestamp() == nil || object.GetGeneration() != 2 || !waits {
			t.Fatalf("after its deletion, an object with finalizers is %+v", object)
		}
		object.SetFinalizers(left)
		object.SetDeletionTimestamp(nil) // nobody can take it back
		send(t, api, "update", object, "")
	}
	send(t, api, "delete", &metav1.DeleteOptions{}, metav1.StatusReasonNotFound)
}

func TestAListShowsTheStateOfItsVersion(t *testing.T) {
	api := newAPIServer()
	send(t, api, "create", footest.FooOwner.Asking("a", "web", 1), "")
	version := api.version()
	send(t, api, "delete", &metav1.DeleteOptions{}, "")
	if then, now := api.list(footest.FooKind, version), api.list(footest.FooKind, api.version()); len(then) != 1 || len(now) != 0 {
		t.Errorf("the lists before and after a deletion have %v and %v", then, now)
	}
}
