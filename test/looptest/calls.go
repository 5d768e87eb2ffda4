// SPDX-License-Identifier: Apache-2.0

// Calls: things outside the cluster that an owner stands for.

package looptest

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/pkg/reconcile/plan"
	"example.com/sample-controller/test/footest"
)

func (l Loop) TestACallIsMadeOnceThePollSaysSo(t *testing.T) {
	l.testCalls(t, asCalled, world(footest.Foo("a")), func(f *fixture, a *authority) {
		defer f.start()()
		advance(time.Second)
		f.expectCalls(a, "do a 2")
		footest.ExpectEqual(f.T, "the finalizers", []string{entryFinalizer}, f.StoredFoo("a").Finalizers)
		advance(time.Minute)
		ready := f.ExpectReady("a", "True Available of 1")
		footest.ExpectEqual(f.T, "the message", "entered as a-2", ready.Message)
		footest.ExpectEqual(f.T, "the report", "a-2", f.StoredFoo("a").Status.Selector)
		f.expectEntered("True Available: entered as a-2")
		f.TakeWrites()
		advance(pollEntry * 60)
		if polls := len(a.made()); polls < 54 || polls > 67 {
			f.T.Errorf("%d polls, not about 60", polls)
		}
		f.ExpectWrites()
		a.answers(saying("another", time.Time{}))
		advance(pollEntry * 11 / 10)
		footest.ExpectEqual(f.T, "the report", "another", f.StoredFoo("a").Status.Selector)
		f.ExpectReady("a", "True Available of 1")
		f.ExpectWrites(writeStatus)
		a.answers(saying("refused", time.Time{}))
		advance(pollEntry * 11 / 10)
		f.ExpectReady("a", "False EntryFailed of 1")
	})
}

func (l Loop) TestAnAnswerStandsWhilePollsFail(t *testing.T) {
	for name, answer := range map[string]func(context.Context, string, *samplev1alpha1.Foo) (entry, error){
		"503 of the authority":      isDown,
		"context deadline exceeded": hangs,
		"panic: a bug":              func(context.Context, string, *samplev1alpha1.Foo) (entry, error) { panic("a bug") },
		"it has not returned in time": func(context.Context, string, *samplev1alpha1.Foo) (entry, error) {
			<-time.After(24 * time.Hour) // whatever its context says
			return entry{Text: "late"}, nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			l.runCalls(t, asCalled, func(f *fixture, a *authority) {
				a.answers(answer)
				advance(pollEntry * 12 / 10)
				f.ExpectReady("a", "True Available of 1")
				f.expectEntered("Unknown EntryFailed: Entry: the last call failed: " + name + "; the answer before stands")
				f.ExpectWrites(writeStatus)
				advance(time.Hour)
				f.ExpectWrites()
				footest.ExpectEqual(f.T, "the report", "a-2", f.StoredFoo("a").Status.Selector)
				a.answers(nil)
				advance(25 * time.Hour)
				f.ExpectReady("a", "True Available of 1")
				f.expectEntered("True Available: entered as a-2")
			})
		})
	}
}

func (l Loop) TestAHangingAuthorityHoldsUpNoOther(t *testing.T) {
	var foos []runtime.Object
	for i := range 40 {
		foos = append(foos, footest.Foo(fmt.Sprint("hangs-", i), func(foo *samplev1alpha1.Foo) { foo.Namespace = fmt.Sprint("team-", i%5) }))
	}
	l.testCalls(t, asCalled, append(foos, footest.Foo("a")), func(f *fixture, a *authority) {
		a.answers(func(ctx context.Context, verb string, foo *samplev1alpha1.Foo) (entry, error) {
			if foo.Name != "a" {
				return hangs(ctx, verb, foo)
			}
			return entry{Text: "a"}, nil
		})
		defer f.start()()
		advance(10 * time.Second)
		f.ExpectReady("a", "True Available of 1")
		footest.ExpectEqual(f.T, "the children that wait for no answer", 41, f.Count("create configmaps"))
	})
}

func (l Loop) TestAFailedFirstCall(t *testing.T) {
	l.testCalls(t, asCalled, world(footest.Foo("a")), func(f *fixture, a *authority) {
		a.answers(isDown)
		defer f.start()()
		advance(time.Minute)
		ready := f.ExpectReady("a", "False EntryFailed of 1")
		footest.ExpectEqual(f.T, "the message", "Entry: the last call failed: 503 of the authority", ready.Message)
		a.made()
		f.TakeWrites()
		advance(time.Hour)
		if calls := len(a.made()); calls < 11 || calls > 20 {
			f.T.Errorf("%d calls in an hour", calls)
		}
		f.ExpectWrites()
		a.answers(nil)
		advance(6 * time.Minute)
		f.ExpectReady("a", "True Available of 1")
	})
}

func (l Loop) TestAnAnswerThatExpires(t *testing.T) {
	noPoll := func(call *plan.Call[*samplev1alpha1.Foo, entry]) { call.Poll = 0 }
	expires := footest.Now.Add(7 * 24 * time.Hour)
	l.testCalls(t, noPoll, world(footest.Foo("a")), func(f *fixture, a *authority) {
		a.answers(saying("week-1", expires))
		defer f.start()()
		advance(6*24*time.Hour - time.Second)
		f.expectCalls(a, "do a 2")
		a.answers(isDown)
		advance(23 * time.Hour)
		f.ExpectReady("a", "True Available of 1")
		advance(time.Hour + time.Minute)
		ready := f.ExpectReady("a", "False EntryFailed of 1")
		footest.ExpectEqual(f.T, "the message", "Entry has expired at 2000-01-08T00:00:00Z: entered as week-1", ready.Message)
		a.made()
		a.answers(saying("week-1", expires)) // which stays due
		advance(6 * time.Minute)
		a.made()
		advance(time.Hour)
		if calls := len(a.made()); calls < 59 || calls > 61 {
			f.T.Errorf("%d calls in an hour for an answer that has expired", calls)
		}
		a.answers(saying("week-2", expires.Add(7*24*time.Hour)))
		advance(2 * time.Minute)
		f.ExpectReady("a", "True Available of 1")
		a.made()
		advance(24 * time.Hour)
		f.expectCalls(a)
	})
}

func (l Loop) TestARestartCallsNobodyInABurst(t *testing.T) {
	var foos []runtime.Object
	for i := range 100 {
		foos = append(foos, footest.Foo(fmt.Sprint("a-", i)))
	}
	l.testCalls(t, asCalled, foos, func(f *fixture, a *authority) {
		stop := f.start()
		advance(2 * time.Minute)
		stop()
		footest.ExpectEqual(f.T, "the first calls", 100, len(a.made()))
		f.TakeWrites()
		defer f.restart()()
		advance(time.Minute)
		if calls := len(a.made()); calls < 1 || calls > 30 {
			f.T.Errorf("%d calls in the first of ten minutes", calls)
		}
		f.ExpectWrites()
		advance(pollEntry)
		if calls := len(a.made()); calls < 70 || calls > 110 {
			f.T.Errorf("%d calls in ten minutes", calls)
		}
		f.ExpectReady("a-1", "True Available of 1")
	})
}

// An authority that is down when the program starts again gets each call once within a minute.
func (l Loop) TestARestartWhileTheAuthorityIsDown(t *testing.T) {
	var foos []runtime.Object
	for i := range 100 {
		foos = append(foos, footest.Foo(fmt.Sprint("a-", i)))
	}
	l.testCalls(t, asCalled, foos, func(f *fixture, a *authority) {
		a.answers(isDown)
		stop := f.start()
		advance(time.Hour)
		stop()
		a.made()
		a.answers(nil)
		defer f.restart()()
		advance(6 * time.Second)
		if calls := len(a.made()); calls > 30 {
			f.T.Errorf("%d calls in the first tenth of a minute", calls)
		}
		advance(time.Minute)
		f.ExpectReady("a-1", "True Available of 1")
	})
}

func (l Loop) TestAnAnswerToAnotherSpecIsNoAnswer(t *testing.T) {
	l.runCalls(t, asCalled, func(f *fixture, a *authority) {
		ends := make(chan struct{})
		a.answers(func(_ context.Context, _ string, foo *samplev1alpha1.Foo) (entry, error) {
			if *foo.Spec.Replicas == 3 {
				<-ends
			}
			return entry{Text: fmt.Sprint("for-", *foo.Spec.Replicas)}, nil
		})
		f.respec(scaleTo(3))
		f.expectCalls(a, "do a 3")
		ready := f.ExpectReady("a", "False Progressing of 2")
		footest.ExpectEqual(t, "the message", "Entry: waiting for the answer to the newest spec", ready.Message)
		footest.ExpectEqual(t, "the report", "", f.StoredFoo("a").Status.Selector)
		f.respec(scaleTo(4))
		f.ExpectReady("a", "False Progressing of 3")
		close(ends)
		advance(time.Minute)
		f.expectCalls(a, "do a 4")
		f.ExpectReady("a", "True Available of 3")
		footest.ExpectEqual(t, "the report", "for-4", f.StoredFoo("a").Status.Selector)
	})
}

func (l Loop) TestASyncThatIsAskedForCallsAtOnce(t *testing.T) {
	l.runCalls(t, asCalled, func(f *fixture, a *authority) {
		f.requestSync("1")
		f.expectCalls(a, "do a 2")
		footest.ExpectEqual(t, "the request that the status answers", "1", f.StoredFoo("a").Status.LastHandledSync)
		f.ExpectReady("a", "True Available of 1")
		f.TakeWrites()
		a.answers(hangs)
		f.requestSync("2")
		f.expectCalls(a, "do a 2")
		f.ExpectReady("a", "True Available of 1")
		footest.ExpectEqual(t, "the request that the status answers during the call", "1", f.StoredFoo("a").Status.LastHandledSync)
		f.requestSync("3") // in place of the one that hangs
		f.expectCalls(a, "do a 2")
		a.answers(isDown)
		advance(31 * time.Second)
		footest.ExpectEqual(t, "the request that the status answers after a failure", "3", f.StoredFoo("a").Status.LastHandledSync)
		advance(30 * time.Minute)
		a.made()
		a.answers(saying("new", time.Time{}))
		f.requestSync("4")
		f.expectCalls(a, "do a 2")
		advance(time.Minute)
		footest.ExpectEqual(t, "the report", "new", f.StoredFoo("a").Status.Selector)
	})
}

func (l Loop) TestASuspendedOwnerIsNotCalledFor(t *testing.T) {
	l.runCalls(t, asCalled, func(f *fixture, a *authority) {
		f.respec(func(spec *samplev1alpha1.FooSpec) { spec.Suspend = new(true) })
		advance(2 * time.Hour)
		f.expectCalls(a)
		f.ExpectReady("a", "False Suspended of 2")
		f.respec(func(spec *samplev1alpha1.FooSpec) { spec.Suspend = nil })
		advance(time.Minute)
		f.expectCalls(a, "do a 2")
		f.ExpectReady("a", "True Available of 3")
		f.respec(func(spec *samplev1alpha1.FooSpec) { spec.Suspend = new(true) })
		f.beginDeletion()
		f.expectCalls(a, "undo a 2")
		footest.ExpectEqual(t, "whether it is gone", true, f.isGone())
	})
}

func (l Loop) TestAnAnswerMayHoldBackTheChildren(t *testing.T) {
	blocks := func(call *plan.Call[*samplev1alpha1.Foo, entry]) { call.Blocks = true }
	l.testCalls(t, blocks, world(footest.Foo("a")), func(f *fixture, a *authority) {
		a.answers(saying("refused", time.Time{}))
		defer f.start()()
		advance(time.Minute)
		f.expectShards("the entry is refused")
		f.ExpectReady("a", "False EntryFailed of 1")
		a.answers(nil)
		advance(pollEntry * 11 / 10)
		f.expectShards("the entry is made", "a")
	})
}

// A call without Report is not repeated after a restart if the status says Ready.
func (l Loop) TestACallWithoutAReport(t *testing.T) {
	once := func(call *plan.Call[*samplev1alpha1.Foo, entry]) {
		call.Report, call.Recall, call.Poll, call.Judge = nil, nil, 0, nil
	}
	l.testCalls(t, once, world(footest.Foo("a")), func(f *fixture, a *authority) {
		stop := f.start()
		advance(time.Minute)
		stop()
		f.expectCalls(a, "do a 2")
		f.ExpectReady("a", "True Available of 1")
		f.TakeWrites()
		defer f.restart()()
		advance(24 * time.Hour)
		f.expectCalls(a)
		f.ExpectWrites()
	})
}

// A status that says Ready has an answer, even if that is zero.
func (l Loop) TestAnAnswerThatIsZeroStandsAfterARestart(t *testing.T) {
	zero := func(call *plan.Call[*samplev1alpha1.Foo, entry]) {
		call.Judge = func(is entry) plan.Readiness { return plan.Ready("entered as %q", is.Text) }
	}
	l.testCalls(t, zero, world(footest.Foo("a")), func(f *fixture, a *authority) {
		a.answers(saying("", time.Time{}))
		stop := f.start()
		advance(time.Minute)
		stop()
		f.TakeWrites()
		defer f.restart()()
		advance(24 * time.Hour)
		f.ExpectWrites()
		footest.ExpectEqual(t, "the message", `entered as ""`, f.ExpectReady("a", "True Available of 1").Message)
	})
}

// What a Judge says about a time holds for each row: a Secret that is due is read again, with an informer, too.
func (l Loop) TestAReferenceIsReadAgainWhenItIsDue(t *testing.T) {
	var at atomic.Int64
	due := func() time.Time { return time.Unix(at.Load(), 0).UTC() }
	l.forBoth(t, func(ref *plan.Ref[*samplev1alpha1.Foo, *corev1.Secret]) {
		ref.Judge = func(*corev1.Secret) plan.Readiness {
			return plan.Ready("").ComeAgain(due()).Expires(due().Add(time.Hour))
		}
		ref.Poll = 24 * time.Hour
	}, func(f *fixture, _ func()) {
		at.Store(footest.Now.Add(30 * time.Minute).Unix())
		f.becomeReady("web-0")
		f.store(secret("1"))
		f.requestSync("1")
		f.ExpectReady("a", "True Available of 1")
		f.TakeWrites()
		advance(25 * time.Minute)
		footest.ExpectEqual(f.T, "reads before it is due", 0, f.Count("get secrets"))
		advance(65 * time.Minute)
		if reads := f.Count("get secrets"); reads < 55 || reads > 65 {
			f.T.Errorf("the Secret, which stays due, is read %d times in an hour", reads)
		}
		ready := f.ExpectReady("a", "False SecretFailed of 1")
		footest.ExpectEqual(f.T, "the message", "Secret has expired at 2000-01-01T01:30:00Z", ready.Message)
		at.Store(due().Add(365 * 24 * time.Hour).Unix()) // another verdict
		advance(2 * time.Minute)
		f.ExpectReady("a", "True Available of 1")
	})
}
