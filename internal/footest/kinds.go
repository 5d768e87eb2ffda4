/*
Copyright The Sample Controller Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

// The kinds of children as the tests know them: one row for each, with a file of its own.

package footest

import (
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// Primary is the kind of the tests that need a child but are about no kind in particular.
// Each Foo has one.
var Primary = deploymentRow.kind()

// Kinds lists the kinds of children in the order in which the controller writes them. The
// fake API servers serve them, and the simulation, the fuzz targets and the oracle check
// them.
var Kinds = []*Kind{
	Primary,
}

// Object is an object of the Kubernetes API.
type Object interface {
	metav1.Object
	runtime.Object
}

// Row says what is right for the objects of a kind, and what else a cluster and its users
// do to them. It calls no code of the controller.
type Row[T Object] struct {
	Resource schema.GroupVersionResource
	Kind     string
	// Blocks is true if the controller writes no later kind until this one is as asked.
	Blocks bool
	// Wanted reports whether a Foo asks for a child, and Ask makes one ask. They are nil if
	// each Foo does.
	Wanted func(foo *samplev1alpha1.Foo) bool
	Ask    func(foo *samplev1alpha1.Foo)
	// NamedBy is the field of the Foo that gives a child its name, and Name returns it.
	NamedBy string
	Name    func(foo *samplev1alpha1.Foo) string
	// New returns a child as a Foo asks, as the controller creates it. Name, namespace and
	// owner are set for it.
	New func(foo *samplev1alpha1.Foo) T
	// Foreign returns an object that somebody else made. By default it is one of New for
	// another Foo, which has drifted.
	Foreign func() T
	// Default sets what the API server sets, and Invalid reports whether it refuses an
	// object. They may be nil.
	Default func(object T)
	Invalid func(object T) bool
	// Generation reports whether a write raises the generation. It is nil if the API
	// server counts none for the kind.
	Generation func(before, after T) bool
	// ClearOwned removes the fields that a Foo owns, or for a nil Foo those that any Foo
	// may own.
	ClearOwned func(object T, foo *samplev1alpha1.Foo)
	// Differs says in which owned fields an object differs from what a Foo asks for, or "".
	Differs func(object T, foo *samplev1alpha1.Foo) string
	// Drift changes each field that a Foo owns, or for a nil Foo that any Foo may own.
	Drift func(object T, foo *samplev1alpha1.Foo)
	// Edit changes fields of others. It may be nil; labels and annotations are changed for
	// it.
	Edit func(object T, note string)
	// EditOptional changes the fields that a Foo may leave to others, such as replicas. It
	// is nil if there are none.
	EditOptional func(object T)
	// Advance makes the next change that the cluster's own controllers make to the status,
	// and reports whether there was one. It is nil if they make none.
	Advance func(object T) bool
	// Unready says why a Foo can't be ready yet by an object that is as it asks, or "". It
	// is nil if each will do.
	Unready func(object T) string
	// Fuzz makes an object of the fuzz targets, which is as the Foo "a" asks, one of the
	// cases. By default it has drifted, was edited, or has arbitrary fields.
	Fuzz func(object T, c ChildCase, fill *Filler, words string)
	// Seeds are inputs of the fuzz targets for what is particular to the kind.
	Seeds []FuzzSeed
	// Misreported says what a Foo's status reports falsely of its child at rest, or "". It
	// may be nil.
	Misreported func(foo *samplev1alpha1.Foo, object T) string
	// Busy says why the cluster's own controllers may still write to an object, or "". It
	// is nil if there are none.
	Busy func(object T) string
	// Settled sets what a Foo's status reports of its child at rest, and returns the
	// message of its condition Ready. It is nil if the status reports nothing of it.
	Settled func(foo *samplev1alpha1.Foo, status *samplev1alpha1.FooStatus) (message string)
}

// Kind is a Row for objects whose type is not known. Its functions are never nil, except
// for Generation and EditOptional.
type Kind struct {
	Row[Object]

	// Is reports whether an object is of the kind.
	Is func(object runtime.Object) bool
}

func (r *Row[T]) kind() *Kind {
	k := &Kind{Is: func(object runtime.Object) bool { _, ok := object.(T); return ok }}
	k.Row = Row[Object]{
		Resource: r.Resource, Kind: r.Kind, Blocks: r.Blocks, Wanted: r.Wanted, Ask: r.Ask, NamedBy: r.NamedBy, Name: r.Name,
		New:         func(foo *samplev1alpha1.Foo) Object { return ownedBy(foo, r.New(foo), r.Name(foo)) },
		Foreign:     r.foreign,
		Default:     untyped(r.Default),
		Invalid:     untypedResult(r.Invalid),
		ClearOwned:  func(object Object, foo *samplev1alpha1.Foo) { r.ClearOwned(as[T](object), foo) },
		Differs:     func(object Object, foo *samplev1alpha1.Foo) string { return r.Differs(as[T](object), foo) },
		Drift:       func(object Object, foo *samplev1alpha1.Foo) { r.Drift(as[T](object), foo) },
		Edit:        r.edit,
		Fuzz:        r.fuzz,
		Advance:     untypedResult(r.Advance),
		Unready:     untypedResult(r.Unready),
		Seeds:       r.Seeds,
		Misreported: r.misreported,
		Busy:        untypedResult(r.Busy),
		Settled:     r.Settled,
	}
	if k.Wanted == nil {
		k.Wanted = func(*samplev1alpha1.Foo) bool { return true }
	}
	if k.Ask == nil {
		k.Ask = func(*samplev1alpha1.Foo) {}
	}
	if k.Settled == nil {
		k.Settled = func(*samplev1alpha1.Foo, *samplev1alpha1.FooStatus) string { return "" }
	}
	if r.EditOptional != nil {
		k.EditOptional = untyped(r.EditOptional)
	}
	if r.Generation != nil {
		k.Generation = func(before, after Object) bool { return r.Generation(as[T](before), as[T](after)) }
	}
	return k
}

func (r *Row[T]) foreign() Object {
	if r.Foreign != nil {
		return r.Foreign()
	}
	object := r.New(Foo("theirs"))
	r.Drift(object, nil)
	return object
}

func (r *Row[T]) edit(object Object, note string) {
	object.SetAnnotations(with(object.GetAnnotations(), "note", note))
	object.SetLabels(with(object.GetLabels(), "team", "a"))
	if r.Edit != nil {
		r.Edit(as[T](object), note)
	}
}

func (r *Row[T]) fuzz(object Object, c ChildCase, fill *Filler, words string) {
	switch {
	case r.Fuzz != nil:
		r.Fuzz(as[T](object), c, fill, words)
	case pick(c.Content, contents) == contentDrifted:
		r.Drift(as[T](object), nil)
	case pick(c.Content, contents) == contentEdited:
		r.edit(object, "fuzz")
	case pick(c.Content, contents) == contentMissing && fill != nil:
		fields := reflect.ValueOf(object).Elem()
		for i := range fields.NumField() {
			if name := fields.Type().Field(i).Name; name != "TypeMeta" && name != "ObjectMeta" {
				fill.Fill(fields.Field(i).Addr().Interface())
			}
		}
	}
}

func (r *Row[T]) misreported(foo *samplev1alpha1.Foo, object Object) string {
	if r.Misreported == nil {
		return ""
	}
	return r.Misreported(foo, as[T](object))
}

// as returns an object as one of a type.
func as[T any](object any) T { return object.(T) } //nolint:forcetypeassert // a test may panic

func untyped[T Object](f func(T)) func(Object) {
	return func(object Object) {
		if f != nil {
			f(as[T](object))
		}
	}
}

func untypedResult[T Object, R any](f func(T) R) func(Object) R {
	return func(object Object) (result R) {
		if f != nil {
			result = f(as[T](object))
		}
		return result
	}
}

// with returns texts with one more.
func with(texts map[string]string, key, value string) map[string]string {
	if texts == nil {
		texts = map[string]string{}
	}
	texts[key] = value
	return texts
}

// ownedBy gives a child its name and its owner.
func ownedBy(foo *samplev1alpha1.Foo, child Object, name string) Object {
	child.SetName(name)
	child.SetNamespace(foo.Namespace)
	owner := ownerRef("samplecontroller.k8s.io/v1alpha1", "Foo", foo.Name, foo.UID, true)
	owner.BlockOwnerDeletion = new(true)
	child.SetOwnerReferences([]metav1.OwnerReference{owner})
	return child
}

// ForeignNamed returns an object that somebody else made, under a name.
func (k *Kind) ForeignNamed(name string) Object {
	object := k.Foreign()
	object.SetName(name)
	object.SetNamespace(Namespace)
	return object
}

// String returns the kind's name.
func (k *Kind) String() string { return k.Kind }
