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

// childKind is a kind of children: its row of the table, and how the controller reads and
// writes it.
type childKind struct {
	api[plan.Object]

	row        *plan.ChildKind
	controller *Controller
}

func newChildKind(c *Controller, row *plan.ChildKind, api api[plan.Object]) *childKind {
	c.metrics.CountWritesTo(row.Resource.Resource, "create", "update", "delete")
	return &childKind{api: api, row: row, controller: c}
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

// named returns the object of the cache with the name that a Foo asks for, or nil.
func (k *childKind) named(owner plan.Owner) plan.Object {
	named, err := cached(k.cache, cache.ObjectName{Namespace: owner.GetNamespace(), Name: k.row.Name(owner)})
	if err != nil {
		return nil
	}
	return named
}

// world returns what the caches say of the Foo.
func (s *ownerSync) world() *plan.World {
	return s.kind.NewWorld(s.owner, func(row *plan.ChildKind) (plan.Object, []plan.Object) {
		k := s.childKind(row)
		return k.named(s.owner), k.controlledBy(s.owner)
	})
}

func (s *ownerSync) childKind(row *plan.ChildKind) *childKind {
	return s.children[slices.IndexFunc(s.children, func(k *childKind) bool { return k.row == row })]
}

// take takes a step of a sync, and records in the child what came of it. One that failed is
// not taken again before its back-off is over, unless more than the child's status has
// changed. That is known before the status is written, so that the status's event does not
// wake the key.
func (s *ownerSync) take(ctx context.Context, child *plan.Child, action plan.Action) {
	part, inputs := queue.Part(child.Kind), child.Inputs()
	err := s.backoff.Deferred(s.key, part, inputs)
	if err == nil {
		if err = s.carryOut(ctx, child, action); err != nil {
			s.metrics.Refused(failure.CauseOf(err))
			err = s.backoff.Fail(s.key, part, inputs, err)
		} else if action == plan.ActionDelete || len(child.Obsolete) == 0 {
			s.backoff.Succeed(s.key, part)
		}
	}
	child.Failure = err
	child.Refused = s.backoff.RefusedFor(s.key, part) >= stalledAfter
	child.Stale = err != nil && queue.NextAttempt(err).Expected
}

// carryOut makes the writes of a step, if there is something to write.
func (s *ownerSync) carryOut(ctx context.Context, child *plan.Child, action plan.Action) error {
	switch action {
	case plan.ActionCreate:
		return s.create(ctx, child)
	case plan.ActionUpdate, plan.ActionAdopt:
		if s.isUseless(child) {
			return nil
		}
		return s.update(ctx, child)
	case plan.ActionNone:
		s.observeFight(child, 0)
		return s.confirm(ctx, child)
	case plan.ActionDelete:
		return s.deleteObsolete(ctx, child)
	case plan.ActionWait, plan.ActionLeave, plan.ActionSuspend:
	}
	return nil
}

// isUseless reports whether an update would do no good now: it would be stored otherwise again,
// or changed back again, or too many Foos restart their Pods already.
func (s *ownerSync) isUseless(child *plan.Child) bool {
	known := s.memory.Child(child.Kind)
	if known.Mutation.WouldRecur(s.owner, child.Named, child.Drift) {
		child.Current, child.CurrentDrift, child.Recurs = child.Named, child.Drift, true // also one whose adoption was undone
		return true
	}
	if wait := known.Repairs.Wait(s.owner, child.Named, s.clock.Now()); wait > 0 {
		s.observeFight(child, wait)
		return true
	}
	child.Paced = s.waitsToRestart(child)
	return child.Paced
}

// waitsToRestart reports whether an update waits until fewer Foos roll out, and then syncs the
// Foo again. What the Foo's user has asked for does not wait.
func (s *ownerSync) waitsToRestart(child *plan.Child) bool {
	if child.Action != plan.ActionUpdate || !s.isRepair() || !child.IsRestarting(child.Named, s.owner, child.Seen) {
		return false
	}
	wait := s.rollouts.Begin(s.key)
	if wait > 0 {
		s.queue.AddAfter(s.key, wait)
	}
	return wait > 0
}

// isRepair reports whether an update makes good what somebody has changed, and does not carry
// out a new spec: the status has reported this spec before, or can't be written.
func (s *ownerSync) isRepair() bool {
	return *s.lastSent().GetObservedGeneration() == s.owner.GetGeneration() || s.backoff.IsFailing(s.key, queue.PartStatus)
}

// observeFight records a fight about the child, if there is one, and syncs the Foo again: after
// wait, or when the last repair has lasted.
func (s *ownerSync) observeFight(child *plan.Child, wait time.Duration) {
	if child.Named == nil {
		return
	}
	repairs := &s.memory.Child(child.Kind).Repairs
	by, drift, left, fights := repairs.Fight(s.owner, child.Named, child.WasStalled(s.owner), s.clock.Now())
	if !fights {
		return
	}
	if wait == 0 {
		wait = left
	}
	if wait <= 0 { // the opponent has given in
		*repairs = consistency.Repairs{}
		return
	}
	child.Fight = &plan.Fight{By: by, Drift: drift}
	s.queue.AddAfter(s.key, wait)
}
