// SPDX-License-Identifier: Apache-2.0

// The writes. Each has a precondition that the API server checks, so that a write that
// was decided on a stale cache, arrives late, or comes from a second controller does no
// harm: a create fails if the name is taken, an update and a delete name the UID and the
// resourceVersion that they were decided on.

package main

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"example.com/sample-controller/internal/consistency"
	"example.com/sample-controller/internal/failure"
	"example.com/sample-controller/internal/plan"
	"example.com/sample-controller/internal/queue"
)

// create creates a Foo's child. A Foo with a status already had one. Read such a Foo live
// first: the cache may be stale, and the Foo deleted.
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
	created, err := s.childKind(child.ChildKind).create(ctx, desired)
	if err != nil {
		return &plan.WriteError{Doing: "creating", Done: "created", Kind: child.Kind, Name: desired.GetName(), Err: err}
	}
	return s.wrote(ctx, child, "create", "Created", created)
}

// earlier returns the child in whose place one is created, or nil. What others have set in
// it goes into the new one, so it is read live.
func (s *ownerSync) earlier(ctx context.Context, child *plan.Child) (plan.Object, error) {
	earlier := child.Earlier()
	if !child.Inherits(s.owner) || earlier == nil {
		return earlier, nil
	}
	live, err := s.liveChild(ctx, child, earlier.GetName())
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // there is none, and that is no error
	}
	return live, err
}

// update updates a Foo's child, or makes the Foo the controller of one that may be
// adopted. The cache holds only what decisions read, so the update is made from a live
// read, and its resourceVersion protects newer writes of others. Reading the Foo live
// protects a newer spec that the cache has not seen. Only what changes is sent: an update
// of the whole object would drop the fields that this client does not know.
func (s *ownerSync) update(ctx context.Context, child *plan.Child) error {
	live, err := s.liveChild(ctx, child, child.Name(s.owner))
	if err != nil {
		return err
	}
	desired := child.DesiredUpdate(live, s.owner, child.Seen)
	if desired == nil {
		return consistency.ErrBehind
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
	updated, err := s.childKind(child.ChildKind).patch(ctx, live.GetNamespace(), live.GetName(), patchType, patch)
	if err != nil {
		return &plan.WriteError{Doing: "updating", Done: "updated", Kind: child.Kind, Name: desired.GetName(), Err: err}
	}
	if err := s.wrote(ctx, child, "update", "Updated", updated); err != nil {
		return err
	}
	if child.Recurs = child.CurrentDrift != ""; !child.Recurs && s.isRepair() { // what admission changes on the way, nobody has undone
		s.memory.Child(child.Kind).Repairs.Observe(s.owner, updated, plan.ChangedBy(live, patch), child.Drift, s.clock.Now())
		s.observeFight(child, 0)
	}
	s.memory.Child(child.Kind).Mutation = consistency.MutationOf(s.owner, child.Current, child.CurrentDrift)
	if child.Recurs {
		klog.FromContext(ctx).Info("The API server stored the "+child.Kind+" otherwise than the "+child.OwnerKind.Kind+" asks for, as an admission webhook may do: it stays so until one of them is changed",
			child.LogKey(), klog.KObj(updated), "differs", child.CurrentDrift)
	}
	return nil
}

// wrote remembers a child as the API server stored it for a Foo, in what the cache will
// have of it.
func (s *ownerSync) wrote(ctx context.Context, child *plan.Child, verb, did string, stored plan.Object) error {
	kept, err := child.Transform(stored)
	if err != nil {
		return err
	}
	s.metrics.Wrote(verb, child.Resource.Resource)
	s.memory.Writes.Add(s.childKind(child.ChildKind).cache, stored.GetResourceVersion(), s.clock.Now())
	s.memory.Child(child.Kind).Confirmed = consistency.ConfirmationBy(s.owner, stored)
	klog.FromContext(ctx).V(2).Info(did+" "+child.Kind, child.LogKey(), klog.KObj(stored))
	now := kept.(plan.Object) //nolint:forcetypeassert // a child stays of its type
	child.Observe(now, child.DescribeDrift(now, s.owner, child.Seen))
	return nil
}

// confirm makes sure that the status describes a child that is newer than the Foo's spec:
// the cached one, unless the Foo would become ready by it for the first time in this
// generation and the cache may be older than the generation. In that case it reads the
// child live.
func (s *ownerSync) confirm(ctx context.Context, child *plan.Child) error {
	if child.Named == nil || !child.Wanted(s.owner) {
		return nil
	}
	known := s.memory.Child(child.Kind)
	if plan.SaysReady(s.owner) {
		known.Confirmed = consistency.Confirmation{} // what was true of a generation stays true
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
		return consistency.ErrBehind
	}
	known.Confirmed = consistency.ConfirmationBy(s.owner, live)
	child.Observe(live, "")
	return nil
}

// maxDeletions is how many children of a kind a sync deletes. A Foo may control any number:
// whoever creates them names their owner. The events of these deletions queue the Foo for
// the rest, behind the Foos of others.
const maxDeletions = 10

// deleteObsolete deletes the children of a kind that a Foo does not ask for any more,
// as after a rename. Deleting can't be undone, so everything that it rests on is read live:
// that the Foo has the child it asks for, each child to delete, and last the Foo.
func (s *ownerSync) deleteObsolete(ctx context.Context, child *plan.Child) error {
	taken := false
	if child.Wanted(s.owner) {
		wanted, err := s.liveChild(ctx, child, child.Name(s.owner))
		if err != nil {
			return err
		}
		if !child.OwnerKind.IsControlledBy(wanted, s.owner) || plan.IsTerminating(wanted) {
			return consistency.ErrBehind
		}
		taken = child.HasTakenOver(wanted, s.owner, child.Seen)
	}
	for _, obsolete := range child.Obsolete[:min(len(child.Obsolete), maxDeletions)] {
		if err := s.deleteIfObsolete(ctx, child, obsolete.GetName(), taken); err != nil {
			return err
		}
	}
	return nil
}

// deleteIfObsolete reads a child live and deletes it if its Foo has no use for it. It
// reads the Foo after the child: if the Foo asks for the name again, a child created since
// then has another UID than the delete names.
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
	err = s.childKind(child.ChildKind).delete(ctx, live.GetNamespace(), name, metav1.DeleteOptions{
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
	klog.FromContext(ctx).V(2).Info("Deleted "+child.Kind+" of an earlier name", child.LogKey(), klog.KObj(live))
	return nil
}

func (s *ownerSync) liveChild(ctx context.Context, child *plan.Child, name string) (plan.Object, error) {
	ctx, cancel := s.withDeadline(ctx)
	defer cancel()
	live, err := s.childKind(child.ChildKind).get(ctx, s.owner.GetNamespace(), name)
	if err != nil {
		return nil, fmt.Errorf("reading %s %q: %w", child.Kind, name, err)
	}
	return live, nil
}

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
	updated, err := s.api.updateStatus(callCtx, after)
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

// recheckOwner reads the Foo live and returns nil if it still asks for what the cache says.
// If the cache has its newest version, the Foo no longer counts as stale: the conflict
// that made it count as such was an error of somebody else.
func (s *ownerSync) recheckOwner(ctx context.Context) error {
	live, err := s.live(ctx)
	if err != nil {
		s.memory.Stale.Observe(s.owner, err)
		return err
	}
	if !plan.AsksTheSame(s.owner, live) {
		return consistency.ErrBehind
	}
	if live.GetResourceVersion() == s.owner.GetResourceVersion() {
		s.memory.Stale = ""
	}
	return nil
}

// live reads the Foo live.
func (s *ownerSync) live(ctx context.Context) (plan.Owner, error) {
	ctx, cancel := s.withDeadline(ctx)
	defer cancel()
	live, err := s.get(ctx, s.key.Namespace, s.key.Name)
	if err != nil {
		return nil, fmt.Errorf("reading the %s: %w", s.kind.Kind, err)
	}
	return live, nil
}

// withDeadline bounds a call to the API server. Without it, two calls that hang would
// stop both workers for ever.
func (c *Controller) withDeadline(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, c.callTimeout)
}

// statusResource is what metrics call the status of the kind.
func (c *Controller) statusResource() string { return c.kind.Resource.Resource + "/status" }
