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

// The cluster's own controllers, as far as they affect a controller of Foos.

package simulation

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

// controlPlaneInterval is the time between two writes of the control plane. In a bubble,
// time passes only while all goroutines wait. So each write takes effect before the next
// one, and each run makes the same calls.
const controlPlaneInterval = 100 * time.Millisecond

// controlPlane is the garbage collector and a Deployment controller that only writes the
// status, one Pod at a time.
type controlPlane struct {
	*cluster

	// rolledOut holds the template of each Deployment's Pods.
	rolledOut map[types.UID]corev1.PodTemplateSpec
}

func newControlPlane(c *cluster) *controlPlane {
	return &controlPlane{cluster: c, rolledOut: map[types.UID]corev1.PodTemplateSpec{}}
}

func (p *controlPlane) run() {
	for {
		_, more := p.api.next(p.api.version())
		if !p.act() {
			select {
			case <-more:
			case <-p.ctx.Done():
				return
			}
		}
		select {
		case <-time.After(controlPlaneInterval):
		case <-p.ctx.Done():
			return
		}
	}
}

// act makes one write, and reports whether one was needed.
func (p *controlPlane) act() bool {
	return p.collectGarbage() || p.finishForegroundDeletion() || p.rollOut()
}

func (p *controlPlane) deployments() []*appsv1.Deployment {
	var deployments []*appsv1.Deployment
	for _, object := range p.api.list("deployments", p.api.version()) {
		deployments = append(deployments, object.(*appsv1.Deployment))
	}
	return deployments
}

// collectGarbage deletes a Deployment whose controlling Foo is deleted or in foreground
// deletion.
func (p *controlPlane) collectGarbage() bool {
	for _, deployment := range p.deployments() {
		ref := controllerOf(deployment)
		if ref == nil {
			continue
		}
		if foo := p.foo(ref.Name); foo != nil && foo.UID == ref.UID && !isTerminating(foo) {
			continue
		}
		return p.wrote("garbage collector", "delete", deployment,
			p.api.delete(idOf(deployment), metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(deployment.UID))}, noInspection))
	}
	return false
}

// finishForegroundDeletion deletes a terminating Foo. It is called only when there is no
// garbage, so the Foo has no Deployment left.
func (p *controlPlane) finishForegroundDeletion() bool {
	for _, object := range p.api.list("foos", p.api.version()) {
		if foo := object.(*samplev1alpha1.Foo); isTerminating(foo) {
			foo.Finalizers = nil
			return p.write("garbage collector", foo, "")
		}
	}
	return false
}

func (p *controlPlane) rollOut() bool {
	for _, deployment := range p.deployments() {
		before := deployment.Status.DeepCopy()
		p.advanceRollout(deployment)
		if !equality.Semantic.DeepEqual(*before, deployment.Status) {
			return p.write("Deployment controller", deployment, "status")
		}
	}
	return false
}

// advanceRollout advances a Deployment's status by one write.
func (p *controlPlane) advanceRollout(deployment *appsv1.Deployment) {
	status, desired := &deployment.Status, *deployment.Spec.Replicas
	switch {
	case status.ObservedGeneration < deployment.Generation:
		status.ObservedGeneration = deployment.Generation
		if template := deployment.Spec.Template; !equality.Semantic.DeepEqual(p.rolledOut[deployment.UID], template) {
			p.rolledOut[deployment.UID] = template
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
func (p *controlPlane) foo(name string) *samplev1alpha1.Foo {
	object, err := p.api.get(fooID(name))
	if err != nil {
		return nil
	}
	return object.(*samplev1alpha1.Foo)
}

func (p *controlPlane) write(who string, object runtime.Object, subresource string) bool {
	_, err := p.api.update(object, subresource, noInspection)
	return p.wrote(who, "update", object, err)
}

// wrote traces a write. It returns true even if the write failed, because the next act
// repeats it.
func (p *controlPlane) wrote(who, verb string, object runtime.Object, err error) bool {
	p.tracef("%s: %s %s -> %s", who, verb, idOf(object), resultOf(err))
	return true
}
