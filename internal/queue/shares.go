// SPDX-License-Identifier: Apache-2.0

// The workers' time that each namespace has used.

package queue

import (
	"maps"
	"time"

	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
)

const (
	// slowSync is the duration of a sync from which its namespace counts as slow, for example
	// because a webhook times out.
	slowSync = time.Second
	// slowFor is how long a namespace then counts as slow. Quick syncs do not end this time,
	// because most of them make no call.
	slowFor = time.Minute
)

// shares charges the workers' time to namespaces. A turn begins at a point in virtual time,
// which passes for a namespace only while it is served, and the namespace with the earliest
// next turn is served (start-time fair queuing, Goyal et al. 1996). If turns take no time,
// this is a round robin.
//
// A slow namespace may not use the last idle worker, because syncs of other namespaces would
// have to wait for its calls.
type shares struct {
	clock   clock.PassiveClock
	workers int
	now     time.Duration // the virtual time
	// next is when a namespace's next turn begins, if that is later than now.
	next map[string]time.Duration
	// began is when the syncs in progress began.
	began map[cache.ObjectName]time.Time
	// running counts the syncs in progress by namespace. parked are keys of slow namespaces
	// that a worker took but may not sync yet.
	running map[string]int
	parked  map[string][]cache.ObjectName
	// slowUntil is the time until which a namespace counts as slow.
	slowUntil map[string]time.Time
}

func newShares(clock clock.PassiveClock) shares {
	return shares{
		clock: clock, next: map[string]time.Duration{}, began: map[cache.ObjectName]time.Time{},
		running: map[string]int{}, parked: map[string][]cache.ObjectName{}, slowUntil: map[string]time.Time{},
	}
}

// start returns when the next turn of a namespace begins.
func (s *shares) start(namespace string) time.Duration { return max(s.now, s.next[namespace]) }

// begin records the start of a sync of a popped key. If the key's namespace already has all the
// workers that it may use, begin parks the key and returns false. The end of another sync
// returns the key later; the caller must then add it again and call Done for it.
func (q *fairQueue) begin(key cache.ObjectName) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if running := q.running[key.Namespace]; running > 0 && running >= q.workers-1 && q.isSlow(key.Namespace) {
		q.parked[key.Namespace] = append(q.parked[key.Namespace], key)
		return false
	}
	q.running[key.Namespace]++
	q.began[key] = q.clock.Now()
	return true
}

// isSlow reports whether a sync of a namespace was slow recently, or one in progress is.
func (s *shares) isSlow(namespace string) bool {
	for key, began := range s.began {
		if key.Namespace == namespace && s.clock.Since(began) >= slowSync {
			return true
		}
	}
	return s.clock.Now().Before(s.slowUntil[namespace])
}

// end records the end of a sync, and returns the parked keys that may now begin.
func (q *fairQueue) end(key cache.ObjectName) (freed []cache.ObjectName) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if began, known := q.began[key]; known {
		delete(q.began, key)
		freed = q.ended(key.Namespace, q.clock.Since(began))
	}
	if q.high.size+q.waiting.Len() == 0 {
		q.forget()
	}
	return freed
}

// ended charges the duration of a sync to its namespace, and returns the parked keys that may
// now begin.
func (s *shares) ended(namespace string, took time.Duration) []cache.ObjectName {
	s.next[namespace] = s.start(namespace) + took
	if took >= slowSync {
		s.slowUntil[namespace] = s.clock.Now().Add(slowFor)
	}
	if s.running[namespace]--; s.running[namespace] == 0 {
		delete(s.running, namespace)
	}
	freed := s.parked[namespace]
	if s.isSlow(namespace) && len(freed) > 1 {
		s.parked[namespace] = freed[1:]
		return freed[:1]
	}
	delete(s.parked, namespace)
	return freed
}

// forget drops the accounts of all namespaces when nothing runs or is parked.
func (s *shares) forget() {
	if len(s.began) == 0 && len(s.parked) == 0 {
		s.now = 0
		clear(s.next)
		maps.DeleteFunc(s.slowUntil, func(_ string, until time.Time) bool { return !s.clock.Now().Before(until) })
	}
}
