// SPDX-License-Identifier: Apache-2.0

// Package footest has what the tests of several packages share: builders of Foos and
// statuses (this file) and of children, assertions, and the objects and checks of the fuzz
// targets.
package footest

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"example.com/sample-controller/internal/options"
	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// Namespace is the namespace of the tests' objects, and DefaultImage the image of their
// Pods.
const (
	// Namespace is where the tests' Foos are, DefaultImage what their Pods run.
	Namespace    = "team-a"
	DefaultImage = options.DefaultImage
)

var (
	// Now is the time at which every test begins: the start of a testing/synctest
	// bubble's clock.
	Now = metav1.Date(2000, time.January, 1, 0, 0, 0, 0, time.UTC)
	// Earlier is the time at which the objects of a test were created.
	Earlier = metav1.Date(1999, time.December, 31, 23, 0, 0, 0, time.UTC)
)

// FooOption changes what Foo returns.
type FooOption func(*samplev1alpha1.Foo)

// Foo returns a Foo that asks for 2 Pods, and for a child of the kind Primary named "web".
func Foo(name string, options ...FooOption) *samplev1alpha1.Foo {
	replicas := int32(2)
	object := &samplev1alpha1.Foo{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: Namespace, UID: types.UID("uid-" + name), Generation: 1, ResourceVersion: "10"},
		Spec:       samplev1alpha1.FooSpec{Replicas: &replicas},
	}
	WithChildName("web")(object)
	for _, option := range options {
		option(object)
	}
	return object
}

// WithReplicas sets the number of Pods that a Foo asks for.
func WithReplicas(replicas int32) FooOption {
	return func(foo *samplev1alpha1.Foo) { foo.Spec.Replicas = &replicas }
}

// WithoutReplicas makes a Foo not set the number of Pods.
func WithoutReplicas(foo *samplev1alpha1.Foo) { foo.Spec.Replicas = nil }

// Suspended makes a Foo's suspension hold back all writes but those of its status.
func Suspended(foo *samplev1alpha1.Foo) { Suspend(foo, true) }

// WithChildName sets the name of the child of the kind Primary that a Foo asks for.
func WithChildName(name string) FooOption {
	return func(foo *samplev1alpha1.Foo) { foo.Spec.DeploymentName = name }
}

// WithFooUID sets the UID of a Foo.
func WithFooUID(uid types.UID) FooOption {
	return func(foo *samplev1alpha1.Foo) { foo.UID = uid }
}

// WithGeneration sets the generation of a Foo.
func WithGeneration(generation int64) FooOption {
	return func(foo *samplev1alpha1.Foo) { foo.Generation = generation }
}

// BeingDeleted makes a Foo one in foreground deletion, which waits for its children.
func BeingDeleted(foo *samplev1alpha1.Foo) {
	deleted := Earlier
	foo.DeletionTimestamp = &deleted
	foo.Finalizers = []string{metav1.FinalizerDeleteDependents}
}

// WithStatus sets the status of a Foo.
func WithStatus(status samplev1alpha1.FooStatus) FooOption {
	return func(foo *samplev1alpha1.Foo) { foo.Status = status }
}

// Pending gives a Foo the status that the API server sets by default.
func Pending(foo *samplev1alpha1.Foo) { defaultConditions(foo) }

// Settled returns the status of a Foo named owner whose child "web" is at rest.
func Settled(owner string) samplev1alpha1.FooStatus {
	status := samplev1alpha1.FooStatus{ObservedGeneration: 1}
	message := Primary.Settled(Foo(owner), &status)
	status.Conditions = Ready(metav1.ConditionTrue, "Available", message, Earlier)
	return status
}

// Ready returns the conditions of a Foo of generation 1.
func Ready(status metav1.ConditionStatus, reason, message string, since metav1.Time) []metav1.Condition {
	return []metav1.Condition{{
		Type: "Ready", Status: status, Reason: reason, Message: message, ObservedGeneration: 1, LastTransitionTime: since,
	}}
}

// Stalled returns the condition Ready with a condition Stalled for the same reason.
func Stalled(ready []metav1.Condition) []metav1.Condition {
	stalled := ready[0]
	stalled.Type, stalled.Status = "Stalled", metav1.ConditionTrue
	return append(ready, stalled)
}

// OfGeneration returns conditions with another generation.
func OfGeneration(generation int64, conditions []metav1.Condition) []metav1.Condition {
	for i := range conditions {
		conditions[i].ObservedGeneration = generation
	}
	return conditions
}

// RefusedStatus returns the status of a Foo whose child a quota refused.
func RefusedStatus() samplev1alpha1.FooStatus {
	status := Settled("a")
	status.Conditions = Ready(metav1.ConditionFalse, Primary.Kind+"Failed", "The API server refused: exceeded quota", Earlier)
	return status
}

// Rolling returns the status of a Foo with a number of Pods, not all of them available.
func Rolling(replicas int32) samplev1alpha1.FooStatus {
	return samplev1alpha1.FooStatus{
		ObservedGeneration: 1, Replicas: replicas, Selector: "app=nginx,controller=a",
		Conditions: Ready(metav1.ConditionFalse, "Progressing", "", Earlier),
	}
}
