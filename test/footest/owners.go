// SPDX-License-Identifier: Apache-2.0

// The kinds of the program, whose objects own others.

package footest

import (
	"cmp"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// OwnerRow is a kind of the program as the tests know it.
type OwnerRow struct {
	// Kind is the kind itself, and Kinds are those of its children, in the order in which
	// the controller writes them.
	*Kind

	Kinds []*Kind
	// New returns an object that asks for children of a name. With size 0 it leaves to
	// others what it may leave to them.
	New func(name, child string, size int32) Object
	// Rename makes an object ask for children of another name, and Resize changes what
	// else it asks for.
	Rename func(foo Object, child string)
	Resize func(foo Object, size int32)
}

// Owners are the kinds of the program.
var Owners = []*OwnerRow{FooOwner}

// FooOwner is the kind Foo.
var FooOwner = &OwnerRow{
	Kind:   FooKind,
	Kinds:  Kinds,
	New:    func(name, child string, size int32) Object { return newFoo(name, child, size) },
	Rename: func(foo Object, child string) { as[*samplev1alpha1.Foo](foo).Spec.DeploymentName = child },
	Resize: func(foo Object, size int32) { as[*samplev1alpha1.Foo](foo).Spec.Replicas = &size },
}

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

// Suspend sets whether an owner is suspended.
func Suspend(foo Object, suspended bool) {
	reflect.ValueOf(specOf(foo)).Elem().FieldByName("Suspend").Set(reflect.ValueOf(&suspended))
}

// IsSuspended reports whether nothing may be written for an owner but its status.
func IsSuspended(foo Object) bool {
	suspended := as[*bool](reflect.ValueOf(specOf(foo)).Elem().FieldByName("Suspend").Interface())
	return suspended != nil && *suspended
}

// specOf returns a pointer to the spec of an owner.
func specOf(foo Object) any {
	return reflect.ValueOf(foo).Elem().FieldByName("Spec").Addr().Interface()
}

// Asking returns an object of the kind that asks for a child of each kind.
func (o *OwnerRow) Asking(name, child string, size int32) Object {
	foo := o.New(name, child, size)
	for _, kind := range o.Kinds {
		kind.Ask(foo)
	}
	return foo
}

// IsOwned reports whether a reference is to an object of the kind.
func (o *OwnerRow) IsOwned(ref *metav1.OwnerReference) bool {
	return ref.Kind == o.Kind.Kind && isOfGroup(ref)
}

// allKinds are all kinds that the fake API servers serve.
func allKinds() []*Kind {
	var all []*Kind
	for _, owner := range Owners {
		all = append(append(all, owner.Kind), owner.Kinds...)
	}
	return all
}

// Owner returns the kind whose objects own those of the kind.
func (k *Kind) Owner() *OwnerRow {
	owner := find(Owners, func(owner *OwnerRow) bool { return slices.Contains(owner.Kinds, k) })
	return cmp.Or(owner, FooOwner) // that of a kind of a test alone
}

// IsOwner reports whether an object is of a kind of the program.
func IsOwner(object runtime.Object) bool {
	return slices.ContainsFunc(Owners, func(owner *OwnerRow) bool { return owner.Is(object) })
}

// OwnerOf returns the kind of an owner.
func OwnerOf(foo Object) *OwnerRow {
	return cmp.Or(find(Owners, func(owner *OwnerRow) bool { return owner.Is(foo) }), FooOwner)
}

// find returns the first that is meant, or nil.
func find[T any](all []*T, isMeant func(*T) bool) *T {
	if i := slices.IndexFunc(all, isMeant); i >= 0 {
		return all[i]
	}
	return nil
}

// ConditionOf returns the condition Ready of an owner, or nil.
func ConditionOf(foo Object) *metav1.Condition {
	conditions := statusOf(foo).FieldByName("Conditions").Addr().Interface()
	return meta.FindStatusCondition(*as[*[]metav1.Condition](conditions), "Ready")
}

// ConditionsOf returns the conditions of an owner, which may be changed.
func ConditionsOf(foo Object) []metav1.Condition {
	return as[[]metav1.Condition](statusOf(foo).FieldByName("Conditions").Interface())
}

// ObservedGenerationOf returns the generation that the status of an owner describes.
func ObservedGenerationOf(foo Object) int64 {
	return statusOf(foo).FieldByName("ObservedGeneration").Int()
}
