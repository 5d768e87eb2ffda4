// SPDX-License-Identifier: Apache-2.0

// What the controller writes, and what someone with its token may try, which the policy
// must refuse.

package policy

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/pkg/reconcile/plan"
	testrows "example.com/sample-controller/pkg/reconcile/reconciletest/rows"
	"example.com/sample-controller/test/footest"
)

func TestTheShippedPolicies(t *testing.T) {
	s := newServer(t, "")
	for _, r := range rows {
		t.Run(r.Kind, func(t *testing.T) { r.testPolicy(t, s) })
	}
}

// testPolicy tests what the policy of a kind does with what the controller writes, and with what someone
// with its token may try.
func (r *row) testPolicy(t *testing.T, s *server) {
	for what, test := range map[string]func(t *testing.T, s *server){
		"creates": r.testCreates, "repairs": r.testRepairs, "adoptions": r.testAdoptions, "deletes": r.testDeletes,
		"fields of new children": r.testFieldsOfNewChildren, "fields of children": r.testFieldsOfChildren, "attempts": r.testAttempts,
	} {
		t.Run(what, func(t *testing.T) { test(t, s) })
	}
}

// Nothing of a new child may be other than the controller makes it, except for what admission may add. The test
// sets each field that the kind has, one at a time.
func (r *row) testFieldsOfNewChildren(t *testing.T, s *server) {
	foo := r.wanting()[0]
	desired := stored[object](t, r.Desired(foo, nil, r.seenBy(foo)))
	fields, mayVary := fieldsOf(t, desired), r.variesWith(t, func(foo plan.Owner) object { return r.Desired(foo, nil, r.seenBy(foo)) })
	tried := 0
	walk(fieldsOf(t, r.random(t, foo, full)), nil, func(at path, value any) {
		if another(value) == nil || isSystems(at) {
			return
		}
		changed, ok := r.read(t, with(fields, at, value))
		switch {
		case !ok:
		case isRefused(t, s.create(t, changed)):
			tried++
			isFree := r.isFree(at, value) && !slices.Contains(at, any("initContainers")) // a new one is refused as a whole
			if isFree || r.isChosen(t, at) {
				t.Errorf("%v may not be %v", at, value)
			}
		case !r.mayAdmit(at, value) && !mayVary(at) && !r.isChosen(t, at) && !reflect.DeepEqual(fieldsOf(t, desired), fieldsOf(t, changed)):
			t.Errorf("%v may be %v", at, value)
		}
	})
	atLeast(t, tried, 3)
}

// isFree reports whether the policy must let be that the value at a path becomes another, or nil, and
// mayAdmit whether it may.
func (r *row) isFree(at path, to any) bool {
	if at[0] == "metadata" {
		return isFree(reflect.TypeFor[metav1.ObjectMeta](), at[1:], to)
	}
	return r.admits != nil && isFree(r.admits, at, to)
}

func (r *row) mayAdmit(at path, to any) bool {
	return r.isFree(at, to) || r.admits != nil && isHardened(at, to)
}

// Nothing of a Foo's child may be changed except what the Foo owns or admission may add. The test changes and
// removes each field of a child in which every field is set, one at a time, and sets each to
// the value of a new child.
func (r *row) testFieldsOfChildren(t *testing.T, s *server) {
	foo := r.wanting()[0]
	tried := 0
	try := r.trying(t, s, foo, full, &tried)
	walk(try.fields, nil, func(at path, value any) {
		if to := another(value); to != nil {
			try.update("changed", at, to)
		}
		try.update("removed", at, nil)
	})
	atLeast(t, tried, 10)
	for seed := range uint64(20) { // some have labels, selectors and the like in the way
		try := r.trying(t, s, foo, seed, &tried)
		walk(fieldsOf(t, stored[object](t, r.Desired(foo, nil, r.seenBy(foo)))), nil, func(at path, value any) {
			if !r.owns(t, foo, at) {
				try.update("set to what a Foo asks for", at, value)
			}
		})
	}
}

// owns reports whether the Foo owns the field at a path, outside of lists, and so may restore it. In some
// children it does not: a label that the selector excludes.
func (r *row) owns(t *testing.T, foo plan.Owner, at path) bool {
	t.Helper()
	if slices.ContainsFunc(at, func(key any) bool { _, isIndex := key.(int); return isIndex }) {
		return false
	}
	desired := stored[object](t, r.Desired(foo, nil, r.seenBy(foo)))
	child, ok := r.read(t, with(fieldsOf(t, desired), at, nil))
	if !ok || reflect.DeepEqual(child, desired) {
		return false
	}
	r.SetOwned(child, foo, r.seenBy(foo))
	return reflect.DeepEqual(child, desired)
}

// trial is a Foo's child, of which update changes a field.
type trial struct {
	fields map[string]any
	update func(did string, at path, to any)
}

// trying returns a trial of a child with random content, which counts the refusals.
func (r *row) trying(t *testing.T, s *server, foo plan.Owner, seed uint64, refused *int) trial {
	t.Helper()
	child := r.random(t, foo, seed)
	r.SetOwned(child, foo, r.seenBy(foo))
	child, _ = r.read(t, fieldsOf(t, child)) // without what no client can send
	fields, mayVary := fieldsOf(t, child), r.variesWith(t, func(other plan.Owner) object {
		repaired := child.DeepCopyObject().(object)
		r.SetOwned(repaired, other, r.seenBy(other))
		return repaired
	})
	if err := s.update(t, child, child); err != nil {
		t.Fatalf("an update that changes nothing: %v", err)
	}
	return trial{fields, func(did string, at path, to any) {
		if isSystems(at) {
			return
		}
		changed, ok := r.read(t, with(fields, at, to))
		if !ok {
			return
		}
		answer := s.update(t, child, changed)
		switch {
		case isBroken(answer): // the API server does not store an object without this field
		case isRefused(t, answer):
			*refused++
			if r.isFree(at, to) {
				t.Errorf("%v may not be %s", at, did)
			}
		case !r.mayAdmit(at, to) && !mayVary(at) && !reflect.DeepEqual(fields, fieldsOf(t, changed)):
			t.Errorf("%v may be %s", at, did)
		}
	}}
}

// isSystems reports whether a field is none that an update can set: the status, and what
// the API server sets itself. The API server refuses another name.
func isSystems(at path) bool {
	if at[0] == "status" {
		return true
	}
	system := sets.New("name", "namespace", "uid", "resourceVersion", "generation", "creationTimestamp", "managedFields")
	key, _ := at[min(1, len(at)-1)].(string)
	return at[0] == "metadata" && (len(at) == 1 || system.Has(key))
}

// read returns an object with fields as the API server stores it, unless they can't be
// read.
func (r *row) read(t *testing.T, fields any) (object, bool) {
	t.Helper()
	child := object(r.Empty())
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields.(map[string]any), child); err != nil {
		return child, false
	}
	return stored(t, child), true
}

// testAttempts makes the attempts of any kind, and those that a row lists.
func (r *row) testAttempts(t *testing.T, s *server) {
	foo := r.wanting()[0]
	desired, own, nobodys := r.Desired(foo, nil, r.seenBy(foo)), r.own(t, foo), r.own(t, foo)
	r.orphan(nobodys, foo)
	adopted := r.DesiredUpdate(nobodys, foo, r.seenBy(foo))
	create := func(sent object) error { return s.create(t, sent) }
	update := func(sent object) error { return s.update(t, own, sent) }
	adopt := func(sent object) error { return s.update(t, nobodys, sent) }
	r.try(t, "create", anyCreates, object(desired), create)
	r.try(t, "create", r.creates, object(desired), create)
	r.try(t, "update", anyUpdates, own, update)
	r.try(t, "update", r.updates, own, update)
	r.try(t, "adopt", anyAdoptions, object(adopted), adopt)
	r.try(t, "adopt", r.adoptions, object(adopted), adopt)
}

// try makes attempts, each of which changes a copy of what the controller would write.
func (r *row) try(t *testing.T, verb string, attempts []attempt[object], from object, write func(sent object) error) {
	t.Helper()
	for _, a := range attempts {
		sent := from.DeepCopyObject().(object)
		a.change(sent)
		a.refusal = strings.ReplaceAll(a.refusal, "a Foo", "a "+r.OwnerKind.Name)
		a.check(t, verb, write(sent))
	}
}

// check compares the answer to an attempt.
func (a attempt[T]) check(t *testing.T, verb string, answer error) {
	t.Helper()
	switch {
	case a.refusal == "" && answer != nil:
		t.Errorf("%s, %s: refused: %v", verb, a.what, answer)
	case a.refusal != "" && !isRefused(t, answer):
		t.Errorf("%s, %s: accepted, want a refusal with %q", verb, a.what, a.refusal)
	case a.refusal != "" && !strings.Contains(answer.Error(), a.refusal):
		t.Errorf("%s, %s: refused with %v\nwant %q", verb, a.what, answer, a.refusal)
	}
}

// isRefused reports whether the policy refuses a write with one of its messages. An
// expression that can't be evaluated also refuses the write, but shows nothing.
func isRefused(t *testing.T, answer error) bool {
	t.Helper()
	if isBroken(answer) {
		t.Fatalf("the policy can't be evaluated: %v", answer)
	}
	return answer != nil
}

func isBroken(answer error) bool {
	return answer != nil && !strings.Contains(answer.Error(), "denied request: sample-controller may ")
}

func atLeast(t *testing.T, tried, fields int) {
	t.Helper()
	if tried < fields {
		t.Errorf("only %d fields were tried", tried)
	}
	t.Logf("%d fields tried", tried)
}

func (r *row) testCreates(t *testing.T, s *server) {
	for _, foo := range r.wanting() {
		if err := s.create(t, r.Desired(foo, nil, r.seenBy(foo))); err != nil {
			t.Errorf("for the Foo %s: %v", foo.GetName(), err)
		}
	}
}

func (r *row) testRepairs(t *testing.T, s *server) {
	r.testUpdates(t, s, func(object) {})
	r.testUpdates(t, s, changeOwner(0, func(ref *metav1.OwnerReference) { ref.APIVersion = "samplecontroller.k8s.io/v0alpha1" })) // an earlier release's
}

// testUpdates changes children with random content, and sends the patches that the
// controller then wants to make.
func (r *row) testUpdates(t *testing.T, s *server, change func(object)) {
	t.Helper()
	updates := 0
	for seed := range uint64(100) {
		for _, foo := range r.wanting() {
			child := r.random(t, foo, seed)
			change(child)
			update := r.DesiredUpdate(child, foo, r.seenBy(foo))
			if update == nil {
				continue
			}
			updates++
			if err := s.patch(t, child, r.patched(t, child, update)); err != nil {
				t.Fatalf("for the Foo %s, after %s: %v", foo.GetName(), r.DescribeDrift(child, foo, r.seenBy(foo)), err)
			}
		}
	}
	if updates == 0 {
		t.Error("no child with random content had drifted")
	}
}

// patched returns what the API server makes of the patch that is sent for an update.
func (r *row) patched(t *testing.T, child, update object) object {
	t.Helper()
	patchType, patch, err := r.Patch(child, update)
	footest.Must(t, err)
	patched, err := testrows.Patched(child, patchType, patch)
	footest.Must(t, err)
	return patched.(object)
}

func (r *row) testAdoptions(t *testing.T, s *server) {
	for _, foo := range r.wanting() {
		r.testUpdates(t, s, func(child object) { r.orphan(child, foo) })
	}
}

// orphan makes a child one that a Foo owns among others and does not control, and that
// asks this Foo to adopt it.
func (r *row) orphan(child object, foo plan.Owner) {
	kind := r.OwnerKind.Name
	child.SetOwnerReferences([]metav1.OwnerReference{ownerRef(kind, foo.GetName()), ownerRef("ConfigMap", "other"), ownerRef(kind, "bar")})
	child.SetAnnotations(map[string]string{"team": "blue", samplev1alpha1.AnnotationAdoptBy: foo.GetName()})
}

// ownerRef returns a reference to an owner that is not the controller.
func ownerRef(kind, name string) metav1.OwnerReference {
	ref := metav1.OwnerReference{APIVersion: "v1", Kind: kind, Name: name, UID: types.UID("uid-" + name)}
	if kind != "ConfigMap" {
		ref.APIVersion = samplev1alpha1.SchemeGroupVersion.String()
	}
	return ref
}

// The controller deletes a Foo's child in the background, so that what the child owns is
// deleted, too.
func (r *row) testDeletes(t *testing.T, s *server) {
	foo := r.wanting()[0]
	own, nobodys, anothers := r.own(t, foo), r.own(t, foo), r.own(t, foo)
	r.orphan(nobodys, foo)
	anothers.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "other.example.com/v1", Kind: r.OwnerKind.Name, Name: "foo", UID: "uid-foo", Controller: new(true)}})
	if err := s.delete(t, own, metav1.DeletePropagationBackground); err != nil {
		t.Errorf("the child of a Foo: %v", err)
	}
	for what, err := range map[string]error{
		"the child of a Foo, without what it owns": s.delete(t, own, metav1.DeletePropagationOrphan),
		"the child of nobody":                      s.delete(t, nobodys, metav1.DeletePropagationBackground),
		"the child of a Foo of another group":      s.delete(t, anothers, metav1.DeletePropagationBackground),
	} {
		if !isRefused(t, err) {
			t.Errorf("%s may be deleted", what)
		}
	}
}
