// SPDX-License-Identifier: Apache-2.0

// Builders of children: objects of the kind that tests of any child use.

package footest

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
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
	foo := Foo(name, WithChildName(name), WithFooUID("00000000-0000-0000-0000-000000000000"), WithoutReplicas)
	foo.Namespace = ""
	return Primary.New(foo)
}

// Changed returns an option for children of a type.
func Changed[T Object](change func(T)) ChildOption {
	return func(child Object) { change(as[T](child)) }
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

// Terminating makes a child one that is being deleted.
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
