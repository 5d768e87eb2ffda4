// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"hash/fnv"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"example.com/sample-controller/pkg/reconcile/plan"
)

// mostReferences bounds the number of referenced objects that are remembered. Beyond that, some are read
// again.
const mostReferences = 1 << 16

// dueRetry is how soon an object is read again that stays due.
const dueRetry = time.Minute

// References remembers what was learned from reading the objects that owners name: a hash and a verdict, none
// of their data. Owners share it, so that an object that thousands of them name is read once for each of
// its versions. It is safe for concurrent use.
type References struct {
	Clock clock.PassiveClock

	mu    sync.Mutex
	byKey map[reference]reading
}

type reference struct {
	kind string // which no other row of the table has
	key  cache.ObjectName
}

// reading is what a live read returned: the version, or none of a missing object.
type reading struct {
	uid     types.UID
	version string
	// until is how long it counts without a cache.
	until time.Time
	// due is when to read it again whatever its version, or zero: see plan.Readiness.ComeAgain.
	due  time.Time
	seen plan.Seen
}

// Known returns what is known of an object, if that still counts. cached is the object in the cache, or nil;
// without a cache, a read counts for the time of plan.ChildKind.Poll, a tenth more or less, after which the owner
// has to come again.
func (r *References) Known(of *plan.ChildKind, key cache.ObjectName, hasCache bool, cached plan.Object) (outcome plan.Outcome, isKnown bool) {
	r.mu.Lock()
	is, found := r.byKey[reference{of.Kind, key}]
	r.mu.Unlock()
	if !found {
		return outcome, false
	}
	outcome.Seen = &is.seen
	if !is.due.IsZero() {
		if outcome.Again = is.due.Sub(r.Clock.Now()); outcome.Again <= 0 {
			return outcome, false
		}
	}
	switch {
	case !hasCache:
		left := is.until.Sub(r.Clock.Now())
		outcome.Again = plan.Sooner(outcome.Again, left)
		return outcome, left > 0
	case cached == nil || is.seen.IsMissing:
		return outcome, cached == nil && is.seen.IsMissing
	case is.uid != cached.GetUID():
		return outcome, false
	case is.version == cached.GetResourceVersion():
		return outcome, true
	}
	// The cache may lag behind the read.
	order, err := resourceversion.CompareResourceVersion(cached.GetResourceVersion(), is.version)
	return outcome, err == nil && order < 0
}

// Observe records a live read. live is nil if there is no object with the key. Without a cache, the owner has to come
// again.
func (r *References) Observe(of *plan.ChildKind, key cache.ObjectName, hasCache bool, live plan.Object) (outcome plan.Outcome) {
	now := r.Clock.Now()
	poll := of.Poll() + jitter(key, now, of.Poll())
	is := reading{seen: of.Learn(live)}
	if is.due = is.seen.Readiness.Due(); !is.due.IsZero() && is.due.Before(now.Add(dueRetry)) {
		is.due = now.Add(dueRetry)
	}
	if live != nil {
		is.uid, is.version = live.GetUID(), live.GetResourceVersion()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.byKey == nil {
		r.byKey = map[reference]reading{}
	}
	if _, known := r.byKey[reference{of.Kind, key}]; !known && len(r.byKey) >= mostReferences {
		for other := range r.byKey {
			delete(r.byKey, other) // any: one that is still named is read again
			break
		}
	}
	if !hasCache {
		is.until, outcome.Again = now.Add(poll), poll
	}
	r.byKey[reference{of.Kind, key}] = is
	if !is.due.IsZero() {
		outcome.Again = plan.Sooner(outcome.Again, is.due.Sub(now))
	}
	outcome.Seen = &is.seen
	return outcome
}

// jitter returns up to a tenth of a time, more or less, so that objects that were read together are not read
// together again.
func jitter(key cache.ObjectName, now time.Time, of time.Duration) time.Duration {
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(key.String() + now.String()))
	return time.Duration(hash.Sum64()%2000)*of/10000 - of/10
}
