// SPDX-License-Identifier: Apache-2.0

// Repairs that other clients undo: which writes are repairs, when the next may be made, and how
// the Foo reports the opponent.

package main

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"example.com/sample-controller/internal/names"
	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/pkg/reconcile/memory"
	"example.com/sample-controller/pkg/reconcile/plan"
	"example.com/sample-controller/pkg/reconcile/queue"
)

// observeSpec remembers that a spec is new, until the child is as it says. The status alone does
// not tell that: after a failed attempt, it has reported the spec, too.
func (s *ownerSync) observeSpec(child *plan.Child) {
	reported := *s.lastSent().GetObservedGeneration()
	switch {
	case reported >= s.owner.GetGeneration(): // not new
	case s.backoff.IsFailing(s.key, queue.PartStatus), s.crdMismatch.HasNoSubresource(): // the status does not tell
	case reported == 0 && child.Named != nil: // a Foo whose status was lost
	default:
		s.memory.Child(child.Kind).NewSpec = s.owner.GetGeneration()
	}
}

// isRepair reports whether a write to a child undoes someone's change instead of carrying out a
// new spec.
func (s *ownerSync) isRepair(child *plan.Child) bool {
	return s.memory.Child(child.Kind).NewSpec != s.owner.GetGeneration()
}

// repairsOf returns the repairs of an object by one kind of write: a user who deletes an object once
// does not continue a fight over its fields.
func (s *ownerSync) repairsOf(child *plan.Child, write plan.Action, name string) *memory.Repairs {
	return s.memory.Child(child.Kind).Repairs(string(write) + " " + name)
}

// mustWait reports whether a write to an object has to wait because another client has undone
// the last ones, and if so, requeues the Foo.
func (s *ownerSync) mustWait(child *plan.Child, write plan.Action, name string) bool {
	wait := s.repairsOf(child, write, name).Wait(s.owner, s.fightPeriod, s.clock.Now())
	if wait > 0 {
		s.observeFights(child)
		s.queue.AddAfter(s.key, wait)
	}
	return wait > 0
}

// observeFights records a fight over one of the Foo's objects, if there is one, and requeues the
// Foo for the time when the last repair has lasted long enough.
func (s *ownerSync) observeFights(child *plan.Child) {
	for _, repairs := range s.memory.Child(child.Kind).AllRepairs() {
		fight, left := repairs.Fight(s.owner, child.SaidFight(s.owner), s.fightPeriod, s.clock.Now())
		switch {
		case fight == nil:
		case left <= 0: // the opponent has given up
			repairs.Forget()
		default:
			child.Fight = fight
			s.queue.AddAfter(s.key, left)
		}
	}
}

// repaired records a write to a child that was made necessary by another client, if it was.
func (s *ownerSync) repaired(ctx context.Context, child *plan.Child, fight plan.Fight) {
	known := s.memory.Child(child.Kind)
	repairs, isRepair := s.repairsOf(child, fight.Write, fight.Name), s.isRepair(child)
	if fight.Write == plan.ActionDelete {
		// What is left over from a rename is deleted before the status says Ready.
		isRepair = plan.SaysReady(s.owner) || repairs.Count(s.owner) > 0 || s.crdMismatch.HasNoSubresource()
	}
	known.NewSpec = 0
	if !isRepair {
		return
	}
	repairs.Observe(s.owner, fight, s.clock.Now())
	s.observeFights(child)
	again := fight.By.Name != names.Controller && s.opponents.Observe(s.owner, child.Kind, fight)
	if again && repairs.Count(s.owner) == 1 { // the last one had lasted, so that this is no fight
		message := fight.Describe(child.ChildKind)
		s.recorder.Event(s.owner, corev1.EventTypeWarning, samplev1alpha1.ReasonRepairsUndone, message)
		klog.FromContext(ctx).Info("Another client makes the same repair necessary again and again", "opponent", fight.By.Name, "message", message)
	}
}
