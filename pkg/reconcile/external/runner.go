// SPDX-License-Identifier: Apache-2.0

// The workers that make the calls, and what is known of each object.

package external

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"example.com/sample-controller/pkg/reconcile/queue"
)

// errHangs is the error of a call that has not returned although its deadline has passed.
var errHangs = errors.New("it has not returned in time")

// Runner makes the calls of objects, from the first Ask to Forget. It remembers the last answer for each
// object.
type Runner[T metav1.Object, R any] struct {
	call    Call[T, R]
	objects Objects[T]

	mu     sync.Mutex
	states map[cache.ObjectName]*state[T, R]
	// queue is nil until Run, because a queue starts a goroutine.
	queue *queue.Queue
}

// NewRunner returns a Runner. Before each call, it reads the object live and makes the call only if the
// object has the same spec. Otherwise, with a stale cache, Do could create an entry that is never removed,
// because the object is gone, and Undo could remove the entry of the next object with the name.
func NewRunner[T metav1.Object, R any](call Call[T, R], objects Objects[T]) *Runner[T, R] {
	call.Timeout, call.Workers = cmp.Or(call.Timeout, DefaultTimeout), cmp.Or(call.Workers, DefaultWorkers)
	if objects.Same == nil {
		objects.Same = sameSpec
	}
	if objects.Clock == nil {
		objects.Clock = clock.RealClock{}
	}
	return &Runner[T, R]{call: call, objects: objects, states: map[cache.ObjectName]*state[T, R]{}}
}

// Ask returns what is known of an object's call. It never waits: if a call is due, a worker makes it, and
// then calls Changed. request is what a user asks for, such as a time, or "": each new one makes a call at once,
// in place of one in progress and without a back-off.
func (r *Runner[T, R]) Ask(object T, request string) Answer[R] {
	key := cache.MetaObjectToName(object)
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.states[key]
	switch {
	case s == nil:
		s = r.begin(key, object)
		r.states[key] = s
		r.schedule(key, s)
	case !r.objects.Same(s.object, object):
		s.abort()
		s = &state[T, R]{object: object, due: r.objects.Clock.Now(), request: s.request}
		r.states[key] = s
		r.schedule(key, s)
	default:
		s.object = object // the newest, so that no other is kept in memory
	}
	if request != "" && request != s.request && !s.answer.Undone {
		s.abort()
		s.request, s.answer.Pending, s.failures, s.due = request, true, 0, r.objects.Clock.Now()
		r.schedule(key, s)
	}
	return s.answer
}

// Forget ends the calls for an object, because it is gone or needs none. One in progress is canceled.
func (r *Runner[T, R]) Forget(key cache.ObjectName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s := r.states[key]; s != nil {
		s.abort()
		delete(r.states, key)
	}
}

// schedule adds a key to the queue for the time at which its call is due.
func (r *Runner[T, R]) schedule(key cache.ObjectName, s *state[T, R]) {
	if r.queue != nil && !s.due.IsZero() {
		r.queue.AddAfter(key, max(0, s.due.Sub(r.objects.Clock.Now())))
	}
}

// Run makes calls until ctx is done, and then waits for those in progress, which ctx cancels. Call it
// once.
func (r *Runner[T, R]) Run(ctx context.Context) {
	calls := queue.New(r.call.Name, r.objects.Clock)
	defer context.AfterFunc(ctx, calls.ShutDown)()
	r.mu.Lock()
	r.queue = calls
	for key, s := range r.states {
		r.schedule(key, s)
	}
	r.mu.Unlock()
	var workers sync.WaitGroup
	worker := func() {
		for r.processNextCall(ctx) {
		}
	}
	calls.SetWorkers(r.call.Workers, func() { workers.Go(worker) })
	for range r.call.Workers {
		workers.Go(worker)
	}
	<-ctx.Done()
	calls.ShutDown()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		workers.Wait()
	}()
	select {
	case <-ended:
	case <-r.objects.Clock.After(stopTimeout):
		klog.FromContext(ctx).Info("A call outside the cluster does not return; stopping without it", "call", r.call.Name)
	}
}

// processNextCall makes the next call. It returns false if the worker must end.
func (r *Runner[T, R]) processNextCall(ctx context.Context) bool {
	key, end := r.queue.Get()
	if end {
		return false
	}
	defer r.queue.Done(key)
	of := r.start(ctx, key)
	if of == nil {
		return true
	}
	defer of.cancel()
	overdue := time.AfterFunc(r.call.Timeout+returnTimeout, func() { r.record(ctx, key, of, result[R]{err: errHangs, hangs: true}) })
	defer overdue.Stop()
	returned := r.queue.Calling(key)
	done := r.make(of.ctx, key, of.object)
	returned()
	r.record(ctx, key, of, done)
	return true
}

// start begins the call that is due for a key, or returns nil if none is.
func (r *Runner[T, R]) start(ctx context.Context, key cache.ObjectName) *running[T, R] {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.states[key]
	if s == nil || s.due.IsZero() {
		return nil
	}
	if r.objects.Clock.Now().Before(s.due) { // it was due earlier
		r.schedule(key, s)
		return nil
	}
	of := &running[T, R]{state: s, object: s.object}
	of.ctx, of.cancel = context.WithTimeout(ctx, r.call.Timeout) //nolint:gosec // the caller cancels it
	s.running, s.due = of, time.Time{}
	return of
}

// make makes a call. A panic is an error of this object only.
func (r *Runner[T, R]) make(ctx context.Context, key cache.ObjectName, wanted T) (done result[R]) {
	defer func() {
		if cause := recover(); cause != nil {
			done.err = fmt.Errorf("panic: %v", cause)
			klog.FromContext(ctx).Error(done.err, "A call outside the cluster panicked", "call", r.call.Name, "object", key, "stack", string(debug.Stack()))
		}
	}()
	live, err := r.objects.Read(ctx, key)
	switch {
	case err != nil:
		return result[R]{err: err, isStale: true}
	case !r.objects.Same(wanted, live):
		return result[R]{err: errors.New("the cache does not show the newest object yet"), isStale: true}
	case isTerminating(wanted):
		return result[R]{err: r.call.Undo(ctx, live), isUndo: true}
	}
	if done.value, done.err = r.call.Do(ctx, live); done.err == nil {
		done.renew = r.renewal(done.value)
	}
	return done
}

// record stores the result of a call, unless another one has been requested meanwhile.
func (r *Runner[T, R]) record(ctx context.Context, key cache.ObjectName, of *running[T, R], done result[R]) {
	if ctx.Err() != nil {
		return // a controller that stops leaves the rest to its next start
	}
	r.mu.Lock()
	s := of.state
	if r.states[key] != s || s.running != of {
		r.mu.Unlock()
		return
	}
	now := r.objects.Clock.Now()
	var isNew bool
	if done.err == nil {
		isNew = s.succeed(done)
		s.due = r.next(key, done, now)
	} else {
		isNew = s.fail(done, now)
		s.due = now.Add(spread(key, now, backoff(s.failures)))
	}
	if !done.hangs {
		s.running = nil
		r.schedule(key, s)
	} else {
		s.due = time.Time{} // until it returns
	}
	r.mu.Unlock()
	if logger := klog.FromContext(ctx); done.err != nil && (isNew || logger.V(2).Enabled()) {
		logger.Error(done.err, "A call outside the cluster failed", "call", r.call.Name, "object", key)
	}
	if isNew {
		r.objects.Changed(key)
	}
}
