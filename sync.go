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

	"example.com/sample-controller/internal/readyourwrites"
	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// sync brings one Foo and its Deployment together: it reads the caches,
// decides, writes at most what differs, and writes the status if that differs,
// also when the API server refused the work. It may be called at any time, any
// number of times.
func (c *Controller) sync(ctx context.Context, key cache.ObjectName) error {
	if !c.writes.CaughtUp(key) {
		c.metrics.staleSyncs.Inc()
		return errCacheBehind
	}
	foo, err := c.foos.Foos(key.Namespace).Get(key.Name)
	if apierrors.IsNotFound(err) {
		c.forget(key)
		return nil // the garbage collector takes the Deployment
	}
	if err != nil {
		return fmt.Errorf("reading the Foo from the cache: %w", err)
	}
	if c.outdated.has(foo) {
		if err := c.confirmFoo(ctx, foo); err != nil {
			return err
		}
	}
	named, controlled, err := c.deploymentsOf(foo)
	if err != nil {
		return fmt.Errorf("reading Deployments from the cache: %w", err)
	}

	decided := decide(foo, named, controlled)
	deployment, err := c.carryOut(ctx, foo, decided)
	if err != nil {
		if nextAttempt(err).expected {
			// A race that was lost says nothing of the Foo, and is run again at once.
			return err
		}
		// Before the status is written: its event must not wake the key.
		c.retries.hold(key)
	}
	result := outcome{action: decided.action, named: named, deployment: deployment}
	if isRefusal(err) {
		result.failure = err
	}
	status := calculateStatus(foo, result, metav1.NewTime(c.clock.Now()))
	// The status' error first: it is the one to judge when to try again, for
	// until it is written nobody is told of the other.
	return errors.Join(c.writeStatus(ctx, foo, status), err)
}

// forget drops what is remembered of a Foo that is gone. It is a sync that does
// so, not the event's handler: a sync under way would remember it again.
func (c *Controller) forget(key cache.ObjectName) {
	c.overruled.forget(key)
	c.outdated.forget(key)
	c.progress.forget(key)
}

// deploymentsOf returns what the cache has for a Foo: the Deployment of the
// name that it asks for, or nil, and all Deployments that it controls.
func (c *Controller) deploymentsOf(foo *samplev1alpha1.Foo) (named *appsv1.Deployment, controlled []*appsv1.Deployment, err error) {
	named, err = c.deployments.Deployments(foo.Namespace).Get(foo.Spec.DeploymentName)
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, nil, err
	}
	candidates, err := c.deploymentIndexer.ByTypedIndex(byControllerUID, bucket(string(foo.UID)))
	for _, candidate := range candidates {
		if isControlledBy(candidate, foo) {
			controlled = append(controlled, candidate)
		}
	}
	return named, controlled, err
}

// carryOut makes the writes that were decided, if any, and returns the Foo's
// Deployment as it is then; nil where there is none.
func (c *Controller) carryOut(ctx context.Context, foo *samplev1alpha1.Foo, decided decision) (*appsv1.Deployment, error) {
	var deployment *appsv1.Deployment
	if decided.named != nil && isControlledBy(decided.named, foo) {
		deployment = decided.named
	}
	var written *appsv1.Deployment
	var err error
	switch decided.action {
	case actionCreate:
		written, err = c.createDeployment(ctx, foo, decided.write)
	case actionUpdate:
		if c.overruled.stands(foo, decided.named) {
			written = deployment
			break
		}
		written, err = c.updateDeployment(ctx, foo, decided.write)
	case actionAdopt:
		written, err = c.adoptDeployment(ctx, foo)
	case actionNone, actionWait, actionLeave:
		written = deployment
	}
	if err != nil {
		return deployment, err
	}
	return written, c.removeSurplus(ctx, foo, decided.surplus)
}

// writeStatus writes a Foo's status if it differs from the cached one, then
// tells of a change of its readiness by an event.
func (c *Controller) writeStatus(ctx context.Context, foo *samplev1alpha1.Foo, status samplev1alpha1.FooStatus) error {
	if equality.Semantic.DeepEqual(foo.Status, status) {
		c.progress.forget(cache.MetaObjectToName(foo))
		return nil
	}
	if wait := c.progress.wait(foo, status); wait > 0 {
		c.queue.AddAfter(cache.MetaObjectToName(foo), wait)
		return nil
	}
	ctx, cancel := c.withDeadline(ctx)
	defer cancel()
	// What a lister returns is shared with every other reader: write to a copy.
	desired := foo.DeepCopy()
	desired.Status = status
	updated, err := c.fooClient.SamplecontrollerV1alpha1().Foos(foo.Namespace).UpdateStatus(ctx, desired, metav1.UpdateOptions{FieldManager: controllerName})
	c.outdated.learn(foo, err)
	if err != nil {
		return fmt.Errorf("updating the Foo's status: %w", err)
	}
	c.metrics.statusesUpdated.Inc()
	c.wrote(foo, c.fooIndexer, updated)
	if ready := readyChanged(foo.Status, status); ready != nil {
		c.recorder.Event(updated, eventType(ready.Reason), ready.Reason, ready.Message)
	}
	return nil
}

// withDeadline bounds a call to the API server. Two calls that hang would else
// stop both workers for ever.
func (c *Controller) withDeadline(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, c.callTimeout)
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
