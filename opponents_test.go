// SPDX-License-Identifier: Apache-2.0

// Tests of others who deny, change or undo what the controller writes, for as long as they
// like.

package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/test/footest"
)

// denial is the answer to a request that an admission webhook denies with a code of its
// choice. The API server passes it on (k8s.io/apiserver/pkg/admission/plugin/webhook/errors).
func denial(code int32, reason metav1.StatusReason) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: code, Reason: reason, Message: `admission webhook "names.example.com" denied the request: taken`,
	}}
}

// denials are those that look like lost races, and one that looks like nothing.
var denials = map[string]error{
	"code 409": denial(http.StatusConflict, ""), "code 404": denial(http.StatusNotFound, ""), "code 418": denial(http.StatusTeapot, ""),
	"reason Conflict": denial(http.StatusConflict, metav1.StatusReasonConflict), "reason NotFound": denial(http.StatusNotFound, metav1.StatusReasonNotFound),
}

// A denial that lasts is told within seconds, and asked for again seldom.
func TestALastingDenialIsTold(t *testing.T) {
	settled := footest.Foo("a", footest.WithGeneration(2), footest.WithStatus(footest.Settled("a")))
	for what, row := range map[string]struct {
		verb  string
		world []runtime.Object
	}{
		"creation": {"create", []runtime.Object{footest.Foo("a")}},
		"repair":   {"patch", []runtime.Object{settled.DeepCopy(), footest.Child("a", footest.Drifted)}},
		"deletion": {"delete", []runtime.Object{settled.DeepCopy(), footest.Child("a"), footest.Child("a", footest.Named("old"))}},
	} {
		for how, err := range denials {
			t.Run(what+", "+how, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					f := newFixture(t, row.world...)
					calls, denied := f.countCalls(row.verb, children, err)
					defer f.start(2)()
					advance(5 * time.Second)
					foo := f.cachedFoo(t, "a")
					if ready := footest.ReadyOf(foo.Status); ready.Status != metav1.ConditionFalse || ready.ObservedGeneration != foo.Generation || !strings.Contains(ready.Message, "taken") {
						t.Errorf("after 5 s the condition is %+v", ready)
					}
					advance(time.Hour)
					if n := calls.Load(); n > 30 {
						t.Errorf("%d requests in an hour", n)
					}
					denied.Store(false)
					advance(10 * time.Minute)
					f.settle(t, "web")
					advance(time.Minute)
					f.expectReady(t, "a", fmt.Sprintf("True Available of %d", foo.Generation))
				})
			})
		}
	}
}

// stalled returns the condition Stalled of a Foo, or nil.
func (f *fixture) stalled(t *testing.T, name string) *metav1.Condition {
	t.Helper()
	return meta.FindStatusCondition(f.cachedFoo(t, name).Status.Conditions, samplev1alpha1.ConditionStalled)
}

// What may pass by itself, as in the half minute after a definition was installed, is not
// stalled. Tools give up on what is.
func TestARefusalThatLastsIsStalled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, footest.Foo("a"))
		_, refused := f.countCalls("create", children, denial(http.StatusForbidden, metav1.StatusReasonForbidden))
		defer f.start(2)()
		advance(stalledAfter - time.Second)
		if stalled := f.stalled(t, "a"); stalled != nil {
			t.Errorf("the Foo is stalled at once: %+v", stalled)
		}
		advance(time.Minute)
		if stalled := f.stalled(t, "a"); stalled == nil || stalled.Status != metav1.ConditionTrue || stalled.Reason != failed {
			t.Errorf("after a minute the condition Stalled is %+v", stalled)
		}
		refused.Store(false)
		advance(2 * time.Minute)
		if stalled := f.stalled(t, "a"); stalled != nil {
			t.Errorf("the Foo has its child, and is stalled: %+v", stalled)
		}
	})
}

// Whoever replaces a status each time does not set the pace. One that is replaced once is
// written again at once.
func TestAStatusThatSomebodyReplacesEachTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, footest.Foo("a", footest.WithStatus(footest.Settled("a"))), footest.Child("a"))
		defer f.start(2)()
		replace := func() {
			theirs := f.storedFoo(t, "a").DeepCopy()
			theirs.Status.Conditions[0].Status, theirs.Status.Conditions[0].Reason = metav1.ConditionFalse, "Theirs"
			f.updateFoo(t, theirs)
		}
		for range freeReplacements {
			replace()
			advance(10 * time.Millisecond)
			f.expectReady(t, "a", "True Available of 1")
		}
		f.kubeClient.ClearActions()
		f.fooClient.ClearActions()
		for range 36_000 { // an hour
			if footest.ConditionOf(f.storedFoo(t, "a")).Reason != "Theirs" {
				replace()
			}
			advance(100 * time.Millisecond)
		}
		if verbs, _ := f.writes(); len(verbs) < 5 || len(verbs) > 30 {
			t.Errorf("%d writes in an hour", len(verbs))
		}
		advance(10 * time.Minute)
		f.expectReady(t, "a", "True Available of 1")
		advance(time.Hour)
		replace()
		advance(10 * time.Millisecond)
		f.expectReady(t, "a", "True Available of 1")
	})
}

// freeReplacements is how often a status is written again at once.
const freeReplacements = 3

func TestAMutationOfTheCreationAloneIsRepaired(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		f.api.Admit = func(operation string, sent footest.Object) error {
			if operation == "create" && footest.Primary.Is(sent) {
				footest.Drifted(sent)
			}
			return nil
		}
		defer f.start(2)()
		f.createFoo(t, footest.Foo("a"))
		advance(time.Second)
		footest.CheckWanted(t, f.storedChild(t, "web"), footest.Foo("a"))
		f.expectChildWrites(t, createChild, updateChild)
		advance(time.Hour)
		f.expectChildWrites(t)
	})
}

// undo makes somebody change the child back, 10 ms after each of the controller's updates.
// The function that it returns makes them stop.
func (f *fixture) undo(t *testing.T) (stop func()) {
	t.Helper()
	var fights atomic.Bool
	fights.Store(true)
	f.kubeClient.PrependReactor("patch", children, func(clienttesting.Action) (bool, runtime.Object, error) {
		time.AfterFunc(10*time.Millisecond, func() {
			if fights.Load() {
				f.drift(t, "web")
			}
		})
		return false, nil, nil
	})
	// The fake clientset keeps no managedFields.
	f.kubeClient.PrependReactor("get", children, func(clienttesting.Action) (bool, runtime.Object, error) {
		live := f.storedChild(t, "web").DeepCopyObject().(footest.Object)
		live.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "scaler", FieldsV1: metav1.NewFieldsV1(`{"f:spec": {"f:replicas": {}}}`)}})
		return true, live, nil
	})
	return func() { fights.Store(false) }
}

func TestAFightIsDampedAndTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, footest.Foo("a", footest.WithStatus(footest.Settled("a"))), footest.Child("a"))
		stop := f.undo(t)
		defer f.start(2)()
		f.drift(t, "web")
		advance(time.Hour)
		if updates, statuses := countWrites(f, updateChild), countWrites(f, "update foos/status"); updates > 30 || statuses > 5 {
			t.Errorf("an hour of a fight led to %d updates and %d statuses", updates, statuses)
		}
		ready := footest.ReadyOf(f.cachedFoo(t, "a").Status)
		if ready.Reason != failed || !strings.Contains(ready.Message, `changed back after each repair, last by "scaler"`) || f.stalled(t, "a") == nil {
			t.Errorf("the condition is %+v", ready)
		}
		stop()
		advance(16 * time.Minute) // the longest pause, and twice that
		footest.CheckWanted(t, f.storedChild(t, "web"), footest.Foo("a"))
		f.settle(t, "web")
		advance(time.Minute)
		f.expectReady(t, "a", "True Available of 1")
		if stalled := f.stalled(t, "a"); stalled != nil {
			t.Errorf("the fight is over, and the Foo is stalled: %+v", stalled)
		}
	})
}

// What a spec is carried out by is no repair, until its status is stored. If none can be, all
// that follow are repairs.
func TestAFightIsDampedAlthoughNoStatusIsStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, footest.Foo("a", footest.WithGeneration(2), footest.WithStatus(footest.Settled("a"))), footest.Child("a", footest.Drifted))
		f.undo(t)
		f.fooClient.PrependReactor("update", "foos", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, denial(http.StatusForbidden, metav1.StatusReasonForbidden)
		})
		defer f.start(2)()
		advance(time.Minute)
		if updates := countWrites(f, updateChild); updates > 12 {
			t.Errorf("a minute of a fight led to %d updates", updates)
		}
	})
}

// Three changes by hand within a minute are not a fight.
func TestAFewRepairsAreMadeAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, footest.Foo("a", footest.WithStatus(footest.Settled("a"))), footest.Child("a"))
		defer f.start(2)()
		for range 3 {
			f.drift(t, "web")
			advance(time.Second)
			footest.CheckWanted(t, f.storedChild(t, "web"), footest.Foo("a"))
		}
		if stalled := f.stalled(t, "a"); stalled != nil {
			t.Errorf("the Foo is stalled: %+v", stalled)
		}
		advance(time.Minute)
		f.drift(t, "web") // another series
		advance(time.Second)
		footest.CheckWanted(t, f.storedChild(t, "web"), footest.Foo("a"))
		if stalled := f.stalled(t, "a"); stalled != nil {
			t.Errorf("a fourth repair after a quiet minute is a fight: %+v", stalled)
		}
	})
}

func TestTextThatIsNotUTF8IsNoMismatchOfTheDefinition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, footest.Foo("a"))
		f.refuse("create", children, &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: http.StatusServiceUnavailable, Message: "nicht verf\xfcgbar"}})
		_ = f.syncHandler(f.ctx, footest.KeyOf(footest.Foo("a")))
		_, status := f.written(t)
		if sent, err := json.Marshal(status); err != nil || !strings.Contains(string(sent), "nicht verf\uFFFDgbar") {
			t.Errorf("sent is %s (%v)", sent, err)
		}
	})
}

// A webhook's denial of one status concerns that Foo alone.
func TestADeniedStatusStopsNoOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, footest.Foo("a"), footest.Foo("b", footest.WithChildName("other")))
		f.fooClient.PrependReactor("update", "foos", func(action clienttesting.Action) (bool, runtime.Object, error) {
			denied := action.(clienttesting.UpdateAction).GetObject().(*samplev1alpha1.Foo).Name == "a"
			return denied, nil, denial(http.StatusNotFound, metav1.StatusReasonNotFound)
		})
		defer f.start(1)()
		advance(time.Minute)
		if footest.ReadyOf(f.cachedFoo(t, "b").Status).Reason == "" {
			t.Error("no status of the other Foo was written")
		}
	})
}
