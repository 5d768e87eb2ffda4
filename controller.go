// SPDX-License-Identifier: Apache-2.0

// The controller takes keys from the work queue and syncs each. Read this file from top to
// bottom. handlers.go adds keys to the queue, writes.go takes the steps of a sync, status.go writes the
// status, internal/kinds declares the children, and pkg/reconcile decides on the steps.

package main

import (
	"cmp"
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

	"example.com/sample-controller/pkg/process/metrics"
	"example.com/sample-controller/pkg/reconcile/failure"
	"example.com/sample-controller/pkg/reconcile/memory"
	"example.com/sample-controller/pkg/reconcile/plan"
	"example.com/sample-controller/pkg/reconcile/queue"
	"example.com/sample-controller/pkg/reconcile/table"
)

// drainTimeout bounds how long a stop waits for syncs in progress. Together with the bounds of
// what follows, releasing the Lease and writing the last Events, it is less than the Pod's
// grace period.
const drainTimeout = 15 * time.Second

// Controller creates the children of each owner of a kind, such as a Foo's Deployment, keeps their
// owned fields in the desired state, and reports the result in the owner's status.
//
// Event handlers add the key of an owner to the queue. A worker takes a key and syncs that
// owner from the caches. However many events arrived in between, one sync sees the newest
// state, and no owner is synced twice at the same time. While a call of a sync hangs, another
// worker takes its turn.
type Controller struct {
	kind *table.Kind

	queue   *queue.Queue
	backoff *queue.Backoff
	// rollouts bounds how many owners restart their Pods at the same time.
	rollouts *memory.Rollouts

	// known is what the controller remembers between the syncs of an owner.
	known       memory.Map
	crdMismatch *memory.CRDMismatch
	replaced    *memory.Replaced
	opponents   *memory.Opponents
	references  *memory.References
	// callers make the calls outside the cluster.
	callers *table.Callers
	// fightPeriod is how long a repair must last to end a fight.
	fightPeriod time.Duration

	recorder    record.EventRecorder
	clock       clock.WithTicker
	callTimeout time.Duration
	metrics     *metrics.Metrics
}

// Config holds the parts of a Controller.
type Config struct {
	// Name is the work queue's name in metrics.
	Name string
	// Recorder records an Event for each transition of the condition Ready.
	Recorder record.EventRecorder
	Clock    clock.WithTicker
	// CallTimeout bounds each call to the API server.
	CallTimeout time.Duration
	Metrics     *metrics.Metrics
	// MaxRollouts is how many owners may restart their Pods at the same time for another reason than
	// a new spec, such as another image. 0 means no limit.
	MaxRollouts int
	// FightPeriod is how long a repair must last so that the next one does not count as part of a
	// fight.
	FightPeriod time.Duration
}

// NewController returns the Controller of a kind, whose informers table.Prepare has prepared.
func NewController(config Config, kind *table.Kind) *Controller {
	work := queue.New(config.Name, config.Clock)
	c := &Controller{
		kind:        kind,
		queue:       work,
		backoff:     queue.NewBackoff(config.Clock),
		rollouts:    &memory.Rollouts{Clock: config.Clock, Limit: config.MaxRollouts},
		crdMismatch: &memory.CRDMismatch{Clock: config.Clock, Resource: kind.Resource.GroupResource()},
		replaced:    &memory.Replaced{Clock: config.Clock},
		opponents:   &memory.Opponents{Clock: config.Clock},
		references:  &memory.References{Clock: config.Clock},
		fightPeriod: cmp.Or(config.FightPeriod, memory.DefaultFightPeriod),
		recorder:    config.Recorder,
		clock:       config.Clock,
		callTimeout: config.CallTimeout,
		metrics:     config.Metrics,
	}
	c.callers = kind.NewCallers(config.Name, config.Clock, work.Add)
	c.metrics.CountRefusalsBy(failure.Causes...)
	if !kind.IsOthers() {
		c.metrics.CountWritesTo(c.statusResource(), "update")
	}
	for _, row := range kind.Rows {
		c.metrics.CountWritesTo(row.Resource.Resource, "create", "update", "delete")
	}
	return c
}

// Resource returns the resource's name, such as "foos".
func (c *Controller) Resource() string { return c.kind.Resource.Resource }

// statusResource returns the name of the kind's status in metrics.
func (c *Controller) statusResource() string { return c.Resource() + "/status" }

// CountByReady counts the owners in the cache by the status of their condition Ready, which is
// unknown for a kind that isn't the program's own.
func (c *Controller) CountByReady() map[metav1.ConditionStatus]int {
	if c.kind.IsOthers() {
		return map[metav1.ConditionStatus]int{metav1.ConditionUnknown: len(c.kind.Owners.Cache.List())}
	}
	return plan.CountByReady(c.kind.Owners.Cache.List())
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
	wg.Go(func() { c.callers.Run(klog.NewContext(ctx, logger)) })
	c.queue.SetWorkers(workers, func() { wg.Go(worker) })
	for range workers {
		wg.Go(worker)
	}
	<-ctx.Done()
	logger.Info("Stopping: waiting for syncs in progress")
}

// processNextWorkItem syncs the next owner. It returns false if the worker must end: after the
// queue has shut down, or because a sync that had handed its turn over has returned.
func (c *Controller) processNextWorkItem(ctx context.Context) bool {
	key, end := c.queue.Get()
	if end {
		return false
	}
	defer c.queue.Done(key)
	ctx = klog.NewContext(ctx, klog.LoggerWithValues(klog.FromContext(ctx), strings.ToLower(c.kind.Name), klog.KRef(key.Namespace, key.Name)))
	start := c.clock.Now()
	c.backoff.Begin(key) // a change after this point needs another sync: see updateOwner
	again, err := c.syncAndRecover(ctx, key)
	if errors.Is(err, failure.ErrStale) || errors.Is(err, failure.ErrBehind) {
		c.metrics.StaleSyncs.Inc()
	}
	c.metrics.Synced(syncResult(err), c.clock.Since(start))
	c.handleErr(ctx, key, again, err)
	return true
}

// handleErr puts a key back: for the time at which its sync wants to come again, and, if the sync
// failed, after a delay that depends on the error.
func (c *Controller) handleErr(ctx context.Context, key cache.ObjectName, again time.Duration, err error) {
	if again > 0 {
		c.queue.AddAfter(key, again)
	}
	next := queue.NextAttempt(err)
	if !next.Again || ctx.Err() != nil { // a stop, or the loss of the Lease, has canceled the calls
		c.backoff.Forget(key)
		return
	}
	delay := c.backoff.End(key, err)
	c.queue.AddAfter(key, delay)
	delay = delay.Round(time.Millisecond)
	if next.Expected || next.Deferred {
		klog.FromContext(ctx).V(4).Info("Syncing again", "after", delay, "reason", err)
		return
	}
	// Only the kind of failure, because its text may differ each time.
	cause := fmt.Sprint(syncResult(err), apierrors.ReasonForError(err))
	if logger := klog.FromContext(ctx); c.backoff.MarkReported(key, cause) || logger.V(2).Enabled() {
		logger.Error(err, "Sync failed", "retryAfter", delay)
	}
}

// errPanic represents a panic in a sync.
var errPanic = errors.New("panic")

// syncAndRecover calls syncHandler and turns a panic into an error, so that an owner that
// triggers a bug does not stop the controller for the others.
func (c *Controller) syncAndRecover(ctx context.Context, key cache.ObjectName) (again time.Duration, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			c.metrics.Panics.Inc()
			err = fmt.Errorf("%w: %v\n%s", errPanic, cause, debug.Stack())
		}
	}()
	return c.syncHandler(ctx, key)
}

// ownerSync is a sync of one owner.
type ownerSync struct {
	c     *Controller
	key   cache.ObjectName
	owner plan.Owner
	// known is what earlier syncs of the owner have left.
	known *memory.Owner
	// requested is true if the user asked for this sync.
	requested bool
}

// syncHandler brings the children of one owner in line with it, and returns after which time to come
// again; 0 means that only an event can change anything. It reads the caches, decides, writes the
// children that differ, and writes the status if it differs, even if the API server refused a child.
// It may be called at any time and any number of times.
func (c *Controller) syncHandler(ctx context.Context, key cache.ObjectName) (again time.Duration, err error) {
	owner, err := c.readFresh(key)
	if err != nil {
		return 0, err
	}
	if owner == nil {
		c.known.Forget(key)
		c.replaced.Forget(key)
		c.rollouts.End(key)
		c.callers.Forget(key)
		return 0, nil // the garbage collector deletes the children
	}
	s := &ownerSync{c: c, key: key, owner: owner, known: c.known.Of(owner)}
	defer func() { c.known.Keep(key, s.known) }()
	return s.run(ctx)
}

// readFresh returns an owner from the cache, or nil if there is none. A sync reads only caches that
// contain its own last writes; if they don't, it returns ErrStale.
func (c *Controller) readFresh(key cache.ObjectName) (plan.Owner, error) {
	owner := c.kind.Owner(key)
	if owner == nil {
		return nil, nil //nolint:nilnil // a missing owner is no error
	}
	known, now := c.known.Of(owner), c.clock.Now()
	err := known.Written.EnsureReady(c.kind.Owners.Cache, now, c.callTimeout)
	for _, row := range c.kind.Rows {
		err = cmp.Or(err, known.Child(row.Kind).Written.EnsureReady(row.Cache, now, c.callTimeout))
	}
	if err != nil {
		return nil, err
	}
	known.ForgetWritten()
	return c.kind.Owner(key), nil // again: the first read may predate the writes
}

func (s *ownerSync) run(ctx context.Context) (again time.Duration, err error) {
	// First, because a sync may end early: a status write without a response may lack its Event.
	if missed := s.known.Transition.Missed(s.owner); missed != nil {
		s.recordTransition(s.owner, missed)
	}
	s.known.Transition.Observe(s.owner)
	s.known.Expire(s.owner, s.c.fightPeriod, s.c.clock.Now())
	s.requested = s.known.ObserveSyncRequest(s.owner, s.c.kind.PendingSync(s.owner), s.c.kind.Children)
	if s.known.IsStale(s.owner) {
		if err := s.recheckOwner(ctx); err != nil {
			return 0, err
		}
	}
	world := s.c.kind.NewWorld(s.owner, s.find)
	for step := range world.Steps() {
		world.Record(step, s.take(ctx, step))
	}
	if world.IsOver() {
		return 0, nil
	}
	for step, outcome := range world.Children() {
		*outcome = s.known.Step(step).ObserveProblem(step, *outcome, s.c.clock.Now())
		if step.IsSet() { // what is known of the deletions
			*outcome = s.known.Child(step.Kind).ObserveFights(step, *outcome, s.c.fightPeriod, s.c.clock.Now())
		}
	}
	s.known.ForgetOthers(s.owner, s.c.kind.Kind)
	switch err = world.Err(); {
	case plan.SaysReady(s.owner):
		s.known.ReadFor = 0
	case err == nil && len(s.c.kind.References) > 0:
		s.known.ReadFor = s.owner.GetGeneration()
	}
	if queue.IsExpected(err) {
		return world.Again(), err // a stale cache, for example, says nothing about the owner: see queue.Attempt
	}
	after := world.Status(metav1.NewTime(s.c.clock.Now()))
	if plan.IsAtRest(after) {
		s.c.rollouts.End(s.key)
	}
	if s.c.kind.IsOthers() {
		s.tell(after, err == nil)
		return world.Again(), err
	}
	wait, statusErr := s.updateStatus(ctx, after, err == nil)
	return plan.Sooner(world.Again(), wait), errors.Join(statusErr, err)
}

// hasReadReferences reports whether what the owner names has been read for its newest spec. Before
// it becomes ready by that, a stale cache is not enough, as for children: see confirm.
func (s *ownerSync) hasReadReferences() bool {
	return plan.SaysReady(s.owner) || s.known.ReadFor == s.owner.GetGeneration()
}

// find returns what there is of a row: what the caches have, and of references, what earlier reads have learned.
func (s *ownerSync) find(of *plan.ChildKind) plan.Found {
	found := s.c.kind.Find(of, s.owner)
	if of.IsReference() {
		row := s.c.kind.Row(of)
		found.Known = func(key cache.ObjectName) (plan.Outcome, bool) {
			if s.requested || !s.hasReadReferences() {
				return plan.Outcome{}, false
			}
			return s.c.references.Known(of, key, row.Cache != nil, row.Named(key))
		}
	}
	return found
}

// syncResult returns how a sync ended, for the metric.
func syncResult(err error) metrics.Result {
	next := queue.NextAttempt(err)
	switch {
	case err == nil:
		return metrics.Success
	case errors.Is(err, errPanic):
		return metrics.Panic
	case next.Expected, next.Deferred:
		return metrics.Retry
	}
	return metrics.Error
}
