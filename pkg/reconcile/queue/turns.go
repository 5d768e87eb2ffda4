// SPDX-License-Identifier: Apache-2.0

// The storage of the work queue: the turns in which syncs run, and how calls that hang hand them over.

package queue

import (
	"time"

	"k8s.io/client-go/tools/cache"
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

// mayBegin reports whether a further sync of a namespace may begin. A namespace leaves the last
// free turn to others while one of its calls hangs, because the next probably will, too. The second
// half of maxHandedOver is for namespaces without a sync in progress.
func (q *fairQueue) mayBegin(n *namespace) bool {
	isLast := q.running+q.returning >= q.workers-1 && q.workers > 1
	if n.handedOver > 0 && isLast || q.handedOver >= maxHandedOver/2 {
		return n.syncs == 0
	}
	return n.syncs < max(maxHanging, q.workers) || q.workers == 0
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
