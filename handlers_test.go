// SPDX-License-Identifier: Apache-2.0

// Tests of the path from events to syncs: the keys that an event adds, the order in which
// workers get them, events that arrive late, twice, or not at all, and caches that stay stale.

package main

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/pkg/reconcile/plan"
	"example.com/sample-controller/test/footest"
)

func TestAResyncOfChildrenQueuesNothing(t *testing.T) {
	test(t, atRest(), func(f *fixture) {
		f.drainQueue()
		f.primary.updated(footest.Child("a"), footest.Child("a", footest.Drifted))
		f.expectQueued(0, "an update without a new resourceVersion")
		f.primary.updated(footest.Child("a"), footest.Child("a", footest.AtVersion("21")))
		f.expectQueued(1, "an update with a new resourceVersion")
		// No Foo wants this name, so only the owner reference leads to the Foo.
		f.primary.updated(oldChild(), oldChild(footest.WithoutOwner, footest.AtVersion("21")))
		f.expectQueued(1, "a Foo lost a child")
		f.primary.updated(oldChild(footest.WithoutOwner), oldChild(footest.WithoutOwner, footest.WithAdoptBy("a"), footest.AtVersion("21")))
		f.expectQueued(1, "a Foo was handed a child")
	})
}

func TestMissedDeletionsAreHandled(t *testing.T) {
	test(t, atRest(), func(f *fixture) {
		f.drainQueue()
		f.primary.deleted(cache.DeletedObject[plan.Object]{
			FinalStateUnknown: &cache.DeletedFinalStateUnknown{Key: footest.Namespace + "/web"},
		})
		f.expectQueued(1, "a tombstone of a child without the object")
	})
}

// Only sixteen Foos are queued for a name, so that those which no longer want it must not be among them.
func TestFoosInDeletionDoNotWaitForAName(t *testing.T) {
	waiting := world(footest.Foo("a"))
	for i := range 10 * maxAsking {
		waiting = append(waiting, footest.Foo(fmt.Sprint("gone-", i), footest.BeingDeleted))
	}
	test(t, waiting, func(f *fixture) {
		f.drainQueue()
		f.primary.added(footest.Child("b"), false)
		f.expectQueued(2, "one waits for the name, and one has it")
	})
}

// expectNext checks which Foo a worker gets next.
func (f *fixture) expectNext(want string) {
	f.T.Helper()
	var key cache.ObjectName
	if f.queue.Len() > 0 {
		key, _ = f.queue.Get()
		f.queue.Done(key)
	}
	footest.ExpectEqual(f.T, "the Foo that is served next", want, key.Name)
}

func TestANewFooDoesNotWaitForThoseOfTheFirstList(t *testing.T) {
	first := world(footest.Foo("a"), footest.Foo("b"), footest.Child("a"), footest.Child("b", footest.Named("api")))
	test(t, first, func(f *fixture) {
		f.Put(footest.Foo("new", footest.WithChildName("db")))
		synctest.Wait()
		f.expectNext("new")
	})
}

func TestAChangeDoesNotWaitForAResync(t *testing.T) {
	test(t, world(footest.Foo("a"), footest.Foo("b", footest.WithChildName("api"))), func(f *fixture) {
		f.drainQueue()
		resynced := f.cachedFoo("a")
		f.updateOwner(resynced, resynced)
		f.Put(footest.Child("b", footest.Named("api")))
		synctest.Wait()
		f.expectNext("b")
		f.expectNext("a")
	})
}

// standBy prepares a controller that does not run yet, although its informers do.
func standBy(f *fixture) { f.standBy = true }

// A standby's queue is empty. The handlers fill it when the standby becomes the leader.
func TestBeforeItRunsNothingIsQueued(t *testing.T) {
	testWith(t, standBy, world(footest.Foo("a")), func(f *fixture) {
		advance(time.Hour)
		f.expectQueued(0, "before it runs")
		ctx, stop := context.WithCancel(f.ctx)
		stopped := make(chan error)
		go func() { stopped <- f.Run(ctx, context.Background(), 2) }()
		advance(time.Second)
		f.ExpectWrites(createChild, writeStatus)
		stop()
		footest.Must(t, <-stopped)
	})
}

// A stop may come just after the caches have synced. Stopped informers accept no handlers. That
// is no error, and nothing keeps running.
func TestAStopBeforeTheHandlersIsNoError(t *testing.T) {
	testWith(t, standBy, world(footest.Foo("a")), func(f *fixture) {
		f.stopInformers()
		footest.Must(t, f.Run(f.ctx, context.Background(), 2))
	})
}

// In these tests the cache of Foos stays stale for a long time, as after a restore of etcd from
// a backup, or with a watch that delivers nothing.

// collectChildren deletes all children, as the garbage collector does if there are no Foos.
func (f *fixture) collectChildren() {
	for _, child := range f.primary.row.Cache.List() {
		f.DeleteChild(child.(footest.Object).GetName())
	}
}

func TestFooThatOnlyTheCacheHasGetsNoChildAgain(t *testing.T) {
	testWith(t, holdFoos, atRest(), func(f *fixture) {
		defer f.start(2)()
		advance(0)
		f.DeleteFoo("a")
		f.collectChildren()
		advance(time.Hour)
		if reads := f.Count("get foos"); reads > 30 {
			t.Errorf("it was read %d times in an hour", reads)
		}
		f.ExpectWrites()
	})
}

func TestNewFooThatOnlyTheCacheHasGetsOneChild(t *testing.T) {
	testWith(t, holdFoos, world(footest.Foo("a")), func(f *fixture) {
		f.DeleteFoo("a")
		defer f.start(2)()
		advance(0)
		f.ExpectWrites(createChild, writeStatus)
		for range 3 {
			f.collectChildren()
			advance(10 * time.Minute)
		}
		f.ExpectWrites()
		footest.Must(t, f.kind.Owners.Cache.Delete(footest.Foo("a")))
		f.deleteOwner(cache.DeletedObject[plan.Owner]{OptionalObj: footest.Foo("a")})
		advance(0)
		f.expectForgotten("a")
	})
}

// neverDone is the DoneChecker of a cache that never syncs.
type neverDone struct{}

func (neverDone) Name() string { return "never" }

func (neverDone) Done() <-chan struct{} { return nil }

func TestNothingIsWrittenBeforeTheCachesAreFull(t *testing.T) {
	test(t, world(footest.Foo("a")), func(f *fixture) {
		f.handlersSynced = append(f.handlersSynced, neverDone{})
		defer f.start(2)()
		advance(time.Hour)
		f.ExpectWrites()
	})
}

// replaceStatus replaces the status of the Foo "a", as another client, 10 ms later.
func (f *fixture) replaceStatus() {
	time.AfterFunc(10*time.Millisecond, func() {
		theirs := f.StoredFoo("a")
		theirs.Status.Conditions[0].Status, theirs.Status.Conditions[0].Reason = metav1.ConditionFalse, "Theirs"
		f.Put(theirs)
	})
}

// A user who asks for a sync does not wait for the end of a pause, whatever its cause. Each cause lasts.
func TestASyncThatIsAskedForEndsEachPauseOnce(t *testing.T) {
	refused := denial(http.StatusForbidden, metav1.StatusReasonForbidden)
	drift := func(f *fixture) { f.change("web", footest.Drifted) }
	for name, row := range map[string]struct {
		world []runtime.Object
		cause func(f *fixture)
		begin func(f *fixture)
		// write is what waits, and most how often it is made without a pause.
		write string
		most  int
	}{
		"a refused update":   {atRest(), func(f *fixture) { f.Refuse("patch", children, refused) }, drift, updateChild, 1},
		"a refused creation": {world(footest.Foo("a")), func(f *fixture) { f.Refuse("create", children, refused) }, nil, createChild, 1},
		"an outage":          {atRest(), func(f *fixture) { f.Refuse("patch", children, serverFails) }, drift, updateChild, 1},
		"a refused deletion": {world(settledFoo(), footest.Child("a"), oldChild()), func(f *fixture) { f.Refuse("delete", children, refused) }, nil, deleteChild, 1},
		"a refused status":   {world(footest.Foo("a"), footest.Child("a")), func(f *fixture) { f.Refuse("update", "foos", refused) }, nil, writeStatus, 1},
		"a pruned status":    {world(footest.Foo("a"), footest.Child("a")), func(f *fixture) { f.Refuse("update", "foos", fooGone) }, nil, writeStatus, 1},
		"a replaced status": {atRest(), func(f *fixture) {
			f.On("update", "foos", func(clienttesting.Action) error { f.replaceStatus(); return nil })
		}, (*fixture).replaceStatus, writeStatus, 4},
		"a fight": {atRest(), func(f *fixture) { f.undo() }, drift, updateChild, 4},
		"a fight of deletions": {
			atRest(), func(f *fixture) { f.deleteEachTime() }, func(f *fixture) { f.DeleteChild("web") }, createChild, 4,
		},
		"a webhook": {
			atRest(), func(f *fixture) { f.admitChildren("", footest.Drifted) }, drift, updateChild, 1,
		},
		"too many rollouts": {
			atRest(), func(f *fixture) { f.rollouts.Limit = 1 }, func(f *fixture) {
				other := cache.NewObjectName("team", "other")
				f.rollouts.End(other)
				f.rollouts.Begin(other)
				f.change("web", footest.WithImage("nginx:1"))
			}, updateChild, 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			test(t, row.world, func(f *fixture) {
				row.cause(f)
				defer f.start(2)()
				advance(time.Second)
				for i, request := range []string{"1", "2"} {
					if row.begin != nil && (i == 0 || row.most == 1) { // a fight goes on
						row.begin(f)
					}
					advance(9 * time.Minute)
					f.TakeWrites()
					advance(2 * time.Second)
					f.ExpectWrites()
					f.askToSync("a", request)
					advance(time.Second)
					if made := f.Count(row.write); made < 1 || made > row.most {
						t.Errorf("the request %q led to %d calls, want 1 to %d: %q", request, made, row.most, f.TakeWrites())
					}
					if row.write != writeStatus {
						footest.ExpectEqual(t, "the answer in the status", request, f.StoredFoo("a").Status.LastHandledSync)
					}
				}
			})
		})
	}
}

// What is answered stays answered, also by the next process.
func TestAnAnsweredSyncIsNotRepeated(t *testing.T) {
	testRunning(t, atRest(), func(f *fixture) {
		advance(time.Second)
		f.askToSync("a", "1")
		advance(time.Second)
		f.ExpectWrites(writeStatus)
		f.expectForgotten("a")
		f.resync("a")
		f.askToSync("a", "")
		advance(time.Second)
		f.askToSync("a", "1")
		f.askToSync("a", strings.Repeat("x", plan.MaxKept+1))
		f.resync("a")
		f.ExpectWrites()
		f.change("web", footest.Drifted)
		advance(time.Second)
		f.expectWanted() // a request that is too long does not make the live Foo differ from the cached one
	})
}

// waiting returns Foos that want a name that "b" has, as their statuses say.
func waiting(count int) []runtime.Object {
	ready := footest.Ready(metav1.ConditionFalse, conflict, footest.ConflictWithB, footest.Earlier)
	status := samplev1alpha1.FooStatus{ObservedGeneration: 1, Conditions: footest.Stalled(ready)}
	var foos []runtime.Object
	for i := range count {
		foos = append(foos, footest.Foo(fmt.Sprintf("w%d", i), footest.WithStatus(status)))
	}
	return foos
}

// To queue all of them would be 10,000 keys and 100 ms of syncs for each status.
func TestAStatusOfATakenChildConcernsNobodyWhoWaitsForItsName(t *testing.T) {
	test(t, world(footest.Child("b")), func(f *fixture) {
		for _, foo := range waiting(10_000) {
			footest.Must(t, f.kind.Owners.Cache.Add(foo.(*samplev1alpha1.Foo)))
		}
		f.drainQueue()
		f.primary.updated(footest.Child("b"), footest.Child("b", footest.AtVersion("21")))
		f.expectQueued(1, "a status") // its own Foo
		f.primary.updated(footest.Child("b", footest.AtVersion("21")), footest.Child("c", footest.AtVersion("22")))
		if n := f.queue.Len(); n > 2*maxAsking+2 { // for both states
			t.Errorf("a change of the owner queues %d Foos", n)
		}
	})
}

// Each of these requests must not cause a write for each Foo.
func TestWhoHasANameIsNotWrittenWithEachChange(t *testing.T) {
	foos := waiting(50)
	testRunning(t, append(foos, footest.Child("b")), func(f *fixture) {
		advance(time.Second)
		f.ExpectWrites()
		for i := range 20 {
			f.change("web", func(child footest.Object) {
				owners := child.GetOwnerReferences()
				owners[0].Name = fmt.Sprintf("nobody-%d", i)
				child.SetOwnerReferences(owners)
			})
			advance(100 * time.Millisecond)
		}
		advance(time.Minute)
		for i := range foos {
			f.resync(fmt.Sprintf("w%d", i))
		}
		advance(time.Minute)
		footest.ExpectEqual(t, "the number of statuses that were written", len(foos), f.Count(writeStatus))
	})
}

func TestAFooThatGoesDuringItsSyncIsForgotten(t *testing.T) {
	test(t, world(footest.Foo("a")), func(f *fixture) {
		f.On("update", "foos", func(clienttesting.Action) error {
			f.DeleteFoo("a")
			<-time.After(time.Second) // so that the event is handled before the response to the write
			return fooGone
		})
		defer f.start(2)()
		advance(time.Minute)
		f.ExpectWrites(createChild, writeStatus)
		f.expectForgotten("a")
	})
}

// A change of a Foo in its back-off waits for the next sync. During a sync that has already
// read the Foo, there may be no next one.
func TestAChangeDuringASyncIsSyncedAlthoughTheFooIsInItsBackOff(t *testing.T) {
	test(t, atRest(), func(f *fixture) {
		foo := f.cachedFoo("a")
		known := f.known.Of(foo)
		known.ObserveCall(foo, fooModified)
		f.known.Keep(footest.KeyOf(foo), known)
		f.FailTimes(1, "get", "foos", apierrors.NewForbidden(footest.FoosResource.GroupResource(), "a", nil))
		f.queue.Add(footest.KeyOf(foo))
		f.processNextWorkItem(f.ctx)
		f.On("get", "foos", func(clienttesting.Action) error {
			changed := f.StoredFoo("a")
			changed.Status.Conditions[0].Reason = "OfAnother"
			f.Put(changed)
			advance(time.Millisecond)
			return nil
		})
		f.queue.Add(footest.KeyOf(foo))
		f.processNextWorkItem(f.ctx)
		f.ExpectWrites()
		if f.queue.Len() == 0 {
			t.Error("the change was not queued")
		}
	})
}

// A conflict without a reason must not cause live reads forever, if there is no longer a status to write.
func TestFooWithTheLiveVersionIsReadLiveOnce(t *testing.T) {
	test(t, world(settledFoo(), footest.Child("a", footest.Terminating)), func(f *fixture) {
		f.FailTimes(1, "update", "foos", fooModified)
		defer f.start(2)()
		advance(0)
		f.Put(footest.Child("a"))
		advance(time.Minute)
		f.ExpectWrites(writeStatus)
		f.expectForgotten("a")
	})
}
