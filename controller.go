/*
Copyright The Sample Controller Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

package main

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	appsinformers "k8s.io/client-go/informers/apps/v1"
	"k8s.io/client-go/kubernetes"
	appslisters "k8s.io/client-go/listers/apps/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"example.com/sample-controller/internal/consistency"
	"example.com/sample-controller/internal/metrics"
	"example.com/sample-controller/internal/names"
	"example.com/sample-controller/internal/plan"
	"example.com/sample-controller/internal/queue"
	"example.com/sample-controller/internal/reporting"
	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	clientset "example.com/sample-controller/pkg/generated/clientset/versioned"
	fooinformers "example.com/sample-controller/pkg/generated/informers/externalversions/samplecontroller/v1alpha1"
	foolisters "example.com/sample-controller/pkg/generated/listers/samplecontroller/v1alpha1"
)

const (
	// controllerName names the work queue, the source of events and the field
	// manager of every write.
	controllerName = names.Controller
	// drainTimeout bounds how long a stop waits for syncs that are under way.
	drainTimeout = 20 * time.Second
)

// Controller makes a Deployment for each Foo, keeps the fields that the Foo
// owns as the Foo wants them, and reports in the Foo's status how it stands.
//
// It works on keys: event handlers put the key of a Foo into a queue, workers
// take it out and sync that Foo from the caches. However many events came in
// between, one sync sees the newest state, and no Foo is synced twice at once.
type Controller struct {
	kubeClient kubernetes.Interface
	fooClient  clientset.Interface

	fooInformer        fooinformers.FooIndexInformer
	deploymentInformer appsinformers.DeploymentIndexInformer
	foos               foolisters.FooLister
	deployments        appslisters.DeploymentLister
	// The indexers behind the listers, for look-ups by other things than name
	// and for what they know of their own age.
	fooIndexer        cache.TypedIndexer[*samplev1alpha1.Foo]
	deploymentIndexer cache.TypedIndexer[*appsv1.Deployment]
	buckets           plan.Buckets

	queue              *queue.Queue
	backoff            *queue.Backoff
	consistency        *consistency.Store
	admissionMutations *consistency.AdmissionMutations
	staleFoos          *consistency.StaleFoos
	confirmed          *consistency.ConfirmedDeployments
	statusThrottle     *reporting.Throttle
	crdMismatch        *reporting.CRDMismatch
	transitions        *reporting.Transitions
	recorder           record.EventRecorder
	clock              clock.WithTicker
	// callTimeout bounds each call to the API server.
	callTimeout time.Duration
	metrics     *metrics.Metrics
	plan        plan.Planner
}

// Config holds what a Controller is made of.
type Config struct {
	// KubeClient writes Deployments, and FooClient the status of Foos.
	KubeClient kubernetes.Interface
	FooClient  clientset.Interface
	// Deployments and Foos are the informers that the Controller reads from. They
	// must not run yet, because NewController adds indexes to them.
	Deployments appsinformers.TypedDeploymentInformer
	Foos        fooinformers.TypedFooInformer
	// Recorder records an Event for each transition of the condition Ready.
	Recorder record.EventRecorder
	Clock    clock.WithTicker
	// CallTimeout bounds each call to the API server.
	CallTimeout time.Duration
	Metrics     *metrics.Metrics
	// Image is that of the container nginx.
	Image string
}

// NewController makes a Controller. Call it before the informer factories are
// started.
func NewController(config Config) (*Controller, error) {
	deployments, foos := config.Deployments.TypedInformer(), config.Foos.TypedInformer()
	buckets := plan.NewBuckets()
	if err := addIndexes(deployments, foos, buckets); err != nil {
		return nil, fmt.Errorf("adding indexes to the informers: %w", err)
	}
	work := queue.New(names.Controller, config.Clock)
	return &Controller{
		kubeClient:         config.KubeClient,
		fooClient:          config.FooClient,
		fooInformer:        foos,
		deploymentInformer: deployments,
		foos:               config.Foos.Lister(),
		deployments:        config.Deployments.Lister(),
		fooIndexer:         foos.GetTypedIndexer(),
		deploymentIndexer:  deployments.GetTypedIndexer(),
		buckets:            buckets,
		queue:              work,
		backoff:            queue.NewBackoff(work, config.Clock),
		consistency:        consistency.NewStore(config.Clock, config.CallTimeout),
		admissionMutations: &consistency.AdmissionMutations{},
		staleFoos:          &consistency.StaleFoos{},
		confirmed:          &consistency.ConfirmedDeployments{},
		statusThrottle:     &reporting.Throttle{Clock: config.Clock},
		crdMismatch:        &reporting.CRDMismatch{Clock: config.Clock},
		transitions:        &reporting.Transitions{},
		recorder:           config.Recorder,
		clock:              config.Clock,
		callTimeout:        config.CallTimeout,
		plan:               plan.Planner{Image: config.Image},
		metrics:            config.Metrics,
	}, nil
}

// Run works until ctx is done, and returns only when its workers have. It is
// called once. Event handlers are registered here, so that a standby, whose
// caches are filled, has nothing queued.
//
// Syncs under way when ctx ends are finished, within drainTimeout; what is still
// queued is left to the next start. When held ends, they are cut off at once:
// another may be working by then.
func (c *Controller) Run(ctx, held context.Context, workers int) error {
	logger := klog.FromContext(ctx)
	logger.Info("Starting controller")
	handlersSynced, err := c.addEventHandlers(ctx)
	if err != nil {
		c.queue.ShutDown()
		if ctx.Err() != nil {
			return nil //nolint:nilerr // informers that have stopped take no handlers
		}
		return fmt.Errorf("registering with the informers: %w", err)
	}
	c.runWorkers(ctx, held, workers, handlersSynced)
	logger.Info("Controller stopped")
	return nil
}

// work has workers sync what is queued, from when the handlers have synced.
func (c *Controller) runWorkers(ctx, held context.Context, workers int, handlersSynced []cache.DoneChecker) {
	logger := klog.FromContext(ctx)
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	defer context.AfterFunc(held, stop)()

	// A sync outlives ctx, so that a stop does not cut a write in half.
	syncCtx, cancelSyncs := context.WithCancel(klog.NewContext(held, logger))
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
	for range workers {
		wg.Go(func() {
			for ctx.Err() == nil && c.processNextWorkItem(syncCtx) {
			}
		})
	}
	<-ctx.Done()
	logger.Info("Stopping: waiting for the syncs under way")
}

// processNextKey syncs one Foo. It returns false when the queue is shut down.
func (c *Controller) processNextWorkItem(ctx context.Context) bool {
	key, shutdown := c.queue.Get()
	if shutdown {
		return false
	}
	defer c.queue.Done(key)
	ctx = klog.NewContext(ctx, klog.LoggerWithValues(klog.FromContext(ctx), "foo", klog.KRef(key.Namespace, key.Name)))
	start := c.clock.Now()
	err := c.syncWithRecover(ctx, key)
	c.metrics.Synced(syncResult(err), c.clock.Since(start))
	c.handleErr(ctx, key, err)
	return true
}

// busy tells whether Foos are waiting for a worker.
func (c *Controller) isBusy() bool { return c.queue.Len() > 0 }

// schedule arranges the next sync of a key after one that ended with err.
func (c *Controller) handleErr(ctx context.Context, key cache.ObjectName, err error) {
	next := queue.NextAttempt(err)
	if !next.Again {
		c.backoff.Forget(key)
		return
	}
	delay := c.backoff.Requeue(key, err).Round(time.Millisecond)
	if next.Expected || queue.IsDeferred(err) {
		klog.FromContext(ctx).V(4).Info("Syncing again", "after", delay, "reason", err)
		return
	}
	klog.FromContext(ctx).Error(err, "Sync failed", "retryAfter", delay)
}

// errPanic is a panic in a sync, as an error.
var errPanic = errors.New("panic")

// syncResult names how a sync ended, for its metric.
func syncResult(err error) metrics.Result {
	switch {
	case err == nil:
		return metrics.Success
	case errors.Is(err, errPanic):
		return metrics.Panic
	case queue.NextAttempt(err).Expected, queue.IsDeferred(err):
		return metrics.Retry
	}
	return metrics.Error
}

// syncRecovered is sync, with a panic turned into an error: one Foo that
// trips over a bug must not take the others' controller down.
func (c *Controller) syncWithRecover(ctx context.Context, key cache.ObjectName) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			c.metrics.Panics.Inc()
			err = fmt.Errorf("%w: %v\n%s", errPanic, cause, debug.Stack())
		}
	}()
	return c.syncHandler(ctx, key)
}
