// SPDX-License-Identifier: Apache-2.0

// Package external takes a step outside of the cluster for each object of a kind, such as
// an entry in a registrar, and takes it back before the object is gone. A finalizer keeps
// the object until then.
//
// The calls run in workers of their own, with a deadline and a back-off of their own, so
// that a slow or broken registrar holds up nothing but the objects that wait for it.
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
	// firstRetry is where the exponential back-off of a call that failed begins, and
	// lastRetry bounds it. What is outside has its own load, and does not get better by
	// being asked every few milliseconds.
	firstRetry = 2 * time.Second
	lastRetry  = 5 * time.Minute
)

// Step is what is done outside of the cluster. Both functions may be called at any time
// and any number of times for the same object, by a restarted controller as well: they
// make the outside as the object asks, whatever it was before.
type Step[T metav1.Object] struct {
	// Name names the step in logs, and its queue in metrics, such as "registration".
	Name string
	// Do makes the outside as the object asks. It is called once for each generation.
	Do func(ctx context.Context, object T) error
	// Undo removes what Do made. What is not there is no error.
	Undo func(ctx context.Context, object T) error
	// Timeout bounds each call. Both functions must return when ctx is done.
	Timeout time.Duration
	// Workers is the number of calls at the same time.
	Workers int
}

// State is how far the step of an object is.
type State string

const (
	// Pending means that the call is to come or under way.
	Pending State = "pending"
	// Failed means that it failed and is tried again after its back-off.
	Failed State = "failed"
	// Done means that the outside is as the object asks, or no longer knows a deleted
	// object.
	Done State = "done"
)

// Runner takes the steps of objects, each when it is asked for. A nil Runner is that of a
// program in which the step is turned off: Run and Forget do nothing.
type Runner[T metav1.Object] struct {
	step Step[T]
	// check is called before each call, which is made only if it returns nil.
	check func(ctx context.Context, object T) error
	// changed is called with the key of an object whose state has changed.
	changed func(cache.ObjectName)

	mu    sync.Mutex
	calls map[cache.ObjectName]*call[T]
	// queue is nil until Run, because a queue has a goroutine of its own.
	queue workqueue.TypedRateLimitingInterface[cache.ObjectName]
}

// call is the newest call that was asked for an object.
type call[T metav1.Object] struct {
	task
	object T
	state  State
	err    error
}

// task is what a call does: another generation, or the deletion, is another task.
type task struct {
	uid        types.UID
	generation int64
	undo       bool
}

// NewRunner returns a Runner, or nil for a step without a function Do.
//
// Before each call it calls check, which reads the object live and returns an error if
// that is not in the same state. By a stale cache, Do would make what nobody ever takes
// back, because the object is gone, and Undo would take back what belongs to the next
// object of the name. The Runner calls changed whenever State has something new to tell.
func NewRunner[T metav1.Object](step Step[T], check func(context.Context, T) error, changed func(cache.ObjectName)) *Runner[T] {
	if step.Do == nil {
		return nil
	}
	return &Runner[T]{step: step, check: check, changed: changed, calls: map[cache.ObjectName]*call[T]{}}
}

// State returns how far the step of an object is, and the error of a call that failed. It
// never waits: if the step is still to be taken, a worker is going to, and changed tells
// when it has.
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
		r.queue.Forget(key) // the back-off was that of another task
		r.queue.Add(key)
	}
	return Pending, nil
}

// Forget drops what is known of an object that is gone, or whose step another controller took.
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

// Run takes steps until ctx is done, then waits for the calls under way, which ctx
// cancels. Call it once.
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
	asked := *current
	r.mu.Unlock()
	err := r.make(ctx, asked)
	if ctx.Err() != nil {
		return true // a controller that stops leaves the rest to the next start
	}
	r.record(ctx, key, asked.task, err)
	return true
}

// make makes a call. A panic in it is an error of its object alone.
func (r *Runner[T]) make(ctx context.Context, asked call[T]) (err error) {
	ctx, cancel := context.WithTimeout(ctx, r.step.Timeout)
	defer cancel()
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("panic: %v", cause)
		}
	}()
	if err := r.check(ctx, asked.object); err != nil {
		return err
	}
	if asked.undo {
		return r.step.Undo(ctx, asked.object)
	}
	return r.step.Do(ctx, asked.object)
}

// record stores the result of a call, unless something else was asked for meanwhile.
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
		current.state, current.object = Done, *new(T) // nobody needs the object any more
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
