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
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// controlPlanePace is the time between two writes of the control plane. In a
// bubble time passes when nobody has anything left to do, so each of them is
// seen to its end before the next: a run has the same calls every time.
const controlPlanePace = 100 * time.Millisecond

// controlPlane does what a cluster's own controllers do about Deployments: the
// garbage collector, and as much of the Deployment controller as shows in a
// Deployment's status, one Pod at a time.
type controlPlane struct {
	*world
	// rolledOut holds the template of which each Deployment's Pods are.
	rolledOut map[types.UID]corev1.PodTemplateSpec
}

func newControlPlane(w *world) *controlPlane {
	return &controlPlane{world: w, rolledOut: map[types.UID]corev1.PodTemplateSpec{}}
}

func (c *controlPlane) run() {
	for {
		_, more := c.api.next(c.api.version())
		if !c.act() {
			select {
			case <-more:
			case <-c.ctx.Done():
				return
			}
		}
		select {
		case <-time.After(controlPlanePace):
		case <-c.ctx.Done():
			return
		}
	}
}

// act makes one write, if there is one to make.
func (c *controlPlane) act() bool {
	return c.collectGarbage() || c.finishForegroundDeletion() || c.rollOut()
}

func (c *controlPlane) deployments() []*appsv1.Deployment {
	var deployments []*appsv1.Deployment
	for _, object := range c.api.list("deployments", c.api.version()) {
		deployments = append(deployments, object.(*appsv1.Deployment))
	}
	return deployments
}

// collectGarbage deletes a Deployment whose controlling Foo is gone, or is in
// foreground deletion.
func (c *controlPlane) collectGarbage() bool {
	for _, deployment := range c.deployments() {
		ref := controllingFoo(deployment)
		if ref == nil {
			continue
		}
		if foo := c.foo(ref.Name); foo != nil && foo.UID == ref.UID && foo.DeletionTimestamp == nil {
			continue
		}
		return c.wrote("garbage collector", "delete", deployment,
			c.api.delete(idOf(deployment), metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(deployment.UID))}, anything))
	}
	return false
}

// finishForegroundDeletion lets a Foo go that has no Deployment any more. It is
// called when there is no garbage.
func (c *controlPlane) finishForegroundDeletion() bool {
	for _, object := range c.api.list("foos", c.api.version()) {
		if foo := object.(*samplev1alpha1.Foo); foo.DeletionTimestamp != nil {
			foo.Finalizers = nil
			return c.write("garbage collector", foo, "")
		}
	}
	return false
}

func (c *controlPlane) rollOut() bool {
	for _, deployment := range c.deployments() {
		before := deployment.Status.DeepCopy()
		c.advanceRollout(deployment)
		if !equality.Semantic.DeepEqual(*before, deployment.Status) {
			return c.write("Deployment controller", deployment, "status")
		}
	}
	return false
}

// advanceRollout takes a Deployment's status one write further.
func (c *controlPlane) advanceRollout(deployment *appsv1.Deployment) {
	status, desired := &deployment.Status, *deployment.Spec.Replicas
	switch {
	case status.ObservedGeneration < deployment.Generation:
		status.ObservedGeneration = deployment.Generation
		if template := deployment.Spec.Template; !equality.Semantic.DeepEqual(c.rolledOut[deployment.UID], template) {
			c.rolledOut[deployment.UID] = template
			status.UpdatedReplicas, status.AvailableReplicas, status.ReadyReplicas = 0, 0, 0
		}
	case status.UpdatedReplicas != desired || status.Replicas != desired:
		status.Replicas, status.UpdatedReplicas = desired, desired
		status.AvailableReplicas = min(status.AvailableReplicas, desired)
		status.ReadyReplicas = status.AvailableReplicas
	case status.AvailableReplicas < desired:
		status.AvailableReplicas++
		status.ReadyReplicas = status.AvailableReplicas
	}
}

// foo returns a Foo, or nil.
func (w *world) foo(name string) *samplev1alpha1.Foo {
	object, err := w.api.get(fooID(name))
	if err != nil {
		return nil
	}
	return object.(*samplev1alpha1.Foo)
}

func (c *controlPlane) write(who string, object runtime.Object, subresource string) bool {
	_, err := c.api.update(object, subresource, anything)
	return c.wrote(who, "update", object, err)
}

// wrote returns true: where the write has failed, it is tried again.
func (c *controlPlane) wrote(who, verb string, object runtime.Object, err error) bool {
	c.note("%s: %s %s -> %s", who, verb, idOf(object), answerOf(err))
	return true
}
