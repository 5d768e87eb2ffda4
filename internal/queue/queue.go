// SPDX-License-Identifier: Apache-2.0

// Package queue orders and paces the keys of a controller: which key is next, and
// when a key whose sync failed is retried.
package queue

import (
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

// SetWorkers sets the number of workers.
func (q *Queue) SetWorkers(count int) {
	q.fair.mu.Lock()
	defer q.fair.mu.Unlock()
	q.fair.workers = count
}

// HasWaiting reports whether keys of a namespace are waiting for a worker. It may briefly count
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
