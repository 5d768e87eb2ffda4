// SPDX-License-Identifier: Apache-2.0

// The flags for the API server's address, the HTTP servers and leader election, and the
// configurations that follow from them.

package options

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/klog/v2"

	"example.com/sample-controller/pkg/process/election"
	"example.com/sample-controller/pkg/process/serving"
)

// Cluster holds the flags that locate the API server and limit the requests to it.
type Cluster struct {
	kubeconfig string
	master     string
	qps        float64
	burst      int
}

func (o *Cluster) addFlags(flags *flag.FlagSet) {
	flags.StringVar(&o.kubeconfig, "kubeconfig", "",
		"Path to the kubeconfig file. If not set: $KUBECONFIG, then the service account of the Pod that this runs in, then ~/.kube/config.")
	flags.StringVar(&o.master, "master", "",
		"Address of the API server. Overrides the one in the kubeconfig.")
	flags.Float64Var(&o.qps, "kube-api-qps", -1,
		"Maximum rate of requests to the API server, per second, except for watches and the Lease. -1 turns this limit off and leaves limiting to the API server's Priority and Fairness.")
	flags.IntVar(&o.burst, "kube-api-burst", 100,
		"Maximum burst of requests above -kube-api-qps. Ignored if that is -1.")
}

// check rejects invalid values.
func (o *Cluster) check(p *problems) {
	p.refuse(o.qps != -1 && o.qps <= 0, "-kube-api-qps=%v: must be -1 (no limit) or more than 0", o.qps)
	p.refuse(o.burst < 1, "-kube-api-burst=%d: must be 1 or more", o.burst)
	_, err := url.Parse(o.master)
	p.refuse(err != nil, "-master: %v", err)
}

// RESTConfig returns the client configuration from -kubeconfig or, if that is not set, from
// $KUBECONFIG, the Pod's service account or ~/.kube/config, in this order. It sets the
// client-side limits; -1 turns them off. It also returns the namespace of the service
// account or of the kubeconfig's context.
func (o *Cluster) RESTConfig() (config *rest.Config, namespace string, err error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = o.kubeconfig
	name := "-kubeconfig=" + o.kubeconfig
	if o.kubeconfig == "" {
		name = strings.Join(rules.GetLoadingPrecedence(), ", ")
	}
	if o.kubeconfig == "" && o.master == "" && os.Getenv(clientcmd.RecommendedConfigPathEnvVar) == "" {
		if _, err = rest.InClusterConfig(); !errors.Is(err, rest.ErrNotInCluster) {
			// With no files to load, clientcmd falls back to the service account.
			rules, name = &clientcmd.ClientConfigLoadingRules{}, "the Pod's service account"
		} else {
			err = nil
		}
	}
	source := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules,
		&clientcmd.ConfigOverrides{ClusterInfo: clientcmdapi.Cluster{Server: o.master}})
	if err == nil {
		config, err = source.ClientConfig()
	}
	if err == nil {
		namespace, _, err = source.Namespace()
	}
	switch {
	case clientcmd.IsEmptyConfig(err):
		return nil, "", fmt.Errorf("no cluster is configured in %s: pass -kubeconfig=PATH or set KUBECONFIG", name)
	case err != nil:
		return nil, "", fmt.Errorf("reading %s: %w", name, err)
	}
	config.QPS = float32(o.qps)
	config.Burst = o.burst
	config.UserAgent = rest.DefaultKubernetesUserAgent()
	return config, namespace, nil
}

// Election holds the flags of leader election, with the names and defaults of
// Kubernetes' own components.
type Election struct {
	// Enabled is true if the controller works only while it holds the Lease.
	Enabled bool

	leaseDuration     time.Duration
	renewDeadline     time.Duration
	retryPeriod       time.Duration
	resourceName      string
	resourceNamespace string
}

func (o *Election) addFlags(flags *flag.FlagSet, program string) {
	flags.BoolVar(&o.Enabled, "leader-elect", false,
		"Reconcile only while holding the Lease, so that only one of several replicas works at a time.")
	flags.DurationVar(&o.leaseDuration, "leader-elect-lease-duration", 15*time.Second,
		"Time after which a standby takes the Lease from a leader that has stopped renewing it. Must be the same for all replicas.")
	flags.DurationVar(&o.renewDeadline, "leader-elect-renew-deadline", 10*time.Second,
		"Time for which the leader retries to renew the Lease before it gives up and exits. Must be less than the lease duration.")
	flags.DurationVar(&o.retryPeriod, "leader-elect-retry-period", 2*time.Second,
		"Time between attempts to acquire or renew the Lease.")
	flags.StringVar(&o.resourceName, "leader-elect-resource-name", program,
		"Name of the Lease.")
	flags.StringVar(&o.resourceNamespace, "leader-elect-resource-namespace", "",
		"Namespace of the Lease. If not set: the namespace of the Pod that this runs in, else the namespace of the kubeconfig's context.")
}

// check rejects invalid values, unless leader election is off.
func (o *Election) check(p *problems) {
	if !o.Enabled {
		return
	}
	least := time.Duration(leaderelection.JitterFactor * float64(o.retryPeriod))
	p.refuse(o.leaseDuration < time.Second || o.leaseDuration%time.Second != 0,
		"-leader-elect-lease-duration=%v: must be whole seconds, 1s or more, because a Lease counts in seconds", o.leaseDuration)
	p.refuse(o.leaseDuration <= o.renewDeadline,
		"-leader-elect-renew-deadline=%v: must be less than the lease duration of %v", o.renewDeadline, o.leaseDuration)
	p.refuse(o.retryPeriod <= 0, "-leader-elect-retry-period=%v: must be more than 0", o.retryPeriod)
	p.refuse(o.renewDeadline <= least,
		"-leader-elect-renew-deadline=%v: must be more than %v, which is 1.2 times the retry period", o.renewDeadline, least)
	p.refuse(o.resourceName == "", "-leader-elect-resource-name=%q: must be the name of a Lease", o.resourceName)
	p.refuseName("leader-elect-resource-name", o.resourceName, validation.IsDNS1123Subdomain)
	p.refuseName("leader-elect-resource-namespace", o.resourceNamespace, validation.IsDNS1123Label)
}

// ApplyTo sets in config the Lease's name, its namespace if the flag is set, the durations,
// and an identity for this replica.
func (o *Election) ApplyTo(config *election.Config) error {
	host, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("naming this replica for the election: %w", err)
	}
	config.Identity = host + "_" + string(uuid.NewUUID())
	config.Namespace = cmp.Or(o.resourceNamespace, config.Namespace)
	config.Name = o.resourceName
	config.LeaseDuration, config.RenewDeadline, config.RetryPeriod = o.leaseDuration, o.renewDeadline, o.retryPeriod
	return nil
}

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
		"File with the certificate for -metrics-bind-address, followed by its issuers' certificates. It is reloaded when it changes. If not set: a self-signed certificate, generated at each start.")
	flags.StringVar(&o.keyFile, "tls-private-key-file", "",
		"File with the private key of -tls-cert-file.")
	flags.BoolVar(&o.profiling, "profiling", false,
		"Serve /debug/pprof/ at -metrics-bind-address, to users whom the API server allows to get it.")
}

// check rejects invalid values.
func (o *Serving) check(p *problems) {
	p.refuseAddress("health-probe-bind-address", o.healthAddress)
	p.refuseAddress("metrics-bind-address", o.metricsAddress)
	p.refuse((o.certFile == "") != (o.keyFile == ""), "-tls-cert-file and -tls-private-key-file must be set together")
	p.refuse(o.metricsAddress == "" && o.certFile != "", "-tls-cert-file=%s: has no effect without -metrics-bind-address", o.certFile)
	p.refuse(o.metricsAddress == "" && o.profiling, "-profiling: requires -metrics-bind-address, which serves the profiles")
}

func (p *problems) refuseAddress(flag, address string) {
	_, _, err := net.SplitHostPort(address)
	p.refuse(address != "" && err != nil, "-%s=%q: must be [HOST]:PORT: %v", flag, address, err)
}

// Start starts the servers that the flags enable, and returns a function that stops them.
// They outlive ctx, so that they still respond while syncs finish. Start returns an error if
// it can't listen at an address or can't use a certificate.
func (o *Serving) Start(ctx context.Context, health, metrics http.Handler, reviews kubernetes.Interface) (stop func(), err error) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var wg sync.WaitGroup
	stop = func() {
		cancel()
		wg.Wait()
	}
	start := func(what, flag, address string, handler http.Handler, secure *tls.Config) error {
		server, err := serving.Listen(address, handler, secure)
		if err != nil {
			return fmt.Errorf("-%s=%s: %w", flag, address, err)
		}
		wg.Go(func() { serve(ctx, what, server) })
		return nil
	}
	if o.healthAddress != "" {
		err = start("health", "health-probe-bind-address", o.healthAddress, health, nil)
	}
	if err == nil && o.metricsAddress != "" {
		var secure *tls.Config
		if secure, err = o.certificate(); err == nil {
			handler := serving.MetricsHandler(serving.NewGate(reviews), metrics, o.profiling)
			err = start("metrics", "metrics-bind-address", o.metricsAddress, handler, secure)
		}
	}
	if err != nil {
		stop()
	}
	return stop, err
}

// certificate returns the TLS configuration of the metrics server.
func (o *Serving) certificate() (*tls.Config, error) {
	if o.certFile == "" {
		return serving.SelfSigned()
	}
	return serving.FromFiles(o.certFile, o.keyFile)
}

// serve runs a server until ctx is done. If the server fails, the process continues: the
// kubelet restarts a process that does not serve health, and an alert reports missing
// metrics.
func serve(ctx context.Context, what string, server *serving.Server) {
	logger := klog.FromContext(ctx)
	logger.Info("Serving "+what, "address", server.Address())
	if err := server.Serve(ctx); err != nil {
		logger.Error(err, "Stopped serving "+what)
	}
}
