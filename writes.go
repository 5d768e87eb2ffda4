// SPDX-License-Identifier: Apache-2.0

// The steps of a sync, and the writes of children. Each write has a precondition that the API
// server checks, so that a write that was decided on a stale cache, arrives late, or comes
// from a second controller does no harm: a create fails if the name is taken; an update or a
// delete names the UID and the resourceVersion that the decision was based on.

package main

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"example.com/sample-controller/internal/failure"
	"example.com/sample-controller/internal/memory"
	"example.com/sample-controller/internal/plan"
	"example.com/sample-controller/internal/queue"
)

// stalledAfter is how long a child must have been refused before the Foo counts as stalled.
// Some refusals pass by themselves: see queue.RefusedRetry.
const stalledAfter = 30 * time.Second

// take takes a step of a sync, and records the result in the child. It skips a step that
// failed and is still in back-off, unless something other than the child's status has
// changed. The back-off is known before the status is written, so that the event of that
// write does not wake the key.
func (s *ownerSync) take(ctx context.Context, child *plan.Child, action plan.Action) {
	part, inputs := child.Kind, child.Inputs()
	err := s.backoff.Deferred(s.key, part, inputs)
	if err == nil {
		if err = s.carryOut(ctx, child, action); err != nil {
			s.metrics.Refused(failure.CauseOf(err))
			err = s.backoff.Fail(s.key, part, inputs, err)
		} else if action == plan.ActionDelete || len(child.Obsolete) == 0 { // else a deletion may follow
			s.backoff.Succeed(s.key, part)
		}
	}
	child.Failure = err
	child.Refused = s.backoff.RefusedFor(s.key, part) >= stalledAfter
	child.Stale = queue.IsExpected(err)
}

// carryOut makes the writes of a step, if there are any.
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

// isUseless reports whether an update would be of no use now: it would again be stored with
// different values, it would be changed back again, or too many Foos restart their Pods already.
func (s *ownerSync) isUseless(child *plan.Child) bool {
	known := s.memory.Child(child.Kind)
	if known.Mutation.WouldRecur(s.owner, child.Named, child.Drift) {
		child.Current, child.CurrentDrift, child.Recurs = child.Named, child.Drift, true // also if an adoption was undone
		return true
	}
	if wait := known.Repairs.Wait(s.owner, child.Named, s.clock.Now()); wait > 0 {
		s.observeFight(child, wait)
		return true
	}
	child.Paced = s.waitsToRestart(child)
	return child.Paced
}

// waitsToRestart reports whether an update has to wait until fewer Foos are rolling out, and if
// so, requeues the Foo. A change of the Foo's spec does not wait.
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

// isRepair reports whether an update undoes someone's change instead of carrying out a new
// spec: the status has reported this spec before, or can't be written.
func (s *ownerSync) isRepair() bool {
	return *s.lastSent().GetObservedGeneration() == s.owner.GetGeneration() || s.backoff.IsFailing(s.key, queue.PartStatus)
}

// observeFight records a fight over the child, if there is one, and requeues the Foo: after
// wait, or when the last repair has lasted long enough.
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
	if wait <= 0 { // the opponent has given up
		*repairs = memory.Repairs{}
		return
	}
	child.ChangedBack, child.Opponent = drift, by
	s.queue.AddAfter(s.key, wait)
}

// create creates a Foo's child. A Foo with a status may already have had one. Read such a Foo
// live first: the cache may be stale and the Foo deleted.
func (s *ownerSync) create(ctx context.Context, child *plan.Child) error {
	if *s.owner.GetObservedGeneration() > 0 {
		if err := s.recheckOwner(ctx); err != nil {
			return err
		}
	}
	earlier, err := s.earlier(ctx, child)
	if err != nil {
		return err
	}
	ctx, cancel := s.withDeadline(ctx)
	defer cancel()
	desired := child.DesiredAfter(s.owner, earlier, child.Seen)
	created, err := s.apiOf(child.ChildKind).create(ctx, desired)
	if err != nil {
		return &plan.WriteError{Doing: "creating", Done: "created", Kind: child.Kind, Name: desired.GetName(), Err: err}
	}
	return s.wrote(ctx, child, "create", "Created", created)
}

// earlier returns the child that the new one replaces, or nil. The new child inherits values
// that others have set in the earlier one, so read that one live.
func (s *ownerSync) earlier(ctx context.Context, child *plan.Child) (plan.Object, error) {
	earlier := child.Earlier()
	if !child.Inherits(s.owner) || earlier == nil {
		return earlier, nil
	}
	live, err := s.liveChild(ctx, child, earlier.GetName())
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // a missing child is no error
	}
	return live, err
}

// update updates a Foo's child, or makes the Foo the controller of a child that it may
// adopt. The cache holds only the fields that decisions use, so the update is based on a live
// read, and its resourceVersion protects newer writes of others. Reading the Foo live
// protects a newer spec that the cache has not seen. Only changed fields are sent: an update
// of the whole object would drop the fields that this client does not know.
func (s *ownerSync) update(ctx context.Context, child *plan.Child) error {
	live, err := s.liveChild(ctx, child, child.Name(s.owner))
	if err != nil {
		return err
	}
	desired := child.DesiredUpdate(live, s.owner, child.Seen)
	if desired == nil {
		return failure.ErrBehind
	}
	if err := s.recheckOwner(ctx); err != nil {
		return err
	}
	patchType, patch, err := child.Patch(live, desired)
	if err != nil {
		return err
	}
	ctx, cancel := s.withDeadline(ctx)
	defer cancel()
	updated, err := s.apiOf(child.ChildKind).patch(ctx, live.GetNamespace(), live.GetName(), patchType, patch)
	if err != nil {
		return &plan.WriteError{Doing: "updating", Done: "updated", Kind: child.Kind, Name: desired.GetName(), Err: err}
	}
	if err := s.wrote(ctx, child, "update", "Updated", updated); err != nil {
		return err
	}
	if child.Recurs = child.CurrentDrift != ""; !child.Recurs && s.isRepair() { // admission is not an opponent
		s.memory.Child(child.Kind).Repairs.Observe(s.owner, updated, plan.ChangedBy(live, patch), child.Drift, s.clock.Now())
		s.observeFight(child, 0)
	}
	s.memory.Child(child.Kind).Mutation = memory.MutationOf(s.owner, child.Current, child.CurrentDrift)
	if child.Recurs {
		klog.FromContext(ctx).Info("The stored "+child.Kind+" differs from what was sent, perhaps because of an admission webhook; leaving it until the "+child.OwnerKind.Kind+" or the "+child.Kind+" changes",
			child.LogKey(), klog.KObj(updated), "differs", child.CurrentDrift)
	}
	return nil
}

// recheckOwner reads the Foo live and returns nil if it still has the cached desired state.
// If the cached version is the newest, it clears the stale mark: the conflict had another
// cause.
func (s *ownerSync) recheckOwner(ctx context.Context) error {
	live, err := s.live(ctx)
	if err != nil {
		s.memory.Stale.Observe(s.owner, err)
		return err
	}
	if !plan.AsksTheSame(s.owner, live) {
		return failure.ErrBehind
	}
	if live.GetResourceVersion() == s.owner.GetResourceVersion() {
		s.memory.Stale = ""
	}
	return nil
}

// wrote records a child as the API server stored it, reduced to the fields that the cache
// will keep.
func (s *ownerSync) wrote(ctx context.Context, child *plan.Child, verb, did string, stored plan.Object) error {
	kept, err := child.Transform(stored)
	if err != nil {
		return err
	}
	s.metrics.Wrote(verb, child.Resource.Resource)
	known := s.memory.Child(child.Kind)
	known.Written.Observe(stored, s.clock.Now())
	known.Confirmed = memory.ConfirmationBy(s.owner, stored)
	klog.FromContext(ctx).V(2).Info(did+" "+child.Kind, child.LogKey(), klog.KObj(stored))
	now := kept.(plan.Object) //nolint:forcetypeassert // a child keeps its type
	child.Observe(now, child.DescribeDrift(now, s.owner, child.Seen))
	return nil
}

// confirm keeps a stale cache from making a Foo ready. Before a Foo becomes ready for the
// first time in a generation, it reads the child live, unless the cached child is known to be
// newer than the spec.
func (s *ownerSync) confirm(ctx context.Context, child *plan.Child) error {
	if child.Named == nil || !child.Wanted(s.owner) {
		return nil
	}
	known := s.memory.Child(child.Kind)
	if plan.SaysReady(s.owner) {
		known.Confirmed = memory.Confirmation{} // a generation that was confirmed stays confirmed
		return nil
	}
	if known.Confirmed.Includes(s.owner, child.Named) || !child.IsReady(child.Named) {
		return nil
	}
	live, err := s.liveChild(ctx, child, child.Named.GetName())
	if err != nil {
		return err
	}
	if plan.IsTerminating(live) || child.DescribeDrift(live, s.owner, child.Seen) != "" {
		return failure.ErrBehind
	}
	known.Confirmed = memory.ConfirmationBy(s.owner, live)
	child.Observe(live, "")
	return nil
}

// deleteObsolete deletes a child that a Foo no longer wants, as after a rename. The event of
// the deletion requeues the Foo for the next, behind other Foos: a Foo may control any number,
// because whoever creates an object chooses its owner reference. A deletion can't be undone,
// so all its preconditions are read live: the child that the Foo wants, the child to delete,
// and finally the Foo.
func (s *ownerSync) deleteObsolete(ctx context.Context, child *plan.Child) error {
	taken := false
	if child.Wanted(s.owner) {
		wanted, err := s.liveChild(ctx, child, child.Name(s.owner))
		if err != nil {
			return err
		}
		if !child.OwnerKind.IsControlledBy(wanted, s.owner) || plan.IsTerminating(wanted) {
			return failure.ErrBehind
		}
		taken = child.HasTakenOver(wanted, s.owner, child.Seen)
	}
	return s.deleteIfObsolete(ctx, child, child.Obsolete[0].GetName(), taken)
}

// deleteIfObsolete reads a child live and deletes it if its Foo no longer needs it. It reads
// the Foo after the child: if the Foo wants the name again, a child created since then has
// a different UID from the one that the delete names.
func (s *ownerSync) deleteIfObsolete(ctx context.Context, child *plan.Child, name string, taken bool) error {
	live, err := s.liveChild(ctx, child, name)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if !child.MayDelete(live, s.owner, taken) {
		return nil
	}
	if err := s.recheckOwner(ctx); err != nil {
		return err
	}
	ctx, cancel := s.withDeadline(ctx)
	defer cancel()
	err = s.apiOf(child.ChildKind).delete(ctx, live.GetNamespace(), name, metav1.DeleteOptions{
		Preconditions:     &metav1.Preconditions{UID: new(live.GetUID()), ResourceVersion: new(live.GetResourceVersion())},
		PropagationPolicy: new(metav1.DeletePropagationBackground),
	})
	if failure.IsNotFound(err, child.Resource.Resource) {
		return nil
	}
	if err != nil {
		return &plan.WriteError{Doing: "deleting the earlier", Done: "deleted", Kind: child.Kind, Name: name, Err: err}
	}
	s.metrics.Wrote("delete", child.Resource.Resource)
	klog.FromContext(ctx).V(2).Info("Deleted "+child.Kind+" with an earlier name", child.LogKey(), klog.KObj(live))
	return nil
}
