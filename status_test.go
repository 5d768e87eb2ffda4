// SPDX-License-Identifier: Apache-2.0

// Tests of the writes to the status: refusals, mismatched definitions, lost responses.

package main

import (
	"errors"
	"fmt"
	"slices"
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
	"example.com/sample-controller/internal/plan"
	"example.com/sample-controller/internal/queue"
	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/test/footest"
)

// countCalls counts the calls of a verb on a resource, and refuses them while refused is
// set.
func (f *fixture) countCalls(verb, resource string, refusal error) (calls *atomic.Int32, refused *atomic.Bool) {
	calls, refused = &atomic.Int32{}, &atomic.Bool{}
	refused.Store(true)
	reaction := func(clienttesting.Action) (bool, runtime.Object, error) {
		calls.Add(1)
		return refused.Load(), nil, refusal
	}
	f.kubeClient.PrependReactor(verb, resource, reaction)
	f.fooClient.PrependReactor(verb, resource, reaction)
	return calls, refused
}

func countWrites(f *fixture, write string) int {
	verbs, _ := f.writes()
	return len(slices.DeleteFunc(verbs, func(verb string) bool { return verb != write }))
}

// A recreated Foo is another Foo: it does not inherit the back-off of the deleted one.
func TestBackOffIsNotInherited(t *testing.T) {
	for name, replace := range map[string]func(*testing.T, *fixture){
		"seen as one change": func(t *testing.T, f *fixture) {
			f.updateFoo(t, footest.Foo("a", footest.WithFooUID("uid-new")))
		},
		"seen as a deletion and a creation": func(t *testing.T, f *fixture) {
			f.deleteFoo(t, "a")
			f.createFoo(t, footest.Foo("a", footest.WithFooUID("uid-new")))
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t, footest.Foo("a"))
				calls, _ := f.countCalls("create", children, apierrors.NewForbidden(footest.ChildGR, "web", errors.New("exceeded quota")))
				defer f.start(2)()
				advance(59 * time.Minute)
				calls.Store(0)
				replace(t, f)
				advance(queue.RefusedRetry / 2)
				if n := calls.Load(); n != 1 {
					t.Errorf("the Foo was tried %d times at once", n)
				}
				advance(queue.RefusedRetry)
				if n := calls.Load(); n != 2 {
					t.Errorf("after %v the Foo had been tried %d times", queue.RefusedRetry, n)
				}
			})
		})
	}
}

// prune makes the API server drop the conditions, as with a definition that lacks them,
// while pruning is set.
func (f *fixture) prune() (pruning *atomic.Bool) {
	pruning = &atomic.Bool{}
	pruning.Store(true)
	f.fooClient.PrependReactor("update", "foos", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if foo := action.(clienttesting.UpdateAction).GetObject().(*samplev1alpha1.Foo); pruning.Load() {
			foo.Status = samplev1alpha1.FooStatus{AvailableReplicas: foo.Status.AvailableReplicas}
		}
		return false, nil, nil
	})
	return pruning
}

func TestAPrunedStatusIsNotWrittenForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, footest.Foo("a"), footest.Foo("b", footest.WithChildName("other")), footest.Child("a"))
		pruning := f.prune()
		defer f.start(2)()
		for range 20 { // 20 minutes
			f.resync(t, "a")
			f.resync(t, "b")
		}
		if verbs, _ := f.writes(); len(verbs) > 1+2*5 {
			t.Errorf("two Foos at rest caused %d writes: %v", len(verbs), verbs)
		}
		if events := f.recorded(); len(events) != 2 {
			t.Errorf("two transitions have %d Events: %q", len(events), events)
		}
		if available := f.cachedFoo(t, "a").Status.AvailableReplicas; available != footest.Settled("a").AvailableReplicas {
			t.Errorf("a field that the definition has is not written: %d available", available)
		}

		pruning.Store(false) // the right definition is installed
		for range 11 {
			f.resync(t, "a")
			f.resync(t, "b")
		}
		f.expectReady(t, "a", "True Available of 1")
		f.expectReady(t, "b", afterCreate())
		if f.memory.Of(footest.Foo("a")).Pruned != nil || f.memory.Of(footest.Foo("b")).Pruned != nil {
			t.Error("the mismatch is still remembered after a status was stored as sent")
		}
	})
}

func TestAMissingStatusSubresourceIsReportedAndNotFought(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const count = 10
		world := []runtime.Object{}
		for i := range count {
			world = append(world, footest.Foo(fmt.Sprint("a", i), footest.WithChildName(fmt.Sprint("d", i))))
		}
		f := newFixture(t, world...)
		calls, missing := f.countCalls("update", "foos", apierrors.NewNotFound(footest.FoosResource.GroupResource(), "a"))
		defer f.start(1)()
		advance(time.Hour)
		for i := range count {
			f.storedChild(t, fmt.Sprint("d", i)) // the children are still reconciled
		}
		if n := calls.Load(); n > 13 { // one every 5 minutes
			t.Errorf("for %d Foos %d statuses were sent in an hour", count, n)
		}
		f.expectMetrics(t, "an error each 5 minutes", `sample_controller_sync_duration_seconds_count{result="error"} 13`)
		missing.Store(false)
		advance(queue.LastRetry)
		for i := range count {
			f.resync(t, fmt.Sprint("a", i))
			f.expectReady(t, fmt.Sprint("a", i), afterCreate())
		}
	})
}

// The API server also answers 404 if the Foo is deleted. That race says nothing about the
// definition.
func TestAFooThatIsGoneIsNoMissingSubresource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, footest.Foo("a"), footest.Child("a"))
		gone := apierrors.NewNotFound(footest.FoosResource.GroupResource(), "a")
		f.refuse("update", "foos", gone)
		f.refuse("get", "foos", gone)
		if err := f.syncHandler(f.ctx, footest.KeyOf(footest.Foo("a"))); err == nil || errors.Is(err, failure.ErrCRDMismatch) || !queue.NextAttempt(err).Expected {
			t.Errorf("the sync ended with: %v", err)
		}
	})
}

// If the response to a status write is lost, its transition still has one Event, whether
// the status was stored or not.
func TestATransitionWhoseAnswerIsLostHasItsEvent(t *testing.T) {
	for name, stored := range map[string]bool{"stored": true, "not stored": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t, footest.Foo("a"), footest.Child("a"))
				lost := false
				f.fooClient.PrependReactor("update", "foos", func(action clienttesting.Action) (bool, runtime.Object, error) {
					if lost {
						return false, nil, nil
					}
					lost = true
					if stored {
						_, err := f.api.Update(f.fooClient.Tracker(), action.(clienttesting.UpdateAction))
						footest.Must(t, err)
					}
					return true, nil, errors.New("read: connection reset by peer")
				})
				defer f.start(2)()
				advance(time.Hour)
				f.expectReady(t, "a", "True Available of 1")
				footest.ExpectEqual(t, "the list of events", []string{"Normal Available " + footest.ReadyOf(footest.Settled("a")).Message}, f.recorded())
			})
		})
	}
}

// Another controller may replace the status before a sync gets as far as its own.
func TestATransitionWhoseAnswerIsLostHasItsEventAfterALostRace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, footest.Foo("a"), footest.Child("a"))
		f.fooClient.PrependReactor("update", "foos", once(func(action clienttesting.Action) error {
			_, err := f.api.Update(f.fooClient.Tracker(), action.(clienttesting.UpdateAction))
			footest.Must(t, err)
			f.drift(t, "web")
			advance(time.Millisecond) // the next sync sees both
			return errors.New("read: connection reset by peer")
		}))
		f.kubeClient.PrependReactor("patch", children, once(func(clienttesting.Action) error {
			foo := f.storedFoo(t, "a").DeepCopy()
			foo.Status.Conditions[0].Reason = "OfAnother"
			f.updateFoo(t, foo)
			return apierrors.NewConflict(footest.ChildGR, "web", errors.New("modified"))
		}))
		defer f.start(2)()
		advance(time.Hour)
		if events := f.recorded(); len(events) < 2 || !strings.HasPrefix(events[0], "Normal Available ") || !strings.HasPrefix(events[1], "Normal Progressing ") {
			t.Errorf("the Events are %q", events)
		}
	})
}

// once returns a reaction to the first call.
func once(answer func(clienttesting.Action) error) clienttesting.ReactionFunc {
	done := false
	return func(action clienttesting.Action) (bool, runtime.Object, error) {
		if done {
			return false, nil, nil
		}
		done = true
		return true, nil, answer(action)
	}
}

// A condition whose time could not be decoded has none, but the API server requires one.
func TestEveryConditionHasATime(t *testing.T) {
	before := footest.Settled("a")
	before.Conditions = append(before.Conditions, metav1.Condition{Type: "Audited", Status: metav1.ConditionTrue, Reason: "ByOthers"})
	before.Conditions[0].LastTransitionTime = metav1.Time{}
	after := plan.Foos(footest.DefaultImage).WithStatus(footest.Foo("a", footest.WithStatus(before)), nil, footest.Now)
	for _, condition := range *after.GetConditions() {
		if !condition.LastTransitionTime.Equal(&footest.Now) {
			t.Errorf("the condition %s has the time %v", condition.Type, condition.LastTransitionTime)
		}
	}
}

func TestFailedFooIsHeldBeforeItsStatusIsWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, footest.Foo("a"))
		f.refuse("create", children, apierrors.NewForbidden(footest.ChildGR, "web", errors.New("exceeded quota")))
		held := false
		f.fooClient.PrependReactor("update", "foos", func(clienttesting.Action) (bool, runtime.Object, error) {
			held = f.backoff.InBackoff(footest.KeyOf(footest.Foo("a")))
			return false, nil, nil
		})
		_ = f.syncHandler(f.ctx, footest.KeyOf(footest.Foo("a")))
		if !held {
			t.Error("the watch event of the status would wake the Foo at once")
		}
	})
}
