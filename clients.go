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
	"errors"
	"fmt"
	"net"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"example.com/sample-controller/internal/options"
	"example.com/sample-controller/internal/retryafter"
	"example.com/sample-controller/internal/rewatch"
	clientset "example.com/sample-controller/pkg/generated/clientset/versioned"
)

// clients are what the controller talks to the API server with. Filling the
// caches, reconciling, events, the election and the metrics have connections and
// limits of their own, so that none has to wait for another: not an event's
// retries, and above all not the Lease for the rest.
type clients struct {
	kubeInformers *kubernetes.Clientset
	fooInformers  *clientset.Clientset
	// kube and foos are for reconciling.
	kube     *kubernetes.Clientset
	foos     *clientset.Clientset
	events   *kubernetes.Clientset
	election *kubernetes.Clientset
	// reviews asks who may get the metrics.
	reviews *kubernetes.Clientset
}

// newClients makes clients from the configuration of one.
func newClients(config *rest.Config, opts *options.Options) (*clients, error) {
	var c clients
	var errs [7]error
	c.kubeInformers, errs[0] = kubernetes.NewForConfig(forInformers(withProtobuf(config)))
	c.fooInformers, errs[1] = clientset.NewForConfig(forInformers(config))
	c.kube, errs[2] = kubernetes.NewForConfig(forCalls(withProtobuf(config), opts.Workers))
	c.foos, errs[3] = clientset.NewForConfig(forCalls(config, opts.Workers))
	c.events, errs[4] = kubernetes.NewForConfig(forCalls(apart(config, "events", opts.RequestTimeout), 1))
	// It watches, too, so that its calls have no common timeout.
	c.election, errs[5] = kubernetes.NewForConfig(apart(config, "leader-election", 0))
	c.reviews, errs[6] = kubernetes.NewForConfig(apart(config, "metrics", opts.RequestTimeout))
	if err := errors.Join(errs[:]...); err != nil {
		return nil, fmt.Errorf("making clients for %s: %w", config.Host, err)
	}
	return &c, nil
}

// withProtobuf has built-in types travel as protobuf, at half the bytes and CPU
// of JSON; a custom resource has only JSON.
func withProtobuf(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.ContentType = runtime.ContentTypeProtobuf
	config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	return config
}

// forInformers has watches survive it if etcd is restored from a backup. Lists
// travel uncompressed, as kube-controller-manager's: packing and unpacking takes
// both sides longer than the network of a cluster does.
func forInformers(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.Wrap(rewatch.Guard)
	config.DisableCompression = true
	return config
}

// keptConnections is how many idle connections to an API server client-go keeps
// (idleConnsPerHost in its package transport).
const keptConnections = 25

// forCalls has a few workers use HTTP/1.1, each with a connection of its own: a
// call is then one write to it and one read, while HTTP/2 sends headers and body
// apart and has a goroutine between. That is 14 % of the controller's CPU. Only
// watches need HTTP/2: it notices by pings that a connection is dead, where a call
// has its deadline. More workers than connections that are kept would go on making
// new ones, so that they share one, as is client-go's default.
//
// If the API server asks for patience, the call fails and the key waits, not the
// worker.
func forCalls(config *rest.Config, workers int) *rest.Config {
	config = rest.CopyConfig(config)
	config.Wrap(retryafter.HandOver)
	if workers <= keptConnections {
		config.NextProtos = []string{"http/1.1"}
	}
	return config
}

// apart returns a configuration for a client with a connection of its own,
// whose calls end by a timeout if that is not 0. The user agent says what it is for.
func apart(config *rest.Config, purpose string, timeout time.Duration) *rest.Config {
	config = rest.AddUserAgent(withProtobuf(config), purpose)
	config.Timeout = timeout
	// client-go shares a connection among all configurations that are alike;
	// a dialer makes this one unlike the others.
	config.Dial = (&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}).DialContext
	return config
}
