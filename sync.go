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
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"example.com/sample-controller/internal/readyourwrites"
	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// sync brings one Foo and its Deployment together: it reads the caches,
// decides, writes at most what differs, and writes the status if that differs,
// also when the work failed. It may be called at any time, any number of times.
func (c *Controller) sync(ctx context.Context, key cache.ObjectName) error {
	foo, err := c.foos.Foos(key.Namespace).Get(key.Name)
	if apierrors.IsNotFound(err) {
		// The garbage collector takes the Deployment.
		c.writes.Forget(key)
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading the Foo from the cache: %w", err)
	}
	if !c.writes.CaughtUp(key, foo.UID) {
		c.counters.staleSyncs.Add(1)
		return errCacheBehind
	}
	named, err := c.deployments.Deployments(foo.Namespace).Get(foo.Spec.DeploymentName)
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("reading Deployment %q from the cache: %w", foo.Spec.DeploymentName, err)
	}

	decided := decide(foo, named)
	deployment, err := c.carryOut(ctx, foo, decided)
	if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return err
	}
	result := outcome{action: decided.action, deployment: deployment}
	if isRefusal(err) {
		result.failure = err
	}
	status := calculateStatus(foo, result, metav1.NewTime(c.clock.Now()))
	// The status' error first: it is the one to judge when to try again, for
	// until it is written nobody is told of the other.
	return errors.Join(c.writeStatus(ctx, foo, status), err)
}

// carryOut makes the write that was decided, if any, and returns the Foo's
// Deployment as it is then; nil where there is none.
func (c *Controller) carryOut(ctx context.Context, foo *samplev1alpha1.Foo, decided decision) (*appsv1.Deployment, error) {
	switch decided.action {
	case actionCreate:
		created, err := c.createDeployment(ctx, foo, decided.write)
		if err != nil {
			return nil, fmt.Errorf("creating Deployment %q: %w", decided.write.Name, err)
		}
		return created, nil
	case actionUpdate:
		updated, err := c.updateDeployment(ctx, foo, decided.write)
		if err != nil {
			return decided.found, fmt.Errorf("updating Deployment %q: %w", decided.write.Name, err)
		}
		return updated, nil
	case actionNone, actionWait, actionLeave:
	}
	return decided.found, nil
}

// createDeployment creates by name: where somebody else was quicker the API
// server refuses, which an apply would not.
func (c *Controller) createDeployment(ctx context.Context, foo *samplev1alpha1.Foo, deployment *appsv1.Deployment) (*appsv1.Deployment, error) {
	ctx, cancel := context.WithTimeout(ctx, c.callTimeout)
	defer cancel()
	created, err := c.kubeClient.AppsV1().Deployments(deployment.Namespace).Create(ctx, deployment, metav1.CreateOptions{FieldManager: controllerName})
	if err != nil {
		return nil, err
	}
	c.wrote(foo, c.deploymentIndexer, created)
	klog.FromContext(ctx).V(2).Info("Created Deployment", "deployment", klog.KObj(created))
	return created, nil
}

// updateDeployment sends a repaired Deployment. Two checks keep an old wish
// from overwriting a newer one: the Deployment's resourceVersion, and a live
// look at the Foo, whose cache may be older than the Deployment's.
func (c *Controller) updateDeployment(ctx context.Context, foo *samplev1alpha1.Foo, deployment *appsv1.Deployment) (*appsv1.Deployment, error) {
	ctx, cancel := context.WithTimeout(ctx, c.callTimeout)
	defer cancel()
	live, err := c.fooClient.SamplecontrollerV1alpha1().Foos(foo.Namespace).Get(ctx, foo.Name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("reading the Foo: %w", err)
	}
	if !asksTheSame(foo, live) {
		return nil, errCacheBehind
	}
	updated, err := c.kubeClient.AppsV1().Deployments(deployment.Namespace).Update(ctx, deployment, metav1.UpdateOptions{FieldManager: controllerName})
	if err != nil {
		return nil, err
	}
	c.wrote(foo, c.deploymentIndexer, updated)
	klog.FromContext(ctx).V(2).Info("Updated Deployment", "deployment", klog.KObj(updated))
	return updated, nil
}

// writeStatus writes a Foo's status if it differs from the cached one, then
// tells of a change of its readiness by an event.
func (c *Controller) writeStatus(ctx context.Context, foo *samplev1alpha1.Foo, status samplev1alpha1.FooStatus) error {
	if equality.Semantic.DeepEqual(foo.Status, status) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, c.callTimeout)
	defer cancel()
	// What a lister returns is shared with every other reader: write to a copy.
	desired := foo.DeepCopy()
	desired.Status = status
	updated, err := c.fooClient.SamplecontrollerV1alpha1().Foos(foo.Namespace).UpdateStatus(ctx, desired, metav1.UpdateOptions{FieldManager: controllerName})
	if err != nil {
		return fmt.Errorf("updating the Foo's status: %w", err)
	}
	c.wrote(foo, c.fooIndexer, updated)
	if ready := readyChanged(foo.Status, status); ready != nil {
		c.recorder.Event(updated, eventType(ready.Reason), ready.Reason, ready.Message)
	}
	return nil
}

// wrote remembers a write on a Foo's behalf until its cache has seen it.
func (c *Controller) wrote(foo *samplev1alpha1.Foo, store readyourwrites.Store, object metav1.Object) {
	c.writes.Wrote(cache.MetaObjectToName(foo), foo.UID, store, object.GetResourceVersion())
}

// eventType says whether the user has to do something about a reason.
func eventType(reason string) string {
	switch reason {
	case samplev1alpha1.ReasonDeploymentConflict, samplev1alpha1.ReasonDeploymentFailed:
		return corev1.EventTypeWarning
	}
	return corev1.EventTypeNormal
}
