// SPDX-License-Identifier: Apache-2.0

// The flags that say where the API server is, and the client configuration made from
// them.

package options

import (
	"errors"
	"flag"
	"fmt"
	"net/url"
	"os"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
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
		"Path of the kubeconfig file. If not set: $KUBECONFIG, then the service account of the Pod that this runs in, then ~/.kube/config.")
	flags.StringVar(&o.master, "master", "",
		"Address of the API server. Overrides the one in the kubeconfig.")
	flags.Float64Var(&o.qps, "kube-api-qps", -1,
		"Maximum rate of requests to the API server, per second. -1 turns this limit off and leaves limiting to the API server's Priority and Fairness.")
	flags.IntVar(&o.burst, "kube-api-burst", 100,
		"Maximum burst of requests above -kube-api-qps. Ignored if that is -1.")
}

// problems describes each flag with an invalid value.
func (o *Cluster) problems() []string {
	var problems []string
	if o.qps != -1 && o.qps <= 0 {
		problems = append(problems, fmt.Sprintf("-kube-api-qps=%v: must be -1 (no limit) or more than 0", o.qps))
	}
	if o.burst < 1 {
		problems = append(problems, fmt.Sprintf("-kube-api-burst=%d: must be 1 or more", o.burst))
	}
	if _, err := url.Parse(o.master); err != nil {
		problems = append(problems, fmt.Sprintf("-master: %v", err))
	}
	return problems
}

// RESTConfig makes the client configuration from -kubeconfig, or if that is not set from
// $KUBECONFIG, the Pod's service account or ~/.kube/config, in this order. It sets the
// client-side limits; -1 turns them off. It also returns the namespace of the service
// account or of the kubeconfig's context.
func (o *Cluster) RESTConfig() (config *rest.Config, namespace string, err error) {
	source, name, err := o.source()
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

// source returns the source of the configuration, and its name for error messages.
func (o *Cluster) source() (source clientcmd.ClientConfig, name string, err error) {
	overrides := &clientcmd.ConfigOverrides{ClusterInfo: clientcmdapi.Cluster{Server: o.master}}
	if o.kubeconfig == "" && o.master == "" && os.Getenv(clientcmd.RecommendedConfigPathEnvVar) == "" {
		if _, err := rest.InClusterConfig(); !errors.Is(err, rest.ErrNotInCluster) {
			// With no files to load, it falls back to the service account.
			source = clientcmd.NewNonInteractiveDeferredLoadingClientConfig(&clientcmd.ClientConfigLoadingRules{}, overrides)
			return source, "the Pod's service account", err
		}
	}
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = o.kubeconfig
	if name = "-kubeconfig=" + o.kubeconfig; o.kubeconfig == "" {
		name = strings.Join(rules.GetLoadingPrecedence(), ", ")
	}
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, overrides), name, nil
}
