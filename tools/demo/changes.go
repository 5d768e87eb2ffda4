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

// The changes that watches report.

package main

import (
	"context"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubeinformers "k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	clientset "example.com/sample-controller/pkg/generated/clientset/versioned"
	fooinformers "example.com/sample-controller/pkg/generated/informers/externalversions"
)

// change is one step in the life of an object, as a watch reports it.
type change struct {
	kind     string
	resource string
	// before is nil where the object is new, after is nil where it is gone.
	before, after metav1.Object
	// revision counts the cluster's writes: of two changes, the one with the lower came first.
	revision uint64
	// seen is when the watch reported it.
	seen time.Time
}

// object is the newest state that is known.
func (c change) object() metav1.Object {
	if c.after != nil {
		return c.after
	}
	return c.before
}

// watches are those of the objects that lie between a Foo and its Pods.
type watches struct {
	kube kubeinformers.SharedInformerFactory
	foos fooinformers.SharedInformerFactory
}

func newWatches(config *rest.Config) (*watches, error) {
	kubeClient, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	fooClient, err := clientset.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return &watches{
		kube: kubeinformers.NewSharedInformerFactory(kubeClient, 0),
		foos: fooinformers.NewSharedInformerFactory(fooClient, 0),
	}, nil
}

// start sends every change from now on to changes, until ctx is done. The watches are established when what it
// returns is.
func (w *watches) start(ctx context.Context, changes chan<- change) ([]cache.DoneChecker, error) {
	var synced []cache.DoneChecker
	for _, watch := range []struct {
		kind, resource string
		informer       cache.SharedIndexInformer
	}{
		{"Foo", "foos", w.foos.Samplecontroller().V1alpha1().Foos().Informer()},
		{"Deployment", "deployments", w.kube.Apps().V1().Deployments().Informer()},
		{"ReplicaSet", "replicasets", w.kube.Apps().V1().ReplicaSets().Informer()},
		{"Pod", "pods", w.kube.Core().V1().Pods().Informer()},
	} {
		template := change{kind: watch.kind, resource: watch.resource}
		registration, err := watch.informer.AddEventHandler(handlers(ctx, template, changes))
		if err != nil {
			return nil, err
		}
		synced = append(synced, registration.HasSyncedChecker())
	}
	w.kube.StartWithContext(ctx)
	w.foos.StartWithContext(ctx)
	return synced, nil
}

// handlers send changes of one kind. What was there before the watch began is no change.
func handlers(ctx context.Context, template change, changes chan<- change) cache.ResourceEventHandler {
	send := func(before, after any) {
		c := template
		c.before, _ = before.(metav1.Object)
		c.after, _ = after.(metav1.Object)
		c.seen = time.Now()
		// The object of a deletion has the resourceVersion of the deletion.
		c.revision, _ = strconv.ParseUint(c.object().GetResourceVersion(), 10, 64)
		select {
		case changes <- c:
		case <-ctx.Done():
		}
	}
	return cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(object any, isInInitialList bool) {
			if !isInInitialList {
				send(nil, object)
			}
		},
		UpdateFunc: func(before, after any) { send(before, after) },
		DeleteFunc: func(object any) {
			if unknown, ok := object.(cache.DeletedFinalStateUnknown); ok {
				object = unknown.Obj
			}
			send(object, nil)
		},
	}
}
