// SPDX-License-Identifier: Apache-2.0

// The write of a status, and the Events about it.

package main

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"example.com/sample-controller/pkg/reconcile/failure"
	"example.com/sample-controller/pkg/reconcile/memory"
	"example.com/sample-controller/pkg/reconcile/plan"
	"example.com/sample-controller/pkg/reconcile/queue"
)

// updateStatus writes the status of after if it differs from the cached one, and records an
// Event if the owner's readiness changed. It does not write a status that the CRD would drop, or that
// may wait, and returns how long: see package memory.
func (s *ownerSync) updateStatus(ctx context.Context, after plan.Owner, complete bool) (wait time.Duration, err error) {
	inputs, now := s.c.kind.StatusInputs(s.owner), s.c.clock.Now()
	s.known.ObserveHealth(s.owner, after, now)
	if equality.Semantic.DeepEqual(s.owner.GetStatus(), after.GetStatus()) {
		s.known.Postpone(0, now)
		s.c.backoff.Succeed(s.key, queue.PartStatus)
		return 0, nil
	}
	if !s.requested && s.c.crdMismatch.WouldRecur(s.known.Pruned, after) {
		return s.c.crdMismatch.Left(), nil
	}
	if err := s.c.backoff.Try(s.key, queue.PartStatus, inputs); err != nil {
		return 0, err
	}
	wait = s.known.Postpone(memory.MayWait(s.owner, after, complete), now)
	if wait = max(wait, s.known.RecoveryWait(s.owner, after, now), s.c.replaced.Wait(after)); wait > 0 {
		return wait, nil
	}
	if err := s.sendStatus(ctx, after); err != nil {
		return 0, s.c.backoff.Fail(s.key, queue.PartStatus, inputs, err)
	}
	s.c.backoff.Succeed(s.key, queue.PartStatus)
	if s.known.Pruned != nil {
		return s.c.crdMismatch.Left(), nil // a write that changes nothing has no event
	}
	return 0, nil
}

func (s *ownerSync) sendStatus(ctx context.Context, after plan.Owner) error {
	callCtx, returned := s.withDeadline(ctx)
	updated, err := s.c.kind.Owners.UpdateStatus(callCtx, after, metav1.UpdateOptions{FieldManager: fieldManager})
	returned()
	if failure.IsNotFound(err, s.c.Resource()) {
		if live, liveErr := s.live(ctx); liveErr == nil && live.GetUID() == s.owner.GetUID() {
			return fmt.Errorf("updating the %s's status: %w", s.c.kind.Name, s.c.crdMismatch.NoSubresource())
		}
	}
	s.known.ObserveCall(s.owner, err)
	s.c.metrics.Refused(failure.CauseOf(err))
	transition := plan.ReadyChanged(s.lastSent(), after)
	if err != nil {
		if transition != nil && failure.MayBeDone(err) {
			s.known.Transition.Unknown(s.owner, *transition)
		}
		return fmt.Errorf("updating the %s's status: %w", s.c.kind.Name, err)
	}
	s.c.metrics.Wrote("update", s.c.statusResource())
	s.known.Written.Observe(updated, s.c.clock.Now())
	s.known.WroteStatus(s.lastSent(), after, s.c.clock.Now())
	s.c.replaced.Observe(after)
	if transition != nil {
		s.known.Transition.Stored(s.owner)
		s.recordTransition(updated, transition)
	}
	for _, own := range s.c.kind.OwnChanged(s.lastSent(), after) {
		s.recordTransition(updated, &own)
	}
	if s.known.Pruned, err = s.c.crdMismatch.Observe(after, updated); err != nil {
		klog.FromContext(ctx).Error(err, "The API server does not store statuses as sent")
	}
	return nil
}

// reported returns the generation that the owner's status describes, 0 if it describes none, or a negative number for
// another one of an owner without a status.
func (s *ownerSync) reported() int64 {
	if s.c.kind.IsOthers() && s.known.Synced != 0 && s.known.Synced != s.owner.GetGeneration() {
		return -1
	} else if s.c.kind.IsOthers() {
		return s.known.Synced
	}
	return s.lastSent().GetObservedGeneration()
}

// lastSent returns the owner with the status last sent, so that one that the CRD drops has one Event.
func (s *ownerSync) lastSent() plan.Owner {
	if s.known.Pruned != nil {
		return s.known.Pruned
	}
	return s.owner
}

func (s *ownerSync) recordTransition(owner plan.Owner, ready *metav1.Condition) {
	s.c.recorder.Event(s.c.kind.Subject(owner), plan.EventType(ready.Reason), ready.Reason, ready.Message)
}

// tell records an Event if the reason why an owner is not ready is another one, for a kind that
// isn't the program's own: its status is not written.
func (s *ownerSync) tell(after plan.Owner, complete bool) {
	if complete {
		s.known.Synced = s.owner.GetGeneration()
	}
	ready, reason := plan.ReadyOf(after), ""
	if ready.Status != metav1.ConditionTrue {
		reason = ready.Reason
	}
	if s.known.Told != reason {
		s.known.Told = reason
		s.recordTransition(s.owner, ready)
	}
}
