// SPDX-License-Identifier: Apache-2.0

// The cases of the fuzz targets: what a Foo, its status and its children can be like.

package footest

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

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

// olderStatus returns the status of an earlier spec, with another condition of somebody
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
	changedFoo(func(foo *samplev1alpha1.Foo) {
		WithChildName("older")(foo)
		foo.Generation = 2
	}),
	changedFoo(func(foo *samplev1alpha1.Foo) { foo.Spec.Replicas, foo.Generation = new(int32(7)), 2 }),
	changedFoo(func(foo *samplev1alpha1.Foo) { foo.UID, foo.Status = "uid-new", samplev1alpha1.FooStatus{} }),
	changedFoo(BeingDeleted),
	changedFoo(func(foo *samplev1alpha1.Foo) { foo.Status = olderStatus() }),
}

func changedFoo(change func(*samplev1alpha1.Foo)) func(*samplev1alpha1.Foo) *samplev1alpha1.Foo {
	return func(foo *samplev1alpha1.Foo) *samplev1alpha1.Foo {
		foo.ResourceVersion = "30"
		change(foo)
		return foo
	}
}

// The changes of a child that the caches have not seen.
var childNews = []func(child Object) Object{
	func(child Object) Object { return child },
	func(Object) Object { return nil },
	changedChild(func(child Object) { child.SetOwnerReferences(nil) }),
	changedChild(func(child Object) { child.SetOwnerReferences(owners[ownerOtherFoo]) }),
	changedChild(func(child Object) { child.SetOwnerReferences(owners[ownerThisFoo]) }),
	changedChild(terminating),
	changedChild(func(child Object) {
		child.SetUID("uid-again")
		child.SetOwnerReferences(nil)
		child.SetAnnotations(nil)
	}),
	changedChild(func(child Object) {
		child.SetAnnotations(map[string]string{samplev1alpha1.AnnotationAdoptBy: "b", "team": "b"})
	}),
}

func changedChild(change func(Object)) func(Object) Object {
	return func(child Object) Object {
		child.SetResourceVersion("30")
		change(child)
		return child
	}
}

func terminating(child Object) {
	deleted := Earlier
	child.SetDeletionTimestamp(&deleted)
	child.SetFinalizers([]string{metav1.FinalizerDeleteDependents})
}
