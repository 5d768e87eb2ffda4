// SPDX-License-Identifier: Apache-2.0

// Tests of what one tenant can do to the others: what they wait for.

package main

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/test/footest"
)

// otherTenant has the Foos that wait, in a namespace of their own.
type otherTenant struct {
	*fixture

	served sync.Map // when the child of a Foo was created, by its name
}

const teamB = "team-b"

// newOtherTenant watches what the other tenant gets. Call it before the workers start.
func newOtherTenant(f *fixture) *otherTenant {
	tenant := &otherTenant{fixture: f}
	f.kubeClient.PrependReactor("create", children, func(action clienttesting.Action) (bool, runtime.Object, error) {
		if action.GetNamespace() == teamB {
			tenant.served.Store(action.(clienttesting.CreateAction).GetObject().(footest.Object).GetName(), time.Now())
		}
		return false, nil, nil
	})
	return tenant
}

// asks creates a Foo, and returns a function that says how long its child took.
func (o *otherTenant) asks(t *testing.T, name string) (waited func() time.Duration) {
	t.Helper()
	foo := footest.Foo(name, footest.WithChildName(name))
	foo.Namespace = teamB
	o.api.Stamp(foo)
	asked := time.Now()
	footest.Must(t, o.fooClient.Tracker().Create(footest.FoosResource, foo, teamB))
	return func() time.Duration {
		if at, served := o.served.Load(name); served {
			return at.(time.Time).Sub(asked)
		}
		return time.Hour
	}
}

// Whoever may create children names the Foo that controls them: any number of them are
// obsolete. Before, another tenant waited for all of them: 1 s here.
func TestObsoleteChildrenDoNotDelayAnotherNamespace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const many = 200
		world := []runtime.Object{footest.Foo("a", footest.WithStatus(footest.Settled("a"))), footest.Child("a")}
		for i := range many {
			world = append(world, footest.Child("a", footest.Named(fmt.Sprintf("old-%d", i))))
		}
		f := newFixture(t, world...)
		tenant := newOtherTenant(f)
		f.callsTake("get", 5*time.Millisecond)
		defer f.start(1)()
		advance(time.Millisecond)
		waited := tenant.asks(t, "b")
		advance(time.Minute)
		if took := waited(); took > 100*time.Millisecond {
			t.Errorf("the other tenant waited for %v", took)
		}
		if left := len(f.primary.cache.List()); left != 2 {
			t.Errorf("%d children are left, not 2", left)
		}
	})
}

// callsTake makes each call of a verb on children in the namespace of footest take some
// time.
func (f *fixture) callsTake(verb string, took time.Duration) {
	f.kubeClient.PrependReactor(verb, children, func(action clienttesting.Action) (bool, runtime.Object, error) {
		if action.GetNamespace() == footest.Namespace {
			<-time.After(took)
		}
		return false, nil, nil
	})
}

// Calls of one namespace that hang until a webhook's timeout. With one worker, others wait
// for the call under way, and before for one more with each key: 70 s for five Foos. (Fake
// clientsets answer one call at a time: internal/queue tests two workers.)
func TestCallsThatHangDoNotDelayAnotherNamespace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var world []runtime.Object
		for i := range 20 {
			world = append(world, footest.Foo(fmt.Sprintf("a%d", i), footest.WithChildName(fmt.Sprintf("d%d", i))))
		}
		f := newFixture(t, world...)
		f.refuseIn(footest.Namespace, apierrors.NewInternalError(errors.New("failed calling webhook: context deadline exceeded")))
		f.callsTake("create", 10*time.Second)
		tenant := newOtherTenant(f)
		defer f.start(1)()
		advance(5 * time.Minute)
		var waits []func() time.Duration
		for i := range 5 {
			waits = append(waits, tenant.asks(t, fmt.Sprintf("b%d", i)))
		}
		advance(10 * time.Minute)
		for _, waited := range waits {
			if took := waited(); took > 11*time.Second {
				t.Errorf("a Foo of the other tenant waited for %v", took)
			}
		}
	})
}

// refuseIn makes the API server refuse the creation of children in a namespace.
func (f *fixture) refuseIn(namespace string, err error) {
	f.kubeClient.PrependReactor("create", children, func(action clienttesting.Action) (bool, runtime.Object, error) {
		return action.GetNamespace() == namespace, nil, err
	})
}

// waiting returns a Foo that asks for a name which "b" has, as its status says.
func waiting(i int) *samplev1alpha1.Foo {
	return footest.Foo(fmt.Sprintf("w%d", i), footest.WithStatus(samplev1alpha1.FooStatus{
		ObservedGeneration: 1, Conditions: footest.Stalled(footest.Ready(metav1.ConditionFalse, conflict, footest.ConflictWithB, footest.Earlier)),
	}))
}

// Before, a status of that child queued all of them: 10,000 keys and 100 ms of syncs.
func TestAStatusOfATakenChildConcernsNobodyWhoWaitsForItsName(t *testing.T) {
	f := newFixtureInRealTime(t, func(*fixture) {}, footest.Child("b"))
	for i := range 10_000 {
		footest.Must(t, f.cache.Add(waiting(i)))
	}
	f.drainQueue()
	f.primary.updated(footest.Child("b"), footest.Child("b", footest.AtVersion("21")))
	if n := f.queue.Len(); n != 1 { // its own Foo
		t.Errorf("%d Foos are queued", n)
	}
	f.drainQueue()
	f.primary.updated(footest.Child("b", footest.AtVersion("21")), footest.Child("c", footest.AtVersion("22")))
	if n := f.queue.Len(); n > 2*maxAsking+2 { // for both states
		t.Errorf("a change of the owner queues %d Foos", n)
	}
}

// Before, each of these requests was a write for each Foo.
func TestWhoHasANameIsNotWrittenWithEachChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const many = 50
		world := []runtime.Object{footest.Child("b")}
		for i := range many {
			world = append(world, waiting(i))
		}
		f := newFixture(t, world...)
		defer f.start(2)()
		advance(time.Second)
		f.expectWrites(t)
		for i := range 20 {
			renamed := f.storedChild(t, "web").DeepCopyObject().(footest.Object)
			owners := renamed.GetOwnerReferences()
			owners[0].Name = fmt.Sprintf("nobody-%d", i)
			renamed.SetOwnerReferences(owners)
			f.updateChild(t, renamed)
			advance(100 * time.Millisecond)
		}
		advance(time.Minute)
		for i := range many {
			f.resync(t, fmt.Sprintf("w%d", i))
		}
		advance(time.Minute)
		if n := countWrites(f, "update foos/status"); n != many {
			t.Errorf("%d statuses were written for %d Foos", n, many)
		}
	})
}

// kubectl delete foo --all, after a template gave all of them one name. Before: 780 writes.
func TestDeletingFoosOfOneNameIsNotQuadratic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const many = 40
		var world []runtime.Object
		for i := range many {
			world = append(world, footest.Foo(fmt.Sprintf("w%d", i)))
		}
		f := newFixture(t, world...)
		defer f.start(2)()
		advance(time.Minute)
		f.fooClient.ClearActions()
		for range many - 1 {
			f.deleteFoo(t, metav1.GetControllerOf(f.storedChild(t, "web")).Name)
			advance(time.Millisecond)
			f.deleteChild(t, "web") // as the garbage collector does
			advance(100 * time.Millisecond)
		}
		if n := countWrites(f, "update foos/status"); n > 4*many {
			t.Errorf("the deletion of %d Foos led to %d writes", many-1, n)
		}
	})
}

// Before, each such Foo was read 370 times an hour.
func TestAFooThatOnlyTheCacheHasIsReadSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixtureWith(t, holdFoos, footest.Foo("a", footest.WithStatus(footest.Settled("a"))), footest.Child("a"))
		defer f.start(2)()
		advance(0)
		f.deleteFoo(t, "a")
		f.collectChildren(t)
		advance(time.Hour)
		reads := 0
		for _, action := range f.fooClient.Actions() {
			if action.GetVerb() == "get" {
				reads++
			}
		}
		if reads > 30 {
			t.Errorf("it was read %d times in an hour", reads)
		}
	})
}

// The failures of a tenant's Foos must not fill the log. Before, 10,000 Foos that a quota
// refuses logged 33 lines a second.
func TestAFailureThatRepeatsIsLoggedOnceAnHour(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, footest.Foo("a"))
		logger := ktesting.NewLogger(ktesting.NopTL{}, ktesting.NewConfig(ktesting.Verbosity(0), ktesting.BufferLogs(true)))
		f.ctx = klog.NewContext(f.ctx, logger)
		log := logger.GetSink().(ktesting.Underlier).GetBuffer()
		quota := apierrors.NewForbidden(footest.ChildGR, "a", errors.New("exceeded quota"))
		var answer atomic.Value
		answer.Store(quota)
		f.kubeClient.PrependReactor("create", children, func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, answer.Load().(error)
		})
		defer f.start(1)()
		for _, step := range []struct {
			answer *apierrors.StatusError
			later  time.Duration
			lines  int
		}{
			{quota, 50 * time.Minute, 1},
			{apierrors.NewInternalError(errors.New("boom")), 6 * time.Minute, 2}, // another cause
			{quota, time.Hour, 3},
		} {
			answer.Store(step.answer)
			advance(step.later)
			if lines := strings.Count(log.String(), "Sync failed"); lines != step.lines {
				t.Errorf("%d lines after %v more of %v, not %d:\n%s", lines, step.later, step.answer, step.lines, log)
			}
		}
	})
}
