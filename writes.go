/*
Copyright The Sample Controller Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

// The writes. Each has a precondition that the API server checks, so that a write that
// was decided on a stale cache, arrives late, or comes from a second controller does no
// harm: a create fails if the name is taken, an update carries the resourceVersion that it
// was made from, a delete names UID and resourceVersion.

package main

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedappsv1 "k8s.io/client-go/kubernetes/typed/apps/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"example.com/sample-controller/internal/consistency"
	"example.com/sample-controller/internal/names"
	"example.com/sample-controller/internal/plan"
	"example.com/sample-controller/internal/queue"
	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	typedsamplev1alpha1 "example.com/sample-controller/pkg/generated/clientset/versioned/typed/samplecontroller/v1alpha1"
)

// createDeployment creates a Foo's Deployment. A Foo with a status already had one. Read
// such a Foo live first: the cache may be stale, and the Foo deleted.
func (c *Controller) createDeployment(ctx context.Context, foo *samplev1alpha1.Foo) (*appsv1.Deployment, error) {
	if foo.Status.ObservedGeneration > 0 {
		if err := c.recheckFoo(ctx, foo); err != nil {
			return nil, err
		}
	}
	ctx, cancel := c.withDeadline(ctx)
	defer cancel()
	created, err := c.deploymentsIn(foo.Namespace).Create(ctx, c.planner.NewDeployment(foo), metav1.CreateOptions{FieldManager: names.Controller})
	if err != nil {
		return nil, &plan.WriteError{Doing: "creating", Done: "created", Deployment: foo.Spec.DeploymentName, Err: err}
	}
	c.metrics.DeploymentsCreated.Inc()
	c.wroteDeployment(ctx, foo, created)
	klog.FromContext(ctx).V(2).Info("Created Deployment", "deployment", klog.KObj(created))
	return created, nil
}

// repairDeployment updates a Foo's Deployment, or makes the Foo the controller of one
// that may be adopted. The cache holds only what decisions read, so the update is made
// from a live read, and its resourceVersion protects newer writes of others. Reading the
// Foo live protects a newer spec that the cache has not seen.
func (c *Controller) repairDeployment(ctx context.Context, foo *samplev1alpha1.Foo) (*appsv1.Deployment, error) {
	live, err := c.liveDeployment(ctx, foo, foo.Spec.DeploymentName)
	if err != nil {
		return nil, err
	}
	desired := c.planner.DesiredUpdate(live, foo)
	if desired == nil {
		return nil, consistency.ErrStale
	}
	if err := c.recheckFoo(ctx, foo); err != nil {
		return nil, err
	}
	ctx, cancel := c.withDeadline(ctx)
	defer cancel()
	updated, err := c.deploymentsIn(foo.Namespace).Update(ctx, desired, metav1.UpdateOptions{FieldManager: names.Controller})
	if err != nil {
		return nil, &plan.WriteError{Doing: "updating", Done: "updated", Deployment: desired.Name, Err: err}
	}
	c.metrics.DeploymentsUpdated.Inc()
	c.wroteDeployment(ctx, foo, updated)
	klog.FromContext(ctx).V(2).Info("Updated Deployment", "deployment", klog.KObj(updated))
	return updated, nil
}

// wroteDeployment remembers a Deployment as the API server stored it for a Foo.
func (c *Controller) wroteDeployment(ctx context.Context, foo *samplev1alpha1.Foo, stored *appsv1.Deployment) {
	c.consistency.WroteAt(cache.MetaObjectToName(foo), foo.UID, c.deploymentIndexer, stored.ResourceVersion)
	c.confirmed.Observe(foo, stored)
	differs := c.planner.DescribeDrift(stored, foo)
	c.admissionMutations.Observe(foo, stored, differs)
	if differs != "" {
		klog.FromContext(ctx).Info("The API server stored the Deployment otherwise than the Foo asks for, as an admission webhook may do: it stays so until one of them is changed",
			"deployment", klog.KObj(stored), "differs", differs)
	}
}

// deleteObsolete deletes the Deployments that a Foo has under earlier names. Deleting
// can't be undone, so everything that it rests on is read live: that the Foo has the
// Deployment it asks for, each Deployment to delete, and last what the Foo asks for.
func (c *Controller) deleteObsolete(ctx context.Context, foo *samplev1alpha1.Foo, obsolete []*appsv1.Deployment) error {
	if len(obsolete) == 0 {
		return nil
	}
	wanted, err := c.liveDeployment(ctx, foo, foo.Spec.DeploymentName)
	if err != nil {
		return err
	}
	if !plan.IsControlledBy(wanted, foo) || plan.IsTerminating(wanted) {
		return consistency.ErrStale
	}
	for _, deployment := range obsolete {
		if err := c.deleteIfObsolete(ctx, foo, deployment.Name); err != nil {
			return err
		}
	}
	return nil
}

// deleteIfObsolete reads a Deployment live and deletes it if its Foo has no use for it.
// It reads the Foo after the Deployment: if the Foo asks for the name again, a Deployment
// created since then has another UID than the delete names.
func (c *Controller) deleteIfObsolete(ctx context.Context, foo *samplev1alpha1.Foo, name string) error {
	live, err := c.liveDeployment(ctx, foo, name)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if !plan.IsObsolete(live, foo) {
		return nil
	}
	if err := c.recheckFoo(ctx, foo); err != nil {
		return err
	}
	ctx, cancel := c.withDeadline(ctx)
	defer cancel()
	background := metav1.DeletePropagationBackground
	err = c.deploymentsIn(foo.Namespace).Delete(ctx, name, metav1.DeleteOptions{
		Preconditions:     &metav1.Preconditions{UID: &live.UID, ResourceVersion: &live.ResourceVersion},
		PropagationPolicy: &background,
	})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return &plan.WriteError{Doing: "deleting the earlier", Done: "deleted", Deployment: name, Err: err}
	}
	c.metrics.DeploymentsDeleted.Inc()
	klog.FromContext(ctx).V(2).Info("Deleted Deployment of an earlier name", "deployment", klog.KObj(live))
	return nil
}

// updateStatus writes a Foo's status if it differs from the cached one, and records an
// Event if the Foo's readiness changed. After a complete sync, a status that only counts
// the Pods of a rollout may wait.
func (c *Controller) updateStatus(ctx context.Context, foo *samplev1alpha1.Foo, status samplev1alpha1.FooStatus, complete bool) error {
	key, task := cache.MetaObjectToName(foo), plan.Task{Foo: foo}
	if missed := c.transitions.Missed(foo); missed != nil {
		c.recordTransition(foo, missed)
	}
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
	err := c.sendStatus(ctx, foo, status)
	switch {
	case err == nil:
		c.backoff.Succeed(key, queue.PartStatus)
	case !queue.NextAttempt(err).Expected:
		c.backoff.Fail(key, queue.PartStatus, task, err)
	}
	return err
}

func (c *Controller) sendStatus(ctx context.Context, foo *samplev1alpha1.Foo, status samplev1alpha1.FooStatus) error {
	desired := foo.DeepCopy() // the cached Foo is shared: never change it
	desired.Status = status
	callCtx, cancel := c.withDeadline(ctx)
	defer cancel()
	updated, err := c.foosIn(foo.Namespace).UpdateStatus(callCtx, desired, metav1.UpdateOptions{FieldManager: names.Controller})
	if apierrors.IsNotFound(err) {
		if live, liveErr := c.liveFoo(ctx, foo); liveErr == nil && live.UID == foo.UID {
			return fmt.Errorf("updating the Foo's status: %w", c.crdMismatch.NoSubresource())
		}
	}
	c.staleFoos.Observe(foo, err)
	transition := plan.ReadyChanged(c.crdMismatch.LastSent(foo), status)
	if err != nil {
		if transition != nil && plan.MayBeDone(err) {
			c.transitions.Unknown(foo, *transition)
		}
		return fmt.Errorf("updating the Foo's status: %w", err)
	}
	c.metrics.StatusesUpdated.Inc()
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

func (c *Controller) recordTransition(foo *samplev1alpha1.Foo, ready *metav1.Condition) {
	c.recorder.Event(foo, plan.EventType(ready.Reason), ready.Reason, ready.Message)
}

// recheckFoo reads a Foo live and returns nil if it still asks for what the cache says.
// If the cache has its newest version, the Foo no longer counts as stale: the conflict
// that made it count as such was an error of somebody else.
func (c *Controller) recheckFoo(ctx context.Context, foo *samplev1alpha1.Foo) error {
	live, err := c.liveFoo(ctx, foo)
	if err != nil {
		return err
	}
	if !plan.AsksTheSame(foo, live) {
		return consistency.ErrStale
	}
	if live.ResourceVersion == foo.ResourceVersion {
		c.staleFoos.Delete(cache.MetaObjectToName(foo))
	}
	return nil
}

// confirmRollout returns the Deployment that the status is to describe: the cached one,
// unless the Foo would become ready by it for the first time in this generation and the
// cache may be older than the generation. In that case it reads the Deployment live.
func (c *Controller) confirmRollout(ctx context.Context, foo *samplev1alpha1.Foo, cached *appsv1.Deployment) (*appsv1.Deployment, error) {
	if plan.SaysReady(foo) {
		c.confirmed.Delete(cache.MetaObjectToName(foo)) // what was true of a generation stays true
		return cached, nil
	}
	if c.confirmed.UpToDate(foo, cached) || !plan.IsRolledOut(cached) {
		return cached, nil
	}
	live, err := c.liveDeployment(ctx, foo, cached.Name)
	if err != nil {
		return nil, err
	}
	if plan.IsTerminating(live) || c.planner.DescribeDrift(live, foo) != "" {
		return nil, consistency.ErrStale
	}
	c.confirmed.Observe(foo, live)
	return live, nil
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

func (c *Controller) liveDeployment(ctx context.Context, foo *samplev1alpha1.Foo, name string) (*appsv1.Deployment, error) {
	ctx, cancel := c.withDeadline(ctx)
	defer cancel()
	live, err := c.deploymentsIn(foo.Namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("reading Deployment %q: %w", name, err)
	}
	return live, nil
}

// withDeadline bounds a call to the API server. Without it, two calls that hang would
// stop both workers for ever.
func (c *Controller) withDeadline(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, c.callTimeout)
}

func (c *Controller) deploymentsIn(namespace string) typedappsv1.DeploymentInterface {
	return c.kubeClient.AppsV1().Deployments(namespace)
}

func (c *Controller) foosIn(namespace string) typedsamplev1alpha1.FooInterface {
	return c.fooClient.SamplecontrollerV1alpha1().Foos(namespace)
}
