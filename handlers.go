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

// From events to keys: the indexes of the caches, and the event handlers, which add the
// keys of the Foos that an event concerns to the queue.

package main

import (
	"context"
	"errors"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	appsinformers "k8s.io/client-go/informers/apps/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"example.com/sample-controller/internal/plan"
	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	fooinformers "example.com/sample-controller/pkg/generated/informers/externalversions/samplecontroller/v1alpha1"
)

const (
	// byDeploymentName indexes Foos by the Deployment that they ask for, as the bucket
	// of "namespace/name".
	byDeploymentName = "deploymentName"
	// byControllerUID indexes Deployments by the bucket of the UID of the Foo that
	// controls them. It finds the Deployment that a Foo had under an earlier name.
	byControllerUID = "controllerUID"
)

// addIndexes adds the indexes to the caches. The informers must not run yet.
func addIndexes(deployments appsinformers.DeploymentIndexInformer, foos fooinformers.FooIndexInformer, b plan.Buckets) error {
	return errors.Join(
		foos.AddTypedIndexers(fooinformers.FooIndexers{byDeploymentName: b.ByDeploymentName}),
		deployments.AddTypedIndexers(appsinformers.DeploymentIndexers{byControllerUID: b.ByControllerUID}))
}

// addEventHandlers registers the event handlers, which then get every object of the
// caches. Wait for what it returns before you start workers: it is done when the handlers
// have had every object of the first list, which is later than the caches being full.
func (c *Controller) addEventHandlers(ctx context.Context) ([]cache.DoneChecker, error) {
	logger := klog.FromContext(ctx)
	options := cache.HandlerOptions{Logger: &logger}
	fooHandlers, err := c.fooInformer.AddTypedEventHandler(fooinformers.FooDetailedHandlerFuncs{
		AddFunc:    c.addFoo,
		UpdateFunc: c.updateFoo,
		DeleteFunc: c.deleteFoo,
	}, options)
	if err != nil {
		return nil, err
	}
	deploymentHandlers, err := c.deploymentInformer.AddTypedEventHandler(appsinformers.DeploymentDetailedHandlerFuncs{
		AddFunc:    c.addDeployment,
		UpdateFunc: c.updateDeployment,
		DeleteFunc: c.deleteDeployment,
	}, options)
	if err != nil {
		return nil, err
	}
	return []cache.DoneChecker{fooHandlers.HasSyncedChecker(), deploymentHandlers.HasSyncedChecker()}, nil
}

func (c *Controller) addFoo(foo *samplev1alpha1.Foo, isInInitialList bool) {
	if isInInitialList {
		c.queue.AddLowPriority(cache.MetaObjectToName(foo))
		return
	}
	c.queue.Add(cache.MetaObjectToName(foo))
}

// updateFoo handles changes and the periodic resync. A Foo whose last sync failed stays
// in its back-off unless what it asks for has changed.
func (c *Controller) updateFoo(before, after *samplev1alpha1.Foo) {
	key := cache.MetaObjectToName(after)
	if before.UID != after.UID {
		// Deleted and created again, seen as one change: forget the first one's writes
		// and failures.
		c.consistency.Clear(key, before.UID)
		c.backoff.Forget(key)
	}
	switch {
	case plan.AsksTheSame(before, after) && c.backoff.InBackoff(key):
	case before.ResourceVersion == after.ResourceVersion: // a resync
		c.queue.AddLowPriority(key)
	default:
		c.queue.Add(key)
	}
}

// deleteFoo queues a Foo that is gone once more, so that a sync forgets it.
func (c *Controller) deleteFoo(deleted fooinformers.DeletedFoo) {
	key := deleted.GetObjectName()
	if deleted.OptionalObj != nil {
		c.consistency.Clear(key, deleted.OptionalObj.UID)
	}
	// Now, not in the sync: by then there may be another Foo of the name.
	c.backoff.Forget(key)
	c.queue.Add(key)
}

// addDeployment ignores the Deployments of the first list, because every Foo is in the
// first list of Foos.
func (c *Controller) addDeployment(deployment *appsv1.Deployment, isInInitialList bool) {
	if !isInInitialList {
		c.enqueueFoosOf(deployment)
	}
}

func (c *Controller) updateDeployment(before, after *appsv1.Deployment) {
	if before.ResourceVersion == after.ResourceVersion {
		return // a resync: nothing has changed
	}
	// Both states, because a Foo may have lost the Deployment.
	c.enqueueFoosOf(before, after)
}

func (c *Controller) deleteDeployment(deleted appsinformers.DeletedDeployment) {
	if deleted.OptionalObj != nil {
		c.enqueueFoosOf(deleted.OptionalObj)
		return
	}
	for _, key := range c.foosAskingFor(deleted.GetObjectName()) {
		c.queue.Add(key)
	}
}

// enqueueFoosOf adds the Foos that control a Deployment in any of its states, and those
// that ask for its name, which may be waiting for it to become free. It adds each once:
// a worker could take a key between two additions and sync it twice.
func (c *Controller) enqueueFoosOf(states ...*appsv1.Deployment) {
	keys := sets.New[cache.ObjectName]()
	for _, deployment := range states {
		if ref := plan.ControllingFoo(deployment); ref != nil {
			keys.Insert(cache.ObjectName{Namespace: deployment.Namespace, Name: ref.Name})
		}
		keys.Insert(c.foosAskingFor(cache.MetaObjectToName(deployment))...)
	}
	for key := range keys {
		c.queue.Add(key)
	}
}

// foosAskingFor returns the keys of the Foos that ask for a Deployment of this name.
func (c *Controller) foosAskingFor(deployment cache.ObjectName) []cache.ObjectName {
	foos, err := c.fooIndexer.ByTypedIndex(byDeploymentName, c.buckets.Of(deployment.String()))
	if err != nil {
		panic(err) // the index is missing, which is a bug: nothing removes it at run time
	}
	var keys []cache.ObjectName
	for _, foo := range foos {
		if foo.Spec.DeploymentName == deployment.Name && foo.Namespace == deployment.Namespace {
			keys = append(keys, cache.MetaObjectToName(foo))
		}
	}
	return keys
}
