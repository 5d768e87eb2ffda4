// SPDX-License-Identifier: Apache-2.0

// The kinds of children as the tests know them: one row for each, with its own file.
// owners.go has the kinds whose objects own them.

package footest

import (
	"fmt"
	"reflect"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// Primary is the kind of the tests that need a child but are about no kind in particular.
// Each Foo has one.
var Primary = deploymentRow.kind()

// Kinds lists the kinds of children of Foos in the order in which the controller writes
// them. The fake API servers serve them, and the simulation, the fuzz targets and the
// oracle check them.
var Kinds = []*Kind{
	Primary,
}

// Object is an object of the Kubernetes API.
type Object interface {
	metav1.Object
	runtime.Object
}

// Row is that of a kind of children of Foos.
type Row[T Object] = RowOf[*samplev1alpha1.Foo, T]

// RowOf says what is right for the objects of a kind, and what else a cluster and its users
// do to them. Their owners are Foos, or objects of another kind of the program. It calls no
// code of the controller.
type RowOf[F, T Object] struct {
	Resource schema.GroupVersionResource
	Kind     string
	// Blocks is true if the controller writes no later kind until this one is in its desired state.
	Blocks bool
	// Wanted reports whether a Foo asks for a child, and Ask makes one ask. They are nil if
	// each Foo does.
	Wanted func(foo F) bool
	Ask    func(foo F)
	// NamedBy is the field of the Foo that gives a child its name, and Name returns it.
	NamedBy string
	Name    func(foo F) string
	// New returns a child as a Foo asks, as the controller creates it. Name, namespace and
	// owner are set for it.
	New func(foo F) T
	// Foreign returns an object that someone else made. By default it is one of New for
	// another Foo, which has drifted.
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
	// ClearOwned removes the fields that a Foo owns, or for a nil Foo those that any Foo
	// may own.
	ClearOwned func(object T, foo F)
	// Differs says in which owned fields an object differs from what a Foo asks for, or "".
	Differs func(object T, foo F) string
	// Drift changes each field that a Foo owns, or for a nil Foo that any Foo may own.
	Drift func(object T, foo F)
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
	// Serves reports whether an object does work that would be missing without it, so that
	// it stays until one of another name is ready. It is nil if none does.
	Serves func(object T) bool
	// NotInherited says what of an earlier object a new one should have, because a Foo leaves
	// it to others, and has not, or "". It is nil if there is nothing of the kind.
	NotInherited func(object, earlier T, foo F) string
	// Fuzz makes an object of the fuzz targets, which is as the Foo "a" asks, one of the
	// cases. By default it has drifted, was edited, or has arbitrary fields.
	Fuzz func(object T, c ChildCase, fill *Filler, words string)
	// Seeds are inputs of the fuzz targets for what is particular to the kind.
	Seeds []FuzzSeed
	// Misreported says what a Foo's status reports falsely of its child at rest, or "". It
	// may be nil.
	Misreported func(foo F, object T) string
	// Busy says why the cluster's own controllers may still write to an object, or "". It
	// is nil if there are none.
	Busy func(object T) string
	// Settled sets what a Foo's status reports of its child at rest, and returns the
	// message of its condition Ready. It is nil if the status reports nothing of it.
	Settled func(foo *samplev1alpha1.Foo, status *samplev1alpha1.FooStatus) (message string)
}

// Kind is a RowOf for objects whose types are not known. Its functions are never nil,
// except for Generation, EditOptional and Foreign.
type Kind struct {
	RowOf[Object, Object]

	// Is reports whether an object is of the kind.
	Is func(object runtime.Object) bool

	mayBeUnwanted bool
}

func (r *RowOf[F, T]) kind() *Kind {
	k := &Kind{Is: func(object runtime.Object) bool { _, ok := object.(T); return ok }, mayBeUnwanted: r.Wanted != nil}
	k.RowOf = RowOf[Object, Object]{
		Resource: r.Resource, Kind: r.Kind, Blocks: r.Blocks, NamedBy: r.NamedBy,
		Wanted:      func(foo Object) bool { return r.Wanted == nil || r.Wanted(owner[F](foo)) },
		Ask:         untyped(r.Ask),
		Name:        func(foo Object) string { return r.Name(owner[F](foo)) },
		New:         func(foo Object) Object { return ownedBy(foo, r.New(owner[F](foo)), r.Name(owner[F](foo))) },
		Default:     untyped(r.Default),
		Derive:      untyped(r.Derive),
		Invalid:     untypedResult(r.Invalid),
		ClearOwned:  func(object, foo Object) { r.ClearOwned(as[T](object), owner[F](foo)) },
		Differs:     func(object, foo Object) string { return r.Differs(as[T](object), owner[F](foo)) },
		Drift:       func(object, foo Object) { r.Drift(as[T](object), owner[F](foo)) },
		Edit:        r.edit,
		Fuzz:        r.fuzz,
		Advance:     untypedResult(r.Advance),
		Unready:     untypedResult(r.Unready),
		Serves:      untypedResult(r.Serves),
		Seeds:       r.Seeds,
		Misreported: r.misreported,
		Busy:        untypedResult(r.Busy),
		Settled:     r.Settled,
	}
	k.NotInherited = func(object, earlier, foo Object) (text string) {
		if r.NotInherited != nil {
			text = r.NotInherited(as[T](object), as[T](earlier), owner[F](foo))
		}
		return text
	}
	if r.Foreign != nil {
		k.Foreign = func() Object { return r.Foreign() }
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

func (r *RowOf[F, T]) edit(object Object, note string) {
	object.SetAnnotations(with(object.GetAnnotations(), "note", note))
	object.SetLabels(with(object.GetLabels(), "team", "a"))
	if r.Edit != nil {
		r.Edit(as[T](object), note)
	}
}

func (r *RowOf[F, T]) fuzz(object Object, c ChildCase, fill *Filler, words string) {
	switch {
	case r.Fuzz != nil:
		r.Fuzz(as[T](object), c, fill, words)
	case pick(c.Content, contents) == contentDrifted:
		r.Drift(as[T](object), owner[F](nil))
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

func (r *RowOf[F, T]) misreported(foo, object Object) string {
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
func ownedBy(foo, child Object, name string) Object {
	kind := reflect.TypeOf(foo).Elem().Name()
	child.SetName(name)
	child.SetNamespace(foo.GetNamespace())
	owner := ownerRef("samplecontroller.k8s.io/v1alpha1", kind, foo.GetName(), foo.GetUID(), true)
	owner.BlockOwnerDeletion = new(true)
	child.SetOwnerReferences([]metav1.OwnerReference{owner})
	return child
}

// ForeignNamed returns an object that someone else made, under a name.
func (k *Kind) ForeignNamed(name string) Object {
	var object Object
	if k.Foreign != nil {
		object = k.Foreign()
	} else {
		theirs := k.Owner().New("theirs", "theirs", 1)
		object = k.New(theirs)
		k.Drift(object, nil)
		object.SetOwnerReferences(nil)
	}
	object.SetName(name)
	object.SetNamespace(Namespace)
	return object
}

// IsOptional reports whether a Foo may go without a child of the kind.
func (k *Kind) IsOptional() bool { return k.mayBeUnwanted }

// Unset makes a Foo cease to ask for a child that it may go without: the fields that Ask sets
// are as in a new Foo.
func (k *Kind) Unset(foo Object) {
	if k.mayBeUnwanted {
		plain, asking := k.Owner().New("a", "a", 1), k.Owner().New("a", "a", 1)
		k.Ask(asking)
		was, is, set := reflect.ValueOf(specOf(plain)).Elem(), reflect.ValueOf(specOf(asking)).Elem(), reflect.ValueOf(specOf(foo)).Elem()
		for i := range was.NumField() {
			if !reflect.DeepEqual(was.Field(i).Interface(), is.Field(i).Interface()) {
				set.Field(i).Set(was.Field(i))
			}
		}
	}
}

// Describe says which row of the controller's table the kind is.
func (k *Kind) Describe() string {
	text := k.Kind + " " + k.Resource.String()
	if k.Blocks {
		text += ", which blocks the later ones"
	}
	return text
}

// String returns the kind's name.
func (k *Kind) String() string { return k.Kind }

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
