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

// The storage of the work queue, which decides the order of the keys.

package queue

import (
	"sync"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

// inARow is how many keys of high priority may be served before one of low
// priority is.
const inARow = 8

// fairQueue stores the keys of a work queue and decides which one is next.
//
// client-go's own storage is first come, first served (kubernetes/kubernetes#25744
// asks for something else). Here namespaces take turns, so that one with thousands
// of waiting objects does not delay the single object of another. A controller that
// starts or resyncs queues all its objects, most of which need nothing: these keys
// have low priority. They are served when no other key waits, and after every
// inARow others.
type fairQueue struct {
	mu   sync.Mutex
	high *roundRobin
	// low may still hold keys that have moved to high: only those in waiting count.
	low     *roundRobin
	waiting sets.Set[cache.ObjectName]
	// announced are the keys that setLowPriority named and nobody has added yet.
	announced sets.Set[cache.ObjectName]
	// processing counts, for each key, the Pops that no Done has followed yet.
	processing map[cache.ObjectName]int
	served     int
}

var _ workqueue.Queue[cache.ObjectName] = &fairQueue{}

func newFairQueue() *fairQueue {
	return &fairQueue{
		high: newRoundRobin(), low: newRoundRobin(), waiting: sets.New[cache.ObjectName](),
		announced: sets.New[cache.ObjectName](), processing: map[cache.ObjectName]int{},
	}
}

// setLowPriority gives a key low priority. Call it before the key is added to the
// work queue. A key that already waits keeps its place.
//
// A key that is being processed gets no low priority. The work queue pushes it when
// its processing is done, and does not tell why it was added: perhaps for a change.
func (q *fairQueue) setLowPriority(key cache.ObjectName) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.processing[key] == 0 {
		q.announced.Insert(key)
	}
}

// Done ends the processing of a key that was popped. Call it after the work queue's
// Done: if it came first, a key that is added in between could get low priority
// although it changed. By then another worker may have popped the key again, so
// Done counts.
func (q *fairQueue) Done(key cache.ObjectName) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.processing[key]--
	if q.processing[key] <= 0 {
		delete(q.processing, key)
	}
}

// Push adds a key that does not wait yet.
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

// Touch handles a key that is added again while it waits. Unless it was added with
// low priority again, it changed, and moves to high.
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

// Pop removes the next key and returns it. The queue must not be empty. A call of
// Done has to follow.
func (q *fairQueue) Pop() cache.ObjectName {
	q.mu.Lock()
	defer q.mu.Unlock()
	key := q.next()
	q.processing[key]++
	// An addition from now on is one to a key that is being processed.
	q.announced.Delete(key)
	return key
}

func (q *fairQueue) next() cache.ObjectName {
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
		q.low = newRoundRobin() // what is left in it has moved to high
	}
}

// roundRobin holds keys and serves their namespaces in turn, the keys of each
// namespace in the order in which they came.
type roundRobin struct {
	// byNamespace has no namespace without keys.
	byNamespace map[string]workqueue.Queue[cache.ObjectName]
	// turns are the namespaces in the order in which they are served next.
	turns workqueue.Queue[string]
	size  int
}

func newRoundRobin() *roundRobin {
	return &roundRobin{byNamespace: map[string]workqueue.Queue[cache.ObjectName]{}, turns: workqueue.DefaultQueue[string]()}
}

func (r *roundRobin) push(key cache.ObjectName) {
	keys := r.byNamespace[key.Namespace]
	if keys == nil {
		keys = workqueue.DefaultQueue[cache.ObjectName]()
		r.byNamespace[key.Namespace] = keys
		r.turns.Push(key.Namespace)
	}
	keys.Push(key)
	r.size++
}

func (r *roundRobin) pop() cache.ObjectName {
	namespace := r.turns.Pop()
	keys := r.byNamespace[namespace]
	key := keys.Pop()
	if keys.Len() > 0 {
		r.turns.Push(namespace)
	} else {
		delete(r.byNamespace, namespace)
	}
	r.size--
	return key
}
