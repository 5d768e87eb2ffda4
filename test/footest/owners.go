// SPDX-License-Identifier: Apache-2.0

// The kinds of the program, whose objects own others.

package footest

import (
	"cmp"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/pkg/reconcile/reconciletest/rows"
)

// Owners are the kinds of the program.
var Owners = []*OwnerRow{FooOwner}

// FooOwner is the kind Foo.
var FooOwner = rows.Owner(OwnerRow{
	Kind:   FooKind,
	Kinds:  Kinds,
	New:    func(name, child string, size int32) Object { return newFoo(name, child, size) },
	Rename: func(foo Object, child string) { foo.(*samplev1alpha1.Foo).Spec.DeploymentName = child },
	Resize: func(foo Object, size int32) { foo.(*samplev1alpha1.Foo).Spec.Replicas = &size },
})

// newFoo returns a Foo that a user is going to create.
func newFoo(name, deploymentName string, replicas int32) *samplev1alpha1.Foo {
	foo := &samplev1alpha1.Foo{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: Namespace},
		Spec:       samplev1alpha1.FooSpec{DeploymentName: deploymentName},
	}
	if replicas > 0 {
		foo.Spec.Replicas = &replicas
	}
	return foo
}

// FooKind is the kind of the Foos themselves, for the fake API servers.
var FooKind = (&Row[*samplev1alpha1.Foo]{
	Resource:   FoosResource,
	Kind:       "Foo",
	Default:    defaultConditions[*samplev1alpha1.Foo],
	Generation: rows.SpecChanged[*samplev1alpha1.Foo],
	// Foos belong to users: the controller owns none of their fields.
	ClearOwned: func(*samplev1alpha1.Foo, *samplev1alpha1.Foo) {},
}).Untyped()

type conditioned interface {
	Object
	GetConditions() []metav1.Condition
	SetConditions(conditions []metav1.Condition)
}

// defaultConditions gives an owner the condition that its CustomResourceDefinition defaults
// to.
func defaultConditions[F conditioned](foo F) {
	if len(foo.GetConditions()) == 0 {
		foo.SetConditions([]metav1.Condition{{
			Type: "Ready", Status: metav1.ConditionUnknown, Reason: "Pending", Message: "Waiting for the controller",
			LastTransitionTime: metav1.Unix(0, 0),
		}})
	}
}

// KindOf returns the kind of an object.
func KindOf(object runtime.Object) *Kind { return ownerOfChild(object).KindOf(object) }

// ownerOfChild returns the kind of the program to which an object or a child is.
func ownerOfChild(object runtime.Object) *OwnerRow {
	isOf := func(owner *OwnerRow) bool {
		return slices.ContainsFunc(owner.All(), func(kind *Kind) bool { return kind.Is(object) })
	}
	return cmp.Or(find(isOf), FooOwner)
}

// Served returns the kind of a resource, or nil if no fake API server has it.
func Served(resource string) *Kind {
	for _, owner := range Owners {
		if kind := owner.Served(resource); kind != nil {
			return kind
		}
	}
	return nil
}

// UnknownResource is the message of a test whose controller uses a resource without a row.
func UnknownResource(resource, test string) string {
	return fmt.Sprintf("%s: the controller uses the resource %q, of which the tests know nothing: add a row to Kinds in test/footest/kinds.go", test, resource)
}

// IsOwner reports whether an object is of a kind of the program.
func IsOwner(object runtime.Object) bool {
	return slices.ContainsFunc(Owners, func(owner *OwnerRow) bool { return owner.Is(object) })
}

// OwnerOf returns the kind of an owner.
func OwnerOf(foo Object) *OwnerRow {
	return cmp.Or(find(func(owner *OwnerRow) bool { return owner.Is(foo) }), FooOwner)
}

// find returns the first kind of the program that is meant, or nil.
func find(isMeant func(*OwnerRow) bool) *OwnerRow {
	if i := slices.IndexFunc(Owners, isMeant); i >= 0 {
		return Owners[i]
	}
	return nil
}
