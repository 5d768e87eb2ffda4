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
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
)

const (
	// firstRetry and lastRetry bound the exponential back-off of a key.
	firstRetry = 5 * time.Millisecond
	lastRetry  = 5 * time.Minute
	// refusedRetry is how long a refused write first waits for the quota, the
	// policy or the right to change, unless the Foo or its Deployment changes
	// before; doubled each time, up to lastRetry. Some refusals pass by
	// themselves: for half a minute after a definition is installed the API
	// server may not let its objects own others.
	refusedRetry = 10 * time.Second
	// behindRetry is how soon a sync that its own writes held up is tried
	// again, should the event that it waits for not wake it.
	behindRetry = time.Second
)

// errCacheBehind ends a sync that would have acted on a cache which has not
// yet seen the controller's own last write.
var errCacheBehind = errors.New("the cache has not seen the controller's last write yet")

// attempt says when a key is tried again after a sync.
type attempt struct {
	// again is false where only a change of the objects can help.
	again bool
	// after is the time until then; 0 means the key's exponential back-off.
	after time.Duration
	// slowly is for what was refused and would be again: its back-off begins
	// with refusedRetry.
	slowly bool
	// held keys are not synced before then unless what the Foo asks for, or its
	// Deployment, changes: neither a resync nor the Foo's status wakes them.
	held bool
	// expected errors are everyday business (a lost race) and are not logged
	// as errors.
	expected bool
}

// nextAttempt says what becomes of a key whose sync ended with err. It is the
// only place that judges errors.
func nextAttempt(err error) attempt {
	switch {
	case err == nil:
		return attempt{}
	case errors.Is(err, errCacheBehind):
		return attempt{again: true, after: behindRetry, expected: true}
	case errors.Is(err, context.Canceled):
		// The controller is stopping.
		return attempt{expected: true}
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		// Nothing can be created there any more, and the Foo goes with its namespace.
		return attempt{again: true, after: lastRetry, held: true, expected: true}
	case isRefusal(err):
		return attempt{again: true, slowly: true, held: true}
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err), apierrors.IsNotFound(err):
		// The cache was behind another's write; its event is on the way.
		return attempt{again: true, expected: true}
	}
	if seconds, ok := apierrors.SuggestsClientDelay(err); ok {
		return attempt{again: true, after: time.Duration(seconds) * time.Second, held: true}
	}
	return attempt{again: true, held: true}
}

// isRefusal tells whether the API server would refuse the same request again:
// it is invalid, too large, or forbidden by rights, quota or a policy.
func isRefusal(err error) bool {
	if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return false
	}
	return apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err) ||
		apierrors.IsRequestEntityTooLargeError(err) || apierrors.IsMethodNotSupported(err)
}

// retries paces the keys whose sync failed, and knows which of them are held
// until their next attempt, so that a periodic resync does not run ahead of it.
type retries struct {
	queue   workqueue.TypedDelayingInterface[cache.ObjectName]
	limiter workqueue.TypedRateLimiter[cache.ObjectName]
	// refusals is the limiter of what was refused.
	refusals workqueue.TypedRateLimiter[cache.ObjectName]
	clock    clock.PassiveClock

	mu sync.Mutex
	// plans are as the queue has them: the earliest for each key.
	plans map[cache.ObjectName]plan
}

// plan is what becomes of a key whose sync failed.
type plan struct {
	attempt
	// due is when the key is synced again.
	due time.Time
	// syncing is a sync that has failed and is not over: the next plan is still to
	// be made.
	syncing bool
}

func newRetries(
	queue workqueue.TypedDelayingInterface[cache.ObjectName],
	limiter workqueue.TypedRateLimiter[cache.ObjectName],
	clock clock.PassiveClock,
) *retries {
	return &retries{
		queue:    queue,
		limiter:  limiter,
		refusals: workqueue.NewTypedItemExponentialFailureRateLimiter[cache.ObjectName](refusedRetry, lastRetry),
		clock:    clock,
		plans:    map[cache.ObjectName]plan{},
	}
}

// plan queues a key for its next attempt and returns the time until then. A
// sync that came before its time, woken by a change, and failed as the one
// before did leaves the plan as it was.
func (r *retries) plan(key cache.ObjectName, next attempt) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.clock.Now()
	before := r.plans[key]
	stands := now.Before(before.due)
	due := before.due
	if !stands || before.attempt != next {
		due = now.Add(r.delay(key, next))
		if stands && before.due.Before(due) {
			due = before.due // the queue keeps to the earlier
		}
	}
	r.plans[key] = plan{attempt: next, due: due}
	r.queue.AddAfter(key, due.Sub(now))
	return due.Sub(now)
}

// delay is how long a key waits after one more failure.
func (r *retries) delay(key cache.ObjectName, next attempt) time.Duration {
	switch {
	case next.slowly:
		return r.refusals.When(key)
	case next.after > 0:
		return next.after
	}
	return r.limiter.When(key)
}

// hold holds a key whose sync has failed until the sync has ended, and plan
// says until when.
func (r *retries) hold(key cache.ObjectName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	held := r.plans[key]
	held.syncing = true
	r.plans[key] = held
}

// ahead tells whether a key is held: its next attempt is still to come.
func (r *retries) ahead(key cache.ObjectName) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.plans[key]
	return p.syncing || p.held && r.clock.Now().Before(p.due)
}

// forget ends a key's row of failures.
func (r *retries) forget(key cache.ObjectName) {
	r.mu.Lock()
	delete(r.plans, key)
	r.mu.Unlock()
	r.limiter.Forget(key)
	r.refusals.Forget(key)
}
