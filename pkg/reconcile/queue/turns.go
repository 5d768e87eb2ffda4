// SPDX-License-Identifier: Apache-2.0

// The turns in which syncs run, and how namespaces share them.

package queue

import (
	"sync"
	"time"

	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
)

const (
	// handOverAfter is how long a sync keeps its turn while a call has no response. Nearly all
	// calls take less than a tenth of it.
	handOverAfter = 100 * time.Millisecond
	// maxHandedOver is how many turns may be handed over at the same time: each such sync has
	// a goroutine and a connection. A sync beyond it keeps its turn until there is room.
	maxHandedOver = 100
	// maxHanging is how many syncs a namespace may have in progress if there are fewer workers.
	maxHanging = 4
)

// turns bounds the number of syncs that run at the same time.
//
// A sync holds a turn from Get to Done, except while a call hangs: like a goroutine of Go in a
// system call, it then hands the turn over to another worker. When the call has returned, the
// sync waits for a turn, ahead of new keys. So no webhook that times out occupies the workers.
//
// A namespace is charged for the time in which its syncs hold turns. A turn begins at a point
// in virtual time, which passes for a namespace only while it is served, and the namespace with
// the earliest next turn is served (start-time fair queuing, Goyal et al. 1996). If turns take
// no time, this is a round robin.
type turns struct {
	clock clock.PassiveClock
	// workers is the number of turns; 0 means that there is no bound. start starts a further
	// worker; if it is nil, no turn is handed over.
	workers  int
	start    func()
	shutDown bool
	// changed wakes the workers without a key, whose number is idle, and the syncs that wait.
	changed sync.Cond
	idle    int
	// running syncs have a turn, and returning ones wait to take one again.
	running, returning, handedOver int
	syncs                          map[cache.ObjectName]*turn
	// namespaces has those with keys or syncs since the queue was last idle.
	namespaces map[string]*namespace
	now        time.Duration // the virtual time
}

// turn is the turn of a sync.
type turn struct {
	*namespace
	since                 time.Time
	calling, isHandedOver bool
}

// namespace has the keys of a namespace by priority, and records what it uses.
type namespace struct {
	keys [priorities][]cache.ObjectName
	// next is when its next turn begins, if that is later than now.
	next time.Duration
	// syncs are in progress, and handedOver those of them without a turn.
	syncs, handedOver int
}

// of returns the namespace with a name.
func (t *turns) of(name string) *namespace {
	if t.namespaces[name] == nil {
		t.namespaces[name] = &namespace{}
	}
	return t.namespaces[name]
}

// mayBegin reports whether a further sync of a namespace may begin. A namespace leaves the last
// free turn to others while one of its calls hangs, because the next probably will, too. The second
// half of maxHandedOver is for namespaces without a sync in progress.
func (t *turns) mayBegin(n *namespace) bool {
	isLast := t.running+t.returning >= t.workers-1 && t.workers > 1
	if n.handedOver > 0 && isLast || t.handedOver >= maxHandedOver/2 {
		return n.syncs == 0
	}
	return n.syncs < max(maxHanging, t.workers) || t.workers == 0
}

// await waits for a turn and a key that may begin, and chooses the key for Pop. It returns false
// if the worker must end: after a shutdown, or because enough others wait.
//
// No key waits beside a free turn: each turn has a worker, because handing one over starts
// another, and a worker ends only if as many wait as there are turns.
func (q *fairQueue) await() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	for !q.shutDown && q.workers > 0 {
		if q.running+q.returning < q.workers && q.choose() {
			return true
		}
		if q.idle >= q.workers {
			return false
		}
		q.idle++
		q.changed.Wait()
		q.idle--
	}
	return !q.shutDown
}

// release frees a turn, and charges its namespace.
func (q *fairQueue) release(t *turn) {
	q.running--
	t.next = max(q.now, t.next) + q.clock.Since(t.since)
	q.changed.Broadcast()
}

// countHandedOver counts a turn that is handed over, or no longer.
func (q *fairQueue) countHandedOver(t *turn, by int) {
	t.isHandedOver = by > 0
	t.handedOver += by
	q.handedOver += by
}

// end records the end of a sync. The next sync of the key may have begun already.
func (q *fairQueue) end(key cache.ObjectName, t *turn) {
	q.mu.Lock()
	defer q.mu.Unlock()
	t.syncs--
	if t.calling = false; t.isHandedOver { // a call panicked
		q.countHandedOver(t, -1)
	} else {
		q.release(t)
	}
	if q.syncs[key] == t {
		delete(q.syncs, key)
	}
	if len(q.syncs)+len(q.waiting) == 0 {
		q.now, q.order = 0, [priorities][]*namespace{}
		clear(q.namespaces)
	}
}

// handOver hands over the turn of a sync, unless its call has returned. If the sync makes another
// call by then, that one hands over early.
func (q *fairQueue) handOver(t *turn) {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case !t.calling || t.isHandedOver || q.shutDown:
	case q.handedOver >= maxHandedOver:
		time.AfterFunc(handOverAfter, func() { q.handOver(t) })
	default:
		q.countHandedOver(t, 1)
		q.release(t)
		q.start()
	}
}

// takeAgain ends a call. If the turn was handed over, it waits for one, but not after a
// shutdown, which the syncs in progress must not delay.
func (q *fairQueue) takeAgain(t *turn) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if t.calling = false; !t.isHandedOver {
		return
	}
	q.countHandedOver(t, -1)
	q.returning++
	for q.running >= q.workers && !q.shutDown {
		q.changed.Wait()
	}
	q.returning--
	q.running++
	t.since = q.clock.Now()
	q.changed.Broadcast() // another sync of the namespace may begin
}
