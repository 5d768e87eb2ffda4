// SPDX-License-Identifier: Apache-2.0

// The steps of a sync, and the writes of children. Each write has a precondition that the API
// server checks, so that a write that was decided on a stale cache, arrives late, or comes
// from a second controller does no harm: a create fails if the name is taken; an update or a
// delete names the UID and the resourceVersion that the decision was based on.

package main

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"example.com/sample-controller/pkg/reconcile/failure"
	"example.com/sample-controller/pkg/reconcile/memory"
	"example.com/sample-controller/pkg/reconcile/plan"
	"example.com/sample-controller/pkg/reconcile/queue"
	"example.com/sample-controller/pkg/reconcile/table"
)

// take takes a step of a sync, and returns its outcome. It skips a step that failed and is still in
// back-off, unless something other than the child's status has changed. The back-off is known
// before the status is written, so that the event of that write does not wake the key.
func (s *ownerSync) take(ctx context.Context, step *plan.Step) plan.Outcome {
	if step.IsChild() && !s.c.backoff.IsFailing(s.key, queue.PartStatus) && !s.c.crdMismatch.HasNoSubresource() { // else the status does not tell
		s.known.Step(step).ObserveSpec(step, s.reported())
	}
	inputs, outcome := step.Inputs(), step.AsFound()
	err := s.c.backoff.Try(s.key, step.Part, inputs)
	outcome.Held = err != nil
	if err == nil {
		if outcome, err = s.carryOut(ctx, step); err == nil {
			s.c.backoff.Succeed(s.key, step.Part)
		} else {
			s.c.metrics.Refused(failure.CauseOf(err))
			err = s.c.backoff.Fail(s.key, step.Part, inputs, err)
		}
	}
	outcome.Err, outcome.Stale = err, queue.IsExpected(err)
	return outcome
}

// carryOut makes the writes of a step, if there are any.
func (s *ownerSync) carryOut(ctx context.Context, step *plan.Step) (plan.Outcome, error) {
	if step.IsReference() {
		return s.read(ctx, step)
	}
	if step.IsCall() {
		return s.c.callers.Take(step), nil
	}
	if outcome, held := s.holdBack(step); held {
		return outcome, nil
	}
	switch step.Action {
	case plan.ActionCreate:
		return s.create(ctx, step)
	case plan.ActionUpdate, plan.ActionAdopt:
		return s.update(ctx, step)
	case plan.ActionNone:
		return s.confirm(ctx, step)
	case plan.ActionDelete:
		return s.delete(ctx, step)
	case plan.ActionHold, plan.ActionRelease:
		return s.setFinalizer(ctx, step)
	case plan.ActionCall, plan.ActionUndo, plan.ActionWait, plan.ActionLeave, plan.ActionSuspend, plan.ActionRead:
	}
	return step.AsFound(), nil
}

// holdBack reports whether a write would be of no use now, and returns the outcome in its place: it
// would again be stored with different values, it would be undone again, or too many owners restart
// their Pods already.
func (s *ownerSync) holdBack(step *plan.Step) (outcome plan.Outcome, held bool) {
	outcome = step.AsFound()
	switch step.Action {
	case plan.ActionUpdate, plan.ActionAdopt:
		if s.known.Step(step).Confirmed.WouldRecur(s.owner, step.Found, step.Drift) {
			outcome.Child, outcome.Drift, outcome.Recurs = step.Found, step.Drift, true // also if an adoption was undone
			return outcome, true
		}
		if step.Action == plan.ActionAdopt {
			return outcome, false
		}
	case plan.ActionCreate, plan.ActionDelete:
	default:
		return outcome, false
	}
	known, now := s.known.Step(step), s.c.clock.Now()
	repairs := known.RepairsOf(step)
	repairs.Undo()
	if outcome.Again = repairs.Wait(now); outcome.Again > 0 {
		outcome = known.ObserveFights(step, outcome, s.c.fightPeriod, now)
	} else if known.IsRepair(s.owner) && step.Action == plan.ActionUpdate && step.IsRestarting(step.Found, s.owner, step.View) {
		outcome.Again = s.c.rollouts.Begin(s.key) // a change of the owner's spec does not wait
	}
	outcome.Paced = outcome.Again > 0
	return outcome, outcome.Paced
}

// read reads an object that the owner names, unless what is known of it still counts.
func (s *ownerSync) read(ctx context.Context, step *plan.Step) (plan.Outcome, error) {
	if step.Action != plan.ActionRead {
		return step.AsFound(), nil
	}
	live, err := s.liveChild(ctx, step, step.Key)
	if failure.IsNotFound(err, step.Resource.Resource) {
		live, err = nil, nil
	}
	if err != nil {
		return step.AsFound(), err
	}
	return s.c.references.Observe(step.ChildKind, step.Key, s.row(step).Cache != nil, live), nil
}

// setFinalizer adds the kind's finalizer to the owner, or removes it.
func (s *ownerSync) setFinalizer(ctx context.Context, step *plan.Step) (outcome plan.Outcome, err error) {
	ctx, cancel := s.withDeadline(ctx)
	defer cancel()
	if step.Action == plan.ActionRelease {
		left, err := s.c.kind.Marked(ctx, s.owner) // a cache can lack what was written before a crash
		if err != nil {
			return outcome, &failure.CallError{Doing: "listing what is left before removing", Kind: step.Kind, Name: step.Key.Name, Err: err}
		} else if left != nil {
			return outcome, failure.ErrBehind
		}
	}
	written, err := s.c.kind.Owners.SetFinalizer(ctx, s.owner, step.Action == plan.ActionHold, metav1.PatchOptions{FieldManager: fieldManager})
	if err != nil {
		s.known.ObserveCall(s.owner, err)
		return outcome, &failure.CallError{Doing: "writing", Kind: step.Kind, Name: step.Key.Name, Err: err}
	}
	s.c.metrics.Wrote("patch", s.c.Resource())
	s.known.Written.Observe(written, s.c.clock.Now())
	return outcome, nil
}

// create creates an owner's child. An owner with a status may already have had one. Read such an owner
// live first: the cache may be stale and the owner deleted.
func (s *ownerSync) create(ctx context.Context, step *plan.Step) (outcome plan.Outcome, err error) {
	if s.owner.GetObservedGeneration() > 0 {
		if err := s.recheckOwner(ctx); err != nil {
			return outcome, err
		}
	}
	earlier, err := s.earlier(ctx, step)
	if err != nil {
		return outcome, err
	}
	ctx, cancel := s.withDeadline(ctx)
	defer cancel()
	created, err := s.row(step).Create(ctx, step.NewChild(earlier), metav1.CreateOptions{FieldManager: fieldManager})
	if err != nil {
		return outcome, &failure.CallError{Doing: "creating", Done: "created", Kind: step.Kind, Name: step.Key.Name, Err: err}
	}
	outcome, err = s.wrote(ctx, step, "create", "Created", created)
	if err == nil && outcome.Drift == "" { // admission is not an opponent
		outcome = s.repaired(ctx, step, outcome, plan.Fight{Write: plan.ActionCreate, Name: created.GetName()})
	}
	return outcome, err
}

// earlier returns the child that the new one replaces, or nil. The new child inherits values
// that others have set in the earlier one, so read that one live.
func (s *ownerSync) earlier(ctx context.Context, step *plan.Step) (plan.Object, error) {
	earlier := step.Earlier()
	if earlier == nil || !step.Inherits(earlier, s.owner) {
		return earlier, nil
	}
	live, err := s.liveChild(ctx, step, cache.MetaObjectToName(earlier))
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // a missing child is no error
	}
	return live, err
}

// update updates an owner's child, or makes the owner the controller of a child that it may
// adopt. The cache holds only the fields that decisions use, so the update is based on a live
// read, and its resourceVersion protects newer writes of others. Reading the owner live
// protects a newer spec that the cache has not seen. Only changed fields are sent: an update
// of the whole object would drop the fields that this client does not know.
func (s *ownerSync) update(ctx context.Context, step *plan.Step) (outcome plan.Outcome, err error) {
	outcome = step.AsFound()
	live, err := s.liveChild(ctx, step, step.Key)
	if err != nil {
		return outcome, err
	}
	desired := step.DesiredUpdate(live, s.owner, step.View)
	if desired == nil {
		return outcome, failure.ErrBehind
	}
	if err := s.recheckOwner(ctx); err != nil {
		return outcome, err
	}
	patchType, patch, err := step.Patch(live, desired)
	if err != nil {
		return outcome, err
	}
	ctx, cancel := s.withDeadline(ctx)
	defer cancel()
	updated, err := s.row(step).Patch(ctx, step.Key, patchType, patch, metav1.PatchOptions{FieldManager: fieldManager})
	if err != nil {
		return outcome, &failure.CallError{Doing: "updating", Done: "updated", Kind: step.Kind, Name: step.Key.Name, Err: err}
	}
	outcome, err = s.wrote(ctx, step, "update", "Updated", updated)
	if err != nil {
		return outcome, err
	}
	if outcome.Recurs = outcome.Drift != ""; outcome.Recurs {
		klog.FromContext(ctx).Info("The stored "+step.Kind+" differs from what was sent, perhaps because of an admission webhook; leaving it until the "+step.OwnerKind.Name+" or the "+step.Kind+" changes",
			step.LogKey(), klog.KObj(updated), "differs", outcome.Drift)
	} else if step.Action == plan.ActionUpdate { // admission is not an opponent
		outcome = s.repaired(ctx, step, outcome, plan.Fight{Write: plan.ActionUpdate, Name: step.Key.Name, By: plan.ChangedBy(live, patch), Drift: step.Drift})
	}
	s.known.Step(step).Confirmed = memory.ConfirmationBy(s.owner, updated, outcome.Drift)
	return outcome, nil
}

// repaired records a write to a child that was made necessary by another client, if it was.
func (s *ownerSync) repaired(ctx context.Context, step *plan.Step, outcome plan.Outcome, fight plan.Fight) plan.Outcome {
	known, now := s.known.Step(step), s.c.clock.Now()
	repairs, isRepair := known.RepairsOf(step), known.IsRepair(s.owner)
	if fight.Write == plan.ActionDelete {
		// What is left over from a rename is deleted before the status says Ready.
		isRepair = plan.SaysReady(s.owner) || repairs.Count() > 0 || s.c.crdMismatch.HasNoSubresource()
	}
	known.CarriedOut()
	if !isRepair {
		return outcome
	}
	repairs.Observe(s.owner, fight, now)
	again := fight.By.Name != fieldManager && s.c.opponents.Observe(s.owner, step.Kind, fight)
	if again && repairs.Count() == 1 { // the last one had lasted, so that this is no fight
		message := fight.Describe(step.ChildKind)
		s.c.recorder.Event(s.c.kind.Subject(s.owner), corev1.EventTypeWarning, plan.ReasonRepairsUndone, message)
		klog.FromContext(ctx).Info("Another client makes the same repair necessary again and again", "opponent", fight.By.Name, "message", message)
	}
	return known.ObserveFights(step, outcome, s.c.fightPeriod, now)
}

// recheckOwner reads the owner live and returns nil if it still has the cached desired state.
// If the cached version is the newest, it clears the stale mark: the conflict had another
// cause.
func (s *ownerSync) recheckOwner(ctx context.Context) error {
	live, err := s.live(ctx)
	if err != nil {
		s.known.ObserveCall(s.owner, err)
		return err
	}
	if !s.c.kind.AsksTheSame(s.owner, live) {
		return failure.ErrBehind
	}
	if live.GetResourceVersion() == s.owner.GetResourceVersion() {
		s.known.ObserveCall(s.owner, nil)
	}
	return nil
}

// wrote records a child as the API server stored it, reduced to the fields that the cache
// will keep for this row. A cache that other kinds share may keep more, which no decision of
// this kind reads.
func (s *ownerSync) wrote(ctx context.Context, step *plan.Step, verb, did string, stored plan.Object) (plan.Outcome, error) {
	kept, err := step.Transform(stored)
	if err != nil {
		return step.AsFound(), err
	}
	s.c.metrics.Wrote(verb, step.Resource.Resource)
	s.known.Child(step.Kind).Written.Observe(stored, s.c.clock.Now())
	s.known.Step(step).Confirmed = memory.ConfirmationBy(s.owner, stored, "")
	klog.FromContext(ctx).V(2).Info(did+" "+step.Kind, step.LogKey(), klog.KObj(stored))
	child := kept.(plan.Object) //nolint:forcetypeassert // a child keeps its type
	return plan.Outcome{Child: child, Drift: step.DescribeDrift(child, s.owner, step.View)}, nil
}

// confirm keeps a stale cache from making an owner ready. Before an owner becomes ready for the
// first time in a generation, it reads the child live, unless the cached child is known to be
// newer than the spec.
func (s *ownerSync) confirm(ctx context.Context, step *plan.Step) (plan.Outcome, error) {
	known := s.known.Step(step)
	known.CarriedOut()
	outcome := known.ObserveFights(step, step.AsFound(), s.c.fightPeriod, s.c.clock.Now())
	switch {
	case step.Found == nil || step.Unwanted:
		return outcome, nil
	case plan.SaysReady(s.owner):
		known.Confirmed = memory.Confirmation{} // a generation that was confirmed stays confirmed
		return outcome, nil
	case known.Confirmed.Includes(s.owner, step.Found) || !step.IsReady(step.Found):
		return outcome, nil
	}
	live, err := s.liveChild(ctx, step, step.Key)
	if err != nil {
		return outcome, err
	}
	if plan.IsTerminating(live) || step.DescribeDrift(live, s.owner, step.View) != "" {
		return outcome, failure.ErrBehind
	}
	known.Confirmed = memory.ConfirmationBy(s.owner, live, "")
	outcome.Child = live
	return outcome, nil
}

// delete deletes a child that an owner no longer wants, as after a rename. A deletion can't be undone, so
// all its preconditions are read live: the child that the owner wants, the child to delete, and
// finally the owner. If the owner wants the name again, a child created since then has a different UID
// from the one that the delete names.
func (s *ownerSync) delete(ctx context.Context, step *plan.Step) (outcome plan.Outcome, err error) {
	taken, err := s.hasTakenOver(ctx, step)
	if err != nil {
		return outcome, err
	}
	live, err := s.liveChild(ctx, step, step.Key)
	if apierrors.IsNotFound(err) {
		s.known.Step(step).RepairsOf(step).Last()
		return outcome, nil
	}
	if err != nil {
		return outcome, err
	}
	if !step.MayDelete(live, s.owner, taken) {
		return outcome, nil
	}
	if err := s.recheckOwner(ctx); err != nil {
		return outcome, err
	}
	ctx, cancel := s.withDeadline(ctx)
	defer cancel()
	err = s.row(step).Delete(ctx, step.Key, metav1.DeleteOptions{
		Preconditions:     &metav1.Preconditions{UID: new(live.GetUID()), ResourceVersion: new(live.GetResourceVersion())},
		PropagationPolicy: new(metav1.DeletePropagationBackground),
	})
	if failure.IsNotFound(err, step.Resource.Resource) {
		return outcome, nil
	}
	if err != nil {
		return outcome, &failure.CallError{Doing: "deleting the earlier", Done: "deleted", Kind: step.Kind, Name: step.Key.Name, Err: err}
	}
	s.c.metrics.Wrote("delete", step.Resource.Resource)
	klog.FromContext(ctx).V(2).Info("Deleted "+step.Kind+" with an earlier name", step.LogKey(), klog.KObj(live))
	return s.repaired(ctx, step, outcome, plan.Fight{Write: plan.ActionDelete, Name: step.Key.Name, By: plan.CreatedBy(live)}), nil
}

// hasTakenOver reports whether what an owner wants has taken over from the child to delete, also if it wants
// none. It returns ErrBehind if a child that it wants does not exist.
func (s *ownerSync) hasTakenOver(ctx context.Context, step *plan.Step) (taken bool, err error) {
	names := step.NamesFor(s.owner)
	if step.IsSet() && len(names) > 0 && !step.Serves(step.Found) {
		return false, nil // it may go whatever its siblings do, so that a set need not be read for each
	}
	taken = true
	for _, name := range names {
		wanted, err := s.liveChild(ctx, step, step.KeyFor(s.owner, name))
		if err != nil {
			return false, err
		}
		if !step.OwnerKind.IsControlledBy(wanted, s.owner) || plan.IsTerminating(wanted) {
			return false, failure.ErrBehind
		}
		taken = taken && step.HasTakenOver(wanted, s.owner, step.View)
	}
	return taken, nil
}

// row returns the clients of a step's kind.
func (s *ownerSync) row(step *plan.Step) *table.Children { return s.c.kind.Row(step.ChildKind) }

// liveChild reads a child live.
func (s *ownerSync) liveChild(ctx context.Context, step *plan.Step, key cache.ObjectName) (plan.Object, error) {
	ctx, cancel := s.withDeadline(ctx)
	defer cancel()
	live, err := s.row(step).Get(ctx, key, metav1.GetOptions{})
	if err != nil {
		return nil, &failure.CallError{Doing: "reading", Kind: step.Kind, Name: key.Name, Err: err}
	}
	return live, nil
}

// live reads the owner live.
func (s *ownerSync) live(ctx context.Context) (plan.Owner, error) {
	ctx, cancel := s.withDeadline(ctx)
	defer cancel()
	live, err := s.c.kind.Owners.Get(ctx, s.key, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("reading the %s: %w", s.c.kind.Name, err)
	}
	return live, nil
}

// withDeadline begins a call to the API server: it bounds the call, which could hang forever, and
// hands the sync's turn over while it hangs. Call returned when the call has returned.
func (s *ownerSync) withDeadline(ctx context.Context) (callCtx context.Context, returned func()) {
	callCtx, cancel := context.WithTimeout(ctx, s.c.callTimeout)
	takeAgain := s.c.queue.Calling(s.key)
	return callCtx, func() {
		cancel()
		takeAgain()
	}
}
