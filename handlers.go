// SPDX-License-Identifier: Apache-2.0

// From events to keys: the event handlers add the keys of the affected owners to the queue.

package main

import (
	"context"
	"math"
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"example.com/sample-controller/pkg/reconcile/plan"
	"example.com/sample-controller/pkg/reconcile/table"
)

// addEventHandlers registers the event handlers, which then receive every cached object.
// Wait for the returned checkers before starting workers: the handlers receive the initial
// objects after the caches are full.
func (c *Controller) addEventHandlers(ctx context.Context) ([]cache.DoneChecker, error) {
	logger := klog.FromContext(ctx)
	options := cache.HandlerOptions{Logger: &logger}
	handlers, err := c.kind.Owners.Informer.AddTypedEventHandler(cache.TypedResourceEventHandlerDetailedFuncs[plan.Owner]{
		AddFunc:    c.addOwner,
		UpdateFunc: c.updateOwner,
		DeleteFunc: c.deleteOwner,
	}, options)
	if err != nil {
		return nil, err
	}
	synced := []cache.DoneChecker{handlers.HasSyncedChecker()}
	for _, row := range slices.Concat(c.kind.Rows, c.kind.References) {
		if row.Informer == nil {
			continue // a reference that is polled
		}
		of := childHandlers{c, row}
		handlers, err := row.Informer.AddTypedEventHandler(cache.TypedResourceEventHandlerDetailedFuncs[plan.Object]{
			AddFunc:    of.added,
			UpdateFunc: of.updated,
			DeleteFunc: of.deleted,
		}, options)
		if err != nil {
			return nil, err
		}
		synced = append(synced, handlers.HasSyncedChecker())
	}
	return synced, nil
}

func (c *Controller) addOwner(owner plan.Owner, isInInitialList bool) {
	key := cache.MetaObjectToName(owner)
	if isInInitialList {
		c.queue.AddLowPriority(key)
		return
	}
	c.queue.Add(key)
}

// updateOwner handles changes and the periodic resync. An owner whose last sync failed stays
// in its back-off unless its desired state has changed.
func (c *Controller) updateOwner(before, after plan.Owner) {
	key := cache.MetaObjectToName(after)
	if before.GetUID() != after.GetUID() {
		// A deletion and a creation arrived as one update: forget the first owner's failures.
		c.backoff.Forget(key)
	}
	switch {
	case c.kind.AsksTheSame(before, after) && c.backoff.InBackoff(key): // another sync is certain
	case before.GetResourceVersion() == after.GetResourceVersion(): // a resync
		c.queue.AddLowPriority(key)
	default:
		c.queue.Add(key)
	}
}

// deleteOwner queues a deleted owner once more, so that a sync forgets it.
func (c *Controller) deleteOwner(deleted cache.DeletedObject[plan.Owner]) {
	key := deleted.GetObjectName()
	// Now, not in the sync: by then there may be another owner with the same name.
	c.backoff.Forget(key)
	c.queue.Add(key)
}

// childHandlers adds the keys of the owners that an object of a row is about.
type childHandlers struct {
	c   *Controller
	row *table.Children
}

// added ignores the children of the initial list, because every owner is in the initial list
// of owners.
func (h childHandlers) added(child plan.Object, isInInitialList bool) {
	if !isInInitialList {
		h.enqueueOwnersOf(child)
	}
}

func (h childHandlers) updated(before, after plan.Object) {
	if before.GetResourceVersion() == after.GetResourceVersion() {
		return // a resync: nothing changed
	}
	if !h.row.IsReference() && h.c.kind.HasSameHolder(before, after) {
		h.enqueueHolder(after)
		return
	}
	// Both states, because an owner may have lost the child.
	h.enqueueOwnersOf(before, after)
}

func (h childHandlers) deleted(child cache.DeletedObject[plan.Object]) {
	if child.OptionalObj != nil {
		h.enqueueOwnersOf(child.OptionalObj)
		return
	}
	for _, key := range h.asking(child.GetObjectName()) {
		h.c.queue.Add(key)
	}
}

// asking returns the owners that want a child of a name, or name an object. Any number may name one.
func (h childHandlers) asking(object cache.ObjectName) []cache.ObjectName {
	limit := maxAsking
	if h.row.IsReference() {
		limit = math.MaxInt
	}
	return h.c.kind.AskingFor(h.row, object, limit)
}

// enqueueOwnersOf adds the owners that control a child in any of its states, and those that
// want its name and may be waiting for it. It adds each once: a worker could take a key
// between two additions and sync it twice.
func (h childHandlers) enqueueOwnersOf(states ...plan.Object) {
	keys := sets.New[cache.ObjectName]()
	for _, child := range states {
		if holder, ok := h.c.kind.HolderKey(child); ok {
			keys.Insert(holder)
		}
		if adopter, ok := h.c.kind.AdopterKey(child); ok {
			keys.Insert(adopter)
		}
		keys.Insert(h.asking(cache.MetaObjectToName(child))...)
	}
	for key := range keys {
		h.c.queue.Add(key)
	}
}

// enqueueHolder adds the owner that controls a child, or may adopt it: its adoption may have been
// refused because of what has changed now.
func (h childHandlers) enqueueHolder(child plan.Object) {
	key, ok := h.c.kind.HolderKey(child)
	if !ok {
		key, ok = h.c.kind.AdopterKey(child)
	}
	if ok {
		h.c.queue.Add(key)
	}
}

// maxAsking is how many of the owners that want the same name are queued at once when its object
// changes. Only one of them can have the name. The resync queues the others: any number of
// owners may want a name, and each change would queue all of them.
const maxAsking = 16
