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
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// sync brings one Foo and its Deployment together: it reads the caches,
// decides, writes at most what differs, and writes the status if that differs,
// also when the API server refused the work. It may be called at any time, any
// number of times.
func (c *Controller) sync(ctx context.Context, key cache.ObjectName) error {
	if err := c.writes.EnsureReady(key); err != nil {
		c.metrics.StaleSyncs.Inc()
		return err
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

	decided := c.plan.decide(foo, named, controlled)
	deployment, err := c.carryOut(ctx, foo, decided)
	if err != nil && nextAttempt(err).expected {
		// A race that was lost says nothing of the Foo, and is run again at once.
		return err
	}
	result := outcome{action: decided.action, named: named, deployment: deployment, failure: err}
	status := c.plan.calculateStatus(foo, result, metav1.NewTime(c.clock.Now()))
	// The status' error first: it is the one to judge when to try again, for
	// until it is written nobody is told of the other.
	return errors.Join(c.writeStatus(ctx, foo, status, err == nil), err)
}

// forget drops what is remembered of a Foo that is gone. It is a sync that does
// so, not the event's handler: a sync under way would remember it again.
func (c *Controller) forget(key cache.ObjectName) {
	c.overruled.forget(key)
	c.outdated.forget(key)
	c.progress.forget(key)
	c.confirmed.forget(key)
	c.transitions.forget(key)
	c.misfit.forget(key)
}

// deploymentsOf returns what the cache has for a Foo: the Deployment of the
// name that it asks for, or nil, and all Deployments that it controls.
func (c *Controller) deploymentsOf(foo *samplev1alpha1.Foo) (named *appsv1.Deployment, controlled []*appsv1.Deployment, err error) {
	named, err = c.deployments.Deployments(foo.Namespace).Get(foo.Spec.DeploymentName)
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, nil, err
	}
	candidates, err := c.deploymentIndexer.ByTypedIndex(byControllerUID, c.buckets.of(string(foo.UID)))
	for _, candidate := range candidates {
		if isControlledBy(candidate, foo) {
			controlled = append(controlled, candidate)
		}
	}
	return named, controlled, err
}

// carryOut makes the writes that were decided, if any, and returns the Foo's
// Deployment as it is then; nil where there is none. What failed before is not
// sent again before its time, unless something but the Deployment's status has
// changed.
func (c *Controller) carryOut(ctx context.Context, foo *samplev1alpha1.Foo, decided decision) (*appsv1.Deployment, error) {
	key, of := cache.MetaObjectToName(foo), task{foo, decided}
	var found *appsv1.Deployment
	if decided.named != nil && isControlledBy(decided.named, foo) {
		found = decided.named
	}
	if err := c.retries.standing(key, partDeployments, of); err != nil {
		return found, err
	}
	written, err := c.writeDeployments(ctx, foo, decided)
	switch {
	case err == nil:
		c.retries.succeed(key, partDeployments)
		return written, nil
	case !nextAttempt(err).expected:
		// Before the status is written: its event must not wake the key.
		c.retries.fail(key, partDeployments, of, err)
	}
	if written == nil {
		written = found
	}
	return written, err
}

// writeDeployments makes the writes that were decided and returns the Foo's
// Deployment as it is then.
func (c *Controller) writeDeployments(ctx context.Context, foo *samplev1alpha1.Foo, decided decision) (*appsv1.Deployment, error) {
	written, err := decided.named, error(nil)
	switch decided.action {
	case actionCreate:
		written, err = c.createDeployment(ctx, foo)
	case actionUpdate, actionAdopt:
		if !c.overruled.stands(foo, decided.named, c.plan.describeDrift(decided.named, foo)) {
			written, err = c.updateDeployment(ctx, foo)
		}
	case actionNone:
		written, err = c.confirmRollout(ctx, foo, decided.named)
	case actionWait, actionLeave:
	}
	if err != nil {
		return nil, err
	}
	return written, c.removeSurplus(ctx, foo, decided.surplus)
}
