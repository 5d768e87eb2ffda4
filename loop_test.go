// SPDX-License-Identifier: Apache-2.0

// Tests of the loop, from events to writes, with the queue and the workers running.

package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"example.com/sample-controller/internal/failure"
	"example.com/sample-controller/internal/metrics"
	"example.com/sample-controller/internal/queue"
	"example.com/sample-controller/test/footest"
)

// These tests run the whole controller, queue and workers included, each in a
// testing/synctest bubble: time passes only while all goroutines are idle.

func TestDeletedChildIsMadeAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, footest.Foo("a", footest.WithStatus(footest.Settled("a"))), footest.Child("a"))
		defer f.start(2)()

		f.deleteChild(t, "web")
		advance(0)
		f.expectChildWrites(t, createChild)
	})
}

func TestFooThatWaitsForANameGetsItWhenItIsFreed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, footest.Foo("a"), footest.Child("nobody", footest.WithoutOwner))
		defer f.start(2)()
		advance(time.Hour)
		f.expectWrites(t, "update foos/status") // the conflict, once: no polling

		f.deleteChild(t, "web")
		advance(0)
		f.expectWrites(t, createChild, "update foos/status")
	})
}

func TestOldOwnerIsSyncedWhenItsOwnerReferenceIsRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, footest.Foo("a", footest.WithStatus(footest.Settled("a"))), footest.Child("a"))
		defer f.start(2)()

		f.updateChild(t, footest.Child("a", footest.WithoutOwner))
		advance(time.Hour)
		f.expectWrites(t, "update foos/status")
		footest.ExpectEqual(t, "the list of events", []string{
			"Warning " + conflict + " " + footest.ConflictWithNobody,
		}, f.recorded())
	})
}

func TestDeletedFooLeavesNothingBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, footest.Foo("a"))
		f.refuse("create", children, apierrors.NewForbidden(footest.ChildGR, "web", errors.New("exceeded quota")))
		defer f.start(2)()
		advance(0)
		f.expectWrites(t, createChild, "update foos/status")
		key := footest.KeyOf(footest.Foo("a"))
		if !f.backoff.InBackoff(key) {
			t.Error("a refused Foo has no back-off")
		}

		f.deleteFoo(t, "a")
		advance(0)
		if f.backoff.InBackoff(key) {
			t.Error("the key of a deleted Foo still has a back-off")
		}
		advance(time.Hour)
		f.expectWrites(t)
	})
}

func TestRefusalWhoseStatusLostARaceIsReportedAtOnceAndNotRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, footest.Foo("a"))
		f.refuse("create", children, apierrors.NewForbidden(footest.ChildGR, "web", errors.New("exceeded quota")))
		f.failTimes(1, "update", "foos", apierrors.NewConflict(footest.FoosResource.GroupResource(), "a", errors.New("modified")))
		defer f.start(2)()
		advance(queue.RefusedRetry / 2)
		f.expectWrites(t, createChild, "update foos/status", "update foos/status")
	})
}

func TestConflictIsRetriedAtOnceAndResolved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, footest.Foo("a", footest.WithStatus(footest.Settled("a"))), footest.Child("a", footest.Drifted))
		f.failTimes(1, "patch", children, apierrors.NewConflict(footest.ChildGR, "web", errors.New("modified")))
		defer f.start(2)()
		advance(time.Second)
		f.expectChildWrites(t, updateChild, updateChild)
	})
}

func TestFailingFooBacksOffAloneAndNotForMoreThanFiveMinutes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, footest.Foo("a"), footest.Foo("b", footest.WithChildName("other")))
		var attempts []time.Time
		f.kubeClient.PrependReactor("create", children, func(action clienttesting.Action) (bool, runtime.Object, error) {
			if action.(clienttesting.CreateAction).GetObject().(footest.Object).GetName() != "web" {
				return false, nil, nil
			}
			attempts = append(attempts, time.Now())
			return true, nil, apierrors.NewInternalError(errors.New("boom"))
		})
		defer f.start(2)()
		advance(0)
		f.storedChild(t, "other")

		advance(6 * time.Hour)
		last := attempts[len(attempts)-1].Sub(attempts[len(attempts)-2])
		if last != 5*time.Minute {
			t.Errorf("after hours of failure the Foo is retried every %v, not every 5m", last)
		}
		if second := attempts[1].Sub(attempts[0]); second != 5*time.Millisecond {
			t.Errorf("the second attempt came after %v, not after 5ms", second)
		}
	})
}

func TestResyncDoesNotRunAheadOfABackOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, footest.Foo("a"))
		f.refuse("create", children, apierrors.NewForbidden(footest.ChildGR, "web", errors.New("exceeded quota")))
		defer f.start(2)()
		advance(0)
		f.expectWrites(t, createChild, "update foos/status")

		cached := f.cachedFoo(t, "a")
		f.updateOwner(cached, cached)
		advance(queue.RefusedRetry - time.Second)
		f.expectWrites(t)

		advance(time.Second)
		f.expectWrites(t, createChild)

		changed := f.cachedFoo(t, "a").DeepCopy()
		changed.Generation++
		f.updateFoo(t, changed)
		advance(0)
		f.expectWrites(t, createChild, "update foos/status")
	})
}

func TestFooInATerminatingNamespaceIsLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, footest.Foo("a"))
		f.refuse("create", children, footest.NamespaceTerminating())
		defer f.start(2)()
		advance(0)
		f.expectWrites(t, createChild)

		cached := f.cachedFoo(t, "a")
		f.updateOwner(cached, cached) // a resync
		advance(queue.LastRetry - time.Second)
		f.expectWrites(t)
		footest.ExpectEqual(t, "the list of events", []string(nil), f.recorded())
	})
}

func TestPanicInOneSyncDoesNotStopTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, footest.Foo("a"), footest.Foo("b", footest.WithChildName("other")))
		f.panics = true
		var panicked atomic.Bool
		f.kubeClient.PrependReactor("create", children, func(action clienttesting.Action) (bool, runtime.Object, error) {
			if action.(clienttesting.CreateAction).GetObject().(footest.Object).GetName() == "web" && panicked.CompareAndSwap(false, true) {
				panic("a bug")
			}
			return false, nil, nil
		})
		defer f.start(2)()
		advance(time.Second)
		f.storedChild(t, "other")
		f.storedChild(t, "web")
		f.expectMetrics(t, "panics and syncs", `sample_controller_sync_panics_total 1`,
			`sample_controller_sync_duration_seconds_count{result="panic"} 1`)
	})
}

func TestSyncWaitsForTheCacheToSeeOurOwnWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, footest.Foo("a"))
		f.wrote(footest.Foo("a"), storeAt("7"), "9")
		defer f.start(2)()
		advance(0)
		f.expectWrites(t)
		f.expectMetrics(t, "skipped syncs", `sample_controller_stale_syncs_total 1`,
			`sample_controller_sync_duration_seconds_count{result="retry"} 1`)

		advance(f.callTimeout + queue.BehindRetry) // a store whose versions went backwards never sees the write
		f.expectWrites(t, createChild, "update foos/status")
	})
}

func TestOlderSpecNeverOverwritesANewer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// Another controller has changed the child for a newer Foo than the one in our
		// cache.
		f := newFixture(t, footest.Foo("a", footest.WithReplicas(2), footest.WithStatus(footest.Settled("a"))), footest.Child("a", footest.Drifted))
		f.fooClient.PrependReactor("get", "foos", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, footest.Foo("a", footest.WithReplicas(9), footest.WithGeneration(2)), nil
		})
		err := f.syncHandler(f.ctx, footest.KeyOf(footest.Foo("a")))
		if !errors.Is(err, failure.ErrBehind) {
			t.Errorf("the sync ended with %v", err)
		}
		f.expectWrites(t)
	})
}

func TestNothingIsWrittenBeforeTheCachesAreFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, footest.Foo("a"))
		f.handlersSynced = append(f.handlersSynced, neverDone{})
		defer f.start(2)()
		advance(time.Hour)
		f.expectWrites(t)
	})
}

func TestRunFinishesTheSyncUnderWayAndLeavesTheRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, footest.Foo("a"), footest.Foo("b", footest.WithChildName("b")))
		release := make(chan struct{})
		f.kubeClient.PrependReactor("create", children, func(clienttesting.Action) (bool, runtime.Object, error) {
			<-release
			return false, nil, nil
		})
		stop := f.start(1)
		synctest.Wait() // the worker is in its create call, and the other Foo waits in the queue
		stopped := make(chan struct{})
		go func() {
			defer close(stopped)
			stop()
		}()
		synctest.Wait()
		select {
		case <-stopped:
			t.Fatal("Run returned while its worker was in a call")
		default:
		}

		close(release)
		<-stopped
		f.expectWrites(t, createChild, "update foos/status")
	})
}

func TestAnUnknownResourceFailsTheTest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, failed := newFixture(t), &recordingT{TB: t}
		f.api.Serve(failed, &f.kubeClient.Fake, f.kubeClient.Tracker())
		if _, err := f.kubeClient.CoreV1().Nodes().Get(f.ctx, "n", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("the answer is %v", err)
		}
		if want := t.Name() + `: the controller uses the resource "nodes"`; !strings.HasPrefix(failed.message, want) {
			t.Errorf("the failure is %q, want %q", failed.message, want)
		}
	})
}

func TestSyncResult(t *testing.T) {
	conflict := apierrors.NewConflict(footest.ChildGR, "web", errors.New("changed"))
	for want, errs := range map[metrics.Result][]error{
		metrics.Success: {nil},
		metrics.Retry:   {failure.ErrBehind, conflict, fmt.Errorf("updating: %w", conflict), context.Canceled},
		metrics.Error:   {errors.New("refused"), context.DeadlineExceeded, apierrors.NewInternalError(errors.New("etcd"))},
		metrics.Panic:   {fmt.Errorf("%w: nil map", errPanic)},
	} {
		for _, err := range errs {
			if got := syncResult(err); got != want {
				t.Errorf("A sync that ends with %v is a %s, want %s", err, got, want)
			}
		}
	}
}
