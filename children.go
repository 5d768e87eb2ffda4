// SPDX-License-Identifier: Apache-2.0

// What a Foo owns: the table of its children, and a sync of them.

package main

import (
	"context"
	"errors"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"example.com/sample-controller/internal/consistency"
	"example.com/sample-controller/internal/failure"
	"example.com/sample-controller/internal/plan"
	"example.com/sample-controller/internal/queue"
	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// table lists the kinds of children in the order in which they are written: for each its
// row of internal/plan, its informer and its client.
func (c *Controller) table(config Config) []childKind {
	kube := config.KubeInformers
	return []childKind{
		newKind(c, plan.Deployment(config.Image), kube.Apps().V1().Deployments().TypedInformer(),
			func(namespace string) childClient[*appsv1.Deployment] {
				return c.kubeClient.AppsV1().Deployments(namespace)
			}),
	}
}

// stalledAfter is how long a child has to be refused until the Foo is stalled. Some refusals
// pass by themselves: see queue.RefusedRetry.
const stalledAfter = 30 * time.Second

// Reads returns the resources that the informers read.
func (c *Controller) Reads() []schema.GroupVersionResource {
	resources := []schema.GroupVersionResource{samplev1alpha1.SchemeGroupVersion.WithResource(foosResource)}
	for _, kind := range c.children {
		resources = append(resources, kind.resource())
	}
	return resources
}

// childKind is a row of the table. kind implements it for each type of object.
type childKind interface {
	resource() schema.GroupVersionResource
	prepareInformer() error
	addEventHandlers(options cache.HandlerOptions) (cache.ResourceEventHandlerRegistration, error)
	// sync reads a Foo's children of the kind from the cache, and decides. seen has the
	// children of the earlier rows.
	sync(foo *samplev1alpha1.Foo, seen plan.Seen) childSync
	// forget drops what is remembered of a Foo that is gone.
	forget(foo cache.ObjectName)
}

// childSync is a sync of a Foo's children of one kind.
type childSync interface {
	// write creates or updates the child, unless its back-off is not over.
	write(ctx context.Context)
	// deleteObsolete deletes children that the Foo does not ask for any more. Call it when
	// it has all those that it asks for.
	deleteObsolete(ctx context.Context)
	// blocks reports whether later rows have to wait for the child.
	blocks() bool
	// outcome returns what the status says of the child, and the error of the sync.
	outcome() (plan.Outcome, error)
}

// syncChildren makes a Foo's children as it asks, one kind after the other, and then
// deletes those that it does not ask for any more, the last kind first.
func (c *Controller) syncChildren(ctx context.Context, foo *samplev1alpha1.Foo) ([]plan.Outcome, error) {
	var syncs []childSync
	seen, blocked, failed := plan.Seen{}, false, false
	for _, kind := range c.children {
		child := kind.sync(foo, seen)
		syncs = append(syncs, child)
		if !blocked {
			child.write(ctx)
		}
		_, err := child.outcome()
		blocked, failed = blocked || child.blocks(), failed || err != nil
	}
	if !blocked && !failed {
		for _, child := range slices.Backward(syncs) {
			child.deleteObsolete(ctx)
		}
	}
	outcomes, errs := make([]plan.Outcome, len(syncs)), make([]error, len(syncs))
	for i, child := range syncs {
		outcomes[i], errs[i] = child.outcome()
	}
	return outcomes, errors.Join(errs...)
}

// childClient is what the controller calls of the client of a kind, in one namespace.
type childClient[T plan.Object] interface {
	Get(ctx context.Context, name string, options metav1.GetOptions) (T, error)
	Create(ctx context.Context, child T, options metav1.CreateOptions) (T, error)
	Patch(ctx context.Context, name string, kind types.PatchType, patch []byte, options metav1.PatchOptions, subresources ...string) (T, error)
	Delete(ctx context.Context, name string, options metav1.DeleteOptions) error
}

// kind is a kind of children: its row, and what the controller has for it.
type kind[T plan.Object] struct {
	*plan.Child[T]
	controller *Controller
	informer   cache.TypedSharedIndexInformer[T]
	indexer    cache.TypedIndexer[T]
	clientIn   func(namespace string) childClient[T]

	// What is remembered between the syncs of a Foo.
	confirmed          consistency.ConfirmedChildren
	admissionMutations consistency.AdmissionMutations
	repairs            consistency.Repairs
}

func newKind[T plan.Object](c *Controller, row plan.Child[T], informer cache.TypedSharedIndexInformer[T], clientIn func(namespace string) childClient[T]) *kind[T] {
	c.metrics.CountWritesTo(row.Resource.Resource, "create", "update", "delete")
	c.metrics.CountRefusalsBy(failure.Causes...)
	return &kind[T]{
		Child: &row, controller: c, informer: informer, indexer: informer.GetTypedIndexer(), clientIn: clientIn,
		repairs: consistency.Repairs{Clock: c.clock},
	}
}

func (k *kind[T]) resource() schema.GroupVersionResource { return k.Resource }

func (k *kind[T]) forget(foo cache.ObjectName) {
	k.confirmed.Delete(foo)
	k.admissionMutations.Delete(foo)
	k.repairs.Delete(foo)
}

// sync reads the caches and decides.
func (k *kind[T]) sync(foo *samplev1alpha1.Foo, seen plan.Seen) childSync {
	named := k.cached(foo.Namespace, k.Name(foo))
	s := &kindSync[T]{kind: k, foo: foo, seen: seen, decided: k.Decide(foo, named, k.controlledBy(foo), seen)}
	s.task = k.Task(foo, s.decided)
	if !plan.IsNil(named) && plan.IsControlledBy(named, foo) {
		s.has(named, s.decided.Drift)
	}
	return s
}

// controlledBy returns the objects of the cache that a Foo controls.
func (k *kind[T]) controlledBy(foo *samplev1alpha1.Foo) []T {
	var controlled []T
	for _, candidate := range lookUp(k.indexer, byControllerUID, k.controller.buckets.Of(string(foo.UID))) {
		if plan.IsControlledBy(candidate, foo) {
			controlled = append(controlled, candidate)
		}
	}
	return controlled
}

// cached returns an object of the cache, or nil.
func (k *kind[T]) cached(namespace, name string) (found T) {
	object, exists, err := k.indexer.GetByKey(cache.ObjectName{Namespace: namespace, Name: name}.String())
	if err == nil && exists {
		found = object.(T) //nolint:forcetypeassert // the informer's type
	}
	return found
}

// kindSync is a sync of a Foo's children of a kind.
type kindSync[T plan.Object] struct {
	*kind[T]
	foo     *samplev1alpha1.Foo
	seen    plan.Seen
	decided plan.Decision[T]
	task    plan.Task
	// child is the Foo's, as it was last read or written, or nil, and drift says in what
	// it differs from what the Foo asks for.
	child T
	drift string
	// recurs is true if an update would be stored with that drift again, paced if it waits
	// until fewer Foos roll out, and fight is what somebody changes back each time.
	recurs bool
	paced  bool
	fight  *plan.Fight
	err    error
}

// has records the Foo's child as it was last read or written.
func (s *kindSync[T]) has(child T, drift string) {
	s.child, s.drift = child, drift
	s.seen[s.Kind] = child
}

func (s *kindSync[T]) outcome() (plan.Outcome, error) {
	return s.Outcome(s.foo, s.result()), s.err
}

func (s *kindSync[T]) result() plan.Result[T] {
	return plan.Result[T]{
		Action: s.decided.Action, Pending: s.decided.Pending, Named: s.decided.Named, Child: s.child, Drift: s.drift, Failure: s.err,
		Refused: s.controller.backoff.RefusedFor(s.key(), s.part()) >= stalledAfter,
		Recurs:  s.recurs, Fight: s.fight, Paced: s.paced, InService: s.decided.InService,
		Stale: s.err != nil && queue.NextAttempt(s.err).Expected,
	}
}

func (s *kindSync[T]) blocks() bool {
	return s.Blocks && !s.IsAsAsked(s.foo, s.result())
}

// write makes the write that was decided. One that failed is not sent again before its
// back-off is over, unless more than the child's status has changed.
func (s *kindSync[T]) write(ctx context.Context) {
	if s.err = s.controller.backoff.Deferred(s.key(), s.part(), s.task); s.err != nil {
		return
	}
	if err := s.writeDecided(ctx); err != nil || len(s.decided.Obsolete) == 0 {
		s.finish(err)
	}
}

func (s *kindSync[T]) deleteObsolete(ctx context.Context) {
	if len(s.decided.Obsolete) > 0 {
		s.finish(s.deleteAllObsolete(ctx))
	}
}

// finish records how the writes of a kind ended, before the status is written, so that the
// status's event does not wake the key.
func (s *kindSync[T]) finish(err error) {
	s.err = err
	if err == nil {
		s.controller.backoff.Succeed(s.key(), s.part())
		return
	}
	s.controller.metrics.Refused(failure.CauseOf(err))
	s.err = s.controller.backoff.Fail(s.key(), s.part(), s.task, err)
}

func (s *kindSync[T]) key() cache.ObjectName { return cache.MetaObjectToName(s.foo) }
func (s *kindSync[T]) part() queue.Part      { return queue.Part(s.Kind) }

func (s *kindSync[T]) writeDecided(ctx context.Context) error {
	switch s.decided.Action {
	case plan.ActionCreate:
		return s.create(ctx)
	case plan.ActionUpdate, plan.ActionAdopt:
		if s.admissionMutations.WouldRecur(s.foo, s.decided.Named, s.decided.Drift) {
			s.child, s.drift, s.recurs = s.decided.Named, s.decided.Drift, true // also one whose adoption was undone
			return nil
		}
		if wait := s.repairs.Wait(s.foo, s.decided.Named); wait > 0 {
			s.fights(wait)
			return nil
		}
		if s.paced = s.waitsToRestart(); s.paced {
			return nil
		}
		return s.repair(ctx)
	case plan.ActionNone:
		s.fights(0)
		return s.confirm(ctx)
	case plan.ActionWait, plan.ActionLeave, plan.ActionSuspend:
	}
	return nil
}

// waitsToRestart reports whether an update waits until fewer Foos roll out, and then syncs the
// Foo again. What the Foo's user has asked for does not wait.
func (s *kindSync[T]) waitsToRestart() bool {
	if s.decided.Action != plan.ActionUpdate || !s.isRepair() || !s.IsRestarting(s.decided.Named, s.foo, s.seen) {
		return false
	}
	wait := s.controller.rollouts.Begin(s.key())
	if wait > 0 {
		s.controller.queue.AddAfter(s.key(), wait)
	}
	return wait > 0
}

// fights records a fight about the child, if there is one, and syncs the Foo again: after
// wait, or when the last repair has lasted.
func (s *kindSync[T]) fights(wait time.Duration) {
	if plan.IsNil(s.decided.Named) {
		return
	}
	by, drift, left, fights := s.repairs.Fight(s.foo, s.decided.Named, s.WasStalled(s.foo))
	if !fights {
		return
	}
	if wait == 0 {
		wait = left
	}
	if wait <= 0 { // the opponent has given in
		s.repairs.Delete(s.key())
		return
	}
	s.fight = &plan.Fight{By: by, Drift: drift}
	s.controller.queue.AddAfter(s.key(), wait)
}
