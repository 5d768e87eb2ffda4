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

// The rules for each write of a controller. They judge a write by the state at its
// commit, not by what its sender could know.

package simulation

import (
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/diff"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// inspect returns the inspector of a controller's writes. The API server is locked while
// it runs.
func (c *connection) inspect(verb string) inspector {
	return func(stored, next runtime.Object) {
		c.inspectLate(stored, next)
		if stored != nil && next != nil && !c.stale && !c.cluster.mutatesWrites() && equality.Semantic.DeepEqual(stored, next) {
			c.cluster.violationf("%s sent a write of %s that changes nothing", c.name, idOf(next))
		}
		switch verb {
		case "create":
			c.inspectCreate(next.(*appsv1.Deployment))
		case "update":
			c.inspectUpdate(stored.(*appsv1.Deployment), next.(*appsv1.Deployment))
		case "delete":
			c.inspectDelete(stored.(*appsv1.Deployment))
		}
	}
}

// inspectLate checks the rule that holds even for a write that arrives after its sender
// gave up: it does not change fields of others.
func (c *connection) inspectLate(stored, next runtime.Object) {
	if foo, ok := stored.(*samplev1alpha1.Foo); ok && isTransition(foo, next.(*samplev1alpha1.Foo)) {
		c.pendingEvents[foo.UID]++
	}
	before, isUpdate := stored.(*appsv1.Deployment)
	after, _ := next.(*appsv1.Deployment)
	if !isUpdate || after == nil {
		return
	}
	was, is := unownedFields(before), unownedFields(after)
	if controllerOf(before) == nil && controllerOf(after) != nil {
		delete(was.Annotations, "samplecontroller.k8s.io/adopt-by") // the adoption removes it
	}
	if !equality.Semantic.DeepEqual(was, is) {
		c.cluster.violationf("%s changed fields of others in %s (-before +after):\n%s", c.name, idOf(next), diff.Diff(was, is))
	}
}

func (c *connection) inspectCreate(next *appsv1.Deployment) {
	ref := controllerOf(next)
	if ref == nil {
		c.cluster.violationf("%s created %s without a controller reference to a Foo", c.name, idOf(next))
		return
	}
	if c.stale {
		return
	}
	if foo := c.liveFoo(ref.Name); foo != nil && c.cluster.removed[idOf(next)] == generationOf(foo) {
		c.cluster.violationf("%s recreated %s, which a controller had deleted for the same generation of the Foo", c.name, idOf(next))
	}
}

func (c *connection) inspectUpdate(stored, next *appsv1.Deployment) {
	switch ref, nextRef := controllerOf(stored), controllerOf(next); {
	case ref != nil && c.isLive(ref):
		if nextRef == nil || nextRef.UID != ref.UID {
			c.cluster.violationf("%s changed the owner of %s", c.name, idOf(next))
		}
	case metav1.GetControllerOf(stored) == nil && nextRef != nil && c.isLive(nextRef) &&
		stored.Annotations[samplev1alpha1.AnnotationAdoptBy] == nextRef.Name:
		// An adoption to which the owner consented.
	default:
		c.cluster.violationf("%s wrote to %s, which no live Foo controls (owners: %v)", c.name, idOf(next), stored.OwnerReferences)
	}
}

func (c *connection) inspectDelete(stored *appsv1.Deployment) {
	ref := controllerOf(stored)
	if ref == nil || !c.isLive(ref) {
		c.cluster.violationf("%s deleted %s, which no live Foo controls (owners: %v)", c.name, idOf(stored), stored.OwnerReferences)
		return
	}
	foo := c.liveFoo(ref.Name)
	if foo.Spec.DeploymentName == stored.Name {
		c.cluster.violationf("%s deleted %s, which its Foo asks for", c.name, idOf(stored))
	}
	wanted, _ := c.cluster.api.objects[deploymentID(foo.Spec.DeploymentName)].(*appsv1.Deployment)
	if wanted == nil || controllerOf(wanted) == nil || controllerOf(wanted).UID != foo.UID {
		c.cluster.violationf("%s deleted %s before the Foo controlled %s", c.name, idOf(stored), foo.Spec.DeploymentName)
	}
	c.cluster.removed[idOf(stored)] = generationOf(foo)
}

// generationOf identifies a Foo and its generation.
func generationOf(foo *samplev1alpha1.Foo) string {
	return fmt.Sprintf("%s, generation %d", foo.UID, foo.Generation)
}

// liveFoo returns a Foo, or nil. Only inspectors may call it, because they hold the API
// server's lock.
func (c *connection) liveFoo(name string) *samplev1alpha1.Foo {
	foo, _ := c.cluster.api.objects[fooID(name)].(*samplev1alpha1.Foo)
	return foo
}

func (c *connection) isLive(ref *metav1.OwnerReference) bool {
	foo := c.liveFoo(ref.Name)
	return foo != nil && foo.UID == ref.UID
}

// unownedFields returns a copy of a Deployment without the fields that a Foo may own, and
// without those that the API server sets.
func unownedFields(deployment *appsv1.Deployment) *appsv1.Deployment {
	part := deployment.DeepCopy()
	part.UID, part.ResourceVersion, part.Generation = "", "", 0
	part.Status = appsv1.DeploymentStatus{}
	part.OwnerReferences = slices.DeleteFunc(part.OwnerReferences, func(ref metav1.OwnerReference) bool { return ref.Kind == "Foo" })
	part.Spec.Replicas = nil
	delete(part.Spec.Template.Labels, "app")
	delete(part.Spec.Template.Labels, "controller")
	for i := range part.Spec.Template.Spec.Containers {
		if container := &part.Spec.Template.Spec.Containers[i]; container.Name == "nginx" {
			container.Image = ""
		}
	}
	return part
}
