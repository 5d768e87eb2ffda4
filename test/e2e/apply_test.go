// SPDX-License-Identifier: Apache-2.0

// Server-side apply with the typed client.

package e2e

import (
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	applymetav1 "k8s.io/client-go/applyconfigurations/meta/v1"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	applyv1alpha1 "example.com/sample-controller/pkg/generated/applyconfiguration/samplecontroller/v1alpha1"
)

// TestServerSideApplyWithTheTypedClient runs no controller, so that only the appliers
// write.
func TestServerSideApplyWithTheTypedClient(t *testing.T) {
	t.Parallel()
	needsNoOtherController(t)
	checkAll(t, newNamespace(t), []scenario{
		{"creates a missing Foo", checkApplyCreates},
		{"does not take another manager's field, unless forced", checkApplyConflict},
		{"removes a field that its manager no longer applies", checkApplyRemoves},
		{"writes the status, condition by condition", checkApplyStatus},
	})
}

func specOf(ns *namespace, name string, replicas int32) *applyv1alpha1.FooApplyConfiguration {
	return applyv1alpha1.Foo(name, ns.name).WithSpec(applyv1alpha1.FooSpec().WithDeploymentName("web").WithReplicas(replicas))
}

func as(manager string) metav1.ApplyOptions {
	return metav1.ApplyOptions{FieldManager: manager}
}

// apply applies a configuration, and fails the test if it is refused.
func apply(t *testing.T, ns *namespace, foo *applyv1alpha1.FooApplyConfiguration, options metav1.ApplyOptions) *samplev1alpha1.Foo {
	t.Helper()
	applied, err := ns.foos().Apply(t.Context(), foo, options)
	if err != nil {
		t.Fatalf("Applying as %s: %v", options.FieldManager, err)
	}
	return applied
}

func checkApplyCreates(t *testing.T, ns *namespace) {
	got := apply(t, ns, specOf(ns, "applied", 2), as("alice"))
	if got.UID == "" || got.Spec.DeploymentName != "web" || *got.Spec.Replicas != 2 {
		t.Errorf("Apply created %s", show(got))
	}
}

func checkApplyConflict(t *testing.T, ns *namespace) {
	apply(t, ns, specOf(ns, "disputed", 2), as("alice"))
	_, err := ns.foos().Apply(t.Context(), specOf(ns, "disputed", 3), as("bob"))
	if !apierrors.IsConflict(err) || !strings.Contains(err.Error(), `conflict with "alice": .spec.replicas`) {
		t.Errorf("Bob's apply returned %v, want a conflict that names alice and the field", err)
	}
	if got := ns.getFoo(t, "disputed"); *got.Spec.Replicas != 2 {
		t.Errorf("After the conflict replicas is %d, want 2", *got.Spec.Replicas)
	}

	forced := as("bob")
	forced.Force = true
	if got := apply(t, ns, specOf(ns, "disputed", 3), forced); *got.Spec.Replicas != 3 {
		t.Errorf("After the forced apply replicas is %d, want 3", *got.Spec.Replicas)
	}
	if _, err := ns.foos().Apply(t.Context(), specOf(ns, "disputed", 2), as("alice")); !apierrors.IsConflict(err) {
		t.Errorf("Alice's next apply returned %v, want a conflict, because bob owns the field now", err)
	}
}

func checkApplyRemoves(t *testing.T, ns *namespace) {
	apply(t, ns, specOf(ns, "shrinking", 2), as("alice"))
	withoutReplicas := applyv1alpha1.Foo("shrinking", ns.name).WithSpec(applyv1alpha1.FooSpec().WithDeploymentName("web"))
	if got := apply(t, ns, withoutReplicas, as("alice")); got.Spec.Replicas != nil {
		t.Errorf("Replicas is %d, want none", *got.Spec.Replicas)
	}
}

func checkApplyStatus(t *testing.T, ns *namespace) {
	ns.createFoo(t, newFoo("status", withReplicas(1)))
	first := applyv1alpha1.Foo("status", ns.name).WithStatus(applyv1alpha1.FooStatus().
		WithAvailableReplicas(5).WithConditions(condition("Ready")))
	if _, err := ns.foos().ApplyStatus(t.Context(), first, as("alice")); err != nil {
		t.Fatal(err)
	}
	second := applyv1alpha1.Foo("status", ns.name).WithStatus(applyv1alpha1.FooStatus().WithConditions(condition("Pretty")))
	got, err := ns.foos().ApplyStatus(t.Context(), second, as("bob"))
	if err != nil {
		t.Fatal(err)
	}
	if got.Status.AvailableReplicas != 5 || len(got.Status.Conditions) != 2 || *got.Spec.Replicas != 1 {
		t.Errorf("After the statuses of two managers the Foo is %s\nwant both conditions, 5 available, and the spec unchanged", show(got))
	}
}

func condition(kind string) *applymetav1.ConditionApplyConfiguration {
	return applymetav1.Condition().WithType(kind).WithStatus(metav1.ConditionTrue).
		WithReason("Said").WithMessage("").WithLastTransitionTime(metav1.Now())
}
