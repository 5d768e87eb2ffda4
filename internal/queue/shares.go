// SPDX-License-Identifier: Apache-2.0

// The workers' time that each namespace has had, and how many rollouts begin at a time.

package queue

import (
	"maps"
	"sync"
	"time"

	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
)

const (
	// slowSync is how long a sync takes at least in a namespace that counts as slow, as one
	// does whose webhook times out.
	slowSync = time.Second
	// slowFor is for how long a namespace counts as slow after that. Quick syncs do not end
	// it: most make no call.
	slowFor = time.Minute
)

// shares accounts the workers' time to namespaces. A turn begins at a point of a virtual
// time, which passes for a namespace only while it is served, and the namespace whose next
// turn is the earliest is served (start-time fair queuing, Goyal et al. 1996). Turns that
// take no time make that a round robin.
//
// A slow namespace may not have the last idle worker: a sync of another one would have to
// wait for its calls.
type shares struct {
	clock   clock.PassiveClock
	workers int
	now     time.Duration // the virtual time
	// next is when the next turn of a namespace begins, if that is later than now.
	next map[string]time.Duration
	// began is when the syncs under way began.
	began map[cache.ObjectName]time.Time
	// running counts them by namespace, and parked are the keys of slow namespaces that a
	// worker had taken.
	running map[string]int
	parked  map[string][]cache.ObjectName
	// slowUntil is until when a namespace counts as slow.
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

// begin accounts the begin of a sync of a key that was popped, unless its namespace has all
// workers that it may have: then the key is parked, and begin returns false. The end of another
// key returns it later, and it has to be added again and to be done.
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

// isSlow reports whether a sync of a namespace was slow lately, or one under way is.
func (s *shares) isSlow(namespace string) bool {
	for key, began := range s.began {
		if key.Namespace == namespace && s.clock.Since(began) >= slowSync {
			return true
		}
	}
	return s.clock.Now().Before(s.slowUntil[namespace])
}

// end accounts the end of a sync, and returns the parked keys that may begin.
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

// ended accounts a sync of a namespace that took a time.
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

// forget drops what is known of namespaces that nobody waits in.
func (s *shares) forget() {
	if len(s.began) == 0 && len(s.parked) == 0 {
		s.now = 0
		clear(s.next)
		maps.DeleteFunc(s.slowUntil, func(_ string, until time.Time) bool { return !s.clock.Now().Before(until) })
	}
}

// rolloutTimeout is how long a rollout counts. One whose Pods never become available would
// otherwise stop all others.
const rolloutTimeout = 10 * time.Minute

// Rollouts bounds how many Foos at a time restart their Pods because of something that no
// user of theirs has asked for, such as another -image. A namespace has at most half of
// them, so that one whose Pods do not start does not stop the others.
type Rollouts struct {
	Clock clock.PassiveClock
	// Limit is how many Foos roll out at a time. 0 means any number.
	Limit int

	mu    sync.Mutex
	begun map[cache.ObjectName]time.Time
	// waiting are those to which Begin has said no since they last rolled out.
	waiting map[cache.ObjectName]bool
}

// Begin returns 0 if a Foo may roll out now, and otherwise after how long to ask again: those
// that wait ask a hundred times a second together, at most once a second each.
func (r *Rollouts) Begin(foo cache.ObjectName) time.Duration {
	if r.Limit <= 0 {
		return 0
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.begun == nil {
		r.begun, r.waiting = map[cache.ObjectName]time.Time{}, map[cache.ObjectName]bool{}
	}
	inNamespace := 0
	for other, since := range r.begun {
		switch {
		case r.Clock.Since(since) >= rolloutTimeout:
			delete(r.begun, other)
		case other == foo:
			return 0
		case other.Namespace == foo.Namespace:
			inNamespace++
		}
	}
	if len(r.begun) >= r.Limit || inNamespace >= max(1, r.Limit/2) {
		r.waiting[foo] = true
		return max(time.Second, time.Duration(len(r.waiting))*(time.Second/100))
	}
	delete(r.waiting, foo)
	r.begun[foo] = r.Clock.Now()
	return 0
}

// End records that a Foo does not roll out, or not any more.
func (r *Rollouts) End(foo cache.ObjectName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.begun, foo)
	delete(r.waiting, foo)
}
