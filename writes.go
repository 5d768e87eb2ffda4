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
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"example.com/sample-controller/internal/consistency"
	"example.com/sample-controller/internal/failure"
	"example.com/sample-controller/internal/plan"
	"example.com/sample-controller/internal/queue"
)

// create creates a Foo's child. A Foo with a status already had one. Read such a Foo live
// first: the cache may be stale, and the Foo deleted.
func (k *childKind) create(ctx context.Context, child *plan.Child) error {
	if *child.Owner.GetObservedGeneration() > 0 {
		if err := k.controller.recheckOwner(ctx, child.Owner); err != nil {
			return err
		}
	}
	earlier, err := k.earlier(ctx, child)
	if err != nil {
		return err
	}
	ctx, cancel := k.controller.withDeadline(ctx)
	defer cancel()
	desired := child.DesiredAfter(child.Owner, earlier, child.Seen)
	created, err := k.client.Create(ctx, desired)
	if err != nil {
		return &plan.WriteError{Doing: "creating", Done: "created", Kind: child.Kind, Name: desired.GetName(), Err: err}
	}
	return k.wrote(ctx, child, "create", "Created", created)
}

// earlier returns the child in whose place one is created, or nil. What others have set in
// it goes into the new one, so it is read live.
func (k *childKind) earlier(ctx context.Context, child *plan.Child) (plan.Object, error) {
	earlier := child.Earlier()
	if !child.Inherits(child.Owner) || earlier == nil {
		return earlier, nil
	}
	live, err := k.live(ctx, child, earlier.GetName())
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
func (k *childKind) update(ctx context.Context, child *plan.Child) error {
	live, err := k.live(ctx, child, child.Name(child.Owner))
	if err != nil {
		return err
	}
	desired := child.DesiredUpdate(live, child.Owner, child.Seen)
	if desired == nil {
		return consistency.ErrBehind
	}
	if err := k.controller.recheckOwner(ctx, child.Owner); err != nil {
		return err
	}
	patchType, patch, err := child.Patch(live, desired)
	if err != nil {
		return err
	}
	ctx, cancel := k.controller.withDeadline(ctx)
	defer cancel()
	updated, err := k.client.Patch(ctx, live.GetNamespace(), live.GetName(), patchType, patch)
	if err != nil {
		return &plan.WriteError{Doing: "updating", Done: "updated", Kind: child.Kind, Name: desired.GetName(), Err: err}
	}
	if err := k.wrote(ctx, child, "update", "Updated", updated); err != nil {
		return err
	}
	if child.Recurs = child.CurrentDrift != ""; !child.Recurs && k.isRepair(child) { // what admission changes on the way, nobody has undone
		k.repairs.Observe(child.Owner, updated, plan.ChangedBy(live, patch), child.Drift)
		k.observeFight(child, 0)
	}
	k.admissionMutations.Observe(child.Owner, child.Current, child.CurrentDrift)
	if child.Recurs {
		klog.FromContext(ctx).Info("The API server stored the "+child.Kind+" otherwise than the "+child.OwnerKind.Kind+" asks for, as an admission webhook may do: it stays so until one of them is changed",
			child.LogKey(), klog.KObj(updated), "differs", child.CurrentDrift)
	}
	return nil
}

// wrote remembers a child as the API server stored it for a Foo, in what the cache will
// have of it.
func (k *childKind) wrote(ctx context.Context, child *plan.Child, verb, did string, stored plan.Object) error {
	kept, err := child.Transform(stored)
	if err != nil {
		return err
	}
	k.controller.metrics.Wrote(verb, child.Resource.Resource)
	k.controller.consistency.WroteAt(cache.MetaObjectToName(child.Owner), child.Owner.GetUID(), k.cache, stored.GetResourceVersion())
	k.confirmed.Observe(child.Owner, stored)
	klog.FromContext(ctx).V(2).Info(did+" "+child.Kind, child.LogKey(), klog.KObj(stored))
	now := kept.(plan.Object) //nolint:forcetypeassert // a child stays of its type
	child.Observe(now, child.DescribeDrift(now, child.Owner, child.Seen))
	return nil
}

// confirm makes sure that the status describes a child that is newer than the Foo's spec:
// the cached one, unless the Foo would become ready by it for the first time in this
// generation and the cache may be older than the generation. In that case it reads the
// child live.
func (k *childKind) confirm(ctx context.Context, child *plan.Child) error {
	if child.Named == nil || !child.IsWanted(child.Owner) {
		return nil
	}
	if plan.SaysReady(child.Owner) {
		k.confirmed.Delete(cache.MetaObjectToName(child.Owner)) // what was true of a generation stays true
		return nil
	}
	if k.confirmed.UpToDate(child.Owner, child.Named) || !child.IsReady(child.Named) {
		return nil
	}
	live, err := k.live(ctx, child, child.Named.GetName())
	if err != nil {
		return err
	}
	if plan.IsTerminating(live) || child.DescribeDrift(live, child.Owner, child.Seen) != "" {
		return consistency.ErrBehind
	}
	k.confirmed.Observe(child.Owner, live)
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
func (k *childKind) deleteObsolete(ctx context.Context, child *plan.Child) error {
	taken := false
	if child.IsWanted(child.Owner) {
		wanted, err := k.live(ctx, child, child.Name(child.Owner))
		if err != nil {
			return err
		}
		if !child.OwnerKind.IsControlledBy(wanted, child.Owner) || plan.IsTerminating(wanted) {
			return consistency.ErrBehind
		}
		taken = child.HasTakenOver(wanted, child.Owner, child.Seen)
	}
	for _, obsolete := range child.Obsolete[:min(len(child.Obsolete), maxDeletions)] {
		if err := k.deleteIfObsolete(ctx, child, obsolete.GetName(), taken); err != nil {
			return err
		}
	}
	return nil
}

// deleteIfObsolete reads a child live and deletes it if its Foo has no use for it. It
// reads the Foo after the child: if the Foo asks for the name again, a child created since
// then has another UID than the delete names.
func (k *childKind) deleteIfObsolete(ctx context.Context, child *plan.Child, name string, taken bool) error {
	live, err := k.live(ctx, child, name)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if !child.MayDelete(live, child.Owner, taken) {
		return nil
	}
	if err := k.controller.recheckOwner(ctx, child.Owner); err != nil {
		return err
	}
	ctx, cancel := k.controller.withDeadline(ctx)
	defer cancel()
	err = k.client.Delete(ctx, live.GetNamespace(), name, metav1.DeleteOptions{
		Preconditions:     &metav1.Preconditions{UID: new(live.GetUID()), ResourceVersion: new(live.GetResourceVersion())},
		PropagationPolicy: new(metav1.DeletePropagationBackground),
	})
	if failure.IsNotFound(err, child.Resource.Resource) {
		return nil
	}
	if err != nil {
		return &plan.WriteError{Doing: "deleting the earlier", Done: "deleted", Kind: child.Kind, Name: name, Err: err}
	}
	k.controller.metrics.Wrote("delete", child.Resource.Resource)
	klog.FromContext(ctx).V(2).Info("Deleted "+child.Kind+" of an earlier name", child.LogKey(), klog.KObj(live))
	return nil
}

func (k *childKind) live(ctx context.Context, child *plan.Child, name string) (plan.Object, error) {
	ctx, cancel := k.controller.withDeadline(ctx)
	defer cancel()
	live, err := k.client.Get(ctx, child.Owner.GetNamespace(), name)
	if err != nil {
		return nil, fmt.Errorf("reading %s %q: %w", child.Kind, name, err)
	}
	return live, nil
}

// updateStatus writes a Foo's status if it differs from the cached one, and records an
// Event if the Foo's readiness changed. after is the Foo with that status. After a complete
// sync, a status that only counts the Pods of a rollout may wait.
func (c *Controller) updateStatus(ctx context.Context, owner, after plan.Owner, complete bool) error {
	key, task := cache.MetaObjectToName(owner), plan.StatusTask(owner)
	if equality.Semantic.DeepEqual(owner.GetStatus(), after.GetStatus()) {
		c.statusThrottle.Delete(key)
		c.backoff.Succeed(key, queue.PartStatus)
		return nil
	}
	if c.crdMismatch.WouldRecur(after) {
		return nil
	}
	if err := c.backoff.Deferred(key, queue.PartStatus, task); err != nil {
		return err
	}
	if wait := c.statusThrottle.Wait(owner, after, complete); wait > 0 {
		c.queue.AddAfter(key, wait)
		return nil
	}
	if err := c.sendStatus(ctx, owner, after); err != nil {
		return c.backoff.Fail(key, queue.PartStatus, task, err)
	}
	c.backoff.Succeed(key, queue.PartStatus)
	return nil
}

func (c *Controller) sendStatus(ctx context.Context, owner, after plan.Owner) error {
	callCtx, cancel := c.withDeadline(ctx)
	defer cancel()
	updated, err := c.client.UpdateStatus(callCtx, after)
	if failure.IsNotFound(err, c.kind.Resource.Resource) {
		if live, liveErr := c.liveOwner(ctx, owner); liveErr == nil && live.GetUID() == owner.GetUID() {
			return fmt.Errorf("updating the %s's status: %w", c.kind.Kind, c.crdMismatch.NoSubresource())
		}
	}
	c.staleOwners.Observe(owner, err)
	c.metrics.Refused(failure.CauseOf(err))
	transition := plan.ReadyChanged(c.crdMismatch.LastSent(owner), after)
	if err != nil {
		if transition != nil && failure.MayBeDone(err) {
			c.transitions.Unknown(owner, *transition)
		}
		return fmt.Errorf("updating the %s's status: %w", c.kind.Kind, err)
	}
	c.metrics.Wrote("update", c.statusResource())
	c.consistency.WroteAt(cache.MetaObjectToName(owner), owner.GetUID(), c.cache, updated.GetResourceVersion())
	if transition != nil {
		c.transitions.Stored(owner)
		c.recordTransition(updated, transition)
	}
	if err := c.crdMismatch.Observe(after, updated); err != nil {
		klog.FromContext(ctx).Error(err, "The API server does not store statuses as they are sent")
	}
	return nil
}

// recordMissedTransition records the Event of a status write whose answer was lost, if the
// cache shows it. A status of another controller may soon take its place.
func (c *Controller) recordMissedTransition(owner plan.Owner) {
	if missed := c.transitions.Missed(owner); missed != nil {
		c.recordTransition(owner, missed)
	}
}

func (c *Controller) recordTransition(owner plan.Owner, ready *metav1.Condition) {
	c.recorder.Event(owner, plan.EventType(ready.Reason), ready.Reason, ready.Message)
}

// recheckOwner reads a Foo live and returns nil if it still asks for what the cache says.
// If the cache has its newest version, the Foo no longer counts as stale: the conflict
// that made it count as such was an error of somebody else.
func (c *Controller) recheckOwner(ctx context.Context, owner plan.Owner) error {
	live, err := c.liveOwner(ctx, owner)
	if err != nil {
		c.staleOwners.Observe(owner, err)
		return err
	}
	if !plan.AsksTheSame(owner, live) {
		return consistency.ErrBehind
	}
	if live.GetResourceVersion() == owner.GetResourceVersion() {
		c.staleOwners.Delete(cache.MetaObjectToName(owner))
	}
	return nil
}

func (c *Controller) liveOwner(ctx context.Context, owner plan.Owner) (plan.Owner, error) {
	ctx, cancel := c.withDeadline(ctx)
	defer cancel()
	live, err := c.client.Get(ctx, owner.GetNamespace(), owner.GetName())
	if err != nil {
		return nil, fmt.Errorf("reading the %s: %w", c.kind.Kind, err)
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
