/*
Copyright The Sample Controller Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

package main

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"example.com/sample-controller/internal/footest"
	"example.com/sample-controller/internal/plan"
	"example.com/sample-controller/internal/queue"
	"example.com/sample-controller/internal/reporting"
	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// flap changes a Deployment's status once a second, n times.
func (f *fixture) flap(t *testing.T, n int) {
	t.Helper()
	for i := range n {
		flapping := f.deployment(t, "web").DeepCopy()
		flapping.Status.AvailableReplicas = int32(i % 2)
		f.updateDeployment(t, flapping)
		advance(time.Second)
	}
}

// countCalls counts the calls of a verb on a resource and refuses them as long as
// refused is set.
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

// What was refused is not sent again with each status of the Deployment, and the
// Foo still tells how many Pods there are.
func TestARefusedWriteIsNotRepeatedWithEachStatusOfTheDeployment(t *testing.T) {
	for name, refusal := range map[string]error{
		"a policy":    apierrors.NewForbidden(footest.DeploymentsGR, "web", errors.New("a policy")),
		"Retry-After": apierrors.NewTooManyRequests("slow down", 10),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t, footest.Foo("a", footest.WithStatus(footest.Settled("a"))), footest.Deployment("a", footest.WithImage("nginx:1")))
				calls, refused := f.countCalls("update", "deployments", refusal)
				defer f.start(2)()
				f.flap(t, 61) // refused after 0, 10 and 30 s, or every 10 s
				if n := calls.Load(); n > 7 {
					t.Errorf("in a minute it was sent %d times", n)
				}
				advance(reporting.ThrottleInterval)
				if available := f.cachedFoo(t, "a").Status.AvailableReplicas; available != 0 {
					t.Errorf("the status counts %d available Pods, of none", available)
				}
				if statuses := countWrites(f, "update foos/status"); statuses > 15 {
					t.Errorf("in a minute the status was written %d times", statuses)
				}
				refused.Store(false)
				advance(queue.LastRetry)
				if image := f.deployment(t, "web").Spec.Template.Spec.Containers[0].Image; image != "nginx:latest" {
					t.Errorf("when it was allowed, it was not sent: the image is %s", image)
				}
			})
		})
	}
}

func countWrites(f *fixture, write string) int {
	verbs, _ := f.writes()
	return len(slices.DeleteFunc(verbs, func(verb string) bool { return verb != write }))
}

func TestARefusedStatusIsNotRepeatedWithEachStatusOfTheDeployment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, footest.Foo("a", footest.WithStatus(footest.Settled("a"))), footest.Deployment("a"))
		calls, refused := f.countCalls("update", "foos", apierrors.NewForbidden(footest.FoosResource.GroupResource(), "a", errors.New("no right")))
		defer f.start(2)()
		f.flap(t, 60)
		if n := calls.Load(); n > 4 {
			t.Errorf("in a minute it was sent %d times", n)
		}
		refused.Store(false)
		advance(queue.LastRetry)
		if available := f.cachedFoo(t, "a").Status.AvailableReplicas; available != 1 {
			t.Errorf("when it was allowed, it was not sent: %d available", available)
		}
	})
}

// A Foo made anew is another: it does not wait as long as the one before would.
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
				calls, _ := f.countCalls("create", "deployments", apierrors.NewForbidden(footest.DeploymentsGR, "web", errors.New("exceeded quota")))
				defer f.start(2)()
				advance(59 * time.Minute)
				calls.Store(0)
				replace(t, f)
				advance(time.Second)
				if n := calls.Load(); n != 1 {
					t.Errorf("it was tried %d times at once", n)
				}
				advance(queue.RefusedRetry)
				if n := calls.Load(); n != 2 {
					t.Errorf("after %v it had been tried %d times", queue.RefusedRetry, n)
				}
			})
		})
	}
}

// prune makes the API server forget what a definition without conditions does
// not know, while pruning is set.
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
		f := newFixture(t, footest.Foo("a"), footest.Foo("b", footest.WithDeploymentName("other")), footest.Deployment("a"))
		pruning := f.prune()
		defer f.start(2)()
		for range 20 { // 20 minutes
			f.resync(t, "a")
			f.resync(t, "b")
		}
		if verbs, _ := f.writes(); len(verbs) > 1+2*5 {
			t.Errorf("of two Foos at rest there were %d writes: %v", len(verbs), verbs)
		}
		if events := f.recorded(); len(events) != 2 {
			t.Errorf("two transitions have %d events: %q", len(events), events)
		}
		if available := f.cachedFoo(t, "a").Status.AvailableReplicas; available != 2 {
			t.Errorf("what the definition knows is not written: %d", available)
		}

		pruning.Store(false) // the definition is replaced
		for range 11 {
			f.resync(t, "a")
			f.resync(t, "b")
		}
		f.expectReady(t, "a", "True Available of 1")
		f.expectReady(t, "b", "False Progressing of 1")
		if f.crdMismatch.Len() != 0 {
			t.Error("what was stored as sent is still remembered")
		}
	})
}

func TestAMissingStatusSubresourceIsToldAndNotFought(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const count = 10
		world := []runtime.Object{}
		for i := range count {
			world = append(world, footest.Foo(fmt.Sprint("a", i), footest.WithDeploymentName(fmt.Sprint("d", i))))
		}
		f := newFixture(t, world...)
		calls, missing := f.countCalls("update", "foos", apierrors.NewNotFound(footest.FoosResource.GroupResource(), "a"))
		defer f.start(1)()
		advance(time.Hour)
		for i := range count {
			f.deployment(t, fmt.Sprint("d", i)) // what does not need the status goes on
		}
		if n := calls.Load(); n > 13 { // one each 5 minutes
			t.Errorf("of %d Foos %d statuses were sent in an hour", count, n)
		}
		f.expectMetrics(t, "an error each 5 minutes", `sample_controller_sync_duration_seconds_count{result="error"} 13`)
		missing.Store(false)
		advance(queue.LastRetry)
		for i := range count {
			f.resync(t, fmt.Sprint("a", i))
			f.expectReady(t, fmt.Sprint("a", i), "False Progressing of 1")
		}
	})
}

// A Foo that is gone answers 404, too: that is a race, and says nothing of the definition.
func TestAFooThatIsGoneIsNoMissingSubresource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, footest.Foo("a"), footest.Deployment("a", footest.WithAvailable(1)))
		gone := apierrors.NewNotFound(footest.FoosResource.GroupResource(), "a")
		f.refuse("update", "foos", gone)
		f.refuse("get", "foos", gone)
		if err := f.syncHandler(f.ctx, footest.KeyOf(footest.Foo("a"))); err == nil || errors.Is(err, reporting.ErrCRDMismatch) || !queue.NextAttempt(err).Expected {
			t.Errorf("the sync ended with: %v", err)
		}
	})
}

// The answer of a status write is lost: its transition has one event all the
// same, whether it was stored or not.
func TestATransitionWhoseAnswerIsLostHasItsEvent(t *testing.T) {
	for name, stored := range map[string]bool{"stored": true, "not stored": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t, footest.Foo("a"), footest.Deployment("a"))
				lost := false
				f.fooClient.PrependReactor("update", "foos", func(action clienttesting.Action) (bool, runtime.Object, error) {
					if lost {
						return false, nil, nil
					}
					lost = true
					if stored {
						_, err := f.api.update(f.fooClient.Tracker(), action.(clienttesting.UpdateAction))
						footest.Must(t, err)
					}
					return true, nil, errors.New("read: connection reset by peer")
				})
				defer f.start(2)()
				advance(time.Hour)
				f.expectReady(t, "a", "True Available of 1")
				footest.ExpectEqual(t, "the list of events", []string{`Normal Available Deployment "web" has 2 of 2 Pods available`}, f.recorded())
			})
		})
	}
}

// A condition's time that could not be read is none, and the API server wants one.
func TestEveryConditionHasATime(t *testing.T) {
	before := footest.Settled("a")
	before.Conditions = append(before.Conditions, metav1.Condition{Type: "Audited", Status: metav1.ConditionTrue, Reason: "ByOthers"})
	before.Conditions[0].LastTransitionTime = metav1.Time{}
	status := plan.Planner{Image: footest.DefaultImage}.CalculateStatus(footest.Foo("a", footest.WithStatus(before)), plan.Outcome{Action: plan.ActionNone, Named: nil, Deployment: footest.Deployment("a"), Failure: nil}, footest.Now)
	for _, condition := range status.Conditions {
		if !condition.LastTransitionTime.Equal(&footest.Now) {
			t.Errorf("the condition %s is of %v", condition.Type, condition.LastTransitionTime)
		}
	}
}
