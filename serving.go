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
	"net/http"
	"sync"

	"k8s.io/apiserver/pkg/server/healthz"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	"example.com/sample-controller/internal/serving"
)

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

// start serves what the flags ask for, and returns a function that ends that.
// It returns an error if an address can't be had or a certificate can't be used.
func (o *servingOptions) start(ctx context.Context, health, metrics http.Handler, reviews kubernetes.Interface) (stop func(), err error) {
	// It goes on while syncs finish after the end of ctx.
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var wg sync.WaitGroup
	stop = func() {
		cancel()
		wg.Wait()
	}
	err = o.startHealth(ctx, &wg, health)
	if err == nil {
		err = o.startMetrics(ctx, &wg, metrics, reviews)
	}
	if err != nil {
		stop()
	}
	return stop, err
}

func (o *servingOptions) startHealth(ctx context.Context, wg *sync.WaitGroup, health http.Handler) error {
	if o.healthAddress == "" {
		return nil
	}
	server, err := serving.Listen(o.healthAddress, health, nil)
	if err != nil {
		return fmt.Errorf("-health-probe-bind-address=%s: %w", o.healthAddress, err)
	}
	wg.Go(func() { serve(ctx, "health", server) })
	return nil
}

func (o *servingOptions) startMetrics(ctx context.Context, wg *sync.WaitGroup, metrics http.Handler, reviews kubernetes.Interface) error {
	if o.metricsAddress == "" {
		return nil
	}
	certificate, err := o.certificate()
	if err != nil {
		return err
	}
	handler := serving.MetricsHandler(serving.NewGate(reviews), metrics, o.profiling)
	server, err := serving.Listen(o.metricsAddress, handler, certificate.Config())
	if err != nil {
		return fmt.Errorf("-metrics-bind-address=%s: %w", o.metricsAddress, err)
	}
	wg.Go(func() { certificate.Watch(ctx) })
	wg.Go(func() { serve(ctx, "metrics", server) })
	return nil
}

// certificate is that of the metrics' address.
func (o *servingOptions) certificate() (*serving.Certificate, error) {
	if o.certFile == "" {
		return serving.SelfSigned()
	}
	return serving.FromFiles(o.certFile, o.keyFile)
}

// serve answers until ctx is done. Without health, the kubelet starts the
// process anew; without metrics, an alert says so.
func serve(ctx context.Context, what string, server *serving.Server) {
	logger := klog.FromContext(ctx)
	logger.Info("Serving "+what, "address", server.Address())
	if err := server.Serve(ctx); err != nil {
		logger.Error(err, "No longer serving "+what)
	}
}
