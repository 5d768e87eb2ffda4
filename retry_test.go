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
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	clocktesting "k8s.io/utils/clock/testing"
)

func TestNextAttempt(t *testing.T) {
	backOff := attempt{again: true, held: true}
	quietBackOff := attempt{again: true, expected: true}
	slowly := attempt{again: true, slowly: true, held: true}
	forbidden := apierrors.NewForbidden(deploymentsGR, "web", errors.New("exceeded quota"))
	conflict := apierrors.NewConflict(deploymentsGR, "web", errors.New("modified"))

	for name, row := range map[string]struct {
		err  error
		want attempt
	}{
		"success":                          {nil, attempt{}},
		"a conflict":                       {conflict, quietBackOff},
		"already there":                    {apierrors.NewAlreadyExists(deploymentsGR, "web"), quietBackOff},
		"gone meanwhile":                   {apierrors.NewNotFound(deploymentsGR, "web"), quietBackOff},
		"our own write not seen yet":       {errCacheBehind, attempt{again: true, after: time.Second, expected: true}},
		"invalid":                          {apierrors.NewInvalid(schema.GroupKind{Kind: "Deployment"}, "web", field.ErrorList{}), slowly},
		"forbidden by quota":               {forbidden, slowly},
		"bad request":                      {apierrors.NewBadRequest("no"), slowly},
		"too large":                        {apierrors.NewRequestEntityTooLargeError("3 MiB"), slowly},
		"the namespace is going":           {namespaceTerminating(), attempt{again: true, after: 5 * time.Minute, held: true, expected: true}},
		"the controller is stopping":       {context.Canceled, attempt{expected: true}},
		"a call that hung":                 {context.DeadlineExceeded, backOff},
		"server error":                     {apierrors.NewInternalError(errors.New("boom")), backOff},
		"connection refused":               {errors.New("dial tcp: connection refused"), backOff},
		"too many requests, try in 7 s":    {apierrors.NewTooManyRequests("slow down", 7), attempt{again: true, after: 7 * time.Second, held: true}},
		"too many requests, no time given": {apierrors.NewTooManyRequests("slow down", 0), backOff},
		"refused, and the status lost a race: the status comes first": {errors.Join(conflict, forbidden), quietBackOff},
	} {
		t.Run(name, func(t *testing.T) {
			for _, err := range []error{row.err, wrapped(row.err)} {
				if got := nextAttempt(err); got != row.want {
					t.Errorf("nextAttempt(%v) = %+v, not %+v", err, got, row.want)
				}
			}
		})
	}
}

func TestRetries(t *testing.T) {
	key := cache.ObjectName{Namespace: namespace, Name: "a"}
	r, clock := newTestRetries(t)
	// planAfterThat plans the next attempt once the last is due.
	var last time.Duration
	planAfterThat := func(next attempt) time.Duration {
		clock.Step(last)
		last = r.plan(key, next)
		return last
	}

	backOff := attempt{again: true, held: true}
	if first, second := planAfterThat(backOff), planAfterThat(backOff); first != firstRetry || second != 2*firstRetry {
		t.Errorf("the first delays are %v and %v", first, second)
	}
	r.forget(key)
	if again := planAfterThat(backOff); again != firstRetry {
		t.Errorf("after a success the delay is %v", again)
	}

	for _, want := range []time.Duration{10 * time.Second, 20 * time.Second, 40 * time.Second, 80 * time.Second, 160 * time.Second, lastRetry, lastRetry} {
		if delay := planAfterThat(refused); delay != want {
			t.Errorf("a refused key waits %v, not %v", delay, want)
		}
	}
	r.forget(key)
	if again := planAfterThat(refused); again != refusedRetry {
		t.Errorf("after a success a refused key waits %v", again)
	}

	r.hold(key)
	if !r.ahead(key) {
		t.Error("a held key may be synced")
	}
	planAfterThat(attempt{again: true, expected: true})
	if r.ahead(key) {
		t.Error("a key is held whose next attempt is not")
	}
}

// refused is the attempt after a refusal.
var refused = attempt{again: true, slowly: true, held: true}

// TestWokenKeyKeepsItsPlan: changes wake a key before its next attempt is due.
// Neither does that slow down its back-off, nor is more time told than there is.
func TestWokenKeyKeepsItsPlan(t *testing.T) {
	key := cache.ObjectName{Namespace: namespace, Name: "a"}
	backOff := attempt{again: true, held: true}
	for name, row := range map[string]struct {
		next          attempt
		wait, further time.Duration
	}{
		"refused again":                        {refused, 6 * time.Second, 20 * time.Second},
		"failed otherwise, to be tried sooner": {backOff, firstRetry, 2 * firstRetry},
		"failed otherwise, to be tried later":  {attempt{again: true, after: time.Minute, held: true}, 6 * time.Second, time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			r, clock := newTestRetries(t)
			r.plan(key, refused)
			clock.Step(4 * time.Second)
			r.hold(key)
			if wait := r.plan(key, row.next); wait != row.wait {
				t.Errorf("a key that was to wait 6 s more waits %v, want %v", wait, row.wait)
			}
			clock.Step(row.wait - 1)
			if !r.ahead(key) {
				t.Error("the key is not held until then")
			}
			clock.Step(1)
			if r.ahead(key) {
				t.Error("the key is held after that")
			}
			if further := r.plan(key, row.next); further != row.further {
				t.Errorf("after that it waits %v, want %v", further, row.further)
			}
		})
	}
}

// newTestRetries are retries whose clock stands still.
func newTestRetries(t *testing.T) (*retries, *clocktesting.FakeClock) {
	t.Helper()
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[cache.ObjectName](firstRetry, lastRetry)
	queue := workqueue.NewTypedDelayingQueue[cache.ObjectName]()
	t.Cleanup(queue.ShutDown)
	clock := clocktesting.NewFakeClock(time.Now())
	return newRetries(queue, limiter, clock), clock
}

func TestFailedFooIsHeldBeforeItsStatusIsWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, foo("a"))
		f.refuse("create", "deployments", apierrors.NewForbidden(deploymentsGR, "web", errors.New("exceeded quota")))
		held := false
		f.fooClient.PrependReactor("update", "foos", func(clienttesting.Action) (bool, runtime.Object, error) {
			held = f.retries.ahead(keyOf(foo("a")))
			return false, nil, nil
		})
		_ = f.sync(f.ctx, keyOf(foo("a")))
		if !held {
			t.Error("the event of the status would wake the Foo at once")
		}
	})
}

// wrapped is an error as sync returns it.
func wrapped(err error) error {
	if err == nil {
		return nil
	}
	return errors.Join(nil, fmt.Errorf("creating Deployment %q: %w", "web", err))
}
