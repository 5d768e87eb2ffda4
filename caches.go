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
	"sync/atomic"

	kubeinformers "k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"example.com/sample-controller/internal/kubeclient"
	"example.com/sample-controller/internal/options"
	fooinformers "example.com/sample-controller/pkg/generated/informers/externalversions"
)

// caches are the two informer factories: one for Kubernetes' own types, one for
// Foos.
type caches struct {
	kube kubeinformers.SharedInformerFactory
	foos fooinformers.SharedInformerFactory
	full atomic.Bool
}

func newCaches(clients *kubeclient.Clients, opts *options.Options) (*caches, error) {
	// Informers without a name have no metrics.
	name, err := cache.NewInformerName(controllerName)
	if err != nil {
		return nil, err
	}
	trimmer := newTrimmer(opts.Image)
	return &caches{
		kube: kubeinformers.NewSharedInformerFactoryWithOptions(clients.KubeInformers, opts.Resync,
			kubeinformers.WithInformerName(name), kubeinformers.WithNamespace(opts.Namespace), kubeinformers.WithTransform(trimmer.trim)),
		foos: fooinformers.NewSharedInformerFactoryWithOptions(clients.FooInformers, opts.Resync,
			fooinformers.WithInformerName(name), fooinformers.WithNamespace(opts.Namespace), fooinformers.WithTransform(trimmer.trim)),
	}, nil
}

// fill starts the informers that were asked for, and returns when they hold
// what the API server has, or ctx is done.
func (c *caches) fill(ctx context.Context) {
	c.kube.StartWithContext(ctx)
	c.foos.StartWithContext(ctx)
	c.kube.WaitForCacheSyncWithContext(ctx)
	c.foos.WaitForCacheSyncWithContext(ctx)
	if ctx.Err() == nil {
		c.full.Store(true)
	}
}

// filled tells whether the informers hold what the API server has.
func (c *caches) filled() bool {
	return c.full.Load()
}

// stop returns when the informers have ended, after the context of fill.
func (c *caches) stop() {
	c.kube.Shutdown()
	c.foos.Shutdown()
}
