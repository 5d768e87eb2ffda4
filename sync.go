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

	"example.com/sample-controller/internal/plan"
	"example.com/sample-controller/internal/queue"
	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// sync brings one Foo and its Deployment together: it reads the caches,
// decides, writes at most what differs, and writes the status if that differs,
// also when the API server refused the work. It may be called at any time, any
// number of times.
func (c *Controller) syncHandler(ctx context.Context, key cache.ObjectName) error {
	if err := c.consistency.EnsureReady(key); err != nil {
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
	if c.staleFoos.Has(foo) {
		if err := c.recheckFoo(ctx, foo); err != nil {
			return err
		}
	}
	named, controlled, err := c.deploymentsOf(foo)
	if err != nil {
		return fmt.Errorf("reading Deployments from the cache: %w", err)
	}

	decided := c.plan.Decide(foo, named, controlled)
	deployment, err := c.carryOut(ctx, foo, decided)
	if err != nil && queue.NextAttempt(err).Expected {
		// A race that was lost says nothing of the Foo, and is run again at once.
		return err
	}
	result := plan.Outcome{Action: decided.Action, Named: named, Deployment: deployment, Failure: err}
	status := c.plan.CalculateStatus(foo, result, metav1.NewTime(c.clock.Now()))
	// The status' error first: it is the one to judge when to try again, for
	// until it is written nobody is told of the other.
	return errors.Join(c.writeStatus(ctx, foo, status, err == nil), err)
}

// forget drops what is remembered of a Foo that is gone. It is a sync that does
// so, not the event's handler: a sync under way would remember it again.
func (c *Controller) forget(key cache.ObjectName) {
	c.admissionMutations.Delete(key)
	c.staleFoos.Delete(key)
	c.statusThrottle.Delete(key)
	c.confirmed.Delete(key)
	c.transitions.Delete(key)
	c.crdMismatch.Delete(key)
}

// deploymentsOf returns what the cache has for a Foo: the Deployment of the
// name that it asks for, or nil, and all Deployments that it controls.
func (c *Controller) deploymentsOf(foo *samplev1alpha1.Foo) (named *appsv1.Deployment, controlled []*appsv1.Deployment, err error) {
	named, err = c.deployments.Deployments(foo.Namespace).Get(foo.Spec.DeploymentName)
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, nil, err
	}
	candidates, err := c.deploymentIndexer.ByTypedIndex(byControllerUID, c.buckets.Of(string(foo.UID)))
	for _, candidate := range candidates {
		if plan.IsControlledBy(candidate, foo) {
			controlled = append(controlled, candidate)
		}
	}
	return named, controlled, err
}

// carryOut makes the writes that were decided, if any, and returns the Foo's
// Deployment as it is then; nil where there is none. What failed before is not
// sent again before its time, unless something but the Deployment's status has
// changed.
func (c *Controller) carryOut(ctx context.Context, foo *samplev1alpha1.Foo, decided plan.Decision) (*appsv1.Deployment, error) {
	key, of := cache.MetaObjectToName(foo), plan.Task{Foo: foo, Decided: decided}
	var found *appsv1.Deployment
	if decided.Named != nil && plan.IsControlledBy(decided.Named, foo) {
		found = decided.Named
	}
	if err := c.backoff.Deferred(key, queue.PartDeployments, of); err != nil {
		return found, err
	}
	written, err := c.writeDeployments(ctx, foo, decided)
	switch {
	case err == nil:
		c.backoff.Succeed(key, queue.PartDeployments)
		return written, nil
	case !queue.NextAttempt(err).Expected:
		// Before the status is written: its event must not wake the key.
		c.backoff.Fail(key, queue.PartDeployments, of, err)
	}
	if written == nil {
		written = found
	}
	return written, err
}

// writeDeployments makes the writes that were decided and returns the Foo's
// Deployment as it is then.
func (c *Controller) writeDeployments(ctx context.Context, foo *samplev1alpha1.Foo, decided plan.Decision) (*appsv1.Deployment, error) {
	written, err := decided.Named, error(nil)
	switch decided.Action {
	case plan.ActionCreate:
		written, err = c.createDeployment(ctx, foo)
	case plan.ActionUpdate, plan.ActionAdopt:
		if !c.admissionMutations.WouldRecur(foo, decided.Named, c.plan.DescribeDrift(decided.Named, foo)) {
			written, err = c.updateDeployment(ctx, foo)
		}
	case plan.ActionNone:
		written, err = c.confirmRollout(ctx, foo, decided.Named)
	case plan.ActionWait, plan.ActionLeave:
	}
	if err != nil {
		return nil, err
	}
	return written, c.deleteObsolete(ctx, foo, decided.Obsolete)
}
