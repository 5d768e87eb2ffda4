// SPDX-License-Identifier: Apache-2.0

// Tests of stale caches, and of Foos that only the cache has.

package main

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"

	"example.com/sample-controller/internal/plan"
	"example.com/sample-controller/test/footest"
)

// These tests control the events between the API server and the caches: some come late,
// twice, or not at all.

// holdWatch replaces the watch of children by the watcher that it returns, to which
// the test sends events.
func holdWatch(f *fixture) *watch.RaceFreeFakeWatcher {
	watcher := watch.NewRaceFreeFake()
	f.kubeClient.PrependWatchReactor(children, func(clienttesting.Action) (bool, watch.Interface, error) {
		return true, watcher, nil
	})
	return watcher
}

func TestLateEventOfAChildLeadsToOneCreate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var watcher *watch.RaceFreeFakeWatcher
		f := newFixtureWith(t, func(f *fixture) { watcher = holdWatch(f) }, footest.Foo("a"))
		defer f.start(2)()
		advance(0)
		f.expectWrites(t, createChild, "update foos/status")

		// The Foo's event has arrived, the child's has not.
		cached := f.cachedFoo(t, "a")
		for range 10 {
			f.updateOwner(cached, cached)
			advance(time.Second)
		}
		f.expectWrites(t)

		watcher.Add(f.storedChild(t, "web"))
		advance(time.Minute)
		f.expectWrites(t)
	})
}

func TestDuplicateEventsCauseNoWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var watcher *watch.RaceFreeFakeWatcher
		f := newFixtureWith(t, func(f *fixture) { watcher = holdWatch(f) }, footest.Foo("a", footest.WithStatus(footest.Settled("a"))), footest.Child("a"))
		defer f.start(2)()
		for range 3 {
			watcher.Modify(footest.Child("a"))
			watcher.Add(footest.Child("a"))
			watcher.Action(watch.Bookmark, footest.Child("a", footest.AtVersion("21")))
		}
		advance(time.Minute)
		f.expectWrites(t)
	})
}

func TestWatchThatIsTooOldIsFollowedByARelist(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var watcher *watch.RaceFreeFakeWatcher
		f := newFixtureWith(t, func(f *fixture) {
			held := watch.NewRaceFreeFake()
			watcher = held
			f.kubeClient.PrependWatchReactor(children, func(clienttesting.Action) (bool, watch.Interface, error) {
				first := held != nil
				answer := held
				held = nil
				return first, answer, nil
			})
		}, footest.Foo("a", footest.WithStatus(footest.Settled("a"))), footest.Child("a"))
		defer f.start(2)()

		// The child is deleted while the watch delivers nothing. Then the watch ends
		// with 410 Gone.
		f.deleteChild(t, "web")
		advance(time.Minute)
		f.expectWrites(t)
		expired := apierrors.NewResourceExpired("too old resource version").Status()
		watcher.Action(watch.Error, &expired)
		advance(time.Minute)
		f.expectChildWrites(t, createChild)
	})
}

func TestFooMadeAgainSeenAsOneUpdateWaitsForTheOldChildToGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, footest.Foo("a", footest.WithStatus(footest.Settled("a"))), footest.Child("a"))
		defer f.start(2)()

		f.updateFoo(t, footest.Foo("a", footest.WithFooUID("uid-new")))
		advance(time.Hour)
		f.expectWrites(t, "update foos/status") // the conflict, once

		f.deleteChild(t, "web") // as the garbage collector does
		advance(0)
		f.expectWrites(t, createChild, "update foos/status")
		if owner := f.storedChild(t, "web").GetOwnerReferences()[0].UID; owner != "uid-new" {
			t.Errorf("the child belongs to %s", owner)
		}
	})
}

func TestSecondFooOfANameTakesOverAtOnceWhenTheFirstGoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, footest.Foo("a"))
		defer f.start(2)()
		advance(0)
		f.expectWrites(t, createChild, "update foos/status")
		f.createFoo(t, footest.Foo("b"))
		advance(time.Hour)
		f.expectWrites(t, "update foos/status") // the conflict, once

		f.deleteFoo(t, "a")
		advance(0)
		f.deleteChild(t, "web") // as the garbage collector does
		advance(0)
		f.expectWrites(t, createChild, "update foos/status")
		if owner := f.storedChild(t, "web").GetOwnerReferences()[0].Name; owner != "b" {
			t.Errorf("the child belongs to %s", owner)
		}
	})
}

func TestChildThatAUserMadeAgainIsTheUsers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, footest.Foo("a", footest.WithStatus(footest.Settled("a"))), footest.Child("a"))
		// The user's create precedes the controller's.
		theirs := footest.Child("a", footest.WithoutOwner, footest.Drifted)
		var made sync.Once
		f.kubeClient.PrependReactor("create", children, func(clienttesting.Action) (bool, runtime.Object, error) {
			made.Do(func() {
				f.api.Stamp(theirs)
				footest.Must(t, f.kubeClient.Tracker().Add(theirs))
			})
			return false, nil, nil
		})
		defer f.start(2)()
		f.deleteChild(t, "web")
		advance(time.Hour)
		footest.ExpectEqual(t, "the user's object", theirs, f.storedChild(t, "web"))
		footest.ExpectEqual(t, "the list of events", []string{"Warning " + conflict + " " + footest.ConflictWithNobody}, f.recorded())
	})
}

// In these tests the cache of Foos stays stale for long, as after a restore of etcd from
// a backup, or with a watch that delivers nothing.

// holdFoos stops the events of the watch of Foos.
func holdFoos(f *fixture) {
	f.fooClient.PrependWatchReactor("foos", func(clienttesting.Action) (bool, watch.Interface, error) {
		return true, watch.NewRaceFreeFake(), nil
	})
}

// collectChildren deletes all children, as the garbage collector does if there are
// no Foos.
func (f *fixture) collectChildren(t *testing.T) {
	t.Helper()
	for _, child := range f.primary.cache.List() {
		f.deleteChild(t, child.(footest.Object).GetName())
	}
}

func TestFooThatOnlyTheCacheHasGetsNoChildAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixtureWith(t, holdFoos, footest.Foo("a", footest.WithStatus(footest.Settled("a"))), footest.Child("a"))
		defer f.start(2)()
		advance(0)
		f.expectWrites(t)
		f.deleteFoo(t, "a")
		f.collectChildren(t)
		advance(10 * time.Minute)
		f.expectWrites(t)
	})
}

func TestNewFooThatOnlyTheCacheHasGetsOneChild(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixtureWith(t, holdFoos, footest.Foo("a"))
		f.deleteFoo(t, "a")
		defer f.start(2)()
		advance(0)
		f.expectWrites(t, createChild, "update foos/status")
		for range 3 {
			f.collectChildren(t)
			advance(10 * time.Minute)
		}
		f.expectWrites(t)
		footest.Must(t, f.cache.Delete(footest.Foo("a")))
		f.deleteOwner(cache.DeletedObject[plan.Owner]{OptionalObj: footest.Foo("a")})
		advance(0)
		if f.remembers("a") {
			t.Error("a Foo that is gone from the cache is still remembered")
		}
	})
}

func TestAFooThatGoesDuringItsSyncIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		f.fooClient.PrependReactor("update", "foos", func(clienttesting.Action) (bool, runtime.Object, error) {
			f.deleteFoo(t, "a")
			<-time.After(time.Second) // so that the event is handled before the response to the write
			return true, nil, apierrors.NewNotFound(footest.FoosResource.GroupResource(), "a")
		})
		defer f.start(2)()
		f.createFoo(t, footest.Foo("a"))
		advance(time.Minute)
		f.expectWrites(t, createChild, "update foos/status")
		if f.remembers("a") {
			t.Error("a Foo that was deleted during its last write is still remembered")
		}
	})
}

func TestStaleFooIsReadLiveBeforeFurtherWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixtureWith(t, holdFoos, footest.Foo("a"))
		f.failTimes(1, "update", "foos", apierrors.NewConflict(footest.FoosResource.GroupResource(), "a", nil))
		newer := footest.Foo("a", footest.WithReplicas(3))
		newer.Generation++
		f.answerGets(newer)
		defer f.start(2)()
		advance(0)
		f.expectWrites(t, createChild, "update foos/status")
		f.collectChildren(t)
		advance(10 * time.Minute)
		f.expectWrites(t)
	})
}

// A change of a Foo in its back-off waits for the next sync. While one is under way that
// has read the Foo before, there may be none.
func TestAChangeDuringASyncIsSyncedAlthoughTheFooIsInItsBackOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, footest.Foo("a", footest.WithStatus(footest.Settled("a"))), footest.Child("a"))
		known := f.memory.Of(footest.Foo("a"))
		known.Stale.Observe(f.cachedFoo(t, "a"), apierrors.NewConflict(footest.FoosResource.GroupResource(), "a", nil))
		f.memory.Keep(footest.KeyOf(footest.Foo("a")), known)
		f.failTimes(1, "get", "foos", apierrors.NewForbidden(footest.FoosResource.GroupResource(), "a", nil))
		f.queue.Add(footest.KeyOf(footest.Foo("a")))
		f.processNextWorkItem(f.ctx)
		f.fooClient.PrependReactor("get", "foos", func(clienttesting.Action) (bool, runtime.Object, error) {
			changed := f.storedFoo(t, "a").DeepCopy()
			changed.Status.Conditions[0].Reason = "OfAnother"
			f.updateFoo(t, changed)
			advance(time.Millisecond)
			return false, nil, nil
		})
		f.queue.Add(footest.KeyOf(footest.Foo("a")))
		f.processNextWorkItem(f.ctx)
		f.expectWrites(t)
		if f.queue.Len() == 0 {
			t.Error("the change was not queued")
		}
	})
}

// A conflict for no reason must not stop the controller.
func TestFooThatIsConfirmedLiveIsReconciled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, footest.Foo("a"))
		f.failTimes(3, "update", "foos", apierrors.NewConflict(footest.FoosResource.GroupResource(), "a", nil))
		defer f.start(2)()
		advance(time.Minute)
		f.expectWrites(t, createChild, "update foos/status", "update foos/status", "update foos/status", "update foos/status")
		if f.memory.Of(footest.Foo("a")).Stale != "" {
			t.Error("a Foo counts as stale although its status was written")
		}
	})
}
