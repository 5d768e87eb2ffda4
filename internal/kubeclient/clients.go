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

// Package kubeclient makes the clients that the controller talks to the API server
// with, one for each purpose, and waits until the API server has what it needs:
// the CustomResourceDefinition and the permission to list Foos.
//
// Two transports do what client-go leaves to its callers: rewatch.go notices that etcd
// was restored from a backup, and retryafter.go hands a Retry-After to the work queue.
package kubeclient

import (
	"errors"
	"fmt"
	"net"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	clientset "example.com/sample-controller/pkg/generated/clientset/versioned"
)

// Clients holds a client for each purpose. Filling the caches, reconciling, events,
// the election and the metrics have connections and limits of their own, so that
// none has to wait for another: not for an event's retries, and above all not the
// Lease for the rest.
type Clients struct {
	// KubeInformers and FooInformers fill the caches.
	KubeInformers kubernetes.Interface
	FooInformers  clientset.Interface
	// Kube and Foos reconcile.
	Kube kubernetes.Interface
	Foos clientset.Interface
	// Events writes Events.
	Events kubernetes.Interface
	// Election gets, renews and watches the Lease.
	Election kubernetes.Interface
	// Reviews asks who may get the metrics.
	Reviews kubernetes.Interface

	host           string
	requestTimeout time.Duration
}

// New makes Clients from one configuration, for this many workers. A call that is
// not for reconciling, whose callers bound theirs, ends by requestTimeout.
func New(config *rest.Config, workers int, requestTimeout time.Duration) (*Clients, error) {
	c := Clients{host: config.Host, requestTimeout: requestTimeout}
	var errs [7]error
	c.KubeInformers, errs[0] = kubernetes.NewForConfig(forInformers(withProtobuf(config)))
	c.FooInformers, errs[1] = clientset.NewForConfig(forInformers(config))
	c.Kube, errs[2] = kubernetes.NewForConfig(forCalls(withProtobuf(config), workers))
	c.Foos, errs[3] = clientset.NewForConfig(forCalls(config, workers))
	c.Events, errs[4] = kubernetes.NewForConfig(forCalls(apart(config, "events", requestTimeout), 1))
	// It watches, too, so that its calls have no common timeout.
	c.Election, errs[5] = kubernetes.NewForConfig(apart(config, "leader-election", 0))
	c.Reviews, errs[6] = kubernetes.NewForConfig(apart(config, "metrics", requestTimeout))
	if err := errors.Join(errs[:]...); err != nil {
		return nil, fmt.Errorf("making clients for %s: %w", config.Host, err)
	}
	return &c, nil
}

// withProtobuf makes built-in types travel as protobuf, at half the bytes and CPU of
// JSON; a custom resource has only JSON.
func withProtobuf(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.ContentType = runtime.ContentTypeProtobuf
	config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	return config
}

// forInformers makes watches survive a restore of etcd from a backup. Lists travel
// uncompressed, as kube-controller-manager's: compression takes both sides longer
// than the network of a cluster does.
func forInformers(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.Wrap(guardWatches)
	config.DisableCompression = true
	return config
}

// keptConnections is how many idle connections to an API server client-go keeps
// (idleConnsPerHost in its package transport).
const keptConnections = 25

// forCalls makes a few workers use HTTP/1.1, each with a connection of its own: a
// call is then one write and one read, while HTTP/2 sends headers and body apart and
// has a goroutine between. That is 14 % of the controller's CPU. Only watches need
// HTTP/2: its pings notice a dead connection, where a call has its deadline. More
// workers than client-go keeps connections would go on making new ones, so they
// share one, which is client-go's default.
//
// If the API server asks for patience, the call fails and the key waits, not the
// worker.
func forCalls(config *rest.Config, workers int) *rest.Config {
	config = rest.CopyConfig(config)
	config.Wrap(handOverRetryAfter)
	if workers <= keptConnections {
		config.NextProtos = []string{"http/1.1"}
	}
	return config
}

// apart returns a configuration for a client with a connection of its own, whose
// calls end by a timeout if that is not 0. The user agent names its purpose.
func apart(config *rest.Config, purpose string, timeout time.Duration) *rest.Config {
	config = rest.AddUserAgent(withProtobuf(config), purpose)
	config.Timeout = timeout
	// client-go shares a connection among all configurations that are alike;
	// a dialer makes this one unlike the others.
	config.Dial = (&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}).DialContext
	return config
}
