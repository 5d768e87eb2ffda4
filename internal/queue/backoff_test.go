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

// Tests of the back-off of keys, and of what each error means for it.

package queue

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	clocktesting "k8s.io/utils/clock/testing"

	"example.com/sample-controller/internal/consistency"
	"example.com/sample-controller/internal/footest"
	"example.com/sample-controller/internal/plan"
	"example.com/sample-controller/internal/reporting"
	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

func TestNextAttempt(t *testing.T) {
	backOff := Attempt{Again: true, Held: true}
	quietBackOff := Attempt{Again: true, Expected: true}
	slowly := Attempt{Again: true, RefusalBackoff: true, Held: true}
	forbidden := apierrors.NewForbidden(footest.DeploymentsGR, "web", errors.New("exceeded quota"))
	conflict := apierrors.NewConflict(footest.DeploymentsGR, "web", errors.New("modified"))

	for name, row := range map[string]struct {
		err  error
		want Attempt
	}{
		"success":                           {nil, Attempt{}},
		"a conflict":                        {conflict, quietBackOff},
		"exists already":                    {apierrors.NewAlreadyExists(footest.DeploymentsGR, "web"), quietBackOff},
		"deleted meanwhile":                 {apierrors.NewNotFound(footest.DeploymentsGR, "web"), quietBackOff},
		"a stale cache":                     {consistency.ErrStale, Attempt{Again: true, After: time.Second, Expected: true}},
		"invalid":                           {apierrors.NewInvalid(schema.GroupKind{Kind: "Deployment"}, "web", field.ErrorList{}), slowly},
		"forbidden by quota":                {forbidden, slowly},
		"bad request":                       {apierrors.NewBadRequest("no"), slowly},
		"too large":                         {apierrors.NewRequestEntityTooLargeError("3 MiB"), slowly},
		"the namespace is being deleted":    {footest.NamespaceTerminating(), Attempt{Again: true, After: 5 * time.Minute, Held: true, Expected: true}},
		"the controller is stopping":        {context.Canceled, Attempt{Expected: true}},
		"a call that hung":                  {context.DeadlineExceeded, backOff},
		"server error":                      {apierrors.NewInternalError(errors.New("boom")), backOff},
		"connection refused":                {errors.New("dial tcp: connection refused"), backOff},
		"too many requests, retry in 7 s":   {apierrors.NewTooManyRequests("slow down", 7), Attempt{Again: true, After: 7 * time.Second, Held: true}},
		"too many requests, no time given":  {apierrors.NewTooManyRequests("slow down", 0), backOff},
		"too many requests, retry tomorrow": {apierrors.NewTooManyRequests("slow down", 86_400), Attempt{Again: true, After: 5 * time.Minute, Held: true}},
		"the definition does not fit":       {reporting.ErrCRDMismatch, Attempt{Again: true, After: 5 * time.Minute, Held: true}},
		"refused, and the status lost a race: the status comes first": {errors.Join(conflict, forbidden), quietBackOff},
	} {
		t.Run(name, func(t *testing.T) {
			for _, err := range []error{row.err, wrapped(row.err)} {
				if got := NextAttempt(err); got != row.want {
					t.Errorf("nextAttempt(%v) = %+v, not %+v", err, got, row.want)
				}
			}
		})
	}
}

// The delays of a key whose sync keeps failing.
func TestBackOff(t *testing.T) {
	key := cache.ObjectName{Namespace: footest.Namespace, Name: "a"}
	outage, forbidden := errors.New("connection refused"), apierrors.NewForbidden(footest.DeploymentsGR, "web", errors.New("exceeded quota"))
	r, clock := newTestRetries(t)
	// planAfterThat plans the next attempt when the last one is due.
	var last time.Duration
	planAfterThat := func(err error) time.Duration {
		clock.Step(last)
		last = r.Requeue(key, err)
		return last
	}

	if first, second := planAfterThat(outage), planAfterThat(outage); first != firstRetry || second != 2*firstRetry {
		t.Errorf("the first delays are %v and %v", first, second)
	}
	r.Forget(key)
	if again := planAfterThat(outage); again != firstRetry {
		t.Errorf("after a success the delay is %v", again)
	}

	for _, want := range []time.Duration{10 * time.Second, 20 * time.Second, 40 * time.Second, 80 * time.Second, 160 * time.Second, LastRetry, LastRetry} {
		if delay := planAfterThat(forbidden); delay != want {
			t.Errorf("a refused key waits %v, not %v", delay, want)
		}
	}
	r.Forget(key)
	if again := planAfterThat(forbidden); again != RefusedRetry {
		t.Errorf("after a success a refused key waits %v", again)
	}
	r.Forget(key)
	planAfterThat(consistency.ErrStale)
	if r.InBackoff(key) {
		t.Error("a key is in back-off although its next attempt is not delayed")
	}
}

// partDeployments is the part of the Deployments, and decision what is decided about them.
const partDeployments Part = "Deployment"

type decision = plan.Decision[*appsv1.Deployment]

// task returns the task of carrying out a decision about a Foo's Deployment.
func task(foo *samplev1alpha1.Foo, decided decision) plan.Task {
	row := plan.Deployment(footest.DefaultImage)
	return row.Task(foo, decided)
}

// Changes wake a key before its next attempt is due. They must not repeat the failed
// write, unless the objects that it was made from have changed. If that attempt fails as
// well, it must not lengthen the back-off.
func TestAFailedTaskWaitsForItsTime(t *testing.T) {
	forbidden := apierrors.NewForbidden(footest.DeploymentsGR, "web", errors.New("exceeded quota"))
	key := footest.KeyOf(footest.Foo("a"))
	update := func(options ...footest.DeploymentOption) decision {
		return decision{Action: plan.ActionUpdate, Named: footest.Deployment("a", append(options, footest.ScaledTo(9))...)}
	}
	drifted := func(options ...footest.DeploymentOption) plan.Task { return task(footest.Foo("a"), update(options...)) }
	for name, row := range map[string]struct {
		again plan.Task
		waits bool
	}{
		"nothing has changed":                      {drifted(), true},
		"the Deployment's status has changed":      {drifted(footest.AtVersion("21"), footest.WithAvailable(1)), true},
		"the Deployment's spec has changed":        {drifted(footest.AtGeneration(2)), false},
		"the Deployment's owner has changed":       {drifted(footest.WithoutOwner), false},
		"the Foo's spec has changed":               {task(footest.Foo("a", footest.WithGeneration(2)), update()), false},
		"the Foo was recreated":                    {task(footest.Foo("a", footest.WithFooUID("new")), update()), false},
		"the decision is another":                  {task(footest.Foo("a"), decision{Action: plan.ActionCreate}), false},
		"there is a Deployment of an earlier name": {task(footest.Foo("a"), decision{Action: plan.ActionUpdate, Named: update().Named, Obsolete: []*appsv1.Deployment{footest.Deployment("a", footest.Named("old"))}}), false},
	} {
		t.Run(name, func(t *testing.T) {
			r, clock := newTestRetries(t)
			r.Fail(key, partDeployments, drifted(), forbidden)
			r.Requeue(key, forbidden)
			clock.Step(4 * time.Second)
			if err := r.Deferred(key, partDeployments, row.again); (err != nil) != row.waits {
				t.Fatalf("the deferred error is %v", err)
			}
			if !row.waits {
				r.Fail(key, partDeployments, row.again, forbidden)
			}
			if wait := r.Requeue(key, forbidden); wait != 6*time.Second {
				t.Errorf("a key with 6 s left waits %v", wait)
			}
			clock.Step(6*time.Second - 1)
			if !r.InBackoff(key) {
				t.Error("the key is not in back-off until then")
			}
			clock.Step(1)
			if r.InBackoff(key) || r.Deferred(key, partDeployments, row.again) != nil {
				t.Error("the key is in back-off after that")
			}
			r.Fail(key, partDeployments, row.again, forbidden)
			if further := r.Requeue(key, forbidden); further != 20*time.Second {
				t.Errorf("after that the key waits %v", further)
			}
		})
	}
}

// A failure of another kind, after a change woke the key, does not defer the planned
// attempt.
func TestTheEarlierOfTwoPlansStands(t *testing.T) {
	forbidden := apierrors.NewForbidden(footest.DeploymentsGR, "web", errors.New("exceeded quota"))
	key, of := footest.KeyOf(footest.Foo("a")), task(footest.Foo("a"), decision{Action: plan.ActionCreate})
	for name, row := range map[string]struct {
		err  error
		wait time.Duration
	}{
		"with a shorter delay": {errors.New("connection refused"), firstRetry},
		"with a longer delay":  {apierrors.NewTooManyRequests("", 60), 6 * time.Second},
		"a lost race":          {apierrors.NewConflict(footest.DeploymentsGR, "web", errors.New("modified")), firstRetry},
	} {
		t.Run(name, func(t *testing.T) {
			r, clock := newTestRetries(t)
			r.Fail(key, partDeployments, of, forbidden)
			r.Requeue(key, forbidden)
			clock.Step(4 * time.Second)
			if NextAttempt(row.err).Held {
				r.Fail(key, partDeployments, of, row.err)
			}
			if wait := r.Requeue(key, row.err); wait != row.wait {
				t.Errorf("the key waits %v, not %v", wait, row.wait)
			}
		})
	}
}

// The status and the Deployment have separate back-offs.
func TestAFailedStatusHoldsUpTheStatusAlone(t *testing.T) {
	r, _ := newTestRetries(t)
	forbidden := apierrors.NewForbidden(footest.DeploymentsGR, "web", errors.New("exceeded quota"))
	key, work, status := footest.KeyOf(footest.Foo("a")), task(footest.Foo("a"), decision{Action: plan.ActionCreate}), plan.StatusTask(footest.Foo("a"))
	r.Fail(key, PartStatus, status, forbidden)
	r.Fail(key, partDeployments, work, errors.New("connection refused"))
	if wait := r.Requeue(key, errors.Join(forbidden, errors.New("connection refused"))); wait != firstRetry {
		t.Errorf("the Deployment waits %v", wait)
	}
	r.Succeed(key, partDeployments)
	if r.Deferred(key, partDeployments, work) != nil || r.Deferred(key, PartStatus, status) == nil {
		t.Error("a success of one part reset the failures of the other")
	}
}

// newTestRetries returns retries whose clock stands still.
func newTestRetries(t *testing.T) (*Backoff, *clocktesting.FakeClock) {
	t.Helper()
	delayed := workqueue.NewTypedDelayingQueue[cache.ObjectName]()
	t.Cleanup(delayed.ShutDown)
	clock := clocktesting.NewFakeClock(time.Now())
	return NewBackoff(delayed, clock), clock
}

// wrapped wraps an error as a sync does.
func wrapped(err error) error {
	if err == nil {
		return nil
	}
	return errors.Join(nil, fmt.Errorf("creating Deployment %q: %w", "web", err))
}
