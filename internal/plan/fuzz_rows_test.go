// SPDX-License-Identifier: Apache-2.0

// FuzzOwnedFields: what a row owns, for arbitrary objects of every row.

package plan

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/api/equality"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/test/footest"
)

// rows are the rows of the table, in its order. The fuzz targets run for each.
var rows = []testRow{
	rowOf(shipped),
}

// testRow is a row of any type.
type testRow interface {
	resource() string
	decide(t *testing.T, w *footest.FuzzWorld)
	trim(t *testing.T, w *footest.FuzzWorld)
	owned(w *footest.FuzzWorld) []string
	created(t *testing.T)
}

// row is a row, and what the tests know of its kind.
type row[T Object] struct {
	*Child[T]

	kind *footest.Kind
}

func rowOf[T Object](child Child[T]) row[T] { return row[T]{&child, footest.KindOf(child.Empty())} }

func (r row[T]) resource() string { return r.Resource.Resource }

func TestEveryKindIsFuzzed(t *testing.T) {
	var want, got []string
	for _, kind := range footest.Kinds {
		want = append(want, kind.Resource.Resource)
	}
	for _, row := range rows {
		got = append(got, row.resource())
	}
	footest.ExpectEqual(t, "the list of rows in this file", want, got)
}

// seenIn returns the children of the earlier rows, as a Foo asks.
func (r row[T]) seenIn(foo *samplev1alpha1.Foo) Seen {
	seen := Seen{}
	for _, kind := range footest.Kinds[:slices.Index(footest.Kinds, r.kind)] {
		if kind.Wanted(foo) {
			seen[kind.Kind] = kind.New(foo)
		}
	}
	return seen
}

// objectsIn returns the objects of the row's type.
func (r row[T]) objectsIn(w *footest.FuzzWorld) []T {
	var objects []T
	for _, child := range w.Children {
		if object, ok := child.(T); ok {
			objects = append(objects, object)
		}
	}
	return objects
}

// FuzzOwnedFields checks the rules of owned fields on every row and any object.
func FuzzOwnedFields(f *testing.F) {
	footest.AddSeeds(f, footest.FuzzSeeds)
	f.Fuzz(func(t *testing.T, script, noise []byte, words string) {
		w := footest.NewFuzzWorld(t, script, noise, words)
		for _, row := range rows {
			for _, problem := range row.owned(w) {
				t.Errorf("the row of %s: %s", row.resource(), problem)
			}
		}
	})
}

// owned returns which rules the row breaks: it takes what it was given for read-only; what
// it sets, and nothing else, is drift; it takes nothing from others; setting it twice
// changes nothing; and what the caches keep leads to the same decision.
func (r row[T]) owned(w *footest.FuzzWorld) []string {
	var problems []string
	for _, object := range r.objectsIn(w) {
		seen := r.seenIn(w.Foo)
		problems = append(problems, r.ownedOf(w.Foo, object, seen)...)
		problems = append(problems, r.ownedOf(w.Foo, object, Seen{})...)
		wanted := sameAs(object)
		r.SetOwned(wanted, w.Foo, seen)
		if differs := r.kind.Differs(wanted, w.Foo); differs != "" {
			problems = append(problems, fmt.Sprintf("%s: with the owned fields set it %s", object.GetName(), differs))
		}
	}
	return problems
}

func (r row[T]) ownedOf(foo *samplev1alpha1.Foo, found T, seen Seen) (problems []string) {
	report := func(format string, args ...any) {
		problems = append(problems, fmt.Sprintf("%s: ", found.GetName())+fmt.Sprintf(format, args...))
	}
	before := sameAs(found)
	decided := r.Decide(foo, found, []T{found}, seen)
	r.DesiredUpdate(found, foo, seen)
	kept := r.kept(found)
	fromCache := r.Decide(foo, kept, []T{kept}, seen)
	if outcome := r.Outcome(foo, Result[T]{Action: decided.Action, Named: found, Child: found}); outcome.Report != nil {
		outcome.Report(&samplev1alpha1.FooStatus{})
	}
	if !reflect.DeepEqual(before, found) {
		report("an object that was only read has changed")
		return problems
	}
	if decided.Action != fromCache.Action || decided.Drift != fromCache.Drift || len(decided.Obsolete) != len(fromCache.Obsolete) {
		report("the decision is %s (%s), by what the cache keeps %s (%s)", decided.Action, decided.Drift, fromCache.Action, fromCache.Drift)
	}
	if !footest.BelongsTo(found, foo) {
		return problems
	}
	if r.IsReady(found) != r.IsReady(kept) {
		report("it is ready: %v, by what the cache keeps: %v", r.IsReady(found), r.IsReady(kept))
	}
	wanted := sameAs(found)
	r.SetOwned(wanted, foo, seen)
	if drift := r.DescribeDrift(found, foo, seen); (drift == "") != equality.Semantic.DeepEqual(found, wanted) {
		report("its drift is %q, but setting the owned fields changes it: %v", drift, !equality.Semantic.DeepEqual(found, wanted))
	}
	if taken := r.kind.DescribeTaken(found, wanted, foo); taken != "" {
		report("fields of others are set (-before +after):\n%s", taken)
	}
	again := sameAs(wanted)
	r.SetOwned(again, foo, seen)
	if !reflect.DeepEqual(wanted, again) {
		report("setting the owned fields twice changes it twice")
	}
	return problems
}

// kept returns what the cache keeps of an object.
func (r row[T]) kept(found T) T {
	kept, err := r.Transform(found)
	if err != nil {
		panic(err)
	}
	return kept.(T)
}

func sameAs[T Object](object T) T { return object.DeepCopyObject().(T) }
