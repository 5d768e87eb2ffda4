// SPDX-License-Identifier: Apache-2.0

// The generated typed client, call by call.

package e2e

import (
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// TestTheTypedClient runs no controller, so that only the client writes.
func TestTheTypedClient(t *testing.T) {
	t.Parallel()
	needsNoOtherController(t)
	checkAll(t, newNamespace(t), []scenario{
		{"creates, gets, lists and deletes", checkClientBasics},
		{"updates, and reports a conflict", checkClientUpdate},
		{"patches in each way that a custom resource supports", checkClientPatch},
		{"writes the status and the spec separately", checkClientStatus},
		{"watches", checkClientWatch},
		{"deletes a collection", checkClientDeleteCollection},
	})
}

func labelled(value string) func(*samplev1alpha1.Foo) {
	return func(foo *samplev1alpha1.Foo) { foo.Labels = map[string]string{"set": value} }
}

func selectLabelled(value string) metav1.ListOptions {
	return metav1.ListOptions{LabelSelector: "set=" + value}
}

func checkClientBasics(t *testing.T, ns *namespace) {
	created := ns.createFoo(t, newFoo("basics", withChild("web"), withReplicas(3), labelled("basics")))
	got := ns.getFoo(t, "basics")
	if got.UID != created.UID || got.Spec.DeploymentName != "web" || *got.Spec.Replicas != 3 || got.Generation != 1 {
		t.Errorf("Got %s", show(got))
	}
	list, err := ns.foos().List(t.Context(), selectLabelled("basics"))
	if err != nil || len(list.Items) != 1 || list.Items[0].UID != created.UID {
		t.Errorf("Listed %v (%v), want the one Foo", list.Items, err)
	}
	if _, err := ns.foos().Create(t.Context(), newFoo("basics"), metav1.CreateOptions{}); !apierrors.IsAlreadyExists(err) {
		t.Errorf("The second create returned %v, want AlreadyExists", err)
	}
	if err := ns.foos().Delete(t.Context(), "basics", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := ns.foos().Get(t.Context(), "basics", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("A get after the deletion returned %v, want NotFound", err)
	}
}

func checkClientUpdate(t *testing.T, ns *namespace) {
	old := ns.createFoo(t, newFoo("update", withReplicas(1)))
	changed := old.DeepCopy()
	changed.Spec.Replicas = new(int32(2))
	updated, err := ns.foos().Update(t.Context(), changed, metav1.UpdateOptions{})
	if err != nil || *updated.Spec.Replicas != 2 || updated.Generation != 2 {
		t.Fatalf("Updated to %s (%v), want 2 replicas in generation 2", show(updated), err)
	}
	if _, err := ns.foos().Update(t.Context(), old, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
		t.Errorf("An update of the old state returned %v, want Conflict", err)
	}
}

func checkClientPatch(t *testing.T, ns *namespace) {
	ns.createFoo(t, newFoo("patch", withReplicas(1)))
	if got := mergePatch(t, ns.foos(), "patch", `{"spec":{"replicas":2}}`); *got.Spec.Replicas != 2 {
		t.Errorf("After a merge patch replicas is %d, want 2", *got.Spec.Replicas)
	}
	got := patchAs(t, ns.foos(), "patch", types.JSONPatchType, `[{"op":"replace","path":"/spec/replicas","value":3}]`)
	if *got.Spec.Replicas != 3 {
		t.Errorf("After a JSON patch replicas is %d, want 3", *got.Spec.Replicas)
	}
	if got := mergePatch(t, ns.foos(), "patch", `{"spec":{"replicas":null}}`); got.Spec.Replicas != nil {
		t.Errorf("After a patch to null replicas is %d, want none", *got.Spec.Replicas)
	}
}

func checkClientStatus(t *testing.T, ns *namespace) {
	foo := ns.createFoo(t, newFoo("status", withReplicas(1)))
	foo.Spec.Replicas = new(int32(9))
	foo.Status.AvailableReplicas = 4
	written, err := ns.foos().UpdateStatus(t.Context(), foo, metav1.UpdateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if written.Status.AvailableReplicas != 4 || *written.Spec.Replicas != 1 || written.Generation != 1 {
		t.Errorf("After UpdateStatus the Foo is %s\nwant only the status changed", show(written))
	}
	written.Spec.Replicas = new(int32(2))
	written.Status.AvailableReplicas = 7
	updated, err := ns.foos().Update(t.Context(), written, metav1.UpdateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if updated.Status.AvailableReplicas != 4 || *updated.Spec.Replicas != 2 || updated.Generation != 2 {
		t.Errorf("After Update the Foo is %s\nwant only the spec changed", show(updated))
	}
}

func checkClientWatch(t *testing.T, ns *namespace) {
	list, err := ns.foos().List(t.Context(), selectLabelled("watch"))
	if err != nil {
		t.Fatal(err)
	}
	watcher, err := ns.foos().Watch(t.Context(), metav1.ListOptions{LabelSelector: "set=watch", ResourceVersion: list.ResourceVersion})
	if err != nil {
		t.Fatal(err)
	}
	defer watcher.Stop()
	ns.createFoo(t, newFoo("watched", withReplicas(1), labelled("watch")))
	mergePatch(t, ns.foos(), "watched", `{"spec":{"replicas":5}}`)
	if err := ns.foos().Delete(t.Context(), "watched", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}

	for _, want := range []struct {
		event    watch.EventType
		replicas int32
	}{{watch.Added, 1}, {watch.Modified, 5}, {watch.Deleted, 5}} {
		event := nextEvent(t, watcher)
		foo, ok := event.Object.(*samplev1alpha1.Foo)
		if !ok || event.Type != want.event || foo.Name != "watched" || *foo.Spec.Replicas != want.replicas {
			t.Errorf("Got %s of %s, want %s with %d replicas", event.Type, show(event.Object), want.event, want.replicas)
		}
	}
}

func checkClientDeleteCollection(t *testing.T, ns *namespace) {
	ns.createFoo(t, newFoo("collected-1", labelled("collected")))
	ns.createFoo(t, newFoo("collected-2", labelled("collected")))
	ns.createFoo(t, newFoo("kept", labelled("kept")))
	if err := ns.foos().DeleteCollection(t.Context(), metav1.DeleteOptions{}, selectLabelled("collected")); err != nil {
		t.Fatal(err)
	}
	left, err := ns.foos().List(t.Context(), metav1.ListOptions{LabelSelector: "set in (collected,kept)"})
	if err != nil || len(left.Items) != 1 || left.Items[0].Name != "kept" {
		t.Errorf("%v are left (%v), want only the one with another label", left.Items, err)
	}
}
