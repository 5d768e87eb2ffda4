// SPDX-License-Identifier: Apache-2.0

// Tests of the status: of the condition Ready while writes fail, are refused, or are not stored
// as sent; of status writes and their Events; and of failures in the log.

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/pkg/reconcile/queue"
	"example.com/sample-controller/pkg/reconcile/reconciletest/rows"
	"example.com/sample-controller/test/footest"
)

var (
	// quotaExceeded is a refusal, and modified are lost races.
	quotaExceeded = apierrors.NewForbidden(footest.ChildGR, "web", errors.New("exceeded quota"))
	childModified = apierrors.NewConflict(footest.ChildGR, "web", errors.New("modified"))
	fooModified   = apierrors.NewConflict(footest.FoosResource.GroupResource(), "a", errors.New("modified"))
	fooGone       = apierrors.NewNotFound(footest.FoosResource.GroupResource(), "a")
	serverFails   = apierrors.NewInternalError(errors.New("etcd leader changed"))
)

func TestAScaleThatCannotBeWrittenIsNotReady(t *testing.T) {
	for name, fail := range map[string]error{
		"a webhook is down":     apierrors.NewInternalError(errors.New(`failed calling webhook "x": connection refused`)),
		"no answer":             context.DeadlineExceeded,
		"no connection":         errors.New("connection refused"),
		"the server is busy":    apierrors.NewTooManyRequests("slow down", 7),
		"the server shuts down": apierrors.NewServiceUnavailable("shutting down"),
		"no etcd":               apierrors.NewServerTimeout(footest.ChildGR, "update", 1),
	} {
		for verb, resource := range map[string]string{"patch": children, "get": "foos"} {
			t.Run(name+" at "+verb+" "+resource, func(t *testing.T) {
				testRunning(t, atRest(), func(f *fixture) {
					advance(time.Second)
					f.ExpectWrites()
					outage := f.Refuse(verb, resource, fail)
					f.scale("a", 5)
					f.change("web", footest.Drifted)
					for range 60 {
						advance(time.Second)
						f.ExpectReady("a", "False Progressing of 2")
					}
					want := "Normal Progressing " + footest.Primary.Kind + ` "web" could not be updated yet: `
					if events := f.Recorded(); len(events) != 1 || !strings.HasPrefix(events[0], want) {
						t.Errorf("the Events of an outage are %q", events)
					}
					outage.Over.Store(true)
					advance(5 * time.Minute)
					f.expectWanted()
				})
			})
		}
	}
}

// A refusal that may pass by itself, as in the half minute after a definition is installed, is
// not stalled. Tools give up on stalled Foos.
func TestARefusalThatLastsIsStalled(t *testing.T) {
	test(t, world(footest.Foo("a")), func(f *fixture) {
		refused := f.Refuse("create", children, denial(http.StatusForbidden, metav1.StatusReasonForbidden))
		defer f.start(2)()
		advance(29 * time.Second)
		f.expectStalled("")
		advance(time.Minute)
		f.expectStalled(failed)
		refused.Over.Store(true)
		advance(2 * time.Minute)
		f.expectStalled("")
	})
}

// One live read decides whether a child that may be older than the spec makes the Foo ready.
// TestNothingIsWrittenOnTheBasisOfACacheAlone has the children that contradict the cache.
func TestReadyOfANewGenerationIsConfirmedLive(t *testing.T) {
	for name, answer := range map[string]error{
		"as in the cache": nil, "deleted": apierrors.NewNotFound(footest.ChildGR, "web"), "the server fails": serverFails,
	} {
		t.Run(name, func(t *testing.T) {
			test(t, world(settledFoo(footest.WithGeneration(3)), footest.Child("a")), func(f *fixture) {
				reads := f.Refuse("get", children, answer)
				if err := f.sync(); !errors.Is(err, answer) || reads.Calls.Load() != 1 {
					t.Errorf("after %d live reads, the sync ended with %v", reads.Calls.Load(), err)
				}
				status := f.written()
				if isTrue := status != nil && footest.ReadyOf(*status).Status == metav1.ConditionTrue; isTrue != (answer == nil) {
					t.Errorf("the status that was written is %+v", status)
				}
			})
		})
	}
}

func TestAChildWrittenForAGenerationNeedsNoLiveRead(t *testing.T) {
	testRunning(t, world(footest.Foo("a")), func(f *fixture) {
		advance(time.Second)
		f.settle("web")
		advance(time.Second)
		f.ExpectReady("a", "True Available of 1")
		if reads := f.Count("get " + children); reads != 0 {
			t.Errorf("the child was read live %d times", reads)
		}
		f.expectForgotten("a")
	})
}

func TestTextThatIsNotUTF8IsNoMismatchOfTheDefinition(t *testing.T) {
	test(t, world(footest.Foo("a")), func(f *fixture) {
		f.Refuse("create", children, apierrors.NewServiceUnavailable("nicht verf\xfcgbar"))
		_ = f.sync()
		status := f.written()
		if sent, err := json.Marshal(status); err != nil || !strings.Contains(string(sent), "nicht verf\uFFFDgbar") {
			t.Errorf("sent is %s (%v)", sent, err)
		}
	})
}

// A webhook's denial of one status concerns only that Foo.
func TestADeniedStatusStopsNoOthers(t *testing.T) {
	test(t, world(footest.Foo("a"), footest.Foo("b", footest.WithChildName("other"))), func(f *fixture) {
		f.On("update", "foos", func(action clienttesting.Action) error {
			if action.(clienttesting.UpdateAction).GetObject().(*samplev1alpha1.Foo).Name == "a" {
				return denial(http.StatusNotFound, metav1.StatusReasonNotFound)
			}
			return nil
		})
		defer f.start(1)()
		advance(time.Minute)
		f.ExpectReady("b", afterCreate())
	})
}

// A client that replaces a status each time does not set the pace. A status that is replaced
// once is rewritten at once.
func TestAStatusThatSomebodyReplacesEachTime(t *testing.T) {
	const freeReplacements = 3 // how often a status is rewritten at once
	testRunning(t, atRest(), func(f *fixture) {
		replace := func() {
			theirs := f.StoredFoo("a")
			theirs.Status.Conditions[0].Status, theirs.Status.Conditions[0].Reason = metav1.ConditionFalse, "Theirs"
			f.Put(theirs)
		}
		for range freeReplacements {
			replace()
			advance(10 * time.Millisecond)
			f.ExpectReady("a", "True Available of 1")
		}
		f.TakeWrites()
		for range 36_000 { // an hour
			if rows.ConditionOf(f.StoredFoo("a")).Reason != "Theirs" {
				replace()
			}
			advance(100 * time.Millisecond)
		}
		if writes := f.TakeWrites(); len(writes) < 5 || len(writes) > 30 {
			t.Errorf("%d writes in an hour", len(writes))
		}
		advance(10 * time.Minute)
		f.ExpectReady("a", "True Available of 1")
		advance(time.Hour)
		replace()
		advance(10 * time.Millisecond)
		f.ExpectReady("a", "True Available of 1")
	})
}

// With a definition that lacks the conditions, the API server drops them.
func TestAPrunedStatusIsNotWrittenForEver(t *testing.T) {
	foos := world(footest.Foo("a"), footest.Foo("b", footest.WithChildName("other")), footest.Child("a"))
	test(t, foos, func(f *fixture) {
		var installed atomic.Bool // of the right definition
		f.On("update", "foos", func(action clienttesting.Action) error {
			if foo := action.(clienttesting.UpdateAction).GetObject().(*samplev1alpha1.Foo); !installed.Load() {
				foo.Status = samplev1alpha1.FooStatus{AvailableReplicas: foo.Status.AvailableReplicas}
			}
			return nil
		})
		defer f.start(2)()
		for range 20 { // 20 minutes
			f.resync("a")
			f.resync("b")
		}
		if writes := f.TakeWrites(); len(writes) > 1+2*5 {
			t.Errorf("two Foos at rest caused %d writes: %v", len(writes), writes)
		}
		if events := f.Recorded(); len(events) != 2 {
			t.Errorf("two transitions have %d Events: %q", len(events), events)
		}
		if available := f.cachedFoo("a").Status.AvailableReplicas; available != footest.Settled("a").AvailableReplicas {
			t.Errorf("a field that the definition has is not written: %d available", available)
		}

		installed.Store(true)
		for range 11 {
			f.resync("a")
			f.resync("b")
		}
		f.ExpectReady("a", "True Available of 1")
		f.ExpectReady("b", afterCreate())
		f.expectForgotten("a") // the mismatch, too
	})
}

func TestAMissingStatusSubresourceIsReportedAndNotFought(t *testing.T) {
	var foos []runtime.Object
	for i := range 10 {
		foos = append(foos, footest.Foo(fmt.Sprint("a", i), footest.WithChildName(fmt.Sprint("d", i))))
	}
	test(t, foos, func(f *fixture) {
		missing := f.Refuse("update", "foos", fooGone)
		defer f.start(1)()
		advance(time.Hour)
		for i := range foos {
			f.StoredChild(fmt.Sprint("d", i)) // the children are still reconciled
		}
		if n := missing.Calls.Load(); n > 13 { // one every 5 minutes
			t.Errorf("for %d Foos %d statuses were sent in an hour", len(foos), n)
		}
		f.ExpectMetrics("an error each 5 minutes", `sample_controller_sync_duration_seconds_count{result="error"} 13`)
		missing.Over.Store(true)
		advance(queue.LastRetry)
		for i := range foos {
			f.resync(fmt.Sprint("a", i))
			f.ExpectReady(fmt.Sprint("a", i), afterCreate())
		}
	})
}

// Resyncs may be turned off.
func TestAllStatusesFollowAMendedDefinitionWithoutResyncs(t *testing.T) {
	for name, mismatch := range map[string]func(foo *samplev1alpha1.Foo) error{
		"no subresource": func(*samplev1alpha1.Foo) error { return fooGone },
		"no conditions":  func(foo *samplev1alpha1.Foo) error { foo.Status.Conditions = nil; return nil },
	} {
		t.Run(name, func(t *testing.T) {
			test(t, world(footest.Foo("a"), footest.Foo("b", footest.WithChildName("other"))), func(f *fixture) {
				mended := time.Now().Add(3 * queue.LastRetry)
				f.On("update", "foos", func(action clienttesting.Action) error {
					if time.Now().After(mended) {
						return nil
					}
					return mismatch(action.(clienttesting.UpdateAction).GetObject().(*samplev1alpha1.Foo))
				})
				defer f.start(1)()
				advance(4*queue.LastRetry + time.Second)
				f.ExpectReady("a", afterCreate())
				f.ExpectReady("b", afterCreate())
			})
		})
	}
}

// Nothing follows from a status that was not found because the Foo was recreated.
func TestAFooRecreatedBeforeItsStatusIsWrittenStopsNoStatuses(t *testing.T) {
	test(t, world(footest.Foo("a"), footest.Foo("b", footest.WithChildName("other"))), func(f *fixture) {
		f.OnFirst(1, "update", "foos", func(action clienttesting.Action) error {
			foo := action.(clienttesting.UpdateAction).GetObject().(*samplev1alpha1.Foo)
			f.DeleteFoo(foo.Name)
			f.Put(footest.Foo(foo.Name, footest.WithFooUID("second"), footest.WithChildName(foo.Spec.DeploymentName)))
			return fooGone
		})
		defer f.start(1)()
		advance(time.Second)
		f.ExpectReady("b", afterCreate())
	})
}

// Another controller may replace the status before a sync reaches its own status write.
func TestATransitionWhoseAnswerIsLostHasItsEventAfterALostRace(t *testing.T) {
	test(t, world(footest.Foo("a"), footest.Child("a")), func(f *fixture) {
		f.OnFirst(1, "update", "foos", func(action clienttesting.Action) error {
			_, err := f.API.Write(f.Foos.Tracker(), action) // stored, and the answer is lost
			footest.Must(t, err)
			f.change("web", footest.Drifted)
			advance(time.Millisecond) // the next sync sees both
			return errors.New("read: connection reset by peer")
		})
		f.OnFirst(1, "patch", children, func(clienttesting.Action) error {
			foo := f.StoredFoo("a")
			foo.Status.Conditions[0].Reason = "OfAnother"
			f.Put(foo)
			return childModified
		})
		defer f.start(2)()
		advance(time.Hour)
		events := f.Recorded()
		if len(events) < 2 || !strings.HasPrefix(events[0], "Normal Available ") || !strings.HasPrefix(events[1], "Normal Progressing ") {
			t.Errorf("the Events are %q", events)
		}
	})
}

// A status that is stored ends the series of its failures, also beside a child whose writes fail:
// the next failure has the first delay.
func TestAStoredStatusEndsItsBackOffBesideAFailingChild(t *testing.T) {
	for name, lost := range map[string]bool{"by a write": false, "by a write whose response was lost": true} {
		t.Run(name, func(t *testing.T) {
			test(t, world(footest.Foo("a")), func(f *fixture) {
				f.Refuse("create", children, quotaExceeded)
				calls := 0
				f.OnFirst(9, "update", "foos", func(action clienttesting.Action) error {
					if calls++; lost && calls == 9 {
						f.Put(action.(clienttesting.UpdateAction).GetObject().DeepCopyObject().(footest.Object))
					}
					return serverFails
				})
				defer f.start(2)()
				f.queue.Add(footest.KeyOf(footest.Foo("a")))
				advance(2600 * time.Millisecond) // the child is tried again after 3 s
				f.FailTimes(1, "update", "foos", serverFails)
				f.scale("a", 5)
				advance(100 * time.Millisecond)
				if observed := f.StoredFoo("a").Status.ObservedGeneration; calls != 9 || observed != 2 {
					t.Errorf("after %d failures and another, the status is of generation %d", calls, observed)
				}
			})
		})
	}
}

// The failures of a tenant's Foos must not fill the log: 10,000 Foos that a quota refuses would
// log 33 lines per second.
func TestAFailureThatRepeatsIsLoggedOnceAnHour(t *testing.T) {
	test(t, world(footest.Foo("a")), func(f *fixture) {
		logger := ktesting.NewLogger(ktesting.NopTL{}, ktesting.NewConfig(ktesting.Verbosity(0), ktesting.BufferLogs(true)))
		f.ctx = klog.NewContext(f.ctx, logger)
		log := logger.GetSink().(ktesting.Underlier).GetBuffer()
		f.Refuse("create", children, serverFails)
		first := f.Refuse("create", children, quotaExceeded)
		defer f.start(1)()
		expect := func(after time.Duration, want int) {
			t.Helper()
			advance(after)
			if lines := strings.Count(log.String(), "Sync failed"); lines != want {
				t.Errorf("%v later there are %d lines, not %d:\n%s", after, lines, want, log)
			}
		}
		expect(50*time.Minute, 1)
		first.Over.Store(true)
		expect(55*time.Minute, 2) // the last attempt with the first cause came after 47 minutes
		expect(15*time.Minute, 3) // an hour after the second cause
	})
}

func TestADeletedFooHoldsUpNoOther(t *testing.T) {
	test(t, atRest(), func(f *fixture) {
		key := footest.KeyOf(settledFoo())
		f.rollouts.Limit = 1
		f.rollouts.Begin(key)
		for range 4 { // one more than are written at once
			f.replaced.Observe(settledFoo())
		}
		f.DeleteFoo("a")
		advance(0)
		footest.Must(t, f.sync())
		if wait := f.rollouts.Begin(footest.KeyOf(footest.Foo("b"))); wait > 0 {
			t.Errorf("the rollout of another Foo waits for %s", wait)
		}
		if wait := f.replaced.Wait(settledFoo()); wait > 0 {
			t.Errorf("a status of the next Foo waits for %s", wait)
		}
	})
}
