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
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/server/healthz"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"example.com/sample-controller/internal/election"
	"example.com/sample-controller/internal/events"
	"example.com/sample-controller/internal/kubeclient"
	"example.com/sample-controller/internal/metrics"
	"example.com/sample-controller/internal/options"
	"example.com/sample-controller/internal/serving"
	fooscheme "example.com/sample-controller/pkg/generated/clientset/versioned/scheme"
)

const (
	// flushTimeout bounds how long a stop waits for events to be written.
	flushTimeout = 5 * time.Second
	// watchdogGrace is how far beyond its end a leader may go on with a Lease
	// before it is reported as unhealthy. Kubernetes' components give as much.
	watchdogGrace = 20 * time.Second
)

// run connects to the cluster and works until ctx is done. Events are written
// out last, for the election has some of its own.
func run(ctx context.Context, opts *options.Options) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	logger := klog.FromContext(ctx)
	config, namespace, err := opts.Cluster.RESTConfig()
	if err != nil {
		return err
	}
	clients, err := kubeclient.New(config, opts.Workers, opts.RequestTimeout)
	if err != nil {
		return err
	}
	caches, err := newCaches(clients, opts)
	if err != nil {
		return err
	}
	own := metrics.New()
	own.CountFoos(caches.foos.Samplecontroller().V1alpha1().Foos().Lister(), caches.filled)
	watchdog := leaderelection.NewLeaderHealthzAdaptor(watchdogGrace)
	// Before anything is waited for: that this waits is to be seen from outside.
	stopServing, err := opts.Serving.Start(ctx, healthHandler(ctx, caches, watchdog), own.Handler(), clients.Reviews)
	if err != nil {
		return err
	}
	defer stopServing()
	if err := clients.WaitForFoos(ctx, opts.Namespace); err != nil || ctx.Err() != nil {
		return err
	}
	recorder, flush := events.Start(ctx, &typedcorev1.EventSinkImpl{Interface: clients.Events.CoreV1().Events(metav1.NamespaceAll)},
		fooscheme.Scheme, corev1.EventSource{Component: controllerName})
	defer flush(flushTimeout)

	controller, err := NewController(Config{
		KubeClient: clients.Kube, FooClient: clients.Foos,
		Deployments: caches.kube.Apps().V1().Deployments(), Foos: caches.foos.Samplecontroller().V1alpha1().Foos(),
		Recorder: recorder, Clock: clock.RealClock{}, CallTimeout: opts.RequestTimeout, Metrics: own, Image: opts.Image,
	})
	if err != nil {
		return err
	}
	recorder.YieldTo(controller.busy)
	defer caches.stop()
	defer cancel()
	caches.fill(ctx)
	if ctx.Err() != nil {
		return nil
	}
	if !opts.Election.Enabled {
		return controller.Run(ctx, context.WithoutCancel(ctx), opts.Workers)
	}
	lease, err := opts.Election.Config(namespace)
	if err != nil {
		return err
	}
	lease.Client, lease.Recorder, lease.Watchdog = clients.Election.CoordinationV1(), recorder, watchdog
	logger.Info("Standing by for the Lease", "lease", lease.Namespace+"/"+lease.Name, "identity", lease.Identity)
	return election.Run(ctx, lease, func(held context.Context) error { return controller.Run(ctx, held, opts.Workers) })
}

// healthHandler tells how the process is. It is well unless it is a leader that
// goes on beyond the end of its Lease. It is ready from when its caches are
// filled, leader or not, until it is told to stop.
func healthHandler(ctx context.Context, caches *caches, watchdog healthz.HealthChecker) http.Handler {
	filled := healthz.NamedCheck("caches", func(*http.Request) error {
		if !caches.filled() {
			return errors.New("the caches are not filled yet; the log says what is waited for")
		}
		return nil
	})
	return serving.HealthHandler(
		[]healthz.HealthChecker{watchdog},
		[]healthz.HealthChecker{filled, healthz.NewShutdownHealthz(ctx.Done())})
}
