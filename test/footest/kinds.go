// SPDX-License-Identifier: Apache-2.0

// The kinds of children as the tests know them: one row for each, with its own file.
// owners.go has the kinds whose objects own them.

package footest

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/pkg/reconcile/reconciletest/rows"
)

// Primary is the kind of the tests that need a child but are about no kind in particular.
// Each Foo has one.
var Primary = deploymentRow.Untyped()

// Kinds lists the kinds of children of Foos in the order in which the controller writes
// them. The fake API servers serve them, and the simulation, the fuzz targets and the
// oracle check them.
var Kinds = []*Kind{
	Primary,
}

type (
	// Row is that of a kind of children of Foos.
	Row[T rows.Object] = rows.Row[*samplev1alpha1.Foo, T]
	// Kind is a row without its types, and OwnerRow that of a kind of the program.
	Kind     = rows.Kind
	OwnerRow = rows.OwnerRow
	// Object is an object of the Kubernetes API.
	Object = rows.Object
)

// ChildOption changes what Child returns.
type ChildOption func(Object)

// Child returns the child of the kind Primary that the Foo named owner asks for, with the
// API server's defaults and at rest. It is called "web".
func Child(owner string, options ...ChildOption) Object {
	child := Primary.Stored(Foo(owner))
	for _, option := range options {
		option(child)
	}
	return child
}

// Unstored returns a child as the controller makes it for a Foo of a name, which no API
// server has. It is in no namespace.
func Unstored(name string) Object {
	return Primary.New(unstoredFoo(name))
}

func unstoredFoo(name string) *samplev1alpha1.Foo {
	foo := Foo(name, WithChildName(name), WithFooUID("00000000-0000-0000-0000-000000000000"), WithoutReplicas)
	foo.Namespace = ""
	return foo
}

// Changed returns an option for children of a type.
func Changed[T Object](change func(T)) ChildOption {
	return func(child Object) { change(child.(T)) }
}

// Drifted changes all fields of a child that a Foo owns.
func Drifted(child Object) { Primary.Drift(child, nil) }

// WithTeam sets an annotation of others, "team", to "a".
func WithTeam(child Object) { child.SetAnnotations(with(child.GetAnnotations(), "team", "a")) }

// Named sets the name of a child.
func Named(name string) ChildOption { return func(child Object) { child.SetName(name) } }

// WithAdoptBy sets the annotation that allows a Foo to adopt a child.
func WithAdoptBy(foo string) ChildOption {
	return func(child Object) {
		child.SetAnnotations(with(child.GetAnnotations(), samplev1alpha1.AnnotationAdoptBy, foo))
	}
}

// WithoutOwner removes the owner references of a child.
func WithoutOwner(child Object) { child.SetOwnerReferences(nil) }

// WithOwner changes the API version, kind and UID in a child's owner reference.
func WithOwner(apiVersion, kind string, uid types.UID) ChildOption {
	return func(child Object) {
		owner := child.GetOwnerReferences()[0]
		owner.APIVersion, owner.Kind, owner.UID = apiVersion, kind, uid
		child.SetOwnerReferences([]metav1.OwnerReference{owner})
	}
}

// Terminating makes an object one in foreground deletion.
func Terminating(child Object) {
	deleted := Earlier
	child.SetDeletionTimestamp(&deleted)
	child.SetFinalizers([]string{metav1.FinalizerDeleteDependents})
}

// AtVersion sets the resourceVersion of a child.
func AtVersion(resourceVersion string) ChildOption {
	return func(child Object) { child.SetResourceVersion(resourceVersion) }
}

// AtGeneration sets the generation of a child.
func AtGeneration(generation int64) ChildOption {
	return func(child Object) { child.SetGeneration(generation) }
}

// ConflictWithB and ConflictWithNobody are the messages of a Foo named "a" whose name for
// the child is taken.
var (
	ConflictWithB = fmt.Sprintf(`%s "web" belongs to "Foo" "b": choose another %s, or delete the owner`, Primary.Kind, Primary.NamedBy)

	ConflictWithNobody = fmt.Sprintf(`%[1]s "web" exists and has no controller: choose another %[2]s, delete the %[1]s, `+
		`or hand it over with 'kubectl annotate -n team-a %[3]s web samplecontroller.k8s.io/adopt-by=a'`,
		Primary.Kind, Primary.NamedBy, strings.ToLower(Primary.Kind))
)
