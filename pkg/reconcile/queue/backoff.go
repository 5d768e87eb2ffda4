// SPDX-License-Identifier: Apache-2.0

// The back-off of each key, and of each part of its sync.

package queue

import (
	"errors"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"example.com/sample-controller/pkg/reconcile/failure"
)

// PartStatus is the part of a sync that writes the owner's status.
const PartStatus = "status"

// partSync is the sync as a whole, for example when it panics.
const partSync = ""

// Backoff delays the keys whose sync failed. It remembers what failed, so that neither a
// periodic resync nor an irrelevant change repeats it early. It adds no key to a queue: End
// returns the delay. Its methods may be called at the same time.
//
// Each part of a sync has its own series of failures: with one series for the key, parts that
// fail together would count each other's failures. A part has any name but "": the name of a
// kind, for example, if a sync writes one object of it. Its inputs are the inputs of the write,
// of any type: a write from equal inputs would send the API server the same.
type Backoff struct {
	clock clock.PassiveClock

	mu   sync.Mutex
	keys map[cache.ObjectName]*keyBackoff
}

// keyBackoff is the back-off of one key.
type keyBackoff struct {
	failures map[string]failedPart
	// syncing is true from the start of a sync to its end, and held after a part of it has to
	// wait for its time. stale is true if the last sync found the caches stale, so that it waits
	// for their next event.
	syncing, held, stale bool
	// until is when the first part that failed or waits in the current sync may be tried again,
	// or zero if there is none.
	until time.Time
	// reported maps each cause of failures to the time it was last reported.
	reported map[string]time.Time
}

// failedPart is a part of a sync that failed. If it is held, it is not tried again before
// its time unless its inputs change. It is also an error for which the next attempt is decided.
type failedPart struct {
	Attempt
	inputs any
	err    error
	until  time.Time
	// races, refusals and outages count the failures of the series.
	races, refusals, outages int
}

// Error returns the text of the error that the part failed with.
func (f *failedPart) Error() string { return f.err.Error() }

// Unwrap returns the error that the part failed with.
func (f *failedPart) Unwrap() error { return f.err }

// NewBackoff returns a Backoff without failures.
func NewBackoff(clock clock.PassiveClock) *Backoff {
	return &Backoff{clock: clock, keys: map[cache.ObjectName]*keyBackoff{}}
}

// of returns the back-off of a key, and creates it if there is none.
func (r *Backoff) of(key cache.ObjectName) *keyBackoff {
	if r.keys[key] == nil {
		r.keys[key] = &keyBackoff{failures: map[string]failedPart{}, reported: map[string]time.Time{}}
	}
	return r.keys[key]
}

// Begin records that a sync of a key begins. Call it before the sync reads a cache.
func (r *Backoff) Begin(key cache.ObjectName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if k := r.keys[key]; k != nil {
		k.syncing = true
	}
}

// Try begins an attempt of a part: it returns nil if the part may be tried now. If it failed with
// the same inputs and is still in back-off, Try returns that error instead, and the key waits for
// the part, as after Fail. The Attempt after the error is Deferred.
func (r *Backoff) Try(key cache.ObjectName, part string, inputs any) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	k := r.keys[key]
	if k == nil {
		return nil
	}
	f := k.failures[part]
	if !f.Held || !r.clock.Now().Before(f.until) || !equality.Semantic.DeepEqual(f.inputs, inputs) {
		return nil
	}
	k.waitFor(f)
	f.Deferred = true
	return &f
}

// Fail records that a part of a sync failed, and returns its error. It wraps the error of a lost
// race once the series counts as an outage. A part that was tried early, because its inputs
// changed or an event arrived, and failed as before keeps its time. The key is in back-off
// until the sync ends and End is called.
func (r *Backoff) Fail(key cache.ObjectName, part string, inputs any, err error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failLocked(key, part, inputs, err)
}

func (r *Backoff) failLocked(key cache.ObjectName, part string, inputs any, err error) error {
	k, now := r.of(key), r.clock.Now()
	f := k.failures[part]
	if failure.IsLostRace(err) && delay(firstRetry, f.races) >= LastRace {
		err = &failedPart{Attempt: Attempt{Again: true, Held: true}, err: err}
	}
	next, before := NextAttempt(err), f
	if !next.Again {
		return err
	}
	f.Attempt, f.inputs, f.err = next, nil, nil
	if next.Held {
		f.inputs, f.err = inputs, err
	}
	if !now.Before(before.until) || before.Attempt != next {
		f.until = now.Add(f.count(err))
		if now.Before(before.until) && before.until.Before(f.until) {
			f.until = before.until
		}
	}
	k.failures[part] = f
	k.waitFor(f)
	return err
}

// waitFor records that a part has to wait for its time.
func (k *keyBackoff) waitFor(f failedPart) {
	if k.until.IsZero() || f.until.Before(k.until) {
		k.until = f.until
	}
	k.held = k.held || f.Held
}

// count counts a failure, and returns the time until the next attempt.
func (f *failedPart) count(err error) time.Duration {
	switch {
	case f.RefusalBackoff:
		f.refusals++
		return delay(RefusedRetry, f.refusals)
	case failure.IsLostRace(err), errors.Is(err, failure.ErrBehind): // this may persist
		f.races++
		return max(f.After, delay(firstRetry, f.races))
	case f.After > 0:
		return f.After
	}
	f.outages++
	return delay(firstRetry, f.outages)
}

// delay returns the time to wait after a number of failures: first, doubled with each further
// failure, up to LastRetry.
func delay(first time.Duration, failures int) time.Duration {
	wait := first
	for i := 1; i < failures && wait < LastRetry; i++ {
		wait *= 2
	}
	return min(wait, LastRetry)
}

// IsFailing reports whether the last attempt of a part failed.
func (r *Backoff) IsFailing(key cache.ObjectName, part string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	k := r.keys[key]
	return k != nil && k.failures[part].Again
}

// Succeed ends the series of failures of a part.
func (r *Backoff) Succeed(key cache.ObjectName, part string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if k := r.keys[key]; k != nil {
		delete(k.failures, part)
	}
}

// End records that a sync of a key ended with an error, and returns the time until the next one:
// add the key to the queue after that time, because InBackoff relies on it. If the sync succeeded,
// or NextAttempt says that only a change can help, call Forget instead.
func (r *Backoff) End(key cache.ObjectName, err error) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	k := r.of(key)
	if k.until.IsZero() {
		_ = r.failLocked(key, partSync, nil, err)
	} else {
		delete(k.failures, partSync)
	}
	now := r.clock.Now()
	wait, waits := k.earliest(now, false)
	// A part's time may have passed by now if the sync took that long. If this sync did not
	// reach the part, that is no reason to begin another sync.
	if due := k.until.Sub(now); !k.until.IsZero() && (!waits || due < wait) {
		wait = max(0, due)
	}
	k.stale = errors.Is(err, failure.ErrStale)
	k.syncing, k.held, k.until = false, false, time.Time{}
	return wait
}

// earliest returns the time until the first failed part may be tried again, and whether
// any part must still wait. If held is true, it considers only held parts.
func (k *keyBackoff) earliest(now time.Time, held bool) (wait time.Duration, failing bool) {
	for _, f := range k.failures {
		if left := f.until.Sub(now); left > 0 && (f.Held || !held) && (!failing || left < wait) {
			wait, failing = left, true
		}
	}
	return wait, failing
}

// InBackoff reports whether another sync of a key is certain to follow, so that it will see
// everything that has changed by now. A sync in progress may have read the cache earlier, and
// no other follows unless a part of it has failed or waits.
func (r *Backoff) InBackoff(key cache.ObjectName) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	k := r.keys[key]
	if k == nil {
		return false
	}
	_, failing := k.earliest(r.clock.Now(), true)
	return k.held || failing && !k.syncing && !k.stale
}

// reportAgain is the time after which a repeating failure is reported again.
const reportAgain = time.Hour

// MarkReported records that a failure of a sync is reported now, and returns false if one of the
// same cause was reported in this series within the last hour. Otherwise, many owners that a quota
// refuses, for example, would fill the log.
func (r *Backoff) MarkReported(key cache.ObjectName, cause string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	k, now := r.of(key), r.clock.Now()
	if at, known := k.reported[cause]; known && now.Sub(at) < reportAgain {
		return false
	}
	k.reported[cause] = now
	return true
}

// Forget ends all series of failures of a key: after a success, and when its object is deleted.
func (r *Backoff) Forget(key cache.ObjectName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.keys, key)
}
