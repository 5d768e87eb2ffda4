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

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"example.com/sample-controller/internal/plan"
	"example.com/sample-controller/internal/queue"
	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// writeStatus writes a Foo's status if it differs from the cached one, then
// records a change of its readiness as an event. What only counts Pods of a
// rollout may wait, if the sync was complete.
func (c *Controller) writeStatus(ctx context.Context, foo *samplev1alpha1.Foo, status samplev1alpha1.FooStatus, complete bool) error {
	key, of := cache.MetaObjectToName(foo), plan.Task{Foo: foo}
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
	if err := c.backoff.Deferred(key, queue.PartStatus, of); err != nil {
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
		c.backoff.Fail(key, queue.PartStatus, of, err)
	}
	return err
}

// sendStatus writes a Foo's status, then records a change of its readiness.
func (c *Controller) sendStatus(ctx context.Context, foo *samplev1alpha1.Foo, status samplev1alpha1.FooStatus) error {
	// What a lister returns is shared with every other reader: write to a copy.
	desired := foo.DeepCopy()
	desired.Status = status
	callCtx, cancel := c.withDeadline(ctx)
	defer cancel()
	updated, err := c.fooClient.SamplecontrollerV1alpha1().Foos(foo.Namespace).UpdateStatus(callCtx, desired, metav1.UpdateOptions{FieldManager: controllerName})
	if apierrors.IsNotFound(err) && c.isThere(ctx, foo) {
		return fmt.Errorf("updating the Foo's status: %w", c.crdMismatch.NoSubresource())
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
	c.wroteAt(foo, c.fooIndexer, updated)
	if transition != nil {
		c.transitions.Stored(foo)
		c.recordTransition(updated, transition)
	}
	if err := c.crdMismatch.Observe(foo, status, updated.Status); err != nil {
		klog.FromContext(ctx).Error(err, "The API server does not store statuses as they are sent")
	}
	return nil
}

// isThere reports whether the API server still has a Foo.
func (c *Controller) isThere(ctx context.Context, foo *samplev1alpha1.Foo) bool {
	live, err := c.liveFoo(ctx, foo)
	return err == nil && live.UID == foo.UID
}

// recordTransition records a change of a Foo's readiness as an event.
func (c *Controller) recordTransition(foo *samplev1alpha1.Foo, ready *metav1.Condition) {
	c.recorder.Event(foo, plan.EventType(ready.Reason), ready.Reason, ready.Message)
}
