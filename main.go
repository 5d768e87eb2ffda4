// SPDX-License-Identifier: Apache-2.0

// The command creates the children of each owner, an object of a kind that internal/kinds declares,
// such as the Deployment of a Foo. It keeps the fields that the owner owns in the desired state, and
// reports the result in the owner's status.
//
// It syncs an owner when the owner changes, when an object that the owner controls or wants
// changes, and at each resync. A sync reads the caches, lets pure functions decide what
// to do, then writes the children, deletes those with an earlier name, writes the status,
// and records an Event if the condition Ready changed; each only if necessary.
// controller.go is the file to read.
//
// It does not delete the children of a deleted owner: the garbage collector does, because of
// the owner reference. It never touches an object that it does not control, unless someone
// who may edit that object requests it.
//
// This file reads the flags, creates the informer factories and the controller of each
// kind, and runs them.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kubeinformers "k8s.io/client-go/informers"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"example.com/sample-controller/internal/kinds"
	"example.com/sample-controller/internal/names"
	clientset "example.com/sample-controller/pkg/generated/clientset/versioned"
	customscheme "example.com/sample-controller/pkg/generated/clientset/versioned/scheme"
	custominformers "example.com/sample-controller/pkg/generated/informers/externalversions"
	"example.com/sample-controller/pkg/process/election"
	"example.com/sample-controller/pkg/process/events"
	"example.com/sample-controller/pkg/process/kubeclient"
	"example.com/sample-controller/pkg/process/metrics"
	"example.com/sample-controller/pkg/process/options"
	"example.com/sample-controller/pkg/process/serving"
	"example.com/sample-controller/pkg/reconcile/memory"
	"example.com/sample-controller/pkg/reconcile/table"
	"example.com/sample-controller/pkg/signals"
)

const (
	// Exit codes. A requested stop exits with 0.
	exitFailure = 1
	exitUsage   = 2

	// flushTimeout bounds how long a stop waits for Events to be written.
	flushTimeout = 5 * time.Second
	// fieldManager identifies the controller's writes.
	fieldManager = names.Controller

	// watchdogGrace is how long a leader may continue after its Lease has expired before
	// it is reported as unhealthy. Kubernetes' components allow the same.
	watchdogGrace = 20 * time.Second
)

func main() {
	opts, err := parse(os.Args[1:], os.Stdout)
	if errors.Is(err, options.ErrAnswered) {
		return
	}
	// Even if a flag is invalid, so that the error has the format that log readers expect.
	if formatErr := opts.Logging.Apply(); err == nil {
		err = formatErr
	}
	if err == nil {
		err = options.LimitMemory()
	}
	if err != nil {
		fail(opts, err, exitUsage)
	}
	if err := run(signals.SetupSignalHandler(), opts); err != nil {
		fail(opts, err, exitFailure)
	}
	klog.Flush()
}

// Options are the command's flags: those of every controller, and those of this program's kinds.
type Options struct {
	*options.Options
	Kinds       kinds.Options
	MaxRollouts int // as in Config
	FightPeriod time.Duration
}

// parse reads the command line, as options.Parse does.
func parse(args []string, answer io.Writer) (o Options, err error) {
	o.Options, err = options.Parse(args, answer, options.Program{
		Name: names.Controller, Purpose: names.Purpose, Kind: names.Kind, Plural: names.Plural,
		AddFlags: func(flags *flag.FlagSet) {
			o.Kinds.AddFlags(flags)
			flags.IntVar(&o.MaxRollouts, "max-rollouts", 10, fmt.Sprintf("Maximum number of %s whose Pods are restarted at the same time for another reason "+
				"than a change of their spec, such as another -image or to undo someone's change; half of that in one namespace. 0 means no limit.", names.Plural))
			flags.DurationVar(&o.FightPeriod, "fight-period", memory.DefaultFightPeriod, fmt.Sprintf("How long a repair must last. If another client undoes "+
				"three in a row earlier, that is a fight: the %s fails and names the client, and further repairs wait. Whoever is slower is repaired at once "+
				"each time, and named in Events.", names.Kind))
		},
		Check: func(refuse func(isWrong bool, format string, args ...any)) {
			o.Kinds.Check(refuse)
			refuse(o.MaxRollouts < 0, "-max-rollouts=%d: must be 0 (no limit) or more", o.MaxRollouts)
			refuse(o.FightPeriod < time.Second, "-fight-period=%v: must be 1s or more", o.FightPeriod)
		},
	})
	return o, err
}

// fail reports an error and ends the process.
func fail(opts Options, err error, code int) {
	opts.Logging.Report(err, code)
	klog.Flush()
	os.Exit(code)
}

// run connects to the cluster and works until ctx is done.
func run(ctx context.Context, opts Options) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	config, namespace, err := opts.Cluster.RESTConfig()
	if err != nil {
		return err
	}
	clients, err := kubeclient.New(config, opts.Workers, opts.RequestTimeout)
	if err != nil {
		return err
	}
	// Serve before waiting for anything, so that probes see that the controller waits.
	controllerMetrics, cachesFilled := metrics.New(names.Controller, names.Kind), &atomic.Bool{}
	watchdog := leaderelection.NewLeaderHealthzAdaptor(watchdogGrace)
	stopServing, err := opts.Serving.Start(ctx, serving.ControllerHealth(ctx, watchdog, cachesFilled.Load), controllerMetrics.Handler(), clients.Reviews)
	if err != nil {
		return err
	}
	defer stopServing()
	// Write the remaining Events last, because the election also records Events.
	recorder, flush := events.Start(ctx, &typedcorev1.EventSinkImpl{Interface: clients.Events.CoreV1().Events(metav1.NamespaceAll)},
		customscheme.Scheme, corev1.EventSource{Component: names.Controller})
	defer flush(flushTimeout)
	controllers, stopInformers, err := startInformers(ctx, opts, clients, recorder, controllerMetrics)
	if err != nil {
		return err
	}
	defer func() {
		cancel()
		stopInformers()
	}()
	if ctx.Err() != nil {
		return nil
	}
	cachesFilled.Store(true)
	return lead(ctx, opts, controllers, election.Config{
		Client: clients.Election.CoordinationV1(), Namespace: namespace, Recorder: recorder, Watchdog: watchdog,
	})
}

// newControllers returns the controller of each kind. Their metrics and work queues are named
// after the kinds, except for those of the first. Call it before starting the informers.
func newControllers(config Config, kinds []*table.Kind) (controllers []*Controller, _ error) {
	if err := table.Prepare(kinds...); err != nil {
		return nil, fmt.Errorf("preparing the informers: %w", err)
	}
	for i, kind := range kinds {
		of := config
		if i > 0 {
			of.Name, of.Metrics = config.Name+"-"+kind.Resource.Resource, config.Metrics.ForKind(kind.Name)
		}
		controllers = append(controllers, NewController(of, kind))
	}
	return controllers, nil
}

// startInformers creates the controllers with the informer factories, waits until the
// API server lets the informers read their resources, and returns when the caches are full or
// ctx is done. Call stop when ctx is done.
func startInformers(ctx context.Context, opts Options, clients *kubeclient.Clients, recorder *events.Recorder, controllerMetrics *metrics.Metrics) (
	controllers []*Controller, stop func(), err error,
) {
	// Informers without a name have no metrics.
	name, err := cache.NewInformerName(names.Controller)
	if err != nil {
		return nil, nil, err
	}
	reading, errReading := clientset.NewForConfig(clients.InformerConfig)
	calling, errCalling := clientset.NewForConfig(clients.CallConfig)
	readingMetadata, errMetadata := metadata.NewForConfig(clients.InformerConfig)
	if err := cmp.Or(errReading, errCalling, errMetadata); err != nil {
		return nil, nil, err
	}
	// Children need no resync, because an owner's resync reads its children, too.
	kubeInformers := kubeinformers.NewSharedInformerFactoryWithOptions(clients.KubeInformers, 0,
		kubeinformers.WithInformerName(name), kubeinformers.WithNamespace(opts.Namespace))
	customInformers := custominformers.NewSharedInformerFactoryWithOptions(reading, opts.Resync,
		custominformers.WithInformerName(name), custominformers.WithNamespace(opts.Namespace))
	metadataInformers := metadatainformer.NewFilteredSharedInformerFactory(readingMetadata, 0, opts.Namespace, nil)
	all := kinds.All(kinds.Clients{Kube: clients.Kube, Custom: calling, KubeInformers: kubeInformers, CustomInformers: customInformers,
		MetadataInformers: metadataInformers}, opts.Kinds)
	controllers, err = newControllers(Config{
		Name: names.Controller, Recorder: recorder, Clock: clock.RealClock{}, CallTimeout: opts.RequestTimeout, Metrics: controllerMetrics,
		MaxRollouts: opts.MaxRollouts, FightPeriod: opts.FightPeriod,
	}, all)
	if err != nil {
		return nil, nil, err
	}
	stop = func() {
		kubeInformers.Shutdown()
		customInformers.Shutdown()
		metadataInformers.Shutdown()
	}
	var reads []schema.GroupVersionResource
	crds := map[string]string{}
	for _, kind := range all {
		reads = append(reads, kind.Reads()...)
		if !kind.IsOthers() {
			crds[kind.Resource.Group] = "kubectl apply --server-side -f artifacts/crd"
		}
	}
	remedies := kubeclient.Remedies{
		CRDs: crds, Permissions: "artifacts/deploy/permissions/controller.yaml", NamespacePermissions: "artifacts/deploy/namespaced",
	}
	if err := clients.WaitUntilReadable(ctx, remedies, opts.Namespace, reads...); err != nil || ctx.Err() != nil {
		return nil, stop, err
	}
	kubeInformers.StartWithContext(ctx)
	customInformers.StartWithContext(ctx)
	metadataInformers.Start(ctx.Done())
	kubeInformers.WaitForCacheSyncWithContext(ctx)
	customInformers.WaitForCacheSyncWithContext(ctx)
	metadataInformers.WaitForCacheSync(ctx.Done())
	for _, c := range controllers {
		controllerMetrics.CountByReady(c.Resource(), c.CountByReady)
	}
	return controllers, stop, nil
}

// lead runs the controllers; with -leader-elect, only while holding the Lease.
func lead(ctx context.Context, opts Options, controllers []*Controller, lease election.Config) error {
	if !opts.Election.Enabled {
		return runAll(ctx, context.WithoutCancel(ctx), controllers, opts.Workers)
	}
	if err := opts.Election.ApplyTo(&lease); err != nil {
		return err
	}
	klog.FromContext(ctx).Info("Waiting to become leader", "lease", lease.Namespace+"/"+lease.Name, "identity", lease.Identity)
	return election.Run(ctx, lease, func(leaseCtx context.Context) error { return runAll(ctx, leaseCtx, controllers, opts.Workers) })
}

// runAll runs the controllers until ctx or leaseCtx is done. If one fails, all stop.
func runAll(ctx, leaseCtx context.Context, controllers []*Controller, workers int) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	errs := make([]error, len(controllers))
	var wg sync.WaitGroup
	for i, c := range controllers {
		wg.Go(func() {
			defer stop()
			errs[i] = c.Run(ctx, leaseCtx, workers)
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}
