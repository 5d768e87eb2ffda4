// SPDX-License-Identifier: Apache-2.0

// The status of a Foo: the last write of a sync, and the Events of what it changes.

package main

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"example.com/sample-controller/internal/failure"
	"example.com/sample-controller/internal/plan"
	"example.com/sample-controller/internal/queue"
)

// updateStatus writes the Foo's status if it differs from the cached one, and records an
// Event if the Foo's readiness changed. after is the Foo with that status. After a complete
// sync, a status that only counts the Pods of a rollout may wait.
func (s *ownerSync) updateStatus(ctx context.Context, after plan.Owner, complete bool) error {
	inputs := plan.StatusInputs(s.owner)
	if equality.Semantic.DeepEqual(s.owner.GetStatus(), after.GetStatus()) {
		s.memory.Progress.Reset()
		s.backoff.Succeed(s.key, queue.PartStatus)
		return nil
	}
	if s.crdMismatch.WouldRecur(s.memory.Pruned, after) {
		return nil
	}
	if err := s.backoff.Deferred(s.key, queue.PartStatus, inputs); err != nil {
		return err
	}
	if wait := max(s.memory.Progress.Wait(s.owner, after, complete, s.clock.Now()), s.replaced.Wait(after)); wait > 0 {
		s.queue.AddAfter(s.key, wait)
		return nil
	}
	if err := s.sendStatus(ctx, after); err != nil {
		return s.backoff.Fail(s.key, queue.PartStatus, inputs, err)
	}
	s.backoff.Succeed(s.key, queue.PartStatus)
	return nil
}

func (s *ownerSync) sendStatus(ctx context.Context, after plan.Owner) error {
	callCtx, cancel := s.withDeadline(ctx)
	defer cancel()
	updated, err := s.writeStatus(callCtx, after)
	if failure.IsNotFound(err, s.Resource()) {
		if live, liveErr := s.live(ctx); liveErr == nil && live.GetUID() == s.owner.GetUID() {
			return fmt.Errorf("updating the %s's status: %w", s.kind.Kind, s.crdMismatch.NoSubresource())
		}
	}
	s.memory.Stale.Observe(s.owner, err)
	s.metrics.Refused(failure.CauseOf(err))
	transition := plan.ReadyChanged(s.lastSent(), after)
	if err != nil {
		if transition != nil && failure.MayBeDone(err) {
			s.memory.Transition.Unknown(s.owner, *transition)
		}
		return fmt.Errorf("updating the %s's status: %w", s.kind.Kind, err)
	}
	s.metrics.Wrote("update", s.statusResource())
	s.memory.Writes.Add(s.cache, updated.GetResourceVersion(), s.clock.Now())
	s.replaced.Observe(after)
	if transition != nil {
		s.memory.Transition.Stored(s.owner)
		s.recordTransition(updated, transition)
	}
	for _, own := range s.kind.OwnChanged(s.lastSent(), after) {
		s.recordTransition(updated, &own)
	}
	if s.memory.Pruned, err = s.crdMismatch.Observe(after, updated); err != nil {
		klog.FromContext(ctx).Error(err, "The API server does not store statuses as they are sent")
	}
	return nil
}

// lastSent returns the Foo with the status that was last sent for it, stored or not.
func (s *ownerSync) lastSent() plan.Owner {
	if s.memory.Pruned != nil {
		return s.memory.Pruned
	}
	return s.owner
}

// recordMissedTransition records the Event of a status write whose answer was lost, if the
// cache shows it. A status of another controller may soon take its place.
func (s *ownerSync) recordMissedTransition() {
	if missed := s.memory.Transition.Missed(s.owner); missed != nil {
		s.recordTransition(s.owner, missed)
	}
}

func (c *Controller) recordTransition(owner plan.Owner, ready *metav1.Condition) {
	c.recorder.Event(owner, plan.EventType(ready.Reason), ready.Reason, ready.Message)
}

// statusResource is what metrics call the status of the kind.
func (c *Controller) statusResource() string { return c.kind.Resource.Resource + "/status" }
