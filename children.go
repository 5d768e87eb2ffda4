// SPDX-License-Identifier: Apache-2.0

// The children of a Foo: how the controller reads them, and how it takes a step of a sync.

package main

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"example.com/sample-controller/internal/consistency"
	"example.com/sample-controller/internal/failure"
	"example.com/sample-controller/internal/plan"
	"example.com/sample-controller/internal/queue"
)

// stalledAfter is how long a child has to be refused until the Foo is stalled. Some refusals
// pass by themselves: see queue.RefusedRetry.
const stalledAfter = 30 * time.Second

// Reads returns the resources that the informers read.
func (c *Controller) Reads() []schema.GroupVersionResource {
	resources := []schema.GroupVersionResource{c.kind.Resource}
	for _, kind := range c.children {
		resources = append(resources, kind.row.Resource)
	}
	return resources
}

// childKind is a kind of children: its row of the table, how the controller reads and writes
// it, and what it remembers of it between the syncs of a Foo.
type childKind struct {
	childAPI

	row        *plan.ChildKind
	controller *Controller

	confirmed          consistency.ConfirmedChildren
	admissionMutations consistency.AdmissionMutations
	repairs            consistency.Repairs
}

func newChildKind(c *Controller, row *plan.ChildKind, api childAPI) *childKind {
	c.metrics.CountWritesTo(row.Resource.Resource, "create", "update", "delete")
	return &childKind{childAPI: api, row: row, controller: c, repairs: consistency.Repairs{Clock: c.clock}}
}

func (k *childKind) forget(owner cache.ObjectName) {
	k.confirmed.Delete(owner)
	k.admissionMutations.Delete(owner)
	k.repairs.Delete(owner)
}

// controlledBy returns the objects of the cache that a Foo controls.
func (k *childKind) controlledBy(owner plan.Owner) []plan.Object {
	var controlled []plan.Object
	for _, candidate := range lookUp(k.cache, byControllerUID, k.controller.buckets.Of(string(owner.GetUID()))) {
		if k.row.OwnerKind.IsControlledBy(candidate, owner) {
			controlled = append(controlled, candidate)
		}
	}
	return controlled
}

// cached returns an object of the cache, or nil.
func (k *childKind) cached(namespace, name string) plan.Object {
	object, exists, err := k.cache.GetByKey(cache.ObjectName{Namespace: namespace, Name: name}.String())
	if err != nil || !exists {
		return nil
	}
	return object.(plan.Object) //nolint:forcetypeassert // the informer's type
}

// world returns what the caches say of a Foo.
func (c *Controller) world(owner plan.Owner) *plan.World {
	return c.kind.NewWorld(owner, func(row *plan.ChildKind) (plan.Object, []plan.Object) {
		k := c.childKind(row)
		return k.cached(owner.GetNamespace(), row.Name(owner)), k.controlledBy(owner)
	})
}

func (c *Controller) childKind(row *plan.ChildKind) *childKind {
	return c.children[slices.IndexFunc(c.children, func(k *childKind) bool { return k.row == row })]
}

// take takes a step of a sync, and records in the child what came of it. One that failed is
// not taken again before its back-off is over, unless more than the child's status has
// changed. That is known before the status is written, so that the status's event does not
// wake the key.
func (c *Controller) take(ctx context.Context, child *plan.Child, action plan.Action) {
	key, part, task := cache.MetaObjectToName(child.Owner), queue.Part(child.Kind), child.Task()
	err := c.backoff.Deferred(key, part, task)
	if err == nil {
		if err = c.childKind(child.ChildKind).carryOut(ctx, child, action); err != nil {
			c.metrics.Refused(failure.CauseOf(err))
			err = c.backoff.Fail(key, part, task, err)
		} else if action == plan.ActionDelete || len(child.Obsolete) == 0 {
			c.backoff.Succeed(key, part)
		}
	}
	child.Failure = err
	child.Refused = c.backoff.RefusedFor(key, part) >= stalledAfter
	child.Stale = err != nil && queue.NextAttempt(err).Expected
}

// carryOut makes the writes of a step, if there is something to write.
func (k *childKind) carryOut(ctx context.Context, child *plan.Child, action plan.Action) error {
	switch action {
	case plan.ActionCreate:
		return k.create(ctx, child)
	case plan.ActionUpdate, plan.ActionAdopt:
		if k.isUseless(child) {
			return nil
		}
		return k.update(ctx, child)
	case plan.ActionNone:
		k.observeFight(child, 0)
		return k.confirm(ctx, child)
	case plan.ActionDelete:
		return k.deleteObsolete(ctx, child)
	case plan.ActionWait, plan.ActionLeave, plan.ActionSuspend:
	}
	return nil
}

// isUseless reports whether an update would do no good now: it would be stored otherwise again, or
// changed back again, or too many Foos restart their Pods already.
func (k *childKind) isUseless(child *plan.Child) bool {
	if k.admissionMutations.WouldRecur(child.Owner, child.Named, child.Drift) {
		child.Current, child.CurrentDrift, child.Recurs = child.Named, child.Drift, true // also one whose adoption was undone
		return true
	}
	if wait := k.repairs.Wait(child.Owner, child.Named); wait > 0 {
		k.observeFight(child, wait)
		return true
	}
	child.Paced = k.waitsToRestart(child)
	return child.Paced
}

// waitsToRestart reports whether an update waits until fewer Foos roll out, and then syncs the
// Foo again. What the Foo's user has asked for does not wait.
func (k *childKind) waitsToRestart(child *plan.Child) bool {
	if child.Action != plan.ActionUpdate || !k.isRepair(child) || !child.IsRestarting(child.Named, child.Owner, child.Seen) {
		return false
	}
	key := cache.MetaObjectToName(child.Owner)
	wait := k.controller.rollouts.Begin(key)
	if wait > 0 {
		k.controller.queue.AddAfter(key, wait)
	}
	return wait > 0
}

// isRepair reports whether an update makes good what somebody has changed, and does not carry
// out a new spec: the status has reported this spec before, or can't be written.
func (k *childKind) isRepair(child *plan.Child) bool {
	return *k.controller.crdMismatch.LastSent(child.Owner).GetObservedGeneration() == child.Owner.GetGeneration() ||
		k.controller.backoff.IsFailing(cache.MetaObjectToName(child.Owner), queue.PartStatus)
}

// observeFight records a fight about the child, if there is one, and syncs the Foo again: after
// wait, or when the last repair has lasted.
func (k *childKind) observeFight(child *plan.Child, wait time.Duration) {
	if child.Named == nil {
		return
	}
	by, drift, left, fights := k.repairs.Fight(child.Owner, child.Named, child.WasStalled(child.Owner))
	if !fights {
		return
	}
	key := cache.MetaObjectToName(child.Owner)
	if wait == 0 {
		wait = left
	}
	if wait <= 0 { // the opponent has given in
		k.repairs.Delete(key)
		return
	}
	child.Fight = &plan.Fight{By: by, Drift: drift}
	k.controller.queue.AddAfter(key, wait)
}
