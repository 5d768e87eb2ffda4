// SPDX-License-Identifier: Apache-2.0

// Package queue orders and paces the keys of a controller: which key is next, and
// when a key whose sync failed is retried.
package queue

import (
	"time"

	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
)

// Queue is client-go's work queue for the keys of owners, in which namespaces take
// turns and low-priority keys wait for the others.
type Queue struct {
	workqueue.TypedDelayingInterface[cache.ObjectName]

	fair *fairQueue
}

// New returns a queue. Its metrics have the label name.
func New(name string, clock clock.WithTicker) *Queue {
	fair := newFairQueue(clock)
	ready := workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[cache.ObjectName]{Name: name, Clock: clock, Queue: fair})
	return &Queue{
		TypedDelayingInterface: workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[cache.ObjectName]{
			Name: name, Clock: clock, Queue: ready,
		}),
		fair: fair,
	}
}

// AddLowPriority adds a key whose objects have not changed, as at the start or in the
// periodic resync. It waits for keys with changes.
func (q *Queue) AddLowPriority(key cache.ObjectName) {
	q.fair.setLowPriority(key)
	q.Add(key)
}

// SetWorkers sets the number of syncs that may run at the same time. Without it, there is no
// bound.
func (q *Queue) SetWorkers(count int) {
	q.fair.mu.Lock()
	defer q.fair.mu.Unlock()
	q.fair.workers = count
}

// OnHandOver makes the queue hand over the turns of syncs whose calls hang. It calls start for
// each, which must start a further worker: a goroutine that calls Get until that returns true.
func (q *Queue) OnHandOver(start func()) {
	q.fair.mu.Lock()
	defer q.fair.mu.Unlock()
	q.fair.start = start
}

// HasWaiting reports whether keys of a namespace are waiting for a worker. It may briefly count
// keys that have moved from low priority to high.
func (q *Queue) HasWaiting(namespace string) bool {
	q.fair.mu.Lock()
	defer q.fair.mu.Unlock()
	n := q.fair.namespaces[namespace]
	return n != nil && len(n.keys[high])+len(n.keys[low]) > 0
}

// Get waits for the next key. It returns true if the worker must end: after ShutDown, or because
// enough others are waiting.
func (q *Queue) Get() (key cache.ObjectName, end bool) {
	if !q.fair.await() {
		return key, true
	}
	return q.TypedDelayingInterface.Get()
}

// Calling records that the sync of a key calls the API server, one call at a time. Call returned
// when it has a response: that waits for a turn if the call took long.
func (q *Queue) Calling(key cache.ObjectName) (returned func()) {
	q.fair.mu.Lock()
	defer q.fair.mu.Unlock()
	turn := q.fair.syncs[key]
	if turn == nil || q.fair.start == nil {
		return func() {}
	}
	turn.calling = true
	timer := time.AfterFunc(handOverAfter, func() { q.fair.handOver(turn) })
	return func() {
		timer.Stop()
		q.fair.takeAgain(turn)
	}
}

// Done ends the processing of a key that Get returned.
func (q *Queue) Done(key cache.ObjectName) {
	q.fair.mu.Lock()
	turn := q.fair.syncs[key]
	q.fair.mu.Unlock()
	q.TypedDelayingInterface.Done(key)
	if turn != nil {
		// Later, because a key that was added meanwhile must not get low priority: it may have changed.
		q.fair.end(key, turn)
	}
}

// ShutDown ends the workers and the waiting for turns.
func (q *Queue) ShutDown() {
	q.fair.mu.Lock()
	q.fair.shutDown = true
	q.fair.changed.Broadcast()
	q.fair.mu.Unlock()
	q.TypedDelayingInterface.ShutDown()
}
