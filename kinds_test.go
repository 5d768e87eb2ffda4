// SPDX-License-Identifier: Apache-2.0

// Tests of every row of the table, and what other tests need of rows of any type.

package main

import (
	"slices"
	"testing"
	"testing/synctest"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/test/footest"
	"example.com/sample-controller/tools/preview"
)

// described says what a row must have in common with its row in test/footest.
type described interface{ describe() string }

func (k *kind[T]) describe() string { return describeRow(k.Kind, k.Resource.String(), k.Blocks) }

func describeRow(kind, resource string, blocks bool) string {
	if blocks {
		return kind + " " + resource + ", which blocks the later ones"
	}
	return kind + " " + resource
}

func TestTheTableIsThatOfTheTests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var want, got, previewed []string
		for _, row := range preview.Table(footest.DefaultImage) {
			previewed = append(previewed, describeRow(row.Kind, row.Resource.String(), row.Blocks))
		}
		for _, kind := range newFixture(t).allKinds {
			want = append(want, kind.(described).describe())
		}
		for _, kind := range footest.Kinds {
			got = append(got, describeRow(kind.Kind, kind.Resource.String(), kind.Blocks))
		}
		footest.ExpectEqual(t, "the list of rows in test/footest/kinds.go", want, got)
		footest.ExpectEqual(t, "the list of rows in tools/preview/table.go", want, previewed)
	})
}

func TestAFooGetsAChildOfEachKind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		foo := askingFoo()
		f := newFixtureOfAllKinds(t, foo)
		f.syncUntilIdle(t)
		for _, kind := range footest.Kinds {
			footest.CheckWanted(t, f.child(t, kind), foo)
		}
	})
}

func TestDriftOfEachKindIsRepaired(t *testing.T) {
	forEachKind(t, func(t *testing.T, kind *footest.Kind) {
		foo, drifted := askingFoo(), kind.Stored(askingFoo())
		kind.Drift(drifted, nil)
		kind.Edit(drifted, "1")
		kind.Default(drifted)
		f := newFixtureOfAllKinds(t, childrenOf(foo, drifted)...)
		f.syncUntilIdle(t)
		repaired := f.child(t, kind)
		footest.CheckWanted(t, repaired, foo)
		footest.CheckOthersKept(t, drifted, repaired, foo)
		if verbs, _ := f.writes(); !slices.Contains(verbs, "patch "+kind.Resource.Resource) {
			t.Errorf("the writes are %v", verbs)
		}
	})
}

func TestATakenNameOfEachKindIsAConflict(t *testing.T) {
	forEachKind(t, func(t *testing.T, kind *footest.Kind) {
		foo := askingFoo()
		foreign := kind.Created(kind.ForeignNamed(kind.Name(foo)))
		f := newFixtureOfAllKinds(t, childrenOf(foo, foreign)...)
		f.syncUntilIdle(t)
		footest.ExpectEqual(t, "the object of somebody else", foreign, f.child(t, kind))
		footest.ExpectEqual(t, "the reason", kind.Kind+"Conflict", footest.ConditionOf(f.storedFoo(t, "a")).Reason)
	})
}

// recordingT records the message of a failure.
type recordingT struct {
	testing.TB

	message string
}

func (t *recordingT) Error(args ...any) { t.message = args[0].(string) }

func forEachKind(t *testing.T, test func(t *testing.T, kind *footest.Kind)) {
	t.Helper()
	for _, kind := range footest.Kinds {
		t.Run(kind.Kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { test(t, kind) })
		})
	}
}

// askingFoo returns a Foo that asks for a child of each kind.
func askingFoo() *samplev1alpha1.Foo {
	foo := footest.Foo("a")
	for _, kind := range footest.Kinds {
		kind.Ask(foo)
	}
	return foo
}

// childrenOf returns a Foo and its children, with one of them replaced.
func childrenOf(foo *samplev1alpha1.Foo, other footest.Object) []runtime.Object {
	world := []runtime.Object{foo, other}
	for _, kind := range footest.Kinds {
		if !kind.Is(other) {
			world = append(world, kind.Stored(foo))
		}
	}
	return world
}

// newFixtureOfAllKinds does the same as newFixture, with the whole table.
func newFixtureOfAllKinds(t *testing.T, world ...runtime.Object) *fixture {
	t.Helper()
	f := newFixture(t, world...)
	f.children = f.allKinds
	return f
}

// syncUntilIdle syncs the Foo "a" until a sync writes nothing.
func (f *fixture) syncUntilIdle(t *testing.T) {
	t.Helper()
	for range 2 + len(footest.Kinds) {
		before, _ := f.writes()
		footest.Must(t, f.syncHandler(f.ctx, footest.KeyOf(footest.Foo("a"))))
		synctest.Wait()
		if after, _ := f.writes(); len(after) == len(before) {
			return
		}
	}
	verbs, _ := f.writes()
	t.Errorf("the syncs do not stop writing: %v", verbs)
}

// child returns the child of a kind that the Foo "a" asks for, from the API server.
func (f *fixture) child(t *testing.T, kind *footest.Kind) footest.Object {
	t.Helper()
	object, err := f.kubeClient.Tracker().Get(kind.Resource, footest.Namespace, kind.Name(askingFoo()))
	footest.Must(t, err)
	return object.(footest.Object)
}

// primaryKind is the row of footest.Primary, whose type the tests do not know.
type primaryKind interface {
	childKind
	foosAskingFor(child cache.ObjectName) []cache.ObjectName
	cachedObjects() []any
	addToCache(child footest.Object) error
	seeUpdate(before, after footest.Object)
	missDeletion(key string)
	namesControlledBy(foo *samplev1alpha1.Foo) []string
	remembersNothing() bool
}

func (k *kind[T]) cachedObjects() []any                   { return k.indexer.List() }
func (k *kind[T]) addToCache(child footest.Object) error  { return k.indexer.Add(child) }
func (k *kind[T]) seeUpdate(before, after footest.Object) { k.updated(before.(T), after.(T)) }

// missDeletion tells the handler that an object is gone of which only the key is known.
func (k *kind[T]) missDeletion(key string) {
	k.deleted(cache.DeletedObject[T]{FinalStateUnknown: &cache.DeletedFinalStateUnknown{Key: key}})
}

func (k *kind[T]) namesControlledBy(foo *samplev1alpha1.Foo) []string {
	return footest.NamesOf(k.controlledBy(foo))
}

func (k *kind[T]) remembersNothing() bool {
	return k.confirmed.Len() == 0 && k.admissionMutations.Len() == 0
}

// onlyPrimary leaves of the table the row of footest.Primary, which most tests are about,
// and returns it. The tests in this file are about all rows.
func onlyPrimary(t *testing.T, controller *Controller) primaryKind {
	t.Helper()
	for _, child := range controller.children {
		if child.resource() == footest.Primary.Resource {
			controller.children = []childKind{child}
			return child.(primaryKind)
		}
	}
	t.Fatalf("the table has no row of the kind %s", footest.Primary)
	return nil
}

// cacheFiller is a row of the table whose cache a test fills.
type cacheFiller interface {
	fillCache(children []footest.Object, version string) error
}

// fillCache replaces the contents of the cache by the objects of the kind, transformed.
func (k *kind[T]) fillCache(children []footest.Object, version string) error {
	var trimmed []any
	for _, child := range children {
		if found, ok := child.(T); ok {
			kept, err := k.Transform(found.DeepCopyObject())
			if err != nil {
				return err
			}
			trimmed = append(trimmed, kept)
		}
	}
	return k.indexer.Replace(trimmed, version)
}

// children is the resource of the children, and these are the writes of them.
var (
	children    = footest.Primary.Resource.Resource
	createChild = "create " + children
	updateChild = "patch " + children
	deleteChild = "delete " + children
	// conflict and failed are the reasons for which a user has to do something.
	conflict = footest.Primary.Kind + "Conflict"
	failed   = footest.Primary.Kind + "Failed"
)

func (f *fixture) createFoo(t *testing.T, foo *samplev1alpha1.Foo) {
	t.Helper()
	f.api.Stamp(foo)
	footest.Must(t, f.fooClient.Tracker().Create(footest.FoosResource, foo, footest.Namespace))
}

func (f *fixture) updateFoo(t *testing.T, foo *samplev1alpha1.Foo) {
	t.Helper()
	f.api.Stamp(foo)
	footest.Must(t, f.fooClient.Tracker().Update(footest.FoosResource, foo, footest.Namespace))
}

func (f *fixture) deleteFoo(t *testing.T, name string) {
	t.Helper()
	footest.Must(t, f.fooClient.Tracker().Delete(footest.FoosResource, footest.Namespace, name))
}

func (f *fixture) updateChild(t *testing.T, child footest.Object) {
	t.Helper()
	f.api.Stamp(child)
	footest.Must(t, f.kubeClient.Tracker().Update(footest.Primary.Resource, child, footest.Namespace))
}

func (f *fixture) deleteChild(t *testing.T, name string) {
	t.Helper()
	footest.Must(t, f.kubeClient.Tracker().Delete(footest.Primary.Resource, footest.Namespace, name))
}

// storedChild returns a child from the API server.
func (f *fixture) storedChild(t *testing.T, name string) footest.Object {
	t.Helper()
	object, err := f.kubeClient.Tracker().Get(footest.Primary.Resource, footest.Namespace, name)
	footest.Must(t, err)
	return object.(footest.Object)
}

// storedFoo returns a Foo from the API server.
func (f *fixture) storedFoo(t *testing.T, name string) *samplev1alpha1.Foo {
	t.Helper()
	object, err := f.fooClient.Tracker().Get(footest.FoosResource, footest.Namespace, name)
	footest.Must(t, err)
	return object.(*samplev1alpha1.Foo)
}

func (f *fixture) cachedFoo(t *testing.T, name string) *samplev1alpha1.Foo {
	t.Helper()
	foo, err := f.foos.Foos(footest.Namespace).Get(name)
	footest.Must(t, err)
	return foo
}

// drift changes all fields of a child that its Foo owns, as another controller does.
func (f *fixture) drift(t *testing.T, name string) {
	t.Helper()
	drifted := f.storedChild(t, name).DeepCopyObject().(footest.Object)
	footest.Drifted(drifted)
	f.updateChild(t, drifted)
}

// settle does to a child what the cluster's own controllers do, until it is at rest.
func (f *fixture) settle(t *testing.T, name string) {
	t.Helper()
	settled := f.storedChild(t, name).DeepCopyObject().(footest.Object)
	for footest.Primary.Advance(settled) {
	}
	f.updateChild(t, settled)
}
