// SPDX-License-Identifier: Apache-2.0

// Tests of the condition Ready while writes fail, are refused, or are not stored as sent.

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
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"example.com/sample-controller/internal/failure"
	"example.com/sample-controller/test/footest"
)

// scale sets a Foo's number of replicas, as a user does.
func (f *fixture) scale(t *testing.T, name string, replicas int32) {
	t.Helper()
	scaled := f.cachedFoo(t, name).DeepCopy()
	scaled.Spec.Replicas = &replicas
	scaled.Generation++
	f.updateFoo(t, scaled)
}

// resync queues a Foo as the periodic resync does, and advances the clock by its period.
func (f *fixture) resync(t *testing.T, name string) {
	t.Helper()
	cached := f.cachedFoo(t, name)
	f.updateOwner(cached, cached)
	advance(30 * time.Second)
}

// expectReady checks a Foo's condition Ready, as "status reason of generation".
func (f *fixture) expectReady(t *testing.T, name, want string) {
	t.Helper()
	foo := f.cachedFoo(t, name)
	ready := footest.ReadyOf(foo.Status)
	got := fmt.Sprintf("%s %s of %d", ready.Status, ready.Reason, ready.ObservedGeneration)
	if got != want || foo.Status.ObservedGeneration != ready.ObservedGeneration {
		t.Errorf("Foo %s is %s (observedGeneration %d, %s), not %s", name, got, foo.Status.ObservedGeneration, ready.Message, want)
	}
}

func TestAScaleThatCannotBeWrittenIsNotReady(t *testing.T) {
	for name, fail := range map[string]error{
		"a webhook is down":     apierrors.NewInternalError(errors.New(`failed calling webhook "x": connection refused`)),
		"no answer":             context.DeadlineExceeded,
		"no connection":         errors.New("connection refused"),
		"the server is busy":    apierrors.NewTooManyRequests("slow down", 7),
		"the server shuts down": apierrors.NewServiceUnavailable("shutting down"),
		"no etcd":               apierrors.NewServerTimeout(footest.ChildGR, "update", 1),
	} {
		for _, call := range [][2]string{{"patch", children}, {"get", "foos"}} {
			t.Run(name+" at "+strings.Join(call[:], " "), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					f := newFixture(t, footest.Foo("a", footest.WithStatus(footest.Settled("a"))), footest.Child("a"))
					var healed atomic.Bool
					reaction := func(clienttesting.Action) (bool, runtime.Object, error) { return !healed.Load(), nil, fail }
					f.kubeClient.PrependReactor(call[0], call[1], reaction)
					f.fooClient.PrependReactor(call[0], call[1], reaction)
					if call[0] == "patch" {
						defer f.start(2)()
					} else {
						defer f.start(1)()
					}
					advance(time.Second)
					f.expectWrites(t)
					f.scale(t, "a", 5)
					f.drift(t, "web")
					for range 60 {
						advance(time.Second)
						f.expectReady(t, "a", "False Progressing of 2")
					}
					if events := f.recorded(); len(events) != 1 || !strings.HasPrefix(events[0], "Normal Progressing "+footest.Primary.Kind+` "web" could not be updated yet: `) {
						t.Errorf("the Events of an outage are %q", events)
					}
					healed.Store(true)
					advance(5 * time.Minute)
					footest.CheckWanted(t, f.storedChild(t, "web"), f.cachedFoo(t, "a"))
				})
			})
		}
	}
}

// If outages and refusals alternate, the condition stays the same, whichever came first.
func TestAlternatingRefusalsAndOutagesAreOneCondition(t *testing.T) {
	refusal, outage := apierrors.NewForbidden(footest.ChildGR, "web", errors.New("exceeded quota")), apierrors.NewInternalError(errors.New("etcd leader changed"))
	for name, row := range map[string]struct {
		turns []error
		want  []string
	}{
		"a refusal first": {[]error{refusal, outage}, []string{failed}},
		"an outage first": {[]error{outage, refusal}, []string{"Progressing", failed}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t, footest.Foo("a"))
				n := 0
				f.kubeClient.PrependReactor("create", children, func(clienttesting.Action) (bool, runtime.Object, error) {
					n++
					return true, nil, row.turns[n%2]
				})
				n = 1
				defer f.start(2)()
				advance(time.Hour)
				var reasons []string
				for _, event := range f.recorded() {
					reasons = append(reasons, strings.Fields(event)[1])
				}
				footest.ExpectEqual(t, "the reasons of the events", row.want, reasons)
				if n < 6 {
					t.Errorf("the write was tried %d times in an hour", n)
				}
			})
		})
	}
}

// After a restore of etcd, a generation can occur a second time.
func TestTheSameGenerationWithAnotherSpecIsDetected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, footest.Foo("a", footest.WithReplicas(2), footest.WithStatus(footest.Settled("a"))), footest.Child("a", footest.Drifted))
		f.answerGets(footest.Foo("a", footest.WithReplicas(9)))
		if err := f.syncHandler(f.ctx, footest.KeyOf(footest.Foo("a"))); !errors.Is(err, failure.ErrBehind) {
			t.Errorf("the sync ended with %v", err)
		}
		f.expectWrites(t)
	})
}

// The cache may still have the child of an earlier name, although it is deleted. A
// Foo that is renamed back to it must not become ready because of that. One live read
// decides; none is needed if the child was written for this generation.
func TestReadyOfANewGenerationIsConfirmedLive(t *testing.T) {
	renamedBack := footest.Foo("a", footest.WithGeneration(3), footest.WithStatus(footest.Settled("a")))
	for name, row := range map[string]struct {
		live     []footest.Object
		err      error
		wantErr  bool
		wantTrue bool
	}{
		"as in the cache":           {[]footest.Object{footest.Child("a")}, nil, false, true},
		"deleted":                   {nil, apierrors.NewNotFound(footest.ChildGR, "web"), true, false},
		"controlled by another Foo": {[]footest.Object{footest.Child("b")}, nil, true, false},
		"drifted":                   {[]footest.Object{footest.Child("a", footest.Drifted)}, nil, true, false},
		"being deleted":             {[]footest.Object{footest.Child("a", footest.Terminating)}, nil, true, false},
		"the server fails":          {nil, apierrors.NewInternalError(errors.New("etcd")), true, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t, renamedBack, footest.Child("a"))
				if row.err != nil {
					f.refuse("get", children, row.err)
				}
				for _, live := range row.live {
					f.answerGets(live)
				}
				if err := f.syncHandler(f.ctx, footest.KeyOf(renamedBack)); (err != nil) != row.wantErr {
					t.Errorf("the sync ended with %v", err)
				}
				_, status := f.written(t)
				if isTrue := status != nil && footest.ReadyOf(*status).Status == metav1.ConditionTrue; isTrue != row.wantTrue {
					t.Errorf("the status that was written is %+v", status)
				}
			})
		})
	}
}

func TestAChildWrittenForAGenerationNeedsNoLiveRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		defer f.start(2)()
		f.createFoo(t, footest.Foo("a"))
		advance(time.Second)
		f.settle(t, "web")
		advance(time.Second)
		f.expectReady(t, "a", "True Available of 1")
		for _, action := range f.kubeClient.Actions() {
			if action.Matches("get", children) {
				t.Error("the child was read live")
			}
		}
		if f.remembers("a") {
			t.Error("a Foo at rest is still remembered")
		}
	})
}

// A suspended Foo's child is left as it is, whatever happens to it, and what is held back is
// made good at the end.
func TestASuspendedFooWritesItsStatusAlone(t *testing.T) {
	for what, world := range map[string][]runtime.Object{
		"creation": nil,
		"repair":   {footest.Child("a", footest.Drifted)},
		"deletion": {footest.Child("a"), footest.Child("a", footest.Named("old"))},
		"adoption": {footest.Child("a", footest.WithoutOwner, footest.WithAdoptBy("a"))},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t, append(world, footest.Foo("a", footest.Suspended))...)
				defer f.start(2)()
				advance(time.Hour)
				f.expectChildWrites(t)
				status := f.cachedFoo(t, "a").Status
				f.expectReady(t, "a", "False Suspended of 1")
				if !meta.IsStatusConditionTrue(status.Conditions, "Suspended") || !meta.IsStatusConditionTrue(status.Conditions, "Stalled") {
					t.Errorf("the status does not say that the Foo is suspended: %+v", status.Conditions)
				}

				f.updateFoo(t, footest.Foo("a", footest.WithGeneration(2), footest.WithStatus(status)))
				advance(time.Minute)
				f.settle(t, "web")
				advance(time.Minute)
				f.expectReady(t, "a", "True Available of 2")
				if left := f.primary.cache.List(); len(left) != 1 {
					t.Errorf("the children left are %v", left)
				}
				if conditions := f.cachedFoo(t, "a").Status.Conditions; len(conditions) != 1 {
					t.Errorf("the conditions left are %+v", conditions)
				}
			})
		})
	}
}
