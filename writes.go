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
	"example.com/sample-controller/internal/names"
	"example.com/sample-controller/internal/plan"
	"example.com/sample-controller/internal/queue"
	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	typedsamplev1alpha1 "example.com/sample-controller/pkg/generated/clientset/versioned/typed/samplecontroller/v1alpha1"
)

// create creates a Foo's child. A Foo with a status already had one. Read such a Foo live
// first: the cache may be stale, and the Foo deleted.
func (s *kindSync[T]) create(ctx context.Context) error {
	if s.foo.Status.ObservedGeneration > 0 {
		if err := s.controller.recheckFoo(ctx, s.foo); err != nil {
			return err
		}
	}
	earlier, err := s.earlier(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := s.controller.withDeadline(ctx)
	defer cancel()
	desired := s.DesiredAfter(s.foo, earlier, s.seen)
	created, err := s.client().Create(ctx, desired, metav1.CreateOptions{FieldManager: names.Controller})
	if err != nil {
		return &plan.WriteError{Doing: "creating", Done: "created", Kind: s.Kind, Name: desired.GetName(), Err: err}
	}
	return s.wrote(ctx, "create", "Created", created)
}

// earlier returns the child in whose place one is created, or nil. What others have set in
// it goes into the new one, so it is read live.
func (s *kindSync[T]) earlier(ctx context.Context) (earlier T, err error) {
	earlier = s.decided.Earlier()
	if !s.Inherits(s.foo) || plan.IsNil(earlier) {
		return earlier, nil
	}
	live, err := s.live(ctx, earlier.GetName())
	if apierrors.IsNotFound(err) {
		return *new(T), nil
	}
	return live, err
}

// repair updates a Foo's child, or makes the Foo the controller of one that may be
// adopted. The cache holds only what decisions read, so the update is made from a live
// read, and its resourceVersion protects newer writes of others. Reading the Foo live
// protects a newer spec that the cache has not seen. Only what changes is sent: an update
// of the whole object would drop the fields that this client does not know.
func (s *kindSync[T]) repair(ctx context.Context) error {
	live, err := s.live(ctx, s.Name(s.foo))
	if err != nil {
		return err
	}
	desired := s.DesiredUpdate(live, s.foo, s.seen)
	if plan.IsNil(desired) {
		return consistency.ErrBehind
	}
	if err := s.controller.recheckFoo(ctx, s.foo); err != nil {
		return err
	}
	patchType, patch, err := s.Patch(live, desired)
	if err != nil {
		return err
	}
	ctx, cancel := s.controller.withDeadline(ctx)
	defer cancel()
	updated, err := s.client().Patch(ctx, live.GetName(), patchType, patch, metav1.PatchOptions{FieldManager: names.Controller})
	if err != nil {
		return &plan.WriteError{Doing: "updating", Done: "updated", Kind: s.Kind, Name: desired.GetName(), Err: err}
	}
	if err := s.wrote(ctx, "update", "Updated", updated); err != nil {
		return err
	}
	if s.recurs = s.drift != ""; !s.recurs && s.isRepair() { // what admission changes on the way, nobody has undone
		s.repairs.Observe(s.foo, updated, plan.ChangedBy(live, patch), s.decided.Drift)
		s.fights(0)
	}
	s.admissionMutations.Observe(s.foo, s.child, s.drift)
	if s.recurs {
		klog.FromContext(ctx).Info("The API server stored the "+s.Kind+" otherwise than the Foo asks for, as an admission webhook may do: it stays so until one of them is changed",
			s.LogKey(), klog.KObj(updated), "differs", s.drift)
	}
	return nil
}

// isRepair reports whether an update makes good what somebody has changed, and does not carry
// out a new spec: the status has reported this spec before, or can't be written.
func (s *kindSync[T]) isRepair() bool {
	return s.controller.crdMismatch.LastSent(s.foo).ObservedGeneration == s.foo.Generation ||
		s.controller.backoff.IsFailing(s.key(), queue.PartStatus)
}

// wrote remembers a child as the API server stored it for a Foo, in what the cache will
// have of it.
func (s *kindSync[T]) wrote(ctx context.Context, verb, did string, stored T) error {
	kept, err := s.Transform(stored)
	if err != nil {
		return err
	}
	s.controller.metrics.Wrote(verb, s.Resource.Resource)
	s.controller.consistency.WroteAt(s.key(), s.foo.UID, s.indexer, stored.GetResourceVersion())
	s.confirmed.Observe(s.foo, stored)
	klog.FromContext(ctx).V(2).Info(did+" "+s.Kind, s.LogKey(), klog.KObj(stored))
	child := kept.(T) //nolint:forcetypeassert // a child stays of its type
	s.has(child, s.DescribeDrift(child, s.foo, s.seen))
	return nil
}

// confirm makes sure that the status describes a child that is newer than the Foo's spec:
// the cached one, unless the Foo would become ready by it for the first time in this
// generation and the cache may be older than the generation. In that case it reads the
// child live.
func (s *kindSync[T]) confirm(ctx context.Context) error {
	cached := s.decided.Named
	if plan.IsNil(cached) || !s.IsWanted(s.foo) {
		return nil
	}
	if plan.SaysReady(s.foo) {
		s.confirmed.Delete(s.key()) // what was true of a generation stays true
		return nil
	}
	if s.confirmed.UpToDate(s.foo, cached) || !s.IsReady(cached) {
		return nil
	}
	live, err := s.live(ctx, cached.GetName())
	if err != nil {
		return err
	}
	if plan.IsTerminating(live) || s.DescribeDrift(live, s.foo, s.seen) != "" {
		return consistency.ErrBehind
	}
	s.confirmed.Observe(s.foo, live)
	s.has(live, "")
	return nil
}

// maxDeletions is how many children of a kind a sync deletes. A Foo may control any number:
// whoever creates them names their owner. The events of these deletions queue the Foo for
// the rest, behind the Foos of others.
const maxDeletions = 10

// deleteAllObsolete deletes the children of a kind that a Foo does not ask for any more,
// as after a rename. Deleting can't be undone, so everything that it rests on is read live:
// that the Foo has the child it asks for, each child to delete, and last the Foo.
func (s *kindSync[T]) deleteAllObsolete(ctx context.Context) error {
	taken := false
	if s.IsWanted(s.foo) {
		wanted, err := s.live(ctx, s.Name(s.foo))
		if err != nil {
			return err
		}
		if !plan.IsControlledBy(wanted, s.foo) || plan.IsTerminating(wanted) {
			return consistency.ErrBehind
		}
		taken = s.HasTakenOver(wanted, s.foo, s.seen)
	}
	for _, child := range s.decided.Obsolete[:min(len(s.decided.Obsolete), maxDeletions)] {
		if err := s.deleteIfObsolete(ctx, child.GetName(), taken); err != nil {
			return err
		}
	}
	return nil
}

// deleteIfObsolete reads a child live and deletes it if its Foo has no use for it. It
// reads the Foo after the child: if the Foo asks for the name again, a child created since
// then has another UID than the delete names.
func (s *kindSync[T]) deleteIfObsolete(ctx context.Context, name string, taken bool) error {
	live, err := s.live(ctx, name)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if !s.MayDelete(live, s.foo, taken) {
		return nil
	}
	if err := s.controller.recheckFoo(ctx, s.foo); err != nil {
		return err
	}
	ctx, cancel := s.controller.withDeadline(ctx)
	defer cancel()
	err = s.client().Delete(ctx, name, metav1.DeleteOptions{
		Preconditions:     &metav1.Preconditions{UID: new(live.GetUID()), ResourceVersion: new(live.GetResourceVersion())},
		PropagationPolicy: new(metav1.DeletePropagationBackground),
	})
	if failure.IsNotFound(err, s.Resource.Resource) {
		return nil
	}
	if err != nil {
		return &plan.WriteError{Doing: "deleting the earlier", Done: "deleted", Kind: s.Kind, Name: name, Err: err}
	}
	s.controller.metrics.Wrote("delete", s.Resource.Resource)
	klog.FromContext(ctx).V(2).Info("Deleted "+s.Kind+" of an earlier name", s.LogKey(), klog.KObj(live))
	return nil
}

func (s *kindSync[T]) live(ctx context.Context, name string) (T, error) {
	ctx, cancel := s.controller.withDeadline(ctx)
	defer cancel()
	live, err := s.client().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return live, fmt.Errorf("reading %s %q: %w", s.Kind, name, err)
	}
	return live, nil
}

func (s *kindSync[T]) client() childClient[T] { return s.clientIn(s.foo.Namespace) }

// updateStatus writes a Foo's status if it differs from the cached one, and records an
// Event if the Foo's readiness changed. After a complete sync, a status that only counts
// the Pods of a rollout may wait.
func (c *Controller) updateStatus(ctx context.Context, foo *samplev1alpha1.Foo, status samplev1alpha1.FooStatus, complete bool) error {
	key, task := cache.MetaObjectToName(foo), plan.StatusTask(foo)
	if equality.Semantic.DeepEqual(foo.Status, status) {
		c.statusThrottle.Delete(key)
		c.backoff.Succeed(key, queue.PartStatus)
		return nil
	}
	if c.crdMismatch.WouldRecur(foo, status) {
		return nil
	}
	if err := c.backoff.Deferred(key, queue.PartStatus, task); err != nil {
		return err
	}
	if wait := c.statusThrottle.Wait(foo, status, complete); wait > 0 {
		c.queue.AddAfter(key, wait)
		return nil
	}
	if err := c.sendStatus(ctx, foo, status); err != nil {
		return c.backoff.Fail(key, queue.PartStatus, task, err)
	}
	c.backoff.Succeed(key, queue.PartStatus)
	return nil
}

func (c *Controller) sendStatus(ctx context.Context, foo *samplev1alpha1.Foo, status samplev1alpha1.FooStatus) error {
	desired := foo.DeepCopy() // the cached Foo is shared: never change it
	desired.Status = status
	callCtx, cancel := c.withDeadline(ctx)
	defer cancel()
	updated, err := c.foosIn(foo.Namespace).UpdateStatus(callCtx, desired, metav1.UpdateOptions{FieldManager: names.Controller})
	if failure.IsNotFound(err, foosResource) {
		if live, liveErr := c.liveFoo(ctx, foo); liveErr == nil && live.UID == foo.UID {
			return fmt.Errorf("updating the Foo's status: %w", c.crdMismatch.NoSubresource())
		}
	}
	c.staleFoos.Observe(foo, err)
	c.metrics.Refused(failure.CauseOf(err))
	transition := plan.ReadyChanged(c.crdMismatch.LastSent(foo), status)
	if err != nil {
		if transition != nil && failure.MayBeDone(err) {
			c.transitions.Unknown(foo, *transition)
		}
		return fmt.Errorf("updating the Foo's status: %w", err)
	}
	c.metrics.Wrote("update", fooStatus)
	c.consistency.WroteAt(cache.MetaObjectToName(foo), foo.UID, c.fooIndexer, updated.ResourceVersion)
	if transition != nil {
		c.transitions.Stored(foo)
		c.recordTransition(updated, transition)
	}
	if err := c.crdMismatch.Observe(foo, status, updated.Status); err != nil {
		klog.FromContext(ctx).Error(err, "The API server does not store statuses as they are sent")
	}
	return nil
}

// recordMissedTransition records the Event of a status write whose answer was lost, if the
// cache shows it. A status of another controller may soon take its place.
func (c *Controller) recordMissedTransition(foo *samplev1alpha1.Foo) {
	if missed := c.transitions.Missed(foo); missed != nil {
		c.recordTransition(foo, missed)
	}
}

func (c *Controller) recordTransition(foo *samplev1alpha1.Foo, ready *metav1.Condition) {
	c.recorder.Event(foo, plan.EventType(ready.Reason), ready.Reason, ready.Message)
}

// recheckFoo reads a Foo live and returns nil if it still asks for what the cache says.
// If the cache has its newest version, the Foo no longer counts as stale: the conflict
// that made it count as such was an error of somebody else.
func (c *Controller) recheckFoo(ctx context.Context, foo *samplev1alpha1.Foo) error {
	live, err := c.liveFoo(ctx, foo)
	if err != nil {
		c.staleFoos.Observe(foo, err)
		return err
	}
	if !plan.AsksTheSame(foo, live) {
		return consistency.ErrBehind
	}
	if live.ResourceVersion == foo.ResourceVersion {
		c.staleFoos.Delete(cache.MetaObjectToName(foo))
	}
	return nil
}

func (c *Controller) liveFoo(ctx context.Context, foo *samplev1alpha1.Foo) (*samplev1alpha1.Foo, error) {
	ctx, cancel := c.withDeadline(ctx)
	defer cancel()
	live, err := c.foosIn(foo.Namespace).Get(ctx, foo.Name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("reading the Foo: %w", err)
	}
	return live, nil
}

// withDeadline bounds a call to the API server. Without it, two calls that hang would
// stop both workers for ever.
func (c *Controller) withDeadline(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, c.callTimeout)
}

func (c *Controller) foosIn(namespace string) typedsamplev1alpha1.FooInterface {
	return c.fooClient.SamplecontrollerV1alpha1().Foos(namespace)
}
