// SPDX-License-Identifier: Apache-2.0

// The controller: keys come out of the work queue, and each is synced. Read this file from
// top to bottom; handlers.go has how keys come into the queue, writes.go how a step
// is taken, status.go the status, clients.go the calls, and internal/plan the steps.

package main

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"example.com/sample-controller/internal/failure"
	"example.com/sample-controller/internal/memory"
	"example.com/sample-controller/internal/metrics"
	"example.com/sample-controller/internal/plan"
	"example.com/sample-controller/internal/queue"
)

// drainTimeout bounds how long a stop waits for the syncs under way. With the bounds of what
// follows it, the release of the Lease and the last Events, it is less than the Pod's grace
// period.
const drainTimeout = 15 * time.Second

// Controller makes the children of each Foo, keeps the fields that the Foo owns as the
// Foo asks, and reports in the Foo's status how it stands.
//
// Event handlers add the key of a Foo to the queue. A worker takes a key and syncs that
// Foo from the caches. However many events came in between, one sync sees the newest
// state, and no Foo is synced twice at the same time.
type Controller struct {
	api[plan.Owner]

	kind     *plan.OwnerKind
	children []*childAPI
	buckets  plan.Buckets

	queue   *queue.Queue
	backoff *queue.Backoff
	// rollouts bounds how many Foos restart their Pods at a time.
	rollouts *queue.Rollouts

	// memory is what is remembered between the syncs of a Foo.
	memory      memory.Map
	crdMismatch *memory.CRDMismatch
	replaced    *memory.Replaced

	recorder    record.EventRecorder
	clock       clock.WithTicker
	callTimeout time.Duration
	metrics     *metrics.Metrics
}

// NewController makes the Controller of a kind. Call it before the informer factories are
// started.
func NewController(config Config, kind *plan.OwnerKind) (*Controller, error) {
	apis, known := apisOf[kind.Kind]
	if !known {
		return nil, fmt.Errorf("the kind %s has no clients in clients.go", kind.Kind)
	}
	owners, children := apis(config)
	work := queue.New(config.Name, config.Clock)
	c := &Controller{
		api:         owners,
		kind:        kind,
		buckets:     plan.NewBuckets(),
		queue:       work,
		backoff:     queue.NewBackoff(work, config.Clock),
		rollouts:    &queue.Rollouts{Clock: config.Clock, Limit: config.MaxRollouts},
		crdMismatch: &memory.CRDMismatch{Clock: config.Clock, Resource: kind.Resource.GroupResource()},
		replaced:    &memory.Replaced{Clock: config.Clock},
		recorder:    config.Recorder,
		clock:       config.Clock,
		callTimeout: config.CallTimeout,
		metrics:     config.Metrics,
	}
	c.metrics.CountWritesTo(c.statusResource(), "update")
	c.metrics.CountRefusalsBy(failure.Causes...)
	for i, row := range kind.Children {
		if i >= len(children) || !children[i].takes(row.Empty()) {
			return nil, fmt.Errorf("row %d of the table of %s is the kind %s, and its client in clients.go is another's", i, kind.Kind, row.Kind)
		}
		c.children = append(c.children, newChildAPI(c, row, children[i]))
	}
	if err := c.prepareInformers(); err != nil {
		return nil, fmt.Errorf("preparing the informers: %w", err)
	}
	return c, nil
}

// Run starts the workers and returns when ctx is done and they have ended. Call it once.
//
// Syncs under way when ctx ends may finish, within drainTimeout; keys that still wait
// are left to the next start. When leaseCtx ends, the syncs are cancelled at once, because
// another controller may be working by then.
func (c *Controller) Run(ctx, leaseCtx context.Context, workers int) error {
	logger := klog.FromContext(ctx)
	logger.Info("Starting controller", "resource", c.Resource())
	// Not before now, so that the queue of a standby is empty although its caches are full.
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
	c.queue.SetWorkers(workers)
	for range workers {
		wg.Go(func() {
			for ctx.Err() == nil && c.processNextWorkItem(syncCtx) {
			}
		})
	}
	<-ctx.Done()
	logger.Info("Stopping: waiting for the syncs under way")
}

// processNextWorkItem syncs the next Foo. It returns false when the queue is shut down.
func (c *Controller) processNextWorkItem(ctx context.Context) bool {
	key, shutdown := c.queue.Get()
	if shutdown {
		return false
	}
	defer c.queue.Done(key)
	ctx = klog.NewContext(ctx, klog.LoggerWithValues(klog.FromContext(ctx), strings.ToLower(c.kind.Kind), klog.KRef(key.Namespace, key.Name)))
	start := c.clock.Now()
	c.backoff.Begin(key) // a change from now on needs another sync: see updateOwner
	err := c.syncAndRecover(ctx, key)
	if errors.Is(err, failure.ErrStale) || errors.Is(err, failure.ErrBehind) {
		c.metrics.StaleSyncs.Inc()
	}
	c.metrics.Synced(syncResult(err), c.clock.Since(start))
	c.handleErr(ctx, key, err)
	return true
}

// handleErr adds a key to the queue again if its sync failed, after the time that the
// error calls for.
func (c *Controller) handleErr(ctx context.Context, key cache.ObjectName, err error) {
	if !queue.TriesAgain(err) || ctx.Err() != nil { // a stop, or the loss of the Lease, has cut the calls off
		c.backoff.Forget(key)
		return
	}
	delay := c.backoff.Requeue(key, err).Round(time.Millisecond)
	if queue.IsExpected(err) || queue.IsDeferred(err) {
		klog.FromContext(ctx).V(4).Info("Syncing again", "after", delay, "reason", err)
		return
	}
	// The kind of failure, not its text, which may differ each time.
	cause := fmt.Sprint(syncResult(err), apierrors.ReasonForError(err))
	if logger := klog.FromContext(ctx); c.backoff.Reports(key, cause) || logger.V(2).Enabled() {
		logger.Error(err, "Sync failed", "retryAfter", delay)
	}
}

// errPanic is a panic in a sync, as an error.
var errPanic = errors.New("panic")

// syncAndRecover calls syncHandler and turns a panic into an error, so that a Foo which
// meets a bug does not stop the controller for the others.
func (c *Controller) syncAndRecover(ctx context.Context, key cache.ObjectName) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			c.metrics.Panics.Inc()
			err = fmt.Errorf("%w: %v\n%s", errPanic, cause, debug.Stack())
		}
	}()
	return c.syncHandler(ctx, key)
}

// ownerSync is a sync of one Foo, with what is remembered of it.
type ownerSync struct {
	*Controller
	key    cache.ObjectName
	owner  plan.Owner
	memory *memory.Owner
}

// syncHandler makes one Foo and its children agree. It reads the caches, decides,
// writes what differs, and writes the status if that differs, even if the API server
// refused a child. It may be called at any time and any number of times.
func (c *Controller) syncHandler(ctx context.Context, key cache.ObjectName) error {
	owner, err := cached(c.cache, key)
	if err != nil {
		return fmt.Errorf("reading the %s from the cache: %w", c.kind.Kind, err)
	}
	if owner != nil {
		if err := c.memory.Of(owner).Writes.EnsureReady(c.clock.Now(), c.callTimeout); err != nil {
			return err
		}
		if owner, err = cached(c.cache, key); err != nil { // again: the first may be older than the writes
			return fmt.Errorf("reading the %s from the cache: %w", c.kind.Kind, err)
		}
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
	s.recordMissedTransition()
	if s.memory.Stale.IsOf(s.owner) {
		if err := s.recheckOwner(ctx); err != nil {
			return err
		}
	}
	world := s.world()
	for child, action := range world.Steps() {
		s.take(ctx, child, action)
	}
	err := world.Err()
	if queue.IsExpected(err) {
		return err // a stale cache says nothing about the Foo, and the next sync is near
	}
	after := world.Status(metav1.NewTime(s.clock.Now()))
	if plan.IsAtRest(after) {
		s.rollouts.End(s.key)
	}
	return errors.Join(s.updateStatus(ctx, after, err == nil), err)
}

// syncResult names how a sync ended, for its metric.
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

// Resource is that of the Foos, such as "foos".
func (c *Controller) Resource() string { return c.kind.Resource.Resource }

// CountByReady counts the Foos of the cache by the status of their condition Ready.
func (c *Controller) CountByReady() map[metav1.ConditionStatus]int {
	return plan.CountByReady(c.cache.List())
}

// HasWaiting reports whether Foos of a namespace wait for a worker.
func (c *Controller) HasWaiting(namespace string) bool { return c.queue.HasWaiting(namespace) }
