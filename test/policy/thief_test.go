// SPDX-License-Identifier: Apache-2.0

// What somebody with the controller's token may try, which the policy must refuse.

package policy

import (
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
)

// full is the seed of the children in which all fields are set. That of a workload has
// the container nginx.
const full = 0

// Nothing of a new child may be other than the controller makes it. The test sets each
// field that the kind has, one at a time.
func TestAThiefCreatesOnlyWhatFoosAskFor(t *testing.T) {
	eachKind(t, kind.testFieldsOfNewChildren)
}

func (r *row[T]) testFieldsOfNewChildren(t *testing.T, s *server) {
	foo := r.wanting()[0]
	desired := stored(t, r.Desired(foo, r.seenBy(foo)))
	fields, asked := fieldsOf(t, desired), r.pattern(t)
	tried := 0
	walk(fieldsOf(t, r.random(t, foo, full, 0)), nil, func(at path, value any) {
		if another(value) == nil || isSystems(at) {
			return
		}
		changed, ok := r.read(t, with(fields, at, value))
		switch {
		case !ok:
		case isRefused(t, s.create(t, changed)):
			tried++
		case !asked.isFreeAt(at) && !reflect.DeepEqual(fieldsOf(t, desired), fieldsOf(t, changed)):
			t.Errorf("%v may be %v", at, value)
		}
	})
	atLeast(t, tried, 3)
}

// Nothing of a Foo's child may be changed except what the Foo owns. The test changes and
// removes each field of a child in which every field is set, one at a time.
func TestAThiefChangesOnlyOwnedFields(t *testing.T) {
	eachKind(t, kind.testFieldsOfChildren)
}

func (r *row[T]) testFieldsOfChildren(t *testing.T, s *server) {
	foo := r.wanting()[0]
	child := r.random(t, foo, full, 0)
	r.SetOwned(child, foo, r.seenBy(foo))
	child, _ = r.read(t, fieldsOf(t, child)) // without what no client can send
	fields := fieldsOf(t, child)
	if err := s.update(t, child, child); err != nil {
		t.Fatalf("an update that changes nothing: %v", err)
	}
	tried := 0
	try := func(did string, at path, to any) {
		changed, ok := r.read(t, with(fields, at, to))
		if !ok {
			return
		}
		answer := s.update(t, child, changed)
		switch {
		case isBroken(answer): // the API server does not store an object without this field
		case isRefused(t, answer):
			tried++
		case !r.ownsAllIn(t, child, changed):
			t.Errorf("%s may be %s", at.name(fields), did)
		}
	}
	walk(fields, nil, func(at path, value any) {
		if isSystems(at) {
			return
		}
		if to := another(value); to != nil {
			try("changed", at, to)
		}
		try("removed", at, nil)
	})
	atLeast(t, tried, 10)
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
func (r *row[T]) read(t *testing.T, fields any) (T, bool) {
	t.Helper()
	child := r.Empty()
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields.(map[string]any), child); err != nil {
		return child, false
	}
	return stored(t, child), true
}

// ownsAllIn reports whether two states of a child differ only in owned fields that may
// have any value, if at all.
func (r *row[T]) ownsAllIn(t *testing.T, before, after T) bool {
	t.Helper()
	return r.ownedPart(t).allows(fieldsOf(t, before), fieldsOf(t, after))
}

// TestAThiefsAttempts makes the attempts of any kind, and those that a row lists.
func TestAThiefsAttempts(t *testing.T) {
	eachKind(t, kind.testAttempts)
}

func (r *row[T]) testAttempts(t *testing.T, s *server) {
	foo := r.wanting()[0]
	desired, own, nobodys := r.Desired(foo, r.seenBy(foo)), r.own(t, foo), r.own(t, foo)
	orphan(nobodys, foo.Name)
	adopted := r.DesiredUpdate(nobodys, foo, r.seenBy(foo))
	create := func(sent object) error { return s.create(t, sent) }
	update := func(sent object) error { return s.update(t, own, sent) }
	adopt := func(sent object) error { return s.update(t, nobodys, sent) }
	try(t, "create", anyCreates, object(desired), create)
	try(t, "create", r.creates, desired, create)
	try(t, "update", anyUpdates, object(own), update)
	try(t, "update", r.updates, own, update)
	try(t, "adopt", anyAdoptions, object(adopted), adopt)
	try(t, "adopt", r.adoptions, adopted, adopt)
}

// try makes attempts, each of which changes a copy of what the controller would write.
func try[T object](t *testing.T, verb string, attempts []attempt[T], from T, write func(sent object) error) {
	t.Helper()
	for _, a := range attempts {
		sent := from.DeepCopyObject().(T)
		a.change(sent)
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
