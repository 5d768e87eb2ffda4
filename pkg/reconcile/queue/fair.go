// SPDX-License-Identifier: Apache-2.0

// The storage of the work queue: the order of the keys.

package queue

import (
	"math"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
)

const (
	high = iota // the priorities of keys
	low
	priorities
	// inARow is how many high-priority keys are served before a low-priority key is.
	inARow = 8
)

// fairQueue stores the keys of a work queue, decides which one is next, and bounds the number of
// syncs that run at the same time.
//
// client-go's own storage is first come, first served (kubernetes/kubernetes#25744 requests a
// fair one). Here a namespace is charged for the time in which its syncs hold turns: from Get to
// Done, except while a call hangs. Like a goroutine of Go in a system call, a sync then hands its
// turn over. When the call has returned, it waits for another, ahead of new keys.
//
// A turn begins at a point in virtual time, which passes for a namespace only while it is served,
// and the namespace with the earliest next turn is served (start-time fair queuing, Goyal et al.
// 1996). If turns take no time, this is a round robin.
type fairQueue struct {
	clock clock.PassiveClock

	mu sync.Mutex
	// order has the namespaces with keys of each priority. The first of those that have used
	// least is next.
	order [priorities][]*namespace
	// waiting has the priority of each key. Keys that have moved to high are still among the
	// low ones of their namespace.
	waiting map[cache.ObjectName]int
	// announced are the keys that setLowPriority has named but that are not added yet.
	announced sets.Set[cache.ObjectName]
	served    int
	// chosen are the next keys, whose syncs have a turn.
	chosen []cache.ObjectName
	// namespaces has those with keys or syncs since the queue was last idle.
	namespaces map[string]*namespace
	now        time.Duration // the virtual time

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

func newFairQueue(clock clock.PassiveClock) *fairQueue {
	q := &fairQueue{
		clock: clock, waiting: map[cache.ObjectName]int{}, announced: sets.New[cache.ObjectName](),
		namespaces: map[string]*namespace{}, syncs: map[cache.ObjectName]*turn{},
	}
	q.changed.L = &q.mu
	return q
}

// of returns the namespace with a name.
func (q *fairQueue) of(name string) *namespace {
	if q.namespaces[name] == nil {
		q.namespaces[name] = &namespace{}
	}
	return q.namespaces[name]
}

// setLowPriority gives a key low priority. Call it before the key is added to the
// work queue. A key that already waits keeps its place.
//
// A key that is being processed does not get low priority. The work queue pushes it when
// its processing is done, and does not report why it was added: perhaps for a change.
func (q *fairQueue) setLowPriority(key cache.ObjectName) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.syncs[key] == nil {
		q.announced.Insert(key)
	}
}

// Push adds a key that is not waiting yet.
func (q *fairQueue) Push(key cache.ObjectName) {
	q.mu.Lock()
	defer q.mu.Unlock()
	priority := high
	if q.announced.Has(key) {
		q.announced.Delete(key)
		priority = low
	}
	q.add(key, priority)
	q.changed.Broadcast()
}

// Touch handles a key that is added again while it waits. Unless it was again added with
// low priority, its object changed, and the key moves to high.
func (q *fairQueue) Touch(key cache.ObjectName) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.announced.Has(key) {
		q.announced.Delete(key)
	} else if q.waiting[key] == low {
		q.add(key, high)
	}
}

func (q *fairQueue) add(key cache.ObjectName, priority int) {
	n := q.of(key.Namespace)
	if len(n.keys[priority]) == 0 {
		q.order[priority] = append(q.order[priority], n)
	}
	n.keys[priority] = append(n.keys[priority], key)
	q.waiting[key] = priority
}

// Len returns how many keys are waiting.
func (q *fairQueue) Len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.waiting) + len(q.chosen)
}

// Pop removes the next key and returns it. The queue must not be empty.
func (q *fairQueue) Pop() cache.ObjectName {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.chosen) == 0 { // without a bound, no worker waits for a turn
		q.choose()
	}
	key := q.chosen[0]
	q.chosen = q.chosen[1:]
	return key
}

// choose begins the sync of the next key, if any may begin.
func (q *fairQueue) choose() bool {
	order := []int{high, low}
	if q.served >= inARow {
		order = []int{low, high}
	}
	for _, priority := range order {
		if key, found := q.take(priority); found {
			if q.served++; priority == low {
				q.served = 0
			}
			delete(q.waiting, key)
			q.announced.Delete(key) // any later addition is for a key that is being processed
			q.chosen = append(q.chosen, key)
			q.syncs[key] = &turn{namespace: q.of(key.Namespace), since: q.clock.Now()}
			q.syncs[key].syncs++
			q.running++
			return true
		}
	}
	return false
}

// take removes the next key of a priority, if any may begin.
func (q *fairQueue) take(priority int) (key cache.ObjectName, found bool) {
	for i := q.next(priority); i >= 0; i = q.next(priority) {
		n := q.order[priority][i]
		q.order[priority] = slices.Delete(q.order[priority], i, i+1)
		key, n.keys[priority] = n.keys[priority][0], n.keys[priority][1:]
		if len(n.keys[priority]) > 0 {
			q.order[priority] = append(q.order[priority], n)
		}
		if waits, known := q.waiting[key]; known && waits == priority {
			q.now = max(q.now, n.next)
			return key, true
		}
	}
	return key, false
}

// next returns the index of the namespace that has used least, of those that may begin a sync,
// or -1.
func (q *fairQueue) next(priority int) int {
	next, used := -1, time.Duration(math.MaxInt64)
	for i, n := range q.order[priority] {
		if n.next < used && q.mayBegin(n) {
			next, used = i, n.next
		}
		if used == 0 {
			break
		}
	}
	return next
}
