// SPDX-License-Identifier: Apache-2.0

// Package queue orders and paces the keys of a controller: which key is next, and
// when a key whose sync failed is tried again.
package queue

import (
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
)

// Queue is client-go's work queue for the keys of Foos, in which namespaces take
// turns and keys of low priority wait for the others.
type Queue struct {
	workqueue.TypedDelayingInterface[cache.ObjectName]

	fair *fairQueue
}

// New makes a queue. Its metrics bear the name.
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

// AddLowPriority adds a key for which nothing has changed, as at the start or by the
// periodic resync. It waits for keys with changes.
func (q *Queue) AddLowPriority(key cache.ObjectName) {
	q.fair.setLowPriority(key)
	q.Add(key)
}

// SetWorkers says how many workers there are.
func (q *Queue) SetWorkers(count int) {
	q.fair.mu.Lock()
	defer q.fair.mu.Unlock()
	q.fair.workers = count
}

// HasWaiting reports whether keys of a namespace wait for a worker. For a moment it may count
// keys that have moved from low priority to high.
func (q *Queue) HasWaiting(namespace string) bool {
	q.fair.mu.Lock()
	defer q.fair.mu.Unlock()
	return q.fair.high.byNamespace[namespace] != nil || q.fair.low.byNamespace[namespace] != nil
}

// Get waits for the next key.
func (q *Queue) Get() (key cache.ObjectName, shutdown bool) {
	for {
		key, shutdown = q.TypedDelayingInterface.Get()
		if shutdown || q.fair.begin(key) {
			return key, shutdown
		}
	}
}

// Done ends the processing of a key that Get returned.
func (q *Queue) Done(key cache.ObjectName) {
	freed := q.fair.end(key) // before another worker may have the key
	q.TypedDelayingInterface.Done(key)
	q.fair.Done(key)
	for _, parked := range freed {
		q.Add(parked)
		q.TypedDelayingInterface.Done(parked)
		q.fair.Done(parked)
	}
}
