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

// Package fairqueue shares a controller's workers out among namespaces: one with
// thousands of objects waiting does not keep another's single object waiting.
//
// In client-go's work queue all keys wait in one row, first come first served
// (kubernetes/kubernetes#25744 asks for something else). Here each namespace has
// a row of its own, and they take turns.
package fairqueue

import (
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

// Queue is the storage of a work queue. It is not safe for concurrent use, nor
// need it be: the work queue calls it under its lock.
type Queue struct {
	// rows are the namespaces with keys waiting, each with these keys.
	rows map[string]workqueue.Queue[cache.ObjectName]
	// turns are the same namespaces, in the order in which they are served next.
	turns workqueue.Queue[string]
	size  int
}

var _ workqueue.Queue[cache.ObjectName] = &Queue{}

// New returns an empty Queue.
func New() *Queue {
	return &Queue{rows: map[string]workqueue.Queue[cache.ObjectName]{}, turns: workqueue.DefaultQueue[string]()}
}

// Touch leaves a key that is added again where it stands.
func (q *Queue) Touch(cache.ObjectName) {}

// Len returns how many keys are waiting.
func (q *Queue) Len() int { return q.size }

// Push puts a key at the end of its namespace's row.
func (q *Queue) Push(key cache.ObjectName) {
	row := q.rows[key.Namespace]
	if row == nil {
		row = workqueue.DefaultQueue[cache.ObjectName]()
		q.rows[key.Namespace] = row
		q.turns.Push(key.Namespace)
	}
	row.Push(key)
	q.size++
}

// Pop returns the first key of the namespace whose turn it is. There must be one.
func (q *Queue) Pop() cache.ObjectName {
	namespace := q.turns.Pop()
	row := q.rows[namespace]
	key := row.Pop()
	if row.Len() > 0 {
		q.turns.Push(namespace)
	} else {
		delete(q.rows, namespace)
	}
	q.size--
	return key
}
