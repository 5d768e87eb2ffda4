// SPDX-License-Identifier: Apache-2.0

// The storage of the work queue, which decides the order of the keys.

package queue

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
)

// inARow is how many high-priority keys are served before a low-priority key is
// served.
const inARow = 8

// fairQueue stores the keys of a work queue and decides which one is next.
//
// client-go's own storage is first come, first served (kubernetes/kubernetes#25744
// requests a fair one). Here namespaces take turns, so that a namespace with thousands
// of waiting objects does not delay the only object of another. Namespaces whose syncs
// take longer get fewer turns. A controller that starts or resyncs queues all its
// objects, most of which need nothing: these keys have low priority. They are served
// when no other key waits, and after every inARow other keys.
type fairQueue struct {
	mu   sync.Mutex
	high *roundRobin
	// low may still hold keys that have moved to high: only keys in waiting count.
	low     *roundRobin
	waiting sets.Set[cache.ObjectName]
	// announced are the keys that setLowPriority has named but that are not added yet.
	announced sets.Set[cache.ObjectName]
	// processing counts, for each key, the Pops without a matching Done.
	processing map[cache.ObjectName]int
	served     int

	shares
}

var _ workqueue.Queue[cache.ObjectName] = &fairQueue{}

func newFairQueue(clock clock.PassiveClock) *fairQueue {
	q := &fairQueue{
		shares: newShares(clock), waiting: sets.New[cache.ObjectName](), announced: sets.New[cache.ObjectName](),
		processing: map[cache.ObjectName]int{},
	}
	q.high, q.low = newRoundRobin(&q.shares), newRoundRobin(&q.shares)
	return q
}

// setLowPriority gives a key low priority. Call it before the key is added to the
// work queue. A key that already waits keeps its place.
//
// A key that is being processed does not get low priority. The work queue pushes it when
// its processing is done, and does not report why it was added: perhaps for a change.
func (q *fairQueue) setLowPriority(key cache.ObjectName) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.processing[key] == 0 {
		q.announced.Insert(key)
	}
}

// Done ends the processing of a popped key. Call it after the work queue's Done: in the
// reverse order, a key that is added in between could get low priority although its
// object changed. By then another worker may have popped the key again, so Done counts.
func (q *fairQueue) Done(key cache.ObjectName) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.processing[key]--
	if q.processing[key] <= 0 {
		delete(q.processing, key)
	}
}

// Push adds a key that is not waiting yet.
func (q *fairQueue) Push(key cache.ObjectName) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.announced.Has(key) {
		q.announced.Delete(key)
		q.waiting.Insert(key)
		q.low.push(key)
		return
	}
	q.high.push(key)
}

// Touch handles a key that is added again while it waits. Unless it was again added with
// low priority, its object changed, and the key moves to high.
func (q *fairQueue) Touch(key cache.ObjectName) {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.announced.Has(key):
		q.announced.Delete(key)
	case q.waiting.Has(key):
		q.take(key)
		q.high.push(key)
	}
}

// Len returns how many keys are waiting.
func (q *fairQueue) Len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.high.size + q.waiting.Len()
}

// Pop removes the next key and returns it. The queue must not be empty. The caller must
// call Done for the key.
func (q *fairQueue) Pop() cache.ObjectName {
	q.mu.Lock()
	defer q.mu.Unlock()
	key := q.nextKey()
	q.processing[key]++
	// Any later addition is for a key that is being processed.
	q.announced.Delete(key)
	return key
}

func (q *fairQueue) nextKey() cache.ObjectName {
	if q.high.size > 0 && (q.waiting.Len() == 0 || q.served < inARow) {
		q.served++
		return q.high.pop()
	}
	q.served = 0
	key := q.low.pop()
	for !q.waiting.Has(key) {
		key = q.low.pop()
	}
	q.take(key)
	return key
}

// take removes a key from those that wait with low priority.
func (q *fairQueue) take(key cache.ObjectName) {
	q.waiting.Delete(key)
	if q.waiting.Len() == 0 {
		q.low = newRoundRobin(&q.shares) // any keys left in it have moved to high
	}
}

// roundRobin holds keys and serves their namespaces in turn, and the keys of each
// namespace in the order in which they were added.
type roundRobin struct {
	shares *shares
	// byNamespace has only namespaces with keys.
	byNamespace map[string]workqueue.Queue[cache.ObjectName]
	// turns has the next turn of each namespace, the earliest first.
	turns []turn
	size  int
}

// turn is when the next turn of a namespace begins.
type turn struct {
	namespace string
	start     time.Duration
}

func newRoundRobin(shares *shares) *roundRobin {
	return &roundRobin{shares: shares, byNamespace: map[string]workqueue.Queue[cache.ObjectName]{}}
}

func (r *roundRobin) push(key cache.ObjectName) {
	keys := r.byNamespace[key.Namespace]
	if keys == nil {
		keys = workqueue.DefaultQueue[cache.ObjectName]()
		r.byNamespace[key.Namespace] = keys
		r.addTurn(key.Namespace)
	}
	keys.Push(key)
	r.size++
}

// addTurn adds the next turn of a namespace, after those that begin at the same time.
func (r *roundRobin) addTurn(namespace string) {
	next := turn{namespace, r.shares.start(namespace)}
	byStart := func(t turn, start time.Duration) int { return cmp.Compare(t.start, start) }
	behind, _ := slices.BinarySearchFunc(r.turns, next.start+1, byStart)
	r.turns = slices.Insert(r.turns, behind, next)
}

func (r *roundRobin) pop() cache.ObjectName {
	namespace := r.nextTurn()
	keys := r.byNamespace[namespace]
	key := keys.Pop()
	if keys.Len() > 0 {
		r.addTurn(namespace)
	} else {
		delete(r.byNamespace, namespace)
	}
	r.size--
	return key
}

// nextTurn removes the earliest turn. A turn that was added during a sync of its namespace
// may meanwhile begin later.
func (r *roundRobin) nextTurn() string {
	for {
		next := r.turns[0]
		r.turns = r.turns[1:]
		start := r.shares.start(next.namespace)
		if len(r.turns) > 0 && r.turns[0].start < start {
			r.addTurn(next.namespace)
			continue
		}
		r.shares.now = start
		return next.namespace
	}
}
