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

package main

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedappsv1 "k8s.io/client-go/kubernetes/typed/apps/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"example.com/sample-controller/internal/consistency"
	"example.com/sample-controller/internal/plan"
	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// Every write has a condition that the API server checks, so that one which
// was decided on a stale cache, sent late, or sent by a second controller does
// no harm: a create fails if the name is taken, an update carries the
// resourceVersion that it was made from, a delete names UID and resourceVersion.

func (c *Controller) deploymentsIn(namespace string) typedappsv1.DeploymentInterface {
	return c.kubeClient.AppsV1().Deployments(namespace)
}

// createDeployment makes a Foo's Deployment. A Foo with a status has had one: it
// is looked at live first, for it may be the Foo that is gone, and the
// Deployment with it, and the cache of Foos that is late.
func (c *Controller) createDeployment(ctx context.Context, foo *samplev1alpha1.Foo) (*appsv1.Deployment, error) {
	if foo.Status.ObservedGeneration > 0 {
		if err := c.recheckFoo(ctx, foo); err != nil {
			return nil, err
		}
	}
	ctx, cancel := c.withDeadline(ctx)
	defer cancel()
	created, err := c.deploymentsIn(foo.Namespace).Create(ctx, c.plan.NewDeployment(foo), metav1.CreateOptions{FieldManager: controllerName})
	if err != nil {
		return nil, &plan.WriteError{Doing: "creating", Done: "created", Deployment: foo.Spec.DeploymentName, Err: err}
	}
	c.metrics.DeploymentsCreated.Inc()
	c.wroteDeployment(ctx, foo, created)
	klog.FromContext(ctx).V(2).Info("Created Deployment", "deployment", klog.KObj(created))
	return created, nil
}

// updateDeployment repairs a Foo's Deployment, or makes the Foo the controller of
// the one that asks for it. The cache has only what decisions read, so it is made
// from a live read, whose resourceVersion keeps it from overwriting a newer
// Deployment. The live read of the Foo keeps an old wish from overwriting a newer
// one, where the Foos' cache is the older.
func (c *Controller) updateDeployment(ctx context.Context, foo *samplev1alpha1.Foo) (*appsv1.Deployment, error) {
	live, err := c.liveDeployment(ctx, foo, foo.Spec.DeploymentName)
	if err != nil {
		return nil, err
	}
	desired := c.plan.DesiredUpdate(live, foo)
	if desired == nil {
		return nil, consistency.ErrStale
	}
	if err := c.recheckFoo(ctx, foo); err != nil {
		return nil, err
	}
	ctx, cancel := c.withDeadline(ctx)
	defer cancel()
	updated, err := c.deploymentsIn(foo.Namespace).Update(ctx, desired, metav1.UpdateOptions{FieldManager: controllerName})
	if err != nil {
		return nil, &plan.WriteError{Doing: "updating", Done: "updated", Deployment: desired.Name, Err: err}
	}
	c.metrics.DeploymentsUpdated.Inc()
	c.wroteDeployment(ctx, foo, updated)
	klog.FromContext(ctx).V(2).Info("Updated Deployment", "deployment", klog.KObj(updated))
	return updated, nil
}

// wroteDeployment remembers what the API server made of a Deployment that was
// sent for a Foo.
func (c *Controller) wroteDeployment(ctx context.Context, foo *samplev1alpha1.Foo, stored *appsv1.Deployment) {
	c.wroteAt(foo, c.deploymentIndexer, stored)
	c.confirmed.Observe(foo, stored)
	differs := c.plan.DescribeDrift(stored, foo)
	c.admissionMutations.Observe(foo, stored, differs)
	if differs != "" {
		klog.FromContext(ctx).Info("The API server stored the Deployment otherwise than the Foo asks for, as an admission webhook may do: it stays so until one of them is changed",
			"deployment", klog.KObj(stored), "differs", differs)
	}
}

// wrote remembers a write on a Foo's behalf until its cache has seen it.
func (c *Controller) wroteAt(foo *samplev1alpha1.Foo, store consistency.LastSyncRVGetter, object metav1.Object) {
	c.consistency.WroteAt(cache.MetaObjectToName(foo), foo.UID, store, object.GetResourceVersion())
}

// withDeadline bounds a call to the API server. Two calls that hang would else
// stop both workers for ever.
func (c *Controller) withDeadline(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, c.callTimeout)
}

// removeSurplus deletes the Deployments that a Foo has under earlier names. A
// delete can't be undone, so all that it rests on is looked at live: that the
// Foo has what it asks for, what is to go, and last what the Foo asks for.
func (c *Controller) deleteObsolete(ctx context.Context, foo *samplev1alpha1.Foo, surplus []*appsv1.Deployment) error {
	if len(surplus) == 0 {
		return nil
	}
	wanted, err := c.liveDeployment(ctx, foo, foo.Spec.DeploymentName)
	if err != nil {
		return err
	}
	if !plan.IsControlledBy(wanted, foo) || plan.IsTerminating(wanted) {
		return consistency.ErrStale
	}
	for _, deployment := range surplus {
		if err := c.deleteIfObsolete(ctx, foo, deployment.Name); err != nil {
			return err
		}
	}
	return nil
}

// deleteSurplus deletes a Deployment if, looked at live, the Foo still has no
// use for it. The Foo is looked at after the Deployment: one that has been made
// since, because the Foo asks for it again, is another than the delete names.
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

// confirmFoo returns nil if the Foo, looked at live, still asks for what the
// cache says. If it is of the same version it does not count as out of date any
// more: the conflict that said so was somebody's mistake.
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

func (c *Controller) liveFoo(ctx context.Context, foo *samplev1alpha1.Foo) (*samplev1alpha1.Foo, error) {
	ctx, cancel := c.withDeadline(ctx)
	defer cancel()
	live, err := c.fooClient.SamplecontrollerV1alpha1().Foos(foo.Namespace).Get(ctx, foo.Name, metav1.GetOptions{})
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

// confirmRollout returns the Deployment by which the status is to be judged: the
// cached one, unless the Foo would be called ready by it for the first time in
// this generation and nothing says that it is no older than that. Then it is
// read live.
func (c *Controller) confirmRollout(ctx context.Context, foo *samplev1alpha1.Foo, cached *appsv1.Deployment) (*appsv1.Deployment, error) {
	if plan.SaysReady(foo) {
		c.confirmed.Delete(cache.MetaObjectToName(foo)) // it was so, and that is for ever
		return cached, nil
	}
	if c.confirmed.UpToDate(foo, cached) || !plan.IsRolledOut(cached) {
		return cached, nil
	}
	live, err := c.liveDeployment(ctx, foo, cached.Name)
	if err != nil {
		return nil, err
	}
	if plan.IsTerminating(live) || c.plan.DescribeDrift(live, foo) != "" {
		return nil, consistency.ErrStale
	}
	c.confirmed.Observe(foo, live)
	return live, nil
}
