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

// The back-off of each key, and of each part of its sync.

package queue

import (
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
)

// Part is a part of a sync that can fail and that is deferred by itself: the kind of the
// children that are written, or one of these.
type Part string

const (
	// PartStatus is the write of the Foo's status.
	PartStatus Part = "status"
	// partSync is the sync as a whole, as when it panics.
	partSync Part = "sync"
)

// deferred is the error of a write that was not sent because it failed before and its
// back-off is not over.
type deferred struct{ error }

// Unwrap returns the error of the write that failed.
func (p deferred) Unwrap() error { return p.error }

// Task is what a write is made from.
type Task[T any] interface {
	// Same reports whether another task would send the API server the same.
	Same(other T) bool
}

// Backoff delays the keys whose sync failed. It remembers what failed, so that neither a
// periodic resync nor an irrelevant change repeats that early.
type Backoff[T Task[T]] struct {
	queue   workqueue.TypedDelayingInterface[cache.ObjectName]
	limiter workqueue.TypedRateLimiter[cache.ObjectName]
	// refusals is the limiter of refused writes.
	refusals workqueue.TypedRateLimiter[cache.ObjectName]
	// races is the limiter of lost races. They are no failures: while a cache lags, a key
	// loses one with each event, and must not wait for minutes after that.
	races workqueue.TypedRateLimiter[cache.ObjectName]
	clock clock.PassiveClock

	mu   sync.Mutex
	keys map[cache.ObjectName]*keyBackoff[T]
}

// keyBackoff is the back-off of one key.
type keyBackoff[T Task[T]] struct {
	failures map[Part]failedPart[T]
	// syncing is true from the start of a sync to its end, and failed from when a part of
	// it has failed.
	syncing, failed bool
}

// failedPart is a part of a sync that failed. It is not tried again before its time
// unless its task changes.
type failedPart[T Task[T]] struct {
	Attempt
	task  T
	err   error
	until time.Time
}

// IsDeferred reports whether a sync failed only by writes that were not sent because of
// their back-off.
func IsDeferred(err error) bool {
	if all, ok := err.(interface{ Unwrap() []error }); ok {
		return !slices.ContainsFunc(all.Unwrap(), func(err error) bool { return !IsDeferred(err) })
	}
	_, known := err.(deferred) //nolint:errorlint // sync joins its errors and wraps none
	return known
}

// NewBackoff returns a Backoff that adds keys to a queue.
func NewBackoff[T Task[T]](queue workqueue.TypedDelayingInterface[cache.ObjectName], clock clock.PassiveClock) *Backoff[T] {
	return &Backoff[T]{
		queue:    queue,
		limiter:  workqueue.NewTypedItemExponentialFailureRateLimiter[cache.ObjectName](firstRetry, LastRetry),
		refusals: workqueue.NewTypedItemExponentialFailureRateLimiter[cache.ObjectName](RefusedRetry, LastRetry),
		races:    workqueue.NewTypedItemExponentialFailureRateLimiter[cache.ObjectName](firstRetry, LastRace),
		clock:    clock,
		keys:     map[cache.ObjectName]*keyBackoff[T]{},
	}
}

// of returns the back-off of a key. It makes one if there is none.
func (r *Backoff[T]) of(key cache.ObjectName) *keyBackoff[T] {
	if r.keys[key] == nil {
		r.keys[key] = &keyBackoff[T]{failures: map[Part]failedPart[T]{}}
	}
	return r.keys[key]
}

// Fail records that a part of a sync failed. A part that was tried early, because its
// task changed, and failed as before keeps its time. The key is in back-off until the
// sync ends and Requeue is called.
func (r *Backoff[T]) Fail(key cache.ObjectName, p Part, of T, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failLocked(key, p, of, err)
}

func (r *Backoff[T]) failLocked(key cache.ObjectName, p Part, of T, err error) {
	k, now, next := r.of(key), r.clock.Now(), NextAttempt(err)
	before := k.failures[p]
	stands, until := now.Before(before.until), before.until
	if !stands || before.Attempt != next {
		until = now.Add(r.delay(key, next))
		if stands && before.until.Before(until) {
			until = before.until
		}
	}
	k.failures[p] = failedPart[T]{next, of, err, until}
	k.failed = true
}

// Deferred returns the error of a task that failed if its back-off is not over, else nil.
func (r *Backoff[T]) Deferred(key cache.ObjectName, p Part, of T) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	k := r.keys[key]
	if k == nil || !r.clock.Now().Before(k.failures[p].until) || !k.failures[p].task.Same(of) {
		return nil
	}
	k.failed = true
	return deferred{k.failures[p].err}
}

// Succeed ends the series of failures of a part.
func (r *Backoff[T]) Succeed(key cache.ObjectName, p Part) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if k := r.keys[key]; k != nil {
		delete(k.failures, p)
	}
}

// Requeue adds a key to the queue for its next attempt after a sync that ended with err,
// and returns the time until then.
func (r *Backoff[T]) Requeue(key cache.ObjectName, err error) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	k, next := r.of(key), NextAttempt(err)
	if next.Held && !k.failed {
		r.failLocked(key, partSync, *new(T), err)
	}
	k.syncing, k.failed = false, false
	wait, failing := k.earliest(r.clock.Now())
	if !next.Held {
		if delay := r.delay(key, next); !failing || delay < wait {
			wait = delay
		}
	}
	r.queue.AddAfter(key, wait)
	return wait
}

// earliest returns the time until the first failed part may be tried again, and whether
// there is one that may not be tried yet.
func (k *keyBackoff[T]) earliest(now time.Time) (wait time.Duration, failing bool) {
	for _, f := range k.failures {
		if left := f.until.Sub(now); left > 0 && (!failing || left < wait) {
			wait, failing = left, true
		}
	}
	return wait, failing
}

// delay returns how long a key waits after one more failure.
func (r *Backoff[T]) delay(key cache.ObjectName, next Attempt) time.Duration {
	switch {
	case next.RefusalBackoff:
		return r.refusals.When(key)
	case next.After > 0:
		return next.After
	case next.Expected:
		return r.races.When(key)
	}
	return r.limiter.When(key)
}

// Begin records that a sync begins.
func (r *Backoff[T]) Begin(key cache.ObjectName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if k := r.keys[key]; k != nil {
		k.syncing = true
	}
}

// InBackoff reports whether the next sync of a key is still to come, so that it will see
// what has changed by now. A sync under way may have read the cache before, and it is the
// last one unless a part of it fails.
func (r *Backoff[T]) InBackoff(key cache.ObjectName) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	k := r.keys[key]
	if k == nil {
		return false
	}
	_, failing := k.earliest(r.clock.Now())
	return k.failed || failing && !k.syncing
}

// Forget ends the series of failures of a key.
func (r *Backoff[T]) Forget(key cache.ObjectName) {
	r.mu.Lock()
	delete(r.keys, key)
	r.mu.Unlock()
	r.limiter.Forget(key)
	r.refusals.Forget(key)
	r.races.Forget(key)
}
