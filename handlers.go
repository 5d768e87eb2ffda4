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
	// byDeploymentName indexes Foos by the Deployment that they ask for, as the
	// bucket of "namespace/name".
	byDeploymentName = "deploymentName"
	// byControllerUID indexes Deployments by the bucket of the UID of the Foo that
	// controls them. It finds the one that a Foo had under an earlier name.
	byControllerUID = "controllerUID"
)

// addIndexes makes the caches findable by more than names. It has to be done
// before the informers start.
func addIndexes(deployments appsinformers.DeploymentIndexInformer, foos fooinformers.FooIndexInformer, b plan.Buckets) error {
	return errors.Join(
		foos.AddTypedIndexers(fooinformers.FooIndexers{byDeploymentName: b.ByDeploymentName}),
		deployments.AddTypedIndexers(appsinformers.DeploymentIndexers{byControllerUID: b.ByControllerUID}))
}

// watch registers the event handlers, which are then given all that the caches
// hold. Handlers map an object to the keys of the Foos that it concerns and do
// nothing else. What it returns is done when they have been given every object
// of the first list, which is later than the caches being full.
func (c *Controller) addEventHandlers(ctx context.Context) ([]cache.DoneChecker, error) {
	logger := klog.FromContext(ctx)
	options := cache.HandlerOptions{Logger: &logger}
	fooHandlers, err := c.fooInformer.AddTypedEventHandler(fooinformers.FooDetailedHandlerFuncs{
		AddFunc:    c.enqueueAddedFoo,
		UpdateFunc: c.enqueueUpdatedFoo,
		DeleteFunc: c.enqueueDeletedFoo,
	}, options)
	if err != nil {
		return nil, err
	}
	deploymentHandlers, err := c.deploymentInformer.AddTypedEventHandler(appsinformers.DeploymentDetailedHandlerFuncs{
		AddFunc:    c.enqueueConcernedByAdd,
		UpdateFunc: c.enqueueConcernedByUpdate,
		DeleteFunc: c.enqueueConcernedByDelete,
	}, options)
	if err != nil {
		return nil, err
	}
	return []cache.DoneChecker{fooHandlers.HasSyncedChecker(), deploymentHandlers.HasSyncedChecker()}, nil
}

func (c *Controller) enqueueAddedFoo(foo *samplev1alpha1.Foo, isInInitialList bool) {
	if isInInitialList {
		c.queue.AddLowPriority(cache.MetaObjectToName(foo))
		return
	}
	c.queue.Add(cache.MetaObjectToName(foo))
}

// enqueueUpdatedFoo takes changes and the periodic resync. A Foo whose last
// sync failed keeps to its back-off, unless what it asks for has changed.
func (c *Controller) enqueueUpdatedFoo(before, after *samplev1alpha1.Foo) {
	if before.UID != after.UID {
		// Deleted and made again, seen as one change: writes and failures were the first one's.
		c.consistency.Clear(cache.MetaObjectToName(before), before.UID)
		c.backoff.Forget(cache.MetaObjectToName(before))
	}
	if plan.AsksTheSame(before, after) && c.backoff.InBackoff(cache.MetaObjectToName(after)) {
		return
	}
	if before.ResourceVersion == after.ResourceVersion {
		c.queue.AddLowPriority(cache.MetaObjectToName(after))
		return
	}
	c.queue.Add(cache.MetaObjectToName(after))
}

// enqueueDeletedFoo has a Foo that is gone synced once more: it ends its row of
// failures, and what is remembered of it is dropped.
func (c *Controller) enqueueDeletedFoo(deleted fooinformers.DeletedFoo) {
	if deleted.OptionalObj != nil {
		c.consistency.Clear(deleted.GetObjectName(), deleted.OptionalObj.UID)
	}
	// Another of the name may be there before the key is synced.
	c.backoff.Forget(deleted.GetObjectName())
	c.queue.Add(deleted.GetObjectName())
}

// enqueueConcernedByAdd takes no Deployment of the first list: all Foos are in
// the first list of theirs.
func (c *Controller) enqueueConcernedByAdd(deployment *appsv1.Deployment, isInInitialList bool) {
	if !isInInitialList {
		c.enqueueConcerned(deployment)
	}
}

func (c *Controller) enqueueConcernedByUpdate(before, after *appsv1.Deployment) {
	if before.ResourceVersion == after.ResourceVersion {
		// A relist: nothing has happened.
		return
	}
	// The Foo that has lost the Deployment wants to know, too.
	c.enqueueConcerned(before, after)
}

func (c *Controller) enqueueConcernedByDelete(deleted appsinformers.DeletedDeployment) {
	if deleted.OptionalObj != nil {
		c.enqueueConcerned(deleted.OptionalObj)
		return
	}
	for _, key := range c.foosAskingFor(deleted.GetObjectName()) {
		c.queue.Add(key)
	}
}

// enqueueConcerned queues the Foos that control a Deployment, in any of its
// states, and those that ask for its name: they may be waiting for it to become
// free. Each is queued once: a worker may take a key between two additions, and
// would then sync it twice.
func (c *Controller) enqueueConcerned(states ...*appsv1.Deployment) {
	concerned := sets.New[cache.ObjectName]()
	for _, deployment := range states {
		if ref := plan.ControllingFoo(deployment); ref != nil {
			concerned.Insert(cache.ObjectName{Namespace: deployment.Namespace, Name: ref.Name})
		}
		concerned.Insert(c.foosAskingFor(cache.MetaObjectToName(deployment))...)
	}
	for key := range concerned {
		c.queue.Add(key)
	}
}

// waitingFor returns the keys of the Foos that ask for a Deployment of this name.
func (c *Controller) foosAskingFor(deployment cache.ObjectName) []cache.ObjectName {
	foos, err := c.fooIndexer.ByTypedIndex(byDeploymentName, c.buckets.Of(deployment.String()))
	if err != nil {
		// The index is there from the start; nothing at run time can remove it.
		panic(err)
	}
	var keys []cache.ObjectName
	for _, foo := range foos {
		if foo.Spec.DeploymentName == deployment.Name && foo.Namespace == deployment.Namespace {
			keys = append(keys, cache.MetaObjectToName(foo))
		}
	}
	return keys
}
