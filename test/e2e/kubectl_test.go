// SPDX-License-Identifier: Apache-2.0

// What kubectl prints of a Foo, and server-side apply.

package e2e

import (
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	applymetav1 "k8s.io/client-go/applyconfigurations/meta/v1"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	applyv1alpha1 "example.com/sample-controller/pkg/generated/applyconfiguration/samplecontroller/v1alpha1"
	"example.com/sample-controller/test/footest"
)

// expectRow checks what kubectl get prints of a Foo, between its name and its age.
func (ns *namespace) expectRow(t *testing.T, foo string, cells ...string) {
	t.Helper()
	header, row, _ := strings.Cut(ns.kubectl(t, "get", "fo", foo), "\n")
	footest.ExpectEqual(t, "the columns", strings.Fields("NAME DEPLOYMENT DESIRED AVAILABLE READY REASON AGE"), strings.Fields(header))
	got := strings.Fields(row)
	footest.ExpectEqual(t, "the row of "+foo, append([]string{foo}, cells...), got[:len(got)-1])
}

func TestKubectlGetShowsFoos(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t)
	ns.startController(t)
	foo := newFoo("terminal", 2)
	footest.FooOwner.Rename(foo, "web")
	ns.createReadyFoo(t, foo)
	ns.createReadyFoo(t, newFoo("empty-column", 0))
	ns.expectRow(t, "terminal", "web", "2", "2", "True", "Available")
	ns.expectRow(t, "empty-column", "empty-column", "1", "True", "Available")
	if all := ns.kubectl(t, "get", "all"); !strings.Contains(all, "foo.samplecontroller.k8s.io/terminal") {
		t.Errorf("kubectl get all does not show the Foo:\n%s", all)
	}
}

// TestAFooThatNoControllerHasSyncedIsPending also has the status of a Foo that upstream's
// controller left behind: it has no conditions.
func TestAFooThatNoControllerHasSyncedIsPending(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t)
	ns.primary().createOwner(t, newFoo("new", 2))
	ns.primary().createOwner(t, newFoo("left", 2))
	ns.kubectl(t, "patch", "foo", "left", "--subresource=status", "--type=merge",
		`--patch={"status":{"availableReplicas":2,"conditions":null}}`)
	ns.expectRow(t, "new", "new", "2", "Unknown", samplev1alpha1.ReasonPending)
	ns.expectRow(t, "left", "left", "2", "2", "Unknown", samplev1alpha1.ReasonPending)
	ready := footest.ReadyOf(get(t, ns.foos(), "new").Status)
	if ready.Message != "Waiting for the controller" || !ready.LastTransitionTime.Equal(new(metav1.Unix(0, 0))) {
		t.Errorf("The condition is %+v", ready)
	}
	ns.startController(t)
	for _, name := range []string{"new", "left"} {
		ready := footest.ConditionOf(ns.primary().awaitReady(t, name))
		if ready.LastTransitionTime.Unix() == 0 {
			t.Errorf("%s is ready since %v", name, ready.LastTransitionTime)
		}
	}
}

// TestServerSideApplyWithTheTypedClient runs no controller, so that only the appliers
// write.
func TestServerSideApplyWithTheTypedClient(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t)
	apply := func(manager string, spec *applyv1alpha1.FooSpecApplyConfiguration) (*samplev1alpha1.Foo, error) {
		foo := applyv1alpha1.Foo("applied", ns.name).WithSpec(spec)
		return ns.foos().Apply(t.Context(), foo, metav1.ApplyOptions{FieldManager: manager})
	}
	spec := func() *applyv1alpha1.FooSpecApplyConfiguration {
		return applyv1alpha1.FooSpec().WithDeploymentName("web")
	}
	_, err := apply("alice", spec().WithReplicas(2))
	footest.Must(t, err)
	_, err = apply("bob", spec().WithReplicas(3))
	if !apierrors.IsConflict(err) || !strings.Contains(err.Error(), `conflict with "alice": .spec.replicas`) {
		t.Errorf("Bob's apply returned %v, want a conflict that names alice and the field", err)
	}
	got, err := apply("alice", spec())
	footest.Must(t, err)
	if got.Spec.Replicas != nil {
		t.Errorf("Replicas is %d, but its only manager does not apply it any more", *got.Spec.Replicas)
	}

	for manager, condition := range map[string]string{"alice": "Ready", "bob": "Pretty"} {
		status := applyv1alpha1.FooStatus().WithConditions(applymetav1.Condition().WithType(condition).
			WithStatus(metav1.ConditionTrue).WithReason("Said").WithMessage("").WithLastTransitionTime(metav1.Now()))
		foo := applyv1alpha1.Foo("applied", ns.name).WithStatus(status)
		got, err = ns.foos().ApplyStatus(t.Context(), foo, metav1.ApplyOptions{FieldManager: manager})
		footest.Must(t, err)
	}
	if len(got.Status.Conditions) != 2 {
		t.Errorf("The conditions are %v, want that of each manager", got.Status.Conditions)
	}
}
