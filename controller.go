// SPDX-License-Identifier: Apache-2.0

// The controller takes keys from the work queue and syncs each. Read this file from top to
// bottom. handlers.go adds keys to the queue, writes.go takes the steps of a sync, fights.go
// paces those that others undo, clients.go has the calls to the API server, main.go puts a
// controller together, and pkg/reconcile/plan decides on the steps.

package main

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"example.com/sample-controller/pkg/process/metrics"
	"example.com/sample-controller/pkg/reconcile/failure"
	"example.com/sample-controller/pkg/reconcile/memory"
	"example.com/sample-controller/pkg/reconcile/plan"
	"example.com/sample-controller/pkg/reconcile/queue"
)

// drainTimeout bounds how long a stop waits for syncs in progress. Together with the bounds of
// what follows, releasing the Lease and writing the last Events, it is less than the Pod's
// grace period.
const drainTimeout = 15 * time.Second

// Controller creates each Foo's children, keeps their owned fields in the desired state, and
// reports the result in the Foo's status.
//
// Event handlers add the key of a Foo to the queue. A worker takes a key and syncs that
// Foo from the caches. However many events arrived in between, one sync sees the newest
// state, and no Foo is synced twice at the same time. While a call of a sync hangs, another
// worker takes its turn.
type Controller struct {
	api[plan.Owner]

	kind     *plan.OwnerKind
	children []*childAPI
	buckets  plan.Buckets

	queue   *queue.Queue
	backoff *queue.Backoff
	// rollouts bounds how many Foos restart their Pods at the same time.
	rollouts *memory.Rollouts

	// memory holds what the controller remembers between the syncs of a Foo.
	memory      memory.Map
	crdMismatch *memory.CRDMismatch
	replaced    *memory.Replaced
	opponents   *memory.Opponents
	// fightPeriod is how long a repair must last to end a fight.
	fightPeriod time.Duration

	recorder    record.EventRecorder
	clock       clock.WithTicker
	callTimeout time.Duration
	metrics     *metrics.Metrics
}

// Run starts the workers and returns when ctx is done and they have ended. Call it once.
//
// Syncs in progress when ctx ends may finish within drainTimeout. Waiting keys are left to
// the next start. When leaseCtx ends, the syncs are canceled at once, because another
// controller may already be working.
func (c *Controller) Run(ctx, leaseCtx context.Context, workers int) error {
	logger := klog.FromContext(ctx)
	logger.Info("Starting controller", "resource", c.Resource())
	// Not earlier, so that a standby's queue is empty although its caches are full.
	handlersSynced, err := c.addEventHandlers(ctx)
	if err != nil {
		c.queue.ShutDown()
		if ctx.Err() != nil {
			return nil //nolint:nilerr // informers that have stopped take no handlers
		}
		return fmt.Errorf("registering with the informers: %w", err)
	}
	c.runWorkers(ctx, leaseCtx, workers, handlersSynced)
	logger.Info("Controller stopped", "resource", c.Resource())
	return nil
}

// runWorkers waits until the handlers have synced, then runs the workers until ctx is
// done.
func (c *Controller) runWorkers(ctx, leaseCtx context.Context, workers int, handlersSynced []cache.DoneChecker) {
	logger := klog.FromContext(ctx)
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	defer context.AfterFunc(leaseCtx, stop)()

	// A sync outlives ctx, so that a stop does not interrupt it between two writes.
	syncCtx, cancelSyncs := context.WithCancel(klog.NewContext(leaseCtx, logger))
	var wg sync.WaitGroup
	defer func() {
		c.queue.ShutDown()
		deadline := time.AfterFunc(drainTimeout, cancelSyncs)
		wg.Wait()
		deadline.Stop()
		cancelSyncs()
	}()

	if !cache.WaitFor(klog.NewContext(ctx, logger.V(4)), "handlers", handlersSynced...) {
		return
	}
	logger.Info("Starting workers", "count", workers)
	worker := func() {
		for ctx.Err() == nil && c.processNextWorkItem(syncCtx) {
		}
	}
	c.queue.SetWorkers(workers)
	c.queue.OnHandOver(func() { wg.Go(worker) })
	for range workers {
		wg.Go(worker)
	}
	<-ctx.Done()
	logger.Info("Stopping: waiting for syncs in progress")
}

// processNextWorkItem syncs the next Foo. It returns false if the worker must end: after the
// queue has shut down, or because a sync that had handed its turn over has returned.
func (c *Controller) processNextWorkItem(ctx context.Context) bool {
	key, end := c.queue.Get()
	if end {
		return false
	}
	defer c.queue.Done(key)
	ctx = klog.NewContext(ctx, klog.LoggerWithValues(klog.FromContext(ctx), strings.ToLower(c.kind.Kind), klog.KRef(key.Namespace, key.Name)))
	start := c.clock.Now()
	c.backoff.Begin(key) // a change after this point needs another sync: see updateOwner
	err := c.syncAndRecover(ctx, key)
	if errors.Is(err, failure.ErrStale) || errors.Is(err, failure.ErrBehind) {
		c.metrics.StaleSyncs.Inc()
	}
	c.metrics.Synced(syncResult(err), c.clock.Since(start))
	c.handleErr(ctx, key, err)
	return true
}

// handleErr requeues a key whose sync failed, after a delay that depends on the error.
func (c *Controller) handleErr(ctx context.Context, key cache.ObjectName, err error) {
	if !queue.TriesAgain(err) || ctx.Err() != nil { // a stop, or the loss of the Lease, has canceled the calls
		c.backoff.Forget(key)
		return
	}
	delay := c.backoff.Requeue(key, err).Round(time.Millisecond)
	if queue.IsExpected(err) || queue.IsDeferred(err) {
		klog.FromContext(ctx).V(4).Info("Syncing again", "after", delay, "reason", err)
		return
	}
	// Only the kind of failure, because its text may differ each time.
	cause := fmt.Sprint(syncResult(err), apierrors.ReasonForError(err))
	if logger := klog.FromContext(ctx); c.backoff.Reports(key, cause) || logger.V(2).Enabled() {
		logger.Error(err, "Sync failed", "retryAfter", delay)
	}
}

// errPanic represents a panic in a sync.
var errPanic = errors.New("panic")

// syncAndRecover calls syncHandler and turns a panic into an error, so that a Foo that
// triggers a bug does not stop the controller for the others.
func (c *Controller) syncAndRecover(ctx context.Context, key cache.ObjectName) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			c.metrics.Panics.Inc()
			err = fmt.Errorf("%w: %v\n%s", errPanic, cause, debug.Stack())
		}
	}()
	return c.syncHandler(ctx, key)
}

// ownerSync is a sync of one Foo, with the memory of its earlier syncs.
type ownerSync struct {
	*Controller
	key    cache.ObjectName
	owner  plan.Owner
	memory *memory.Owner
}

// syncHandler brings the children of one Foo in line with it. It reads the caches, decides,
// writes the children that differ, and writes the status if it differs, even if the API
// server refused a child. It may be called at any time and any number of times.
func (c *Controller) syncHandler(ctx context.Context, key cache.ObjectName) error {
	owner, err := cached(c.cache, key)
	if owner != nil {
		if err := c.ensureReady(c.memory.Of(owner)); err != nil {
			return err
		}
		owner, err = cached(c.cache, key) // again: the first read may predate the writes
	}
	if err != nil {
		return fmt.Errorf("reading the %s from the cache: %w", c.kind.Kind, err)
	}
	if owner == nil {
		c.memory.Forget(key)
		c.replaced.Forget(key)
		c.rollouts.End(key)
		return nil // the garbage collector deletes the children
	}
	s := &ownerSync{c, key, owner, c.memory.Of(owner)}
	defer func() { c.memory.Keep(key, s.memory) }()
	return s.sync(ctx)
}

func (s *ownerSync) sync(ctx context.Context) error {
	// First, because a sync may end early: a status write without a response may lack its Event.
	if missed := s.memory.Transition.Missed(s.owner); missed != nil {
		s.recordTransition(s.owner, missed)
	}
	if s.memory.Stale.IsOf(s.owner) {
		if err := s.recheckOwner(ctx); err != nil {
			return err
		}
	}
	world := s.world()
	for child, action := range world.Steps() {
		if action == plan.ActionDelete {
			s.takeDeletion(ctx, child)
			continue
		}
		s.take(ctx, child, action)
	}
	err := world.Err()
	s.observeProblems(world.Children)
	if queue.IsExpected(err) {
		return err // a stale cache, for example, says nothing about the Foo: see queue.Attempt
	}
	after := world.Status(metav1.NewTime(s.clock.Now()))
	if plan.IsAtRest(after) {
		s.rollouts.End(s.key)
	}
	return errors.Join(s.updateStatus(ctx, after, err == nil), err)
}

// updateStatus writes the status of after if it differs from the cached one, and records an
// Event if the Foo's readiness changed. It also returns nil without a write if the CRD would
// drop the status, or if the status may wait: see memory.Progress and memory.Replaced.
func (s *ownerSync) updateStatus(ctx context.Context, after plan.Owner, complete bool) error {
	inputs, now := plan.StatusInputs(s.owner), s.clock.Now()
	flaps := s.memory.Flapping.Wait(s.owner, after, now)
	if equality.Semantic.DeepEqual(s.owner.GetStatus(), after.GetStatus()) {
		s.memory.Progress.Reset()
		s.backoff.Succeed(s.key, queue.PartStatus)
		return nil
	}
	if s.crdMismatch.WouldRecur(s.memory.Pruned, after) {
		s.queue.AddAfter(s.key, s.crdMismatch.Left())
		return nil
	}
	if err := s.backoff.Deferred(s.key, queue.PartStatus, inputs); err != nil {
		return err
	}
	if wait := max(s.memory.Progress.Wait(s.owner, after, complete, now), flaps, s.replaced.Wait(after)); wait > 0 {
		s.queue.AddAfter(s.key, wait)
		return nil
	}
	if err := s.sendStatus(ctx, after); err != nil {
		return s.backoff.Fail(s.key, queue.PartStatus, inputs, err)
	}
	s.backoff.Succeed(s.key, queue.PartStatus)
	return nil
}

func (s *ownerSync) sendStatus(ctx context.Context, after plan.Owner) error {
	callCtx, returned := s.withDeadline(ctx)
	updated, err := s.writeStatus(callCtx, after)
	returned()
	if failure.IsNotFound(err, s.Resource()) {
		if live, liveErr := s.live(ctx); liveErr == nil && live.GetUID() == s.owner.GetUID() {
			return fmt.Errorf("updating the %s's status: %w", s.kind.Kind, s.crdMismatch.NoSubresource())
		}
	}
	s.memory.Stale.Observe(s.owner, err)
	s.metrics.Refused(failure.CauseOf(err))
	transition := plan.ReadyChanged(s.lastSent(), after)
	if err != nil {
		if transition != nil && failure.MayBeDone(err) {
			s.memory.Transition.Unknown(s.owner, *transition)
		}
		return fmt.Errorf("updating the %s's status: %w", s.kind.Kind, err)
	}
	s.metrics.Wrote("update", s.statusResource())
	s.memory.Written.Observe(updated, s.clock.Now())
	s.memory.Flapping.Wrote(s.lastSent(), after, s.clock.Now())
	s.replaced.Observe(after)
	if transition != nil {
		s.memory.Transition.Stored(s.owner)
		s.recordTransition(updated, transition)
	}
	for _, own := range s.kind.OwnChanged(s.lastSent(), after) {
		s.recordTransition(updated, &own)
	}
	if s.memory.Pruned, err = s.crdMismatch.Observe(after, updated); err != nil {
		klog.FromContext(ctx).Error(err, "The API server does not store statuses as sent")
	}
	if s.memory.Pruned != nil {
		s.queue.AddAfter(s.key, s.crdMismatch.Left()) // a write that changes nothing has no event
	}
	return nil
}

// lastSent returns the Foo with the status last sent, so that one that the CRD drops has one Event.
func (s *ownerSync) lastSent() plan.Owner {
	if s.memory.Pruned != nil {
		return s.memory.Pruned
	}
	return s.owner
}

func (c *Controller) recordTransition(owner plan.Owner, ready *metav1.Condition) {
	c.recorder.Event(owner, plan.EventType(ready.Reason), ready.Reason, ready.Message)
}

// syncResult returns how a sync ended, for the metric.
func syncResult(err error) metrics.Result {
	switch {
	case err == nil:
		return metrics.Success
	case errors.Is(err, errPanic):
		return metrics.Panic
	case queue.IsExpected(err), queue.IsDeferred(err):
		return metrics.Retry
	}
	return metrics.Error
}
