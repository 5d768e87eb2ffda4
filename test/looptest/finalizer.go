// SPDX-License-Identifier: Apache-2.0

// The finalizer of a kind, and Undo.

package looptest

import (
	"context"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/pkg/reconcile/plan"
	"example.com/sample-controller/test/footest"
)

// beginDeletion deletes the Foo "a" as a user does. Finalizers keep it.
func (f *fixture) beginDeletion() {
	f.T.Helper()
	foo := f.StoredFoo("a")
	foo.DeletionTimestamp = new(metav1.Now())
	foo.Generation++
	if len(foo.Finalizers) == 0 {
		f.DeleteFoo("a")
		return
	}
	f.Put(foo)
	advance(time.Second)
}

func (f *fixture) isGone() bool {
	_, err := f.Foos.Tracker().Get(footest.FoosResource, footest.Namespace, "a")
	return apierrors.IsNotFound(err)
}

func (l Loop) TestACrashBetweenTheFinalizerAndTheFirstCall(t *testing.T) {
	l.testCalls(t, asCalled, world(footest.Foo("a")), func(f *fixture, a *authority) {
		footest.Must(t, f.sync())
		f.ExpectWrites(patchFoo)
		advance(time.Hour)
		f.expectCalls(a) // nobody makes calls before the workers run
		stop := f.restart()
		advance(time.Second)
		f.expectCalls(a, "do a 2")
		f.ExpectWrites("create configmaps", writeStatus, writeStatus) // that it waits, and that it is ready
		stop()
		defer f.restart()()
		f.beginDeletion()
		advance(2 * time.Minute)
		f.expectCalls(a, "undo a 2")
		footest.ExpectEqual(t, "whether it is gone", true, f.isGone())
	})
}

func (l Loop) TestNothingIsCalledBeforeTheFinalizerIsWritten(t *testing.T) {
	l.testCalls(t, asCalled, world(footest.Foo("a")), func(f *fixture, a *authority) {
		refused := f.Refuse("patch", "foos", apierrors.NewForbidden(footest.FoosResource.GroupResource(), "a", nil))
		defer f.start()()
		advance(time.Minute)
		f.expectCalls(a)
		f.ExpectReady("a", "False FinalizerFailed of 1")
		footest.ExpectEqual(t, "the children that need no finalizer", 1, f.Count("create configmaps"))
		refused.Over.Store(true)
		advance(6 * time.Minute)
		f.expectCalls(a, "do a 2")
		f.ExpectReady("a", "True Available of 1")
	})
}

func (l Loop) TestAFinalizerThatIsRemovedByHand(t *testing.T) {
	l.runCalls(t, asCalled, func(f *fixture, a *authority) {
		foo := f.StoredFoo("a")
		foo.Finalizers = []string{"example.com/other"}
		f.Put(foo)
		advance(time.Minute)
		footest.ExpectEqual(t, "the finalizers", []string{"example.com/other", entryFinalizer}, f.StoredFoo("a").Finalizers)
		f.ExpectReady("a", "True Available of 1")
		f.expectCalls(a)
	})
}

func (l Loop) TestAnOwnerIsReleasedAfterUndo(t *testing.T) {
	l.runCalls(t, asCalled, func(f *fixture, a *authority) {
		a.answers(isDown)
		f.beginDeletion()
		advance(time.Hour)
		footest.ExpectEqual(t, "whether it is gone", false, f.isGone())
		ready := f.ExpectReady("a", "False Terminating of 2")
		footest.ExpectEqual(t, "the message",
			"The Foo is being deleted; Entry: waiting until it is removed; Entry: the last call failed: 503 of the authority", ready.Message)
		f.ExpectWrites(writeStatus, writeStatus)
		if calls := len(a.made()); calls < 11 || calls > 20 {
			t.Errorf("%d calls in an hour", calls)
		}
		a.answers(nil)
		advance(6 * time.Minute)
		footest.ExpectEqual(t, "whether it is gone", true, f.isGone())
		f.expectCalls(a, "undo a 2")
		f.ExpectWrites(patchFoo)
		advance(time.Hour)
		f.expectCalls(a)
	})
}

// A call that hangs must not leave behind what Undo has removed.
func (l Loop) TestADeletionDuringACallThatHangs(t *testing.T) {
	for name, heedsContext := range map[string]bool{"it is canceled": true, "it returns when it wants": false} {
		t.Run(name, func(t *testing.T) {
			l.testCalls(t, asCalled, world(footest.Foo("a")), func(f *fixture, a *authority) {
				var running, atOnce int
				a.answers(func(ctx context.Context, verb string, _ *samplev1alpha1.Foo) (entry, error) {
					if running++; running > 1 {
						atOnce++
					}
					defer func() { running-- }()
					if verb == "undo" {
						return entry{}, nil
					}
					if heedsContext {
						<-ctx.Done()
						return entry{}, ctx.Err()
					}
					<-time.After(20 * time.Second)
					return entry{Text: "late"}, nil
				})
				defer f.start()()
				advance(5 * time.Second)
				f.expectCalls(a, "do a 2")
				f.beginDeletion()
				advance(time.Second)
				footest.ExpectEqual(t, "whether it is gone", heedsContext, f.isGone())
				advance(20 * time.Second)
				footest.ExpectEqual(t, "whether it is gone", true, f.isGone())
				f.expectCalls(a, "undo a 2")
				footest.ExpectEqual(t, "calls at the same time", 0, atOnce)
			})
		})
	}
}

// An owner that never got the finalizer has nothing to undo: someone else's finalizer keeps it.
func (l Loop) TestADeletionWithoutTheFinalizer(t *testing.T) {
	kept := footest.Foo("a", func(foo *samplev1alpha1.Foo) {
		foo.Finalizers, foo.DeletionTimestamp = []string{"example.com/other"}, &footest.Now
	})
	l.testCalls(t, asCalled, world(kept), func(f *fixture, a *authority) {
		defer f.start()()
		advance(time.Hour)
		f.expectCalls(a)
		f.ExpectReady("a", "False Terminating of 1")
		footest.ExpectEqual(t, "the finalizers", []string{"example.com/other"}, f.StoredFoo("a").Finalizers)
	})
}

func withFinalizer(foo *samplev1alpha1.Foo) {
	foo.Finalizers = []string{entryFinalizer, "example.com/other"}
}

// The release whose table has no Undo any more must not leave objects that hang in their deletion.
func (l Loop) TestAFinalizerThatNothingNeeds(t *testing.T) {
	others := []string{"example.com/other"}
	noUndo := func(call *plan.Call[*samplev1alpha1.Foo, entry]) { call.Undo = nil }
	l.testCalls(t, noUndo, world(footest.Foo("a", withFinalizer), footest.Foo("b", footest.BeingDeleted, withFinalizer)), func(f *fixture, a *authority) {
		defer f.start()()
		advance(time.Minute)
		footest.ExpectEqual(t, "the finalizers", others, f.StoredFoo("a").Finalizers)
		footest.ExpectEqual(t, "the finalizers in deletion", others, f.StoredFoo("b").Finalizers)
		f.ExpectReady("a", "True Available of 1")
		f.expectCalls(a, "do a 2")
	})
}
