// SPDX-License-Identifier: Apache-2.0

// From events to keys: the indexes of the caches, and the event handlers, which add the keys of
// the affected Foos to the queue.

package main

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/pkg/reconcile/plan"
)

// byControllerUID indexes children by the bucket of the UID of the Foo that controls them.
// It finds the children that a Foo had under an earlier name. Foos are indexed by the names
// of the children that they want, as the bucket of "namespace/name"; the index of each kind
// has the name of the kind's resource.
const byControllerUID = "controllerUID"

// prepareInformers adds indexes to the caches, and bounds what they keep of each object. The
// informers must not run yet.
func (c *Controller) prepareInformers() error {
	errs, resources := []error{c.informer.SetTransform(c.kind.Transform)}, sets.New[schema.GroupVersionResource]()
	for _, kind := range c.children {
		if resources.Has(kind.row.Resource) {
			// Each row would delete the other's children, which it does not want.
			errs = append(errs, fmt.Errorf("the table has two rows for %s", kind.row.Resource.Resource))
			continue
		}
		resources.Insert(kind.row.Resource)
		errs = append(errs, kind.prepareInformer())
	}
	return errors.Join(errs...)
}

func (k *childAPI) prepareInformer() error {
	if err := k.row.Check(); err != nil {
		return err
	}
	buckets := k.controller.buckets
	return errors.Join(
		k.informer.SetTransform(k.row.Transform),
		k.informer.AddTypedIndexers(cache.TypedIndexers[plan.Object]{
			byControllerUID: func(child plan.Object) ([]string, error) { return k.row.OwnerKind.ByControllerUID(buckets, child), nil },
		}),
		k.controller.informer.AddTypedIndexers(cache.TypedIndexers[plan.Owner]{
			k.row.Resource.String(): func(owner plan.Owner) ([]string, error) { return k.row.ByChildName(buckets, owner), nil },
		}))
}

// addEventHandlers registers the event handlers, which then receive every cached object.
// Wait for the returned checkers before starting workers: the handlers receive the initial
// objects after the caches are full.
func (c *Controller) addEventHandlers(ctx context.Context) ([]cache.DoneChecker, error) {
	logger := klog.FromContext(ctx)
	options := cache.HandlerOptions{Logger: &logger}
	handlers, err := c.informer.AddTypedEventHandler(cache.TypedResourceEventHandlerDetailedFuncs[plan.Owner]{
		AddFunc:    c.addOwner,
		UpdateFunc: c.updateOwner,
		DeleteFunc: c.deleteOwner,
	}, options)
	if err != nil {
		return nil, err
	}
	synced := []cache.DoneChecker{handlers.HasSyncedChecker()}
	for _, kind := range c.children {
		handlers, err := kind.addEventHandlers(options)
		if err != nil {
			return nil, err
		}
		synced = append(synced, handlers.HasSyncedChecker())
	}
	return synced, nil
}

func (k *childAPI) addEventHandlers(options cache.HandlerOptions) (cache.ResourceEventHandlerRegistration, error) {
	return k.informer.AddTypedEventHandler(cache.TypedResourceEventHandlerDetailedFuncs[plan.Object]{
		AddFunc:    k.added,
		UpdateFunc: k.updated,
		DeleteFunc: k.deleted,
	}, options)
}

func (c *Controller) addOwner(owner plan.Owner, isInInitialList bool) {
	key := cache.MetaObjectToName(owner)
	if isInInitialList {
		c.queue.AddLowPriority(key)
		return
	}
	c.queue.Add(key)
}

// updateOwner handles changes and the periodic resync. A Foo whose last sync failed stays
// in its back-off unless its desired state has changed.
func (c *Controller) updateOwner(before, after plan.Owner) {
	key := cache.MetaObjectToName(after)
	if before.GetUID() != after.GetUID() {
		// A deletion and a creation arrived as one update: forget the first Foo's failures.
		c.backoff.Forget(key)
	}
	switch {
	case plan.AsksTheSame(before, after) && c.backoff.InBackoff(key): // another sync is certain
	case before.GetResourceVersion() == after.GetResourceVersion(): // a resync
		c.queue.AddLowPriority(key)
	default:
		c.queue.Add(key)
	}
}

// deleteOwner queues a deleted Foo once more, so that a sync forgets it.
func (c *Controller) deleteOwner(deleted cache.DeletedObject[plan.Owner]) {
	key := deleted.GetObjectName()
	// Now, not in the sync: by then there may be another Foo with the same name.
	c.backoff.Forget(key)
	c.queue.Add(key)
}

// added ignores the children of the initial list, because every Foo is in the initial list
// of Foos.
func (k *childAPI) added(child plan.Object, isInInitialList bool) {
	if !isInInitialList {
		k.enqueueOwnersOf(child)
	}
}

func (k *childAPI) updated(before, after plan.Object) {
	if before.GetResourceVersion() == after.GetResourceVersion() {
		return // a resync: nothing changed
	}
	if plan.HasSameHolder(before, after) {
		k.enqueueHolder(after)
		return
	}
	// Both states, because a Foo may have lost the child.
	k.enqueueOwnersOf(before, after)
}

func (k *childAPI) deleted(child cache.DeletedObject[plan.Object]) {
	if child.OptionalObj != nil {
		k.enqueueOwnersOf(child.OptionalObj)
		return
	}
	for _, key := range k.ownersAskingFor(child.GetObjectName()) {
		k.controller.queue.Add(key)
	}
}

// enqueueOwnersOf adds the Foos that control a child in any of its states, and those that
// want its name and may be waiting for it. It adds each once: a worker could take a key
// between two additions and sync it twice.
func (k *childAPI) enqueueOwnersOf(states ...plan.Object) {
	keys := sets.New[cache.ObjectName]()
	for _, child := range states {
		if ref := k.row.OwnerKind.ControllerOf(child); ref != nil {
			keys.Insert(cache.ObjectName{Namespace: child.GetNamespace(), Name: ref.Name})
		}
		if owner := child.GetAnnotations()[samplev1alpha1.AnnotationAdoptBy]; owner != "" {
			keys.Insert(cache.ObjectName{Namespace: child.GetNamespace(), Name: owner})
		}
		keys.Insert(k.ownersAskingFor(cache.MetaObjectToName(child))...)
	}
	for key := range keys {
		k.controller.queue.Add(key)
	}
}

// enqueueHolder adds the Foo that controls a child, or may adopt it: its adoption may have been
// refused because of what has changed now.
func (k *childAPI) enqueueHolder(child plan.Object) {
	if ref := k.row.OwnerKind.ControllerOf(child); ref != nil {
		k.controller.queue.Add(cache.ObjectName{Namespace: child.GetNamespace(), Name: ref.Name})
	} else if adopter := child.GetAnnotations()[samplev1alpha1.AnnotationAdoptBy]; adopter != "" {
		k.controller.queue.Add(cache.ObjectName{Namespace: child.GetNamespace(), Name: adopter})
	}
}

// maxAsking is how many of the Foos that want the same name are queued at once when its object
// changes. Only one of them can have the name. The resync queues the others: any number of
// Foos may want a name, and each change would queue all of them.
const maxAsking = 16

// ownersAskingFor returns the keys of at most maxAsking Foos that want a child with this
// name.
func (k *childAPI) ownersAskingFor(child cache.ObjectName) []cache.ObjectName {
	var keys []cache.ObjectName
	for _, owner := range lookUp(k.controller.cache, k.row.Resource.String(), k.controller.buckets.Of(child.String())) {
		if len(keys) == maxAsking {
			break
		}
		if k.row.Name(owner) == child.Name && k.row.Wanted(owner) && owner.GetNamespace() == child.Namespace && !plan.IsTerminating(owner) {
			keys = append(keys, cache.MetaObjectToName(owner))
		}
	}
	return keys
}

// lookUp returns the objects in a bucket of an index.
func lookUp[T any](indexer cache.TypedIndexer[T], index, bucket string) []T {
	found, err := indexer.ByTypedIndex(index, bucket)
	if err != nil {
		panic(err) // the index is missing, which is a bug: nothing removes it at run time
	}
	return found
}
