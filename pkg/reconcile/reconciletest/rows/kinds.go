// SPDX-License-Identifier: Apache-2.0

// Package rows has what tests know of the kinds of a program: what is right for the objects of each,
// and what API servers, other controllers and users do to them. It calls no code of a controller.
//
// A Row is about the children of a kind, and an OwnerRow about the objects that own them.
package rows

import (
	"cmp"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Namespace is where the objects of the tests are.
const Namespace = "team-a"

// Object is an object of the Kubernetes API.
type Object interface {
	metav1.Object
	runtime.Object
}

// Row says what is right for the objects of the type T, and what else a cluster and its users do
// to them. Their owners have the type F.
type Row[F, T Object] struct {
	Resource schema.GroupVersionResource
	Kind     string
	// Blocks is true if the controller writes no later kind until this one is in its desired state.
	Blocks bool
	// Wanted reports whether an owner asks for a child, and Ask makes one ask. They are nil if
	// each owner does.
	Wanted func(foo F) bool
	Ask    func(foo F)
	// NamedBy is the field of the owner that gives a child its name, and Name returns it.
	NamedBy string
	Name    func(foo F) string
	// Names replaces Name and Wanted if an owner may ask for several children of the kind, which are a
	// set: their names, in the order in which the controller writes them.
	Names func(foo F) []string
	// OneAtATime is true if it writes a child of a set only when those before it are ready.
	OneAtATime bool
	// New returns a child as an owner asks, as the controller creates it. Name, namespace and
	// owner are set for it.
	New func(foo F) T
	// Foreign returns an object that someone else made. By default it is one of New for
	// another owner, which has drifted.
	Foreign func() T
	// Default sets what the API server sets, and Invalid reports whether it refuses an
	// object. They may be nil.
	Default func(object T)
	Invalid func(object T) bool
	// Derive sets what the API server sets by the value of an owned field. The servers of
	// the tests don't: it would stay when the owned field is repaired, so that worlds would
	// differ that are otherwise the same. It may be nil.
	Derive func(object T)
	// Generation reports whether a write raises the generation. It is nil if the API
	// server counts none for the kind.
	Generation func(before, after T) bool
	// ClearOwned removes the fields that an owner owns, or for a nil owner those that any owner
	// may own.
	ClearOwned func(object T, foo F)
	// Differs says in which owned fields an object differs from what an owner asks for, or "".
	Differs func(object T, foo F) string
	// Drift changes each field that an owner owns, or for a nil owner that any owner may own.
	Drift func(object T, foo F)
	// Edit changes fields of others. It may be nil; labels and annotations are changed for
	// it.
	Edit func(object T, note string)
	// EditOptional changes the fields that an owner may leave to others, such as replicas. It
	// is nil if there are none.
	EditOptional func(object T)
	// Advance makes the next change that the cluster's own controllers make to the status,
	// and reports whether there was one. It is nil if they make none.
	Advance func(object T) bool
	// Unready says why an owner can't be ready yet by an object that is as it asks, or "". It
	// is nil if each will do.
	Unready func(object T) string
	// Serves reports whether an object does work that would be missing without it, so that
	// it stays until one of another name is ready. It is nil if none does.
	Serves func(object T) bool
	// NotInherited says what of an earlier object a new one should have, because an owner leaves
	// it to others, and has not, or "". It is nil if there is nothing of the kind.
	NotInherited func(object, earlier T, foo F) string
	// Misreported says what an owner's status reports falsely of its child at rest, or "". It
	// may be nil.
	Misreported func(foo F, object T) string
	// Busy says why the cluster's own controllers may still write to an object, or "". It
	// is nil if there are none.
	Busy func(object T) string
	// Settled sets what an owner's status reports of its child at rest, and returns the
	// message of its condition Ready. It is nil if the status reports nothing of it.
	Settled func(foo F) (message string)
}

// Find returns the object of a kind with a name, or nil.
type Find func(kind *Kind, name string) Object

// Kind is a RowOf for objects whose types are not known. Its functions are never nil,
// except for Generation, EditOptional and Foreign.
type Kind struct {
	Row[Object, Object]

	// Is reports whether an object is of the kind.
	Is func(object runtime.Object) bool
	// DiffersIn is like Differs, where the answer depends on the owner's children of earlier kinds, or on
	// objects that the owner names. It is nil if the answer never does.
	DiffersIn func(object, foo Object, find Find) string
	// Elsewhere is the namespace of the objects, "" for that of their owners. Objects elsewhere have marks.
	Elsewhere string
	// NewNamed is like New, for a child of a set.
	NewNamed func(foo Object, name string) Object

	mayBeUnwanted, isSet bool
	owner                *OwnerRow
}

// Untyped returns the row for objects whose types are not known.
func (r *Row[F, T]) Untyped() *Kind {
	k := &Kind{
		Is:            func(object runtime.Object) bool { _, ok := object.(T); return ok },
		mayBeUnwanted: r.Wanted != nil, isSet: r.Names != nil,
	}
	k.NewNamed = func(foo Object, name string) Object { return k.ownedBy(foo, r.New(owner[F](foo)), name) }
	k.Row = Row[Object, Object]{
		Resource: r.Resource, Kind: r.Kind, Blocks: r.Blocks, NamedBy: r.NamedBy, OneAtATime: r.OneAtATime,
		Wanted:      func(foo Object) bool { return r.Wanted == nil || r.Wanted(owner[F](foo)) },
		Ask:         untyped(r.Ask),
		Name:        func(foo Object) string { return r.Name(owner[F](foo)) },
		Names:       k.names,
		New:         func(foo Object) Object { return k.NewNamed(foo, k.Name(foo)) },
		Default:     untyped(r.Default),
		Derive:      untyped(r.Derive),
		Invalid:     untypedResult(r.Invalid),
		ClearOwned:  func(object, foo Object) { r.ClearOwned(as[T](object), owner[F](foo)) },
		Differs:     func(object, foo Object) string { return r.Differs(as[T](object), owner[F](foo)) },
		Drift:       func(object, foo Object) { r.Drift(as[T](object), owner[F](foo)) },
		Edit:        r.edit,
		Advance:     untypedResult(r.Advance),
		Unready:     untypedResult(r.Unready),
		Serves:      untypedResult(r.Serves),
		Misreported: r.misreported,
		Busy:        untypedResult(r.Busy),
		Settled:     func(foo Object) string { return r.settled(owner[F](foo)) },
	}
	k.NotInherited = func(object, earlier, foo Object) (text string) {
		if r.NotInherited != nil {
			text = r.NotInherited(as[T](object), as[T](earlier), owner[F](foo))
		}
		return text
	}
	if r.Names != nil {
		k.Names = func(foo Object) []string { return r.Names(owner[F](foo)) }
		k.Name = func(foo Object) string { return append(k.Names(foo), "")[0] }
		k.Wanted = func(foo Object) bool { return len(k.Names(foo)) > 0 }
	}
	if r.Foreign != nil {
		k.Foreign = func() Object { return r.Foreign() }
	}
	if r.EditOptional != nil {
		k.EditOptional = untyped(r.EditOptional)
	}
	if r.Generation != nil {
		k.Generation = func(before, after Object) bool { return r.Generation(as[T](before), as[T](after)) }
	}
	return k
}

func (r *Row[F, T]) edit(object Object, note string) {
	object.SetAnnotations(with(object.GetAnnotations(), "note", note))
	object.SetLabels(with(object.GetLabels(), "team", "a"))
	if r.Edit != nil {
		r.Edit(as[T](object), note)
	}
}

func (r *Row[F, T]) settled(foo F) string {
	if r.Settled == nil {
		return ""
	}
	return r.Settled(foo)
}

func (r *Row[F, T]) misreported(foo, object Object) string {
	if r.Misreported == nil {
		return ""
	}
	return r.Misreported(owner[F](foo), as[T](object))
}

// owner returns an owner as one of a type. It may be nil.
func owner[F Object](object Object) (typed F) {
	if object != nil {
		typed = as[F](object)
	}
	return typed
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
func (k *Kind) ownedBy(foo, child Object, name string) Object {
	child.SetName(name)
	if k.Elsewhere != "" {
		return child // New has set its namespace and its marks
	}
	child.SetNamespace(foo.GetNamespace())
	kind := k.owner.Resource.GroupVersion().WithKind(k.owner.Kind.Kind)
	child.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(foo, kind)})
	return child
}

// ForeignNamed returns an object that someone else made, under a name.
func (k *Kind) ForeignNamed(name string) Object {
	var object Object
	if k.Foreign != nil {
		object = k.Foreign()
	} else {
		theirs := k.owner.New("theirs", "theirs", 1)
		if object = k.New(theirs); k.isSet {
			object = k.NewNamed(theirs, name)
		}
		k.Drift(object, nil)
		object.SetOwnerReferences(nil)
	}
	object.SetName(name)
	object.SetNamespace(k.Namespace())
	return object
}

// Namespace returns the namespace of the kind's objects.
func (k *Kind) Namespace() string { return cmp.Or(k.Elsewhere, Namespace) }

// IsSet reports whether an owner may ask for several children of the kind.
func (k *Kind) IsSet() bool { return k.isSet }

// names returns the names of the children of a kind that is no set.
func (k *Kind) names(foo Object) []string {
	if !k.Wanted(foo) {
		return nil
	}
	return []string{k.Name(foo)}
}

// IsOptional reports whether an owner may go without a child of the kind.
func (k *Kind) IsOptional() bool { return k.mayBeUnwanted }

// Unset makes an owner cease to ask for a child that it may go without: the fields that Ask sets
// are as in a new owner.
func (k *Kind) Unset(foo Object) {
	if k.mayBeUnwanted {
		plain, asking := k.owner.New("a", "a", 1), k.owner.New("a", "a", 1)
		k.Ask(asking)
		was, is, set := reflect.ValueOf(specOf(plain)).Elem(), reflect.ValueOf(specOf(asking)).Elem(), reflect.ValueOf(specOf(foo)).Elem()
		for i := range was.NumField() {
			if !reflect.DeepEqual(was.Field(i).Interface(), is.Field(i).Interface()) {
				set.Field(i).Set(was.Field(i))
			}
		}
	}
}

// Find returns the object of the kind with a name, or nil.
func (k *Kind) Find(objects []Object, name string) Object {
	for _, object := range objects {
		if k.Is(object) && object.GetName() == name {
			return object
		}
	}
	return nil
}

// Describe says which row of the controller's table the kind is.
func (k *Kind) Describe() string {
	text := k.Kind + " " + k.Resource.String()
	if k.Blocks {
		text += ", which blocks the later ones"
	}
	if k.OneAtATime {
		text += ", one at a time"
	}
	return text
}

// String returns the kind's name.
func (k *Kind) String() string { return k.Kind }
