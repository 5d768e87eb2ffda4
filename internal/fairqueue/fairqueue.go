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

// Package fairqueue shares a controller's workers out among namespaces, and has
// what is only looked at again wait for what has happened.
//
// In client-go's work queue all keys wait in one row, first come first served
// (kubernetes/kubernetes#25744 asks for something else). Here each namespace has
// a row of its own, and they take turns: one with thousands of objects waiting
// does not keep another's single object waiting. A controller that starts, or
// resyncs, looks at all its objects, most of which are as they should be: these
// keys have rows of their own, which are served when the others are empty, and
// now and then before.
package fairqueue

import (
	"sync"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

// inARow is how many keys may be served before one that can wait.
const inARow = 8

// Queue is the storage of a work queue.
type Queue struct {
	mu   sync.Mutex
	soon *rows
	// later has the keys that can wait, in the order of their namespaces' turns.
	// It may have some that cannot any more, and are in soon: only what is in
	// waiting counts.
	later   *rows
	waiting sets.Set[cache.ObjectName]
	// announced are keys that Later has named and that are yet to be added.
	announced sets.Set[cache.ObjectName]
	// processing counts, for each key, the Pops that no Done has followed yet.
	processing map[cache.ObjectName]int
	served     int
}

var _ workqueue.Queue[cache.ObjectName] = &Queue{}

// New returns an empty Queue.
func New() *Queue {
	return &Queue{
		soon: newRows(), later: newRows(), waiting: sets.New[cache.ObjectName](),
		announced: sets.New[cache.ObjectName](), processing: map[cache.ObjectName]int{},
	}
}

// Later makes a key wait for all others. Call it before the key is added to the
// work queue. A key that is there already keeps its place.
//
// A key that is being processed does not wait. The work queue adds it again when
// that is done, and reports here only that, not what it was added for: it may
// have been a change.
func (q *Queue) Later(key cache.ObjectName) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.processing[key] == 0 {
		q.announced.Insert(key)
	}
}

// Done reports that a key which was popped is no longer processed. Call it after
// the work queue's Done: before, what is added in between would be taken for a
// key that nothing has happened to. By then another worker may have popped the
// key again, which is why they are counted.
func (q *Queue) Done(key cache.ObjectName) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.processing[key]--
	if q.processing[key] <= 0 {
		delete(q.processing, key)
	}
}

// Push takes up a key that is not waiting yet.
func (q *Queue) Push(key cache.ObjectName) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.announced.Has(key) {
		q.announced.Delete(key)
		q.waiting.Insert(key)
		q.later.push(key)
		return
	}
	q.soon.push(key)
}

// Touch is told of a key that is added again while it waits. If something has
// happened to it, it need not wait for the others any more.
func (q *Queue) Touch(key cache.ObjectName) {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.announced.Has(key):
		q.announced.Delete(key)
	case q.waiting.Has(key):
		q.take(key)
		q.soon.push(key)
	}
}

// Len returns how many keys are waiting.
func (q *Queue) Len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.soon.size + q.waiting.Len()
}

// Pop returns the key whose turn it is. There must be one. Done has to follow.
func (q *Queue) Pop() cache.ObjectName {
	q.mu.Lock()
	defer q.mu.Unlock()
	key := q.next()
	q.processing[key]++
	// Whatever it was announced for is added to a key that is being processed.
	q.announced.Delete(key)
	return key
}

// next removes the key whose turn it is.
func (q *Queue) next() cache.ObjectName {
	if q.soon.size > 0 && (q.waiting.Len() == 0 || q.served < inARow) {
		q.served++
		return q.soon.pop()
	}
	q.served = 0
	key := q.later.pop()
	for !q.waiting.Has(key) {
		key = q.later.pop()
	}
	q.take(key)
	return key
}

// take removes a key from those that can wait.
func (q *Queue) take(key cache.ObjectName) {
	q.waiting.Delete(key)
	if q.waiting.Len() == 0 {
		q.later = newRows() // there may be some left that are in soon
	}
}

// rows are keys, those of each namespace in the order in which they came.
type rows struct {
	// byNamespace has no namespace without keys.
	byNamespace map[string]workqueue.Queue[cache.ObjectName]
	// turns are the namespaces in the order in which they are served next.
	turns workqueue.Queue[string]
	size  int
}

func newRows() *rows {
	return &rows{byNamespace: map[string]workqueue.Queue[cache.ObjectName]{}, turns: workqueue.DefaultQueue[string]()}
}

// push puts a key at the end of its namespace's row.
func (r *rows) push(key cache.ObjectName) {
	row := r.byNamespace[key.Namespace]
	if row == nil {
		row = workqueue.DefaultQueue[cache.ObjectName]()
		r.byNamespace[key.Namespace] = row
		r.turns.Push(key.Namespace)
	}
	row.Push(key)
	r.size++
}

// pop returns the first key of the namespace whose turn it is.
func (r *rows) pop() cache.ObjectName {
	namespace := r.turns.Pop()
	row := r.byNamespace[namespace]
	key := row.Pop()
	if row.Len() > 0 {
		r.turns.Push(namespace)
	} else {
		delete(r.byNamespace, namespace)
	}
	r.size--
	return key
}
