// SPDX-License-Identifier: Apache-2.0

// Tests of every row of the table, and what other tests need of rows of any type.

package main

import (
	"reflect"
	"slices"
	"testing"
	"testing/synctest"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	"example.com/sample-controller/internal/memory"
	"example.com/sample-controller/internal/plan"
	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/test/footest"
)

func TestAFooGetsAChildOfEachKind(t *testing.T) {
	for _, owner := range footest.Owners {
		synctest.Test(t, func(t *testing.T) {
			foo := asking(owner)
			f := newFixtureOfAllKinds(t, foo)
			f.syncUntilIdle(t)
			for _, kind := range owner.Kinds {
				footest.CheckWanted(t, f.child(t, kind), foo)
			}
		})
	}
}

func TestDriftOfEachKindIsRepaired(t *testing.T) {
	forEachKind(t, func(t *testing.T, kind *footest.Kind) {
		foo := asking(kind.Owner())
		drifted := kind.Stored(foo)
		kind.Drift(drifted, nil)
		kind.Edit(drifted, "1")
		kind.Default(drifted)
		f := newFixtureOfAllKinds(t, worldOf(foo, drifted)...)
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
		foo := asking(kind.Owner())
		foreign := kind.Created(kind.ForeignNamed(kind.Name(foo)))
		f := newFixtureOfAllKinds(t, worldOf(foo, foreign)...)
		f.syncUntilIdle(t)
		footest.ExpectEqual(t, "the object of somebody else", foreign, f.child(t, kind))
		after, err := f.fooClient.Tracker().Get(kind.Owner().Resource, footest.Namespace, "a")
		footest.Must(t, err)
		footest.ExpectEqual(t, "the reason", kind.Kind+"Conflict", footest.ConditionOf(after.(footest.Object)).Reason)
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
	for _, owner := range footest.Owners {
		for _, kind := range owner.Kinds {
			t.Run(kind.Kind, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { test(t, kind) })
			})
		}
	}
}

// asking returns the Foo "a", or an object of another kind of the program, that asks for a child
// of each kind.
func asking(owner *footest.OwnerRow) footest.Object { return owner.Like(footest.Foo("a")) }

// worldOf returns a Foo and its children, with one of them replaced.
func worldOf(foo, other footest.Object) []runtime.Object {
	world := []runtime.Object{foo, other}
	for _, kind := range footest.OwnerOf(foo).Kinds {
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
	f.setTable(f.allKinds...)
	return f
}

// syncUntilIdle syncs the Foo "a" until a sync writes nothing.
func (f *fixture) syncUntilIdle(t *testing.T) {
	t.Helper()
	for range 2 + len(f.children) {
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
	object, err := f.kubeClient.Tracker().Get(kind.Resource, footest.Namespace, kind.Name(asking(kind.Owner())))
	footest.Must(t, err)
	return object.(footest.Object)
}

// missDeletion tells the handler that an object is gone of which only the key is known.
func (k *childAPI) missDeletion(key string) {
	k.deleted(cache.DeletedObject[plan.Object]{FinalStateUnknown: &cache.DeletedFinalStateUnknown{Key: key}})
}

func (k *childAPI) namesControlledBy(foo *samplev1alpha1.Foo) []string {
	return footest.NamesOf(k.controlledBy(foo))
}

// remembers reports whether something is remembered of a Foo.
func (f *fixture) remembers(name string) bool {
	return !reflect.DeepEqual(f.memory.Of(footest.Foo(name)), new(memory.Map).Of(footest.Foo(name)))
}

// wrote makes the controller remember a write for a Foo.
func (f *fixture) wrote(foo *samplev1alpha1.Foo, store storeAt, version string) {
	known := f.memory.Of(foo)
	known.Writes.Add(store, version, f.clock.Now())
	f.memory.Keep(footest.KeyOf(foo), known)
}

// onlyFirst leaves of the table the first row, that of footest.Primary, which most tests are
// about, and returns it. The tests in this file are about all rows.
func (c *Controller) onlyFirst() *childAPI {
	c.setTable(c.children[0])
	return c.children[0]
}

// kindOf returns a kind of the program.
func kindOf(owner *footest.OwnerRow) *plan.OwnerKind {
	kinds := plan.Kinds(footest.DefaultImage)
	return kinds[slices.IndexFunc(kinds, func(kind *plan.OwnerKind) bool { return kind.Resource == owner.Resource })]
}

// setTable makes some kinds the whole table.
func (c *Controller) setTable(kinds ...*childAPI) {
	c.children, c.kind.Children = kinds, nil
	for _, kind := range kinds {
		c.kind.Children = append(c.kind.Children, kind.row)
	}
}

// fillCache replaces the contents of the cache by the objects of the kind, transformed.
func (k *childAPI) fillCache(children []footest.Object, version string) error {
	var trimmed []any
	for _, child := range children {
		if k.takes(child) {
			kept, err := k.row.Transform(child.DeepCopyObject())
			if err != nil {
				return err
			}
			trimmed = append(trimmed, kept)
		}
	}
	return k.cache.Replace(trimmed, version)
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
	foo, exists, err := f.cache.GetByKey(footest.Namespace + "/" + name)
	footest.Must(t, err)
	if !exists {
		t.Fatalf("the cache has no Foo %s", name)
	}
	return foo.(*samplev1alpha1.Foo)
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
