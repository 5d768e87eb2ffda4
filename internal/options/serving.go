// SPDX-License-Identifier: Apache-2.0

// The flags of the servers for health and metrics, and their start.

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

// Serving holds the flags of the HTTP servers. A server runs only if its address is set.
type Serving struct {
	healthAddress  string
	metricsAddress string
	certFile       string
	keyFile        string
	profiling      bool
}

func (o *Serving) addFlags(flags *flag.FlagSet) {
	flags.StringVar(&o.healthAddress, "health-probe-bind-address", "",
		"Address, as [HOST]:PORT, that serves /healthz and /readyz over HTTP. If not set, they are not served.")
	flags.StringVar(&o.metricsAddress, "metrics-bind-address", "",
		"Address, as [HOST]:PORT, that serves /metrics over HTTPS to users whom the API server allows to get it. If not set, it is not served.")
	flags.StringVar(&o.certFile, "tls-cert-file", "",
		"File with the certificate for -metrics-bind-address, followed by those of its issuers. It is reloaded when it changes. If not set: a self-signed certificate, generated at each start.")
	flags.StringVar(&o.keyFile, "tls-private-key-file", "",
		"File with the private key of -tls-cert-file.")
	flags.BoolVar(&o.profiling, "profiling", false,
		"Serve /debug/pprof/ at -metrics-bind-address, to users whom the API server allows to get it.")
}

// problems describes each flag with an invalid value.
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
		refuse("-tls-cert-file and -tls-private-key-file must be set both or neither")
	}
	if o.metricsAddress == "" && o.certFile != "" {
		refuse("-tls-cert-file=%s: has no effect without -metrics-bind-address", o.certFile)
	}
	if o.metricsAddress == "" && o.profiling {
		refuse("-profiling: requires -metrics-bind-address, which serves the profiles")
	}
	return problems
}

// Start starts the servers that the flags ask for, and returns a function that stops
// them. They outlive ctx, so that they still answer while syncs finish. Start returns an
// error if it can't listen at an address or can't use a certificate.
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

// certificate returns the certificate of the metrics server.
func (o *Serving) certificate() (*serving.Certificate, error) {
	if o.certFile == "" {
		return serving.SelfSigned()
	}
	return serving.FromFiles(o.certFile, o.keyFile)
}

// serve runs a server until ctx is done. If the server fails, the process continues:
// without health the kubelet restarts the process, and an alert reports missing metrics.
func serve(ctx context.Context, what string, server *serving.Server) {
	logger := klog.FromContext(ctx)
	logger.Info("Serving "+what, "address", server.Address())
	if err := server.Serve(ctx); err != nil {
		logger.Error(err, "Stopped serving "+what)
	}
}
