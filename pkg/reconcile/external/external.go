// SPDX-License-Identifier: Apache-2.0

// Package external takes a step outside the cluster for each object of a kind, such as an entry
// in a registrar, and undoes it before the object is gone. A finalizer keeps the object until
// then.
//
// The calls run in separate workers, with their own deadline and back-off, so that a slow or
// broken registrar delays only the objects that wait for it.
package external

import (
	"context"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
)

const (
	// firstRetry is the first exponential back-off of a failed call, and lastRetry the longest.
	// Retrying every few milliseconds would only add to an external system's load.
	firstRetry = 2 * time.Second
	lastRetry  = 5 * time.Minute
)

// Step is a step outside the cluster. Both functions may be called at any time and any number of
// times for the same object, also by a restarted controller. They bring the external system into
// the object's desired state, whatever its state was before.
type Step[T metav1.Object] struct {
	// Name names the step in logs, and its queue in metrics, such as "registration".
	Name string
	// Do brings the external system into the desired state. It is called once for each generation.
	Do func(ctx context.Context, object T) error
	// Undo removes what Do created. It is no error if that does not exist.
	Undo func(ctx context.Context, object T) error
	// Timeout bounds each call. Both functions must return when ctx is done.
	Timeout time.Duration
	// Workers is the number of concurrent calls.
	Workers int
}

// State is the progress of an object's step.
type State string

const (
	// Pending means that the call has not been made yet, or is in progress.
	Pending State = "pending"
	// Failed means that the call failed, and is retried after its back-off.
	Failed State = "failed"
	// Done means that the external system is in the desired state, or no longer knows a deleted
	// object.
	Done State = "done"
)

// Runner takes the steps of objects, each when State is called. A nil Runner means that the step is
// turned off: Run and Forget do nothing.
type Runner[T metav1.Object] struct {
	step Step[T]
	// check runs before each call, which is made only if check returns nil.
	check func(ctx context.Context, object T) error
	// changed is called with the key of an object whose state has changed.
	changed func(cache.ObjectName)

	mu    sync.Mutex
	calls map[cache.ObjectName]*call[T]
	// queue is nil until Run, because a queue starts a goroutine.
	queue workqueue.TypedRateLimitingInterface[cache.ObjectName]
}

// call is the newest requested call for an object.
type call[T metav1.Object] struct {
	task
	object T
	state  State
	err    error
}

// task is the task of a call. Another generation, or the deletion, is another task.
type task struct {
	uid        types.UID
	generation int64
	undo       bool
}

// NewRunner returns a Runner, or nil for a step without a function Do.
//
// Before each call, it calls check, which reads the object live and returns an error if its state
// differs. Otherwise, with a stale cache, Do could create an entry that is never removed, because
// the object is gone, and Undo could remove the entry of the next object with the name. The
// Runner calls changed whenever State would return something new.
func NewRunner[T metav1.Object](step Step[T], check func(context.Context, T) error, changed func(cache.ObjectName)) *Runner[T] {
	if step.Do == nil {
		return nil
	}
	return &Runner[T]{step: step, check: check, changed: changed, calls: map[cache.ObjectName]*call[T]{}}
}

// State returns the progress of an object's step, and the error of a failed call. It never waits:
// if the step has not been taken yet, a worker takes it, and then calls changed.
func (r *Runner[T]) State(object T) (State, error) {
	key := cache.MetaObjectToName(object)
	wanted := task{object.GetUID(), object.GetGeneration(), object.GetDeletionTimestamp() != nil}
	r.mu.Lock()
	defer r.mu.Unlock()
	if known := r.calls[key]; known != nil && known.task == wanted {
		return known.state, known.err
	}
	r.calls[key] = &call[T]{task: wanted, object: object, state: Pending}
	if r.queue != nil {
		r.queue.Forget(key) // the back-off belongs to another task
		r.queue.Add(key)
	}
	return Pending, nil
}

// Forget forgets an object that is gone, or whose step another controller took.
func (r *Runner[T]) Forget(key cache.ObjectName) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.calls, key)
	if r.queue != nil {
		r.queue.Forget(key)
	}
}

// Run takes steps until ctx is done, and then waits for the calls in progress, which ctx cancels.
// Call it once.
func (r *Runner[T]) Run(ctx context.Context) {
	if r == nil {
		return
	}
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[cache.ObjectName](firstRetry, lastRetry)
	queue := workqueue.NewTypedRateLimitingQueueWithConfig(limiter, workqueue.TypedRateLimitingQueueConfig[cache.ObjectName]{Name: r.step.Name})
	defer context.AfterFunc(ctx, queue.ShutDown)()
	r.mu.Lock()
	r.queue = queue
	for key := range r.calls {
		queue.Add(key)
	}
	r.mu.Unlock()
	var workers sync.WaitGroup
	for range r.step.Workers {
		workers.Go(func() {
			for r.processNextCall(ctx) {
			}
		})
	}
	workers.Wait()
}

// processNextCall makes the next call. It returns false when the queue is shut down.
func (r *Runner[T]) processNextCall(ctx context.Context) bool {
	key, shutdown := r.queue.Get()
	if shutdown {
		return false
	}
	defer r.queue.Done(key)
	r.mu.Lock()
	current := r.calls[key]
	if current == nil || current.state == Done {
		r.mu.Unlock()
		return true
	}
	wanted := *current
	r.mu.Unlock()
	err := r.make(ctx, wanted)
	if ctx.Err() != nil {
		return true // a controller that stops leaves the rest to its next start
	}
	r.record(ctx, key, wanted.task, err)
	return true
}

// make makes a call. A panic is an error of this object only.
func (r *Runner[T]) make(ctx context.Context, wanted call[T]) (err error) {
	ctx, cancel := context.WithTimeout(ctx, r.step.Timeout)
	defer cancel()
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("panic: %v", cause)
		}
	}()
	if err := r.check(ctx, wanted.object); err != nil {
		return err
	}
	if wanted.undo {
		return r.step.Undo(ctx, wanted.object)
	}
	return r.step.Do(ctx, wanted.object)
}

// record stores the result of a call, unless another one has been requested meanwhile.
func (r *Runner[T]) record(ctx context.Context, key cache.ObjectName, of task, err error) {
	r.mu.Lock()
	current := r.calls[key]
	if current == nil || current.task != of {
		r.mu.Unlock()
		return
	}
	news := current.state != Failed || err == nil || current.err.Error() != err.Error()
	current.state, current.err = Failed, err
	if err == nil {
		current.state, current.object = Done, *new(T) // the object is no longer needed
	}
	r.mu.Unlock()
	if err != nil {
		klog.FromContext(ctx).Error(err, "An external step failed", "step", r.step.Name, "object", key)
		r.queue.AddRateLimited(key)
	} else {
		r.queue.Forget(key)
	}
	if news {
		r.changed(key)
	}
}
