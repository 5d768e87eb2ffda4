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

package options

import (
	"context"
	"flag"
	"fmt"
	"net"
	"net/http"
	"sync"

	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	"example.com/sample-controller/internal/serving"
)

// Serving holds the flags of what the controller serves. Nothing listens unless an
// address is given.
type Serving struct {
	healthAddress  string
	metricsAddress string
	certFile       string
	keyFile        string
	profiling      bool
}

func (o *Serving) addFlags(flags *flag.FlagSet) {
	flags.StringVar(&o.healthAddress, "health-probe-bind-address", "",
		"Address, as [HOST]:PORT, at which /healthz and /readyz answer over HTTP. Left out: none.")
	flags.StringVar(&o.metricsAddress, "metrics-bind-address", "",
		"Address, as [HOST]:PORT, at which /metrics answers over HTTPS whoever the API server allows to get it. Left out: none.")
	flags.StringVar(&o.certFile, "tls-cert-file", "",
		"File with the certificate, and those of its issuers, for the metrics' address. It is read again when it changes. Left out: one signed by itself, made at each start.")
	flags.StringVar(&o.keyFile, "tls-private-key-file", "",
		"File with the private key of -tls-cert-file.")
	flags.BoolVar(&o.profiling, "profiling", false,
		"Serve /debug/pprof/ at the metrics' address, to whoever the API server allows to get it.")
}

// problems lists what can't be meant.
func (o *Serving) problems() []string {
	var problems []string
	refuse := func(format string, args ...any) {
		problems = append(problems, fmt.Sprintf(format, args...))
	}
	checkAddress := func(name, address string) {
		if _, _, err := net.SplitHostPort(address); address != "" && err != nil {
			refuse("-%s=%q: must be [HOST]:PORT: %v", name, address, err)
		}
	}
	checkAddress("health-probe-bind-address", o.healthAddress)
	checkAddress("metrics-bind-address", o.metricsAddress)
	if (o.certFile == "") != (o.keyFile == "") {
		refuse("-tls-cert-file and -tls-private-key-file go together: give both or neither")
	}
	if o.metricsAddress == "" && o.certFile != "" {
		refuse("-tls-cert-file=%s: without -metrics-bind-address nothing uses it", o.certFile)
	}
	if o.metricsAddress == "" && o.profiling {
		refuse("-profiling: needs -metrics-bind-address, where the profiles are served")
	}
	return problems
}

// Start serves what the flags ask for, and returns a function that ends that. It
// goes on after the end of ctx, while syncs finish. It returns an error if it can't
// listen at an address or can't use a certificate.
func (o *Serving) Start(ctx context.Context, health, metrics http.Handler, reviews kubernetes.Interface) (stop func(), err error) {
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

func (o *Serving) startHealth(ctx context.Context, wg *sync.WaitGroup, health http.Handler) error {
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

func (o *Serving) startMetrics(ctx context.Context, wg *sync.WaitGroup, metrics http.Handler, reviews kubernetes.Interface) error {
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

// certificate returns that of the metrics' address.
func (o *Serving) certificate() (*serving.Certificate, error) {
	if o.certFile == "" {
		return serving.SelfSigned()
	}
	return serving.FromFiles(o.certFile, o.keyFile)
}

// serve answers until ctx is done. If it fails, the process goes on: without health
// the kubelet restarts it, and an alert reports missing metrics.
func serve(ctx context.Context, what string, server *serving.Server) {
	logger := klog.FromContext(ctx)
	logger.Info("Serving "+what, "address", server.Address())
	if err := server.Serve(ctx); err != nil {
		logger.Error(err, "No longer serving "+what)
	}
}
