// SPDX-License-Identifier: Apache-2.0

// Tests of the loop: retries and back-offs, stops, calls that hang, what one tenant's Foos can
// do to those of the others, and metrics.

package main

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	goruntime "runtime"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/yaml"

	"example.com/sample-controller/internal/election"
	"example.com/sample-controller/internal/plan"
	"example.com/sample-controller/internal/queue"
	"example.com/sample-controller/internal/serving"
	"example.com/sample-controller/test/footest"
)

func TestDeletedFooLeavesNothingBehind(t *testing.T) {
	test(t, world(footest.Foo("a")), func(f *fixture) {
		f.refuse("create", children, quotaExceeded)
		defer f.start(2)()
		advance(0)
		f.expectWrites(createChild, writeStatus)
		key := footest.KeyOf(footest.Foo("a"))
		if !f.backoff.InBackoff(key) {
			t.Error("a refused Foo has no back-off")
		}

		f.deleteFoo("a")
		advance(0)
		if f.backoff.InBackoff(key) {
			t.Error("the key of a deleted Foo still has a back-off")
		}
		advance(time.Hour)
		f.expectWrites()
	})
}

func TestRefusalWhoseStatusLostARaceIsReportedAtOnceAndNotRepeated(t *testing.T) {
	test(t, world(footest.Foo("a")), func(f *fixture) {
		f.refuse("create", children, quotaExceeded)
		f.failTimes(1, "update", "foos", fooModified)
		defer f.start(2)()
		advance(queue.RefusedRetry / 2)
		f.expectWrites(createChild, writeStatus, writeStatus)
	})
}

// nameIn returns the name of the object that an action creates.
func nameIn(action clienttesting.Action) string {
	return action.(clienttesting.CreateAction).GetObject().(footest.Object).GetName()
}

func TestFailingFooBacksOffAloneAndNotForMoreThanFiveMinutes(t *testing.T) {
	test(t, world(footest.Foo("a"), footest.Foo("b", footest.WithChildName("other"))), func(f *fixture) {
		var attempts []time.Time
		f.on("create", children, func(action clienttesting.Action) error {
			if nameIn(action) != "web" {
				return nil
			}
			attempts = append(attempts, time.Now())
			return serverFails
		})
		defer f.start(2)()
		advance(0)
		f.storedChild("other")

		advance(6 * time.Hour)
		if last := attempts[len(attempts)-1].Sub(attempts[len(attempts)-2]); last != 5*time.Minute {
			t.Errorf("after hours of failure the Foo is retried every %v, not every 5m", last)
		}
		if second := attempts[1].Sub(attempts[0]); second != 5*time.Millisecond {
			t.Errorf("the second attempt came after %v, not after 5ms", second)
		}
	})
}

func TestResyncDoesNotRunAheadOfABackOff(t *testing.T) {
	test(t, world(footest.Foo("a")), func(f *fixture) {
		f.refuse("create", children, quotaExceeded)
		defer f.start(2)()
		advance(0)
		f.expectWrites(createChild, writeStatus)

		cached := f.cachedFoo("a")
		f.updateOwner(cached, cached)
		advance(queue.RefusedRetry - time.Second)
		f.expectWrites()
		advance(time.Second)
		f.expectWrites(createChild)

		f.scale("a", 3)
		advance(0)
		f.expectWrites(createChild, writeStatus)
	})
}

// A recreated Foo is another Foo: it does not inherit the back-off of the deleted one.
func TestBackOffIsNotInherited(t *testing.T) {
	recreated := footest.Foo("a", footest.WithFooUID("uid-new"))
	for name, replace := range map[string]func(*fixture){
		"seen as one change": func(f *fixture) { f.put(recreated.DeepCopy()) },
		"seen as a deletion and a creation": func(f *fixture) {
			f.deleteFoo("a")
			f.put(recreated.DeepCopy())
		},
	} {
		t.Run(name, func(t *testing.T) {
			test(t, world(footest.Foo("a")), func(f *fixture) {
				refused := f.refuse("create", children, quotaExceeded)
				defer f.start(2)()
				advance(59 * time.Minute)
				refused.calls.Store(0)
				replace(f)
				advance(queue.RefusedRetry / 2)
				footest.ExpectEqual(t, "the number of attempts at once", 1, int(refused.calls.Load()))
				advance(queue.RefusedRetry)
				footest.ExpectEqual(t, "the number of attempts after the first back-off", 2, int(refused.calls.Load()))
			})
		})
	}
}

func TestFooInATerminatingNamespaceIsLeftAlone(t *testing.T) {
	test(t, world(footest.Foo("a")), func(f *fixture) {
		f.refuse("create", children, footest.NamespaceTerminating())
		defer f.start(2)()
		advance(0)
		f.expectWrites(createChild)
		cached := f.cachedFoo("a")
		f.updateOwner(cached, cached) // a resync
		advance(queue.LastRetry - time.Second)
		f.expectWrites()
		f.expectEvents()
	})
}

func TestPanicInOneSyncDoesNotStopTheOthers(t *testing.T) {
	test(t, world(footest.Foo("a"), footest.Foo("b", footest.WithChildName("other"))), func(f *fixture) {
		f.panics = true
		f.onFirst(1, "create", children, func(clienttesting.Action) error { panic("a bug") })
		defer f.start(2)()
		advance(time.Second)
		f.storedChild("other")
		f.storedChild("web")
		f.expectMetrics("panics and syncs",
			`sample_controller_sync_panics_total 1`,
			`sample_controller_sync_duration_seconds_count{result="panic"} 1`)
	})
}

func TestSyncWaitsForTheCacheToSeeOurOwnWrite(t *testing.T) {
	test(t, world(footest.Foo("a")), func(f *fixture) {
		f.wrote("7", "9")
		defer f.start(2)()
		advance(0)
		f.expectWrites()
		f.expectMetrics("skipped syncs", `sample_controller_stale_syncs_total 1`,
			`sample_controller_sync_duration_seconds_count{result="retry"} 1`)

		advance(f.callTimeout + queue.BehindRetry) // a store whose versions went backwards never sees the write
		f.expectWrites(createChild, writeStatus)
	})
}

// neverDone is the DoneChecker of a cache that never syncs.
type neverDone struct{}

func (neverDone) Name() string          { return "never" }
func (neverDone) Done() <-chan struct{} { return nil }

func TestNothingIsWrittenBeforeTheCachesAreFull(t *testing.T) {
	test(t, world(footest.Foo("a")), func(f *fixture) {
		f.handlersSynced = append(f.handlersSynced, neverDone{})
		defer f.start(2)()
		advance(time.Hour)
		f.expectWrites()
	})
}

// In these tests the cache of Foos stays stale for long, as after a restore of etcd from
// a backup, or with a watch that delivers nothing.

// collectChildren deletes all children, as the garbage collector does if there are no Foos.
func (f *fixture) collectChildren() {
	for _, child := range f.primary.cache.List() {
		f.deleteChild(child.(footest.Object).GetName())
	}
}

func TestFooThatOnlyTheCacheHasGetsNoChildAgain(t *testing.T) {
	testWith(t, holdFoos, atRest(), func(f *fixture) {
		defer f.start(2)()
		advance(0)
		f.deleteFoo("a")
		f.collectChildren()
		advance(time.Hour)
		if reads := f.count("get foos"); reads > 30 {
			t.Errorf("it was read %d times in an hour", reads)
		}
		f.expectWrites()
	})
}

func TestNewFooThatOnlyTheCacheHasGetsOneChild(t *testing.T) {
	testWith(t, holdFoos, world(footest.Foo("a")), func(f *fixture) {
		f.deleteFoo("a")
		defer f.start(2)()
		advance(0)
		f.expectWrites(createChild, writeStatus)
		for range 3 {
			f.collectChildren()
			advance(10 * time.Minute)
		}
		f.expectWrites()
		footest.Must(t, f.cache.Delete(footest.Foo("a")))
		f.deleteOwner(cache.DeletedObject[plan.Owner]{OptionalObj: footest.Foo("a")})
		advance(0)
		f.expectForgotten("a")
	})
}

func TestStaleFooIsReadLiveBeforeFurtherWrites(t *testing.T) {
	testWith(t, holdFoos, world(footest.Foo("a")), func(f *fixture) {
		f.scale("a", 3) // so that the status is refused
		defer f.start(2)()
		advance(0)
		f.expectWrites(createChild, writeStatus)
		f.collectChildren()
		advance(10 * time.Minute)
		f.expectWrites()
	})
}

func TestAFooThatGoesDuringItsSyncIsForgotten(t *testing.T) {
	test(t, world(footest.Foo("a")), func(f *fixture) {
		f.on("update", "foos", func(clienttesting.Action) error {
			f.deleteFoo("a")
			<-time.After(time.Second) // so that the event is handled before the response to the write
			return fooGone
		})
		defer f.start(2)()
		advance(time.Minute)
		f.expectWrites(createChild, writeStatus)
		f.expectForgotten("a")
	})
}

// A change of a Foo in its back-off waits for the next sync. While one is under way that
// has read the Foo before, there may be none.
func TestAChangeDuringASyncIsSyncedAlthoughTheFooIsInItsBackOff(t *testing.T) {
	test(t, atRest(), func(f *fixture) {
		foo := f.cachedFoo("a")
		known := f.memory.Of(foo)
		known.Stale.Observe(foo, fooModified)
		f.memory.Keep(footest.KeyOf(foo), known)
		f.failTimes(1, "get", "foos", apierrors.NewForbidden(footest.FoosResource.GroupResource(), "a", nil))
		f.queue.Add(footest.KeyOf(foo))
		f.processNextWorkItem(f.ctx)
		f.on("get", "foos", func(clienttesting.Action) error {
			changed := f.storedFoo("a")
			changed.Status.Conditions[0].Reason = "OfAnother"
			f.put(changed)
			advance(time.Millisecond)
			return nil
		})
		f.queue.Add(footest.KeyOf(foo))
		f.processNextWorkItem(f.ctx)
		f.expectWrites()
		if f.queue.Len() == 0 {
			t.Error("the change was not queued")
		}
	})
}

// A conflict for no reason must not stop the controller.
func TestFooThatIsConfirmedLiveIsReconciled(t *testing.T) {
	test(t, world(footest.Foo("a")), func(f *fixture) {
		f.failTimes(3, "update", "foos", fooModified)
		defer f.start(2)()
		advance(time.Minute)
		f.expectWrites(createChild, writeStatus, writeStatus, writeStatus, writeStatus)
		f.settle("web")
		advance(time.Minute)
		f.expectForgotten("a")
	})
}

// Nor may it cause live reads for ever, if there is no status to write any more.
func TestFooWithTheLiveVersionIsReadLiveOnce(t *testing.T) {
	test(t, world(settledFoo(), footest.Child("a", footest.Terminating)), func(f *fixture) {
		f.failTimes(1, "update", "foos", fooModified)
		defer f.start(2)()
		advance(0)
		f.put(footest.Child("a"))
		advance(time.Minute)
		f.expectWrites(writeStatus)
		f.expectForgotten("a")
	})
}

// These tests need calls that can be cancelled, which those of fake clientsets can't: the
// controller's calls for children go to a real HTTP server.

// slowServer accepts calls, and answers each when the test allows it or when the client
// gives up.
type slowServer struct {
	*fixture

	called, release, cut chan struct{}
}

func newSlowServer(t *testing.T) *slowServer {
	t.Helper()
	foos := world(footest.Foo("a"), footest.Foo("b", footest.WithChildName("b")))
	s := &slowServer{
		fixture: newFixtureInRealTime(t, func(*fixture) {}, foos...),
		called:  make(chan struct{}, 10), release: make(chan struct{}), cut: make(chan struct{}, 10),
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// net/http notices that the client is gone only after the whole body was read.
		_, _ = io.Copy(io.Discard, r.Body)
		s.called <- struct{}{}
		select {
		case <-s.release:
			w.WriteHeader(http.StatusServiceUnavailable)
		case <-r.Context().Done():
			s.cut <- struct{}{}
		}
	}))
	t.Cleanup(server.Close)
	client, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL, QPS: -1})
	footest.Must(t, err)
	s.primary.api = childrenOf(s.primary.informer, client.AppsV1().Deployments)
	return s
}

// work runs one worker. When it is in its call, work returns a channel that is closed when the
// controller has stopped.
func (s *slowServer) work(ctx, leaseCtx context.Context) (stopped chan struct{}) {
	stopped = make(chan struct{})
	go func() {
		defer close(stopped)
		s.runWorkers(ctx, leaseCtx, 1, s.handlersSynced)
	}()
	<-s.called
	return stopped
}

func TestHangingCallTimesOut(t *testing.T) {
	s := newSlowServer(t)
	s.callTimeout = 50 * time.Millisecond
	if err := s.sync(); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the sync ended with %v, not with the call's deadline", err)
	}
}

func TestALostLeaseCancelsTheCallUnderWay(t *testing.T) {
	s, start := newSlowServer(t), time.Now()
	held, lose := context.WithCancel(s.ctx)
	stopped := s.work(s.ctx, held)
	lose()
	<-s.cut
	<-stopped
	if took := time.Since(start); took >= drainTimeout {
		t.Errorf("it took %v", took)
	}
}

func TestRunFinishesTheSyncUnderWayAndLeavesTheRest(t *testing.T) {
	s := newSlowServer(t)
	ctx, stop := context.WithCancel(s.ctx)
	stopped := s.work(ctx, s.ctx)
	stop()
	for !s.queue.ShuttingDown() { // until Run handles the stop
		goruntime.Gosched()
	}
	select {
	case <-s.cut:
		t.Fatal("the call under way was cancelled")
	case <-stopped:
		t.Fatal("Run returned during a call")
	default:
	}
	close(s.release)
	<-stopped
	s.expectWrites(writeStatus) // not for the other Foo
}

// A process that is killed at the end of its grace period keeps the Lease, and loses Events.
func TestAStopTakesLessThanTheGracePeriod(t *testing.T) {
	data, err := os.ReadFile("artifacts/deploy/workload/deployment.yaml")
	footest.Must(t, err)
	var manifest appsv1.Deployment
	footest.Must(t, yaml.Unmarshal(data, &manifest))
	grace := time.Duration(*manifest.Spec.Template.Spec.TerminationGracePeriodSeconds) * time.Second
	if all := drainTimeout + election.ReleaseTimeout + flushTimeout + serving.ShutdownTimeout; all >= grace {
		t.Errorf("a stop may take %v of %v", all, grace)
	}
}
