// SPDX-License-Identifier: Apache-2.0

// The steps of a sync, and the writes of children. Each write has a precondition that the API
// server checks, so that a write that was decided on a stale cache, arrives late, or comes
// from a second controller does no harm: a create fails if the name is taken; an update or a
// delete names the UID and the resourceVersion that the decision was based on.

package main

import (
	"cmp"
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"example.com/sample-controller/pkg/reconcile/failure"
	"example.com/sample-controller/pkg/reconcile/memory"
	"example.com/sample-controller/pkg/reconcile/plan"
	"example.com/sample-controller/pkg/reconcile/queue"
)

const (
	// refusedFor is how long a child must have been refused before the Foo counts as stalled.
	// Some refusals pass by themselves: see queue.RefusedRetry.
	refusedFor = 30 * time.Second
	// uncollectedFor is how long the child of an earlier Foo must have waited for the garbage
	// collector before the Foo counts as stalled. A new leader of kube-controller-manager takes 15 s.
	uncollectedFor = time.Minute
	// maxRefusals is how many deletions a sync tries if the API server refuses each.
	maxRefusals = 8
)

// take takes a step of a sync, and records the result in the child. It skips a step that
// failed and is still in back-off, unless something other than the child's status has
// changed. The back-off is known before the status is written, so that the event of that
// write does not wake the key.
func (s *ownerSync) take(ctx context.Context, child *plan.Child, action plan.Action) {
	s.observeSpec(child)
	part, inputs := child.Kind, child.Inputs(action, child.Named)
	err := s.backoff.Deferred(s.key, part, inputs)
	if err == nil {
		if err = s.carryOut(ctx, child, action); err == nil {
			s.backoff.Succeed(s.key, part)
		} else {
			s.metrics.Refused(failure.CauseOf(err))
			err = s.backoff.Fail(s.key, part, inputs, err)
		}
	}
	child.Failure, child.Stale = err, queue.IsExpected(err)
}

// carryOut makes the writes of a step, if there are any.
func (s *ownerSync) carryOut(ctx context.Context, child *plan.Child, action plan.Action) error {
	switch action {
	case plan.ActionCreate:
		if s.mustWait(child, plan.ActionCreate, child.Name(s.owner)) {
			return nil
		}
		return s.create(ctx, child)
	case plan.ActionUpdate, plan.ActionAdopt:
		if s.isUseless(child) {
			return nil
		}
		return s.update(ctx, child)
	case plan.ActionNone:
		s.memory.Child(child.Kind).NewSpec = 0
		s.observeFights(child)
		return s.confirm(ctx, child)
	case plan.ActionWait, plan.ActionLeave, plan.ActionSuspend, plan.ActionDelete:
	}
	return nil
}

// observeProblems records since when something is in the way of each child.
func (s *ownerSync) observeProblems(children []*plan.Child) {
	for _, child := range children {
		problem, lasts := &s.memory.Child(child.Kind).Problem, time.Duration(0)
		switch {
		case failure.IsRefusal(child.Failure):
			lasts = refusedFor - problem.Observe(fmt.Sprint("refused ", s.owner.GetGeneration()), s.clock.Now())
		case child.Failure != nil: // it says nothing about the problem
			continue
		case child.Action == plan.ActionLeave && child.IsOfEarlierOwner():
			lasts = uncollectedFor - problem.Observe(fmt.Sprint("uncollected ", child.Named.GetUID()), s.clock.Now())
			if lasts > 0 {
				s.queue.AddAfter(s.key, lasts) // no event says that nothing happens
			}
		default:
			*problem = memory.Problem{}
			continue
		}
		child.Lasts = lasts <= 0
	}
}

// isUseless reports whether an update would be of no use now: it would again be stored with
// different values, it would be changed back again, or too many Foos restart their Pods already.
func (s *ownerSync) isUseless(child *plan.Child) bool {
	if s.memory.Child(child.Kind).Mutation.WouldRecur(s.owner, child.Named, child.Drift) {
		child.Current, child.CurrentDrift, child.Recurs = child.Named, child.Drift, true // also if an adoption was undone
		return true
	}
	if child.Action == plan.ActionAdopt {
		return false
	}
	if s.mustWait(child, plan.ActionUpdate, child.Named.GetName()) {
		return true
	}
	child.Paced = s.waitsToRestart(child)
	return child.Paced
}

// waitsToRestart reports whether an update has to wait until fewer Foos are rolling out, and if
// so, requeues the Foo. A change of the Foo's spec does not wait.
func (s *ownerSync) waitsToRestart(child *plan.Child) bool {
	if !s.isRepair(child) || !child.IsRestarting(child.Named, s.owner, child.Seen) {
		return false
	}
	wait := s.rollouts.Begin(s.key)
	if wait > 0 {
		s.queue.AddAfter(s.key, wait)
	}
	return wait > 0
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
		return &plan.CallError{Doing: "creating", Done: "created", Kind: child.Kind, Name: desired.GetName(), Err: err}
	}
	if err := s.wrote(ctx, child, "create", "Created", created); err != nil {
		return err
	}
	if child.CurrentDrift == "" { // admission is not an opponent
		s.repaired(ctx, child, plan.Fight{Write: plan.ActionCreate, Name: created.GetName()})
	}
	return nil
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
		return &plan.CallError{Doing: "updating", Done: "updated", Kind: child.Kind, Name: desired.GetName(), Err: err}
	}
	if err := s.wrote(ctx, child, "update", "Updated", updated); err != nil {
		return err
	}
	if child.Recurs = child.CurrentDrift != ""; !child.Recurs && child.Action == plan.ActionUpdate { // admission is not an opponent
		s.repaired(ctx, child, plan.Fight{Write: plan.ActionUpdate, Name: updated.GetName(), By: plan.ChangedBy(live, patch), Drift: child.Drift})
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

// takeDeletion deletes one of the children that a Foo no longer wants, as after a rename. The
// event of the deletion requeues the Foo for the next, behind other Foos: a Foo may control any
// number, because whoever creates an object chooses its owner reference. One that the API server
// refuses to delete backs off alone.
func (s *ownerSync) takeDeletion(ctx context.Context, child *plan.Child) {
	all, inputs := child.Kind+" deletions", child.Inputs(plan.ActionDelete, nil)
	if child.Failure = s.backoff.Deferred(s.key, all, inputs); child.Failure != nil {
		return
	}
	refusals := 0
	for _, obsolete := range child.Obsolete {
		one, of := child.Kind+" "+obsolete.GetName(), child.Inputs(plan.ActionDelete, obsolete)
		if err := s.backoff.Deferred(s.key, one, of); err != nil {
			child.Failure = cmp.Or(child.Failure, err)
			continue
		}
		if s.mustWait(child, plan.ActionDelete, obsolete.GetName()) {
			continue
		}
		err := s.deleteObsolete(ctx, child, obsolete.GetName())
		s.metrics.Refused(failure.CauseOf(err))
		if failure.IsRefusal(err) {
			child.Failure = s.backoff.Fail(s.key, one, of, err)
			if refusals++; refusals < maxRefusals {
				continue
			}
			s.queue.AddAfter(s.key, queue.RefusedRetry) // for the others
		} else if err != nil {
			child.Failure = s.backoff.Fail(s.key, all, inputs, err)
		} else {
			s.backoff.Succeed(s.key, all)
			s.backoff.Succeed(s.key, one)
		}
		break
	}
	child.Stale = queue.IsExpected(child.Failure)
}

// deleteObsolete deletes a child. A deletion can't be undone, so all its preconditions are read
// live: the child that the Foo wants, the child to delete, and finally the Foo.
func (s *ownerSync) deleteObsolete(ctx context.Context, child *plan.Child, name string) error {
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
	return s.deleteIfObsolete(ctx, child, name, taken)
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
		return &plan.CallError{Doing: "deleting the earlier", Done: "deleted", Kind: child.Kind, Name: name, Err: err}
	}
	s.metrics.Wrote("delete", child.Resource.Resource)
	s.repaired(ctx, child, plan.Fight{Write: plan.ActionDelete, Name: name, By: plan.CreatedBy(live)})
	klog.FromContext(ctx).V(2).Info("Deleted "+child.Kind+" with an earlier name", child.LogKey(), klog.KObj(live))
	return nil
}
