// SPDX-License-Identifier: Apache-2.0

// Package queue orders and paces the keys of a controller: [Queue] decides which key is next, and
// [Backoff] when a key whose sync failed is tried again. Each is usable without the other. Both
// need only client-go, know no kind of objects, and may be used by many goroutines at once.
// examples/fair-queue in this repository is a whole controller with both.
//
// # The order of keys
//
// A [Queue] is client-go's work queue with another order. No key waits twice or is processed twice
// at the same time, AddAfter works as usual, and the metrics are the same.
//
//   - Namespaces take turns, measured in time: one with ten thousand waiting keys does not delay the
//     only key of another, and one whose syncs take ten times as long gets a tenth of the syncs.
//     Within a namespace, and for objects without one, the first key is first.
//   - Keys from [Queue.AddLowPriority], for which nothing has changed, wait for the others, except
//     for one in nine. Use it for the objects of the initial list and for resyncs.
//   - A sync whose call to an API server hangs for 100 ms hands its turn over to a further worker,
//     until the call returns. A namespace with hanging calls leaves the last turn to the others.
//
// With two workers, which end after ShutDown:
//
//	worker := func() {
//		for key, end := q.Get(); !end; key, end = q.Get() {
//			sync(key) // surrounds each call with returned := q.Calling(key) and returned()
//			q.Done(key)
//		}
//	}
//	q.SetWorkers(2, func() { wg.Go(worker) })
//	for range 2 {
//		wg.Go(worker)
//	}
//
// SetWorkers is optional: without it, only the order of keys is different.
//
// # Back-off
//
// A [Backoff] replaces client-go's rate limiter. That one delays a failed key, but any event and
// any resync add the key early, and so repeat a refused write. A Backoff remembers each part of a
// sync that failed, and the inputs of its write: [Backoff.Try] holds the part back until its time
// comes or its inputs change, and [Backoff.InBackoff] lets handlers drop events that would have no
// effect. Begin, Try, Fail, Succeed, MarkReported, End and Forget record; the others only ask.
//
// [NextAttempt] says how an error is retried, as package failure tells it apart. The delay is 5 ms,
// doubled with each failure up to 5 min; after a refusal, such as a quota's, it begins with 1 s; or
// it is what the API server asks for. A sync that finds that a cache lacks the controller's own
// last write ends with failure.ErrStale.
//
// # Costs
//
// Get compares the namespaces that have waiting keys: about 20 µs for 10,000. At most 100 syncs
// without a turn have a goroutine each. A Backoff holds the keys whose last sync failed.
package queue

import (
	"time"

	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
)

// Queue is client-go's work queue for the keys of objects, in which namespaces take
// turns and low-priority keys wait for the others. New makes one.
type Queue struct {
	workqueue.TypedDelayingInterface[cache.ObjectName]

	fair *fairQueue
}

// New returns a queue. Its metrics have the label name; without a name, there are none.
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

// SetWorkers sets the number of syncs that may run at the same time, at least 1. When one hands its
// turn over because a call hangs, the queue calls start, which must start a further worker: a
// goroutine that calls Get until that returns true. If start is nil, no turn is handed over.
// Without SetWorkers, there is no bound.
func (q *Queue) SetWorkers(count int, start func()) {
	q.fair.mu.Lock()
	defer q.fair.mu.Unlock()
	q.fair.workers, q.fair.start = count, start
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

// ShutDown ends the workers and the waiting for turns. Keys that wait are left.
func (q *Queue) ShutDown() {
	q.fair.mu.Lock()
	q.fair.shutDown = true
	q.fair.changed.Broadcast()
	q.fair.mu.Unlock()
	q.TypedDelayingInterface.ShutDown()
}

// ShutDownWithDrain is like ShutDown, and waits for the syncs in progress.
func (q *Queue) ShutDownWithDrain() {
	q.ShutDown()
	q.TypedDelayingInterface.ShutDownWithDrain()
}
