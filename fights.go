// SPDX-License-Identifier: Apache-2.0

// Repairs that other clients undo: which writes are repairs, when the next may be made, and how
// the Foo reports the opponent.

package main

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"example.com/sample-controller/pkg/reconcile/memory"
	"example.com/sample-controller/pkg/reconcile/plan"
	"example.com/sample-controller/pkg/reconcile/queue"
)

// observeSpec remembers that a spec is new, until the child is as it says. The status alone does
// not tell that: after a failed attempt, it has reported the spec, too.
func (s *ownerSync) observeSpec(step *plan.Step) {
	reported := s.lastSent().GetObservedGeneration()
	switch {
	case step.Action == plan.ActionDelete:
	case reported >= s.owner.GetGeneration(): // not new
	case s.c.backoff.IsFailing(s.key, queue.PartStatus), s.c.crdMismatch.HasNoSubresource(): // the status does not tell
	case reported == 0 && step.Found != nil: // a Foo whose status was lost
	default:
		s.known.Child(step.Kind).NewSpec = s.owner.GetGeneration()
	}
}

// isRepair reports whether a write to a child undoes someone's change and does not carry out a new
// spec.
func (s *ownerSync) isRepair(step *plan.Step) bool {
	return s.known.Child(step.Kind).NewSpec != s.owner.GetGeneration()
}

// repairsOf returns the repairs of an object by one kind of write: a user who deletes an object once
// does not continue a fight over its fields.
func (s *ownerSync) repairsOf(step *plan.Step) *memory.Series {
	return s.known.Child(step.Kind).Repairs(string(step.Action) + " " + step.Key.Name)
}

// observeFights records a fight over one of the Foo's objects in an outcome, if there is one, and
// asks to come again when the last repair has lasted long enough.
func (s *ownerSync) observeFights(step *plan.Step, outcome *plan.Outcome) {
	for _, repairs := range s.known.Child(step.Kind).AllRepairs() {
		fight, left := repairs.Fight(step.SaidFight(s.owner), s.c.fightPeriod, s.c.clock.Now())
		switch {
		case fight == nil:
		case left <= 0: // the opponent has given up
			repairs.Forget()
		default:
			outcome.Fight, outcome.Again = fight, plan.Sooner(outcome.Again, left)
		}
	}
}

// repaired records a write to a child that was made necessary by another client, if it was.
func (s *ownerSync) repaired(ctx context.Context, step *plan.Step, outcome *plan.Outcome, fight plan.Fight) {
	known := s.known.Child(step.Kind)
	repairs, isRepair := s.repairsOf(step), s.isRepair(step)
	if fight.Write == plan.ActionDelete {
		// What is left over from a rename is deleted before the status says Ready.
		isRepair = plan.SaysReady(s.owner) || repairs.Count() > 0 || s.c.crdMismatch.HasNoSubresource()
	}
	known.NewSpec = 0
	if !isRepair {
		return
	}
	repairs.Observe(s.owner, fight, s.c.clock.Now())
	s.observeFights(step, outcome)
	again := fight.By.Name != fieldManager && s.c.opponents.Observe(s.owner, step.Kind, fight)
	if again && repairs.Count() == 1 { // the last one had lasted, so that this is no fight
		message := fight.Describe(step.ChildKind)
		s.c.recorder.Event(s.owner, corev1.EventTypeWarning, plan.ReasonRepairsUndone, message)
		klog.FromContext(ctx).Info("Another client makes the same repair necessary again and again", "opponent", fight.By.Name, "message", message)
	}
}
