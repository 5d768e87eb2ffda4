// SPDX-License-Identifier: Apache-2.0

// The kinds of a program, whose objects own others.

package rows

import (
	"fmt"
	"reflect"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// OwnerRow is a kind of a program as the tests know it.
type OwnerRow struct {
	// Kind is the kind itself, and Kinds are those of its children, in the order in which
	// the controller writes them.
	*Kind

	Kinds []*Kind
	// References are the kinds of the objects that owners name and do not own, in the order in which the
	// controller reads them.
	References []*Reference
	// New returns an object that asks for children of a name. With size 0 it leaves to
	// others what it may leave to them.
	New func(name, child string, size int32) Object
	// Rename makes an object ask for children of another name, and Resize changes what
	// else it asks for.
	Rename func(foo Object, child string)
	Resize func(foo Object, size int32)
	// NoObjects are further resources that the controller's informers list. There is no object
	// of them.
	NoObjects []schema.GroupVersionResource
	// AtRest says what is wrong with a world that does not change any more, besides what holds for
	// each kind. It may be nil.
	AtRest func(objects []Object) []string
	// Outside says what is wrong at rest with what the controller's calls outside the cluster have made there. It is
	// nil if it makes none.
	Outside func(there *sync.Map, objects []Object) []string
	// Probes is true if the controller may read live what is not there.
	Probes bool
	// NoEvents is true if the controller records no events of its transitions.
	NoEvents bool
}

// Owner returns the row of a kind of a program. Its children's rows belong to no other.
func Owner(o OwnerRow) *OwnerRow {
	o.owner = &o
	for _, kind := range o.Kinds {
		kind.owner = &o
	}
	return &o
}

// owned are the methods of plan.Owner that the tests call. This package does not import plan, whose tests
// import this one.
type owned interface {
	GetSpec() any
	GetStatus() any
	IsSuspended() bool
	GetConditions() []metav1.Condition
	GetObservedGeneration() int64
	GetLastHandledSync() string
}

// Suspend sets whether an owner is suspended.
func Suspend(foo Object, suspended bool) {
	reflect.ValueOf(specOf(foo)).Elem().FieldByName("Suspend").Set(reflect.ValueOf(&suspended))
}

// IsSuspended reports whether nothing may be written for an owner but its status.
func IsSuspended(foo Object) bool { return as[owned](foo).IsSuspended() }

// specOf returns a pointer to the spec of an owner.
func specOf(foo Object) any { return as[owned](foo).GetSpec() }

// StatusOf returns a pointer to the status of an owner.
func StatusOf(foo Object) any { return as[owned](foo).GetStatus() }

// Asking returns an object of the kind that asks for a child of each kind.
func (o *OwnerRow) Asking(name, child string, size int32) Object {
	foo := o.New(name, child, size)
	for _, kind := range o.Kinds {
		kind.Ask(foo)
	}
	return foo
}

// IsOwned reports whether a reference is to an object of the kind, in any version.
func (o *OwnerRow) IsOwned(ref *metav1.OwnerReference) bool {
	of, err := schema.ParseGroupVersion(ref.APIVersion)
	return err == nil && ref.Kind == o.Kind.Kind && of.Group == o.Resource.Group
}

// OwnerOf returns the UID of the owner that controls an object: that in its reference, or in its marks where those
// count. It is "" if none of the kind does.
func (o *OwnerRow) OwnerOf(object Object) types.UID {
	ref := metav1.GetControllerOf(object)
	switch {
	case ref != nil && o.IsOwned(ref):
		return ref.UID
	case ref == nil && o.KindOf(object).Elsewhere != "":
		return types.UID(object.GetLabels()[o.OwnerLabel()])
	}
	return ""
}

// Controls reports whether an owner controls an object.
func (o *OwnerRow) Controls(foo, object Object) bool { return o.OwnerOf(object) == foo.GetUID() }

// OwnerLabel is the mark with an owner's UID.
func (o *OwnerRow) OwnerLabel() string { return o.Resource.Group + "/owner-uid" }

// AdoptBy is the annotation that consents to the adoption of an object.
func (o *OwnerRow) AdoptBy() string { return o.Resource.Group + "/adopt-by" }

// SyncRequested is the annotation of an owner that asks for a sync now.
func (o *OwnerRow) SyncRequested() string { return o.Resource.Group + "/sync-requested" }

// Owner returns the kind whose objects own those of the kind.
func (k *Kind) Owner() *OwnerRow { return k.owner }

// All returns the kind itself, those of its children, and those of the objects that it names.
func (o *OwnerRow) All() []*Kind {
	all := append([]*Kind{o.Kind}, o.Kinds...)
	for _, reference := range o.References {
		if !slices.Contains(all, reference.Kind) {
			all = append(all, reference.Kind)
		}
	}
	return all
}

// IsReferenced reports whether an object is of a kind that owners name and never own.
func (o *OwnerRow) IsReferenced(object runtime.Object) bool {
	return slices.ContainsFunc(o.References, func(reference *Reference) bool {
		return reference.Kind.Is(object) && !slices.Contains(o.Kinds, reference.Kind)
	})
}

// KindOf returns the kind of an object.
func (o *OwnerRow) KindOf(object runtime.Object) *Kind {
	if kind := find(o.All(), func(kind *Kind) bool { return kind.Is(object) }); kind != nil {
		return kind
	}
	panic(fmt.Sprintf("the tests know no kind of %T", object))
}

// Served returns the kind of a resource, or nil if no API server in memory has it.
func (o *OwnerRow) Served(resource string) *Kind {
	return find(o.All(), func(kind *Kind) bool { return kind.Resource.Resource == resource })
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
	return meta.FindStatusCondition(ConditionsOf(foo), "Ready")
}

// ConditionsOf returns the conditions of an owner, which may be changed.
func ConditionsOf(foo Object) []metav1.Condition { return as[owned](foo).GetConditions() }

// ObservedGenerationOf returns the generation that the status of an owner describes.
func ObservedGenerationOf(foo Object) int64 { return as[owned](foo).GetObservedGeneration() }

// LastHandledSyncOf returns the newest request for a sync that the status of an owner answers.
func LastHandledSyncOf(foo Object) string { return as[owned](foo).GetLastHandledSync() }
