// SPDX-License-Identifier: Apache-2.0

// Package footest has what the tests of several packages share: builders of Foos and
// statuses and of children, assertions, and the objects and checks of the fuzz targets.
package footest

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"example.com/sample-controller/internal/names"
	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/pkg/reconcile/reconciletest/rows"
)

const (
	// Namespace is where the tests' Foos are, DefaultImage what their Pods run.
	Namespace    = rows.Namespace
	DefaultImage = names.DefaultImage
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
func Suspended(foo *samplev1alpha1.Foo) { rows.Suspend(foo, true) }

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
func BeingDeleted(foo *samplev1alpha1.Foo) { Terminating(foo) }

// WithStatus sets the status of a Foo.
func WithStatus(status samplev1alpha1.FooStatus) FooOption {
	return func(foo *samplev1alpha1.Foo) { foo.Status = status }
}

// Pending gives a Foo the status that the API server sets by default.
func Pending(foo *samplev1alpha1.Foo) { defaultConditions(foo) }

// Settled returns the status of a Foo named owner whose child "web" is at rest.
func Settled(owner string) samplev1alpha1.FooStatus {
	foo := Foo(owner)
	message := Primary.Settled(foo)
	foo.Status.ObservedGeneration = 1
	foo.Status.Conditions = Ready(metav1.ConditionTrue, "Available", message, Earlier)
	return foo.Status
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

// The bytes of a fuzz target's script choose from these lists.

// pick returns the element that a byte of a script chooses.
func pick[T any](choice byte, from []T) T { return from[int(choice)%len(from)] }

var (
	longName = strings.Repeat("a", 253)

	childNames = []string{"web", "old", "older", longName}
	// A Foo without a name for its child may have been stored before the rule
	// existed.
	wantedNames = []string{"web", "old", longName, ""}
	wantedSizes = []func(*samplev1alpha1.Foo){WithReplicas(2), WithoutReplicas, WithReplicas(10), WithReplicas(0), WithReplicas(-1)}
	// Whether an object is being deleted, and for a Foo, whether it is suspended.
	deletings   = []bool{false, true, false}
	suspending  = []bool{false, false, true}
	fooStatuses = []func() samplev1alpha1.FooStatus{noStatus, settledStatus, conflictStatus, olderStatus}
	repeats     = []int{1, 40, 40_000}
	adoptions   = []string{"", "a", "b"}
)

// What a child contains.
const (
	contentAsked = iota
	contentDrifted
	contentMissing
	contentEdited
)

var contents = []int{contentAsked, contentDrifted, contentMissing, contentEdited}

func noStatus() samplev1alpha1.FooStatus      { return samplev1alpha1.FooStatus{} }
func settledStatus() samplev1alpha1.FooStatus { return Settled("a") }

// conflictStatus returns the status of a Foo whose name for the child is taken.
func conflictStatus() samplev1alpha1.FooStatus {
	return samplev1alpha1.FooStatus{
		ObservedGeneration: 1, Conditions: Ready(metav1.ConditionFalse, Primary.Kind+"Conflict", ConflictWithB, Earlier),
	}
}

// olderStatus returns the status of an earlier spec, with another condition of someone
// else.
func olderStatus() samplev1alpha1.FooStatus {
	status := Settled("a")
	status.ObservedGeneration = 0
	status.Conditions[0].ObservedGeneration = 0
	status.Conditions = append(status.Conditions, metav1.Condition{
		Type: "example.com/Audited", Status: metav1.ConditionTrue, Reason: "Seen", LastTransitionTime: Earlier,
	})
	return status
}

// The owners of a child.
const (
	ownerThisFoo = iota
	ownerNobody
	ownerOtherFoo
	ownerEarlierFoo
	ownerFooOfAnotherGroup
	ownerAnotherKind
	ownerThisFooInAnotherVersion
	ownerThisFooButNotItsController
	ownerAnotherControlsThisFooOwns
)

var owners = [][]metav1.OwnerReference{
	ownerThisFoo:                    {ownerRef("samplecontroller.k8s.io/v1alpha1", "Foo", "a", "uid-a", true)},
	ownerNobody:                     nil,
	ownerOtherFoo:                   {ownerRef("samplecontroller.k8s.io/v1alpha1", "Foo", "b", "uid-b", true)},
	ownerEarlierFoo:                 {ownerRef("samplecontroller.k8s.io/v1alpha1", "Foo", "a", "uid-earlier", true)},
	ownerFooOfAnotherGroup:          {ownerRef("example.com/v1alpha1", "Foo", "a", "uid-a", true)},
	ownerAnotherKind:                {ownerRef("samplecontroller.k8s.io/v1alpha1", "Bar", "a", "uid-a", true)},
	ownerThisFooInAnotherVersion:    {ownerRef("samplecontroller.k8s.io/v1", "Foo", "a", "uid-a", true)},
	ownerThisFooButNotItsController: {ownerRef("samplecontroller.k8s.io/v1alpha1", "Foo", "a", "uid-a", false)},
	ownerAnotherControlsThisFooOwns: {
		ownerRef("samplecontroller.k8s.io/v1alpha1", "Foo", "a", "uid-a", false), ownerRef("example.com/v1", "Set", "s", "uid-s", true),
	},
}

func ownerRef(apiVersion, kind, name string, uid types.UID, controller bool) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: apiVersion, Kind: kind, Name: name, UID: uid, Controller: &controller}
}

// The changes of the Foo that the caches have not seen.
var fooNews = []func(foo *samplev1alpha1.Foo) *samplev1alpha1.Foo{
	func(foo *samplev1alpha1.Foo) *samplev1alpha1.Foo { return foo },
	func(*samplev1alpha1.Foo) *samplev1alpha1.Foo { return nil },
	changed(func(foo *samplev1alpha1.Foo) {
		WithChildName("older")(foo)
		foo.Generation = 2
	}),
	changed(func(foo *samplev1alpha1.Foo) { foo.Spec.Replicas, foo.Generation = new(int32(7)), 2 }),
	changed(func(foo *samplev1alpha1.Foo) { foo.UID, foo.Status = "uid-new", samplev1alpha1.FooStatus{} }),
	changed(BeingDeleted),
	changed(func(foo *samplev1alpha1.Foo) { foo.Status = olderStatus() }),
}

// The changes of a child that the caches have not seen.
var childNews = []func(child Object) Object{
	func(child Object) Object { return child },
	func(Object) Object { return nil },
	changed(func(child Object) { child.SetOwnerReferences(nil) }),
	changed(func(child Object) { child.SetOwnerReferences(owners[ownerOtherFoo]) }),
	changed(func(child Object) { child.SetOwnerReferences(owners[ownerThisFoo]) }),
	changed(Terminating),
	changed(func(child Object) {
		child.SetUID("uid-again")
		child.SetOwnerReferences(nil)
		child.SetAnnotations(nil)
	}),
	changed(func(child Object) {
		child.SetAnnotations(map[string]string{samplev1alpha1.AnnotationAdoptBy: "b", "team": "b"})
	}),
}

// changed changes an object in a newer version.
func changed[T Object](change func(T)) func(T) T {
	return func(object T) T {
		object.SetResourceVersion("30")
		change(object)
		return object
	}
}

// Like returns an object of a kind with the metadata and the conditions of a Foo, which asks
// for children of the same name; for the kind Foo, that Foo. It returns nil for nil.
func Like(o *OwnerRow, foo *samplev1alpha1.Foo) (like Object) {
	if foo == nil {
		return nil
	}
	if o == FooOwner {
		like = foo
	} else {
		size := int32(1)
		if foo.Spec.Replicas != nil {
			size = *foo.Spec.Replicas
		}
		like = o.New(foo.Name, Primary.Name(foo), size)
		reflect.ValueOf(like).Elem().FieldByName("ObjectMeta").Set(reflect.ValueOf(*foo.ObjectMeta.DeepCopy()))
		status, err := json.Marshal(&foo.Status)
		if err == nil {
			err = json.Unmarshal(status, like.(interface{ GetStatus() any }).GetStatus())
		}
		if err != nil {
			panic(err)
		}
	}
	for _, kind := range o.Kinds {
		kind.Ask(like)
	}
	return like
}

// ofKind returns references to Foos as references to the owners of a kind.
func ofKind(child *Kind, refs []metav1.OwnerReference) []metav1.OwnerReference {
	changed := slices.Clone(refs)
	for i := range changed {
		if changed[i].Kind == FooKind.Kind {
			changed[i].Kind = child.Owner().Kind.Kind
		}
	}
	return changed
}
