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
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/diff"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// The rules that hold for each write of a controller, at all times. They judge a
// write by the world in which it is committed, not by what its sender could know.

// inspect returns what looks at a write of this kind. The API server calls it
// while nothing else can be written.
func (s *session) inspect(verb string) inspector {
	return func(stored, next runtime.Object) {
		s.inspectLate(stored, next)
		if stored != nil && next != nil && !s.blind && !s.world.changesWrites() && equality.Semantic.DeepEqual(stored, next) {
			s.world.complain("%s sent a write of %s that changes nothing", s.name, idOf(next))
		}
		switch verb {
		case "create":
			s.inspectCreate(next.(*appsv1.Deployment))
		case "update":
			s.inspectUpdate(stored.(*appsv1.Deployment), next.(*appsv1.Deployment))
		case "delete":
			s.inspectDelete(stored.(*appsv1.Deployment))
		}
	}
}

// inspectLate holds even a write that comes when nobody expects it any more:
// others' fields stay as they are.
func (s *session) inspectLate(stored, next runtime.Object) {
	if foo, ok := stored.(*samplev1alpha1.Foo); ok && readyChanged(foo.Status, next.(*samplev1alpha1.Foo).Status) != nil {
		s.untold[foo.UID]++
	}
	before, isUpdate := stored.(*appsv1.Deployment)
	after, _ := next.(*appsv1.Deployment)
	if !isUpdate || after == nil {
		return
	}
	was, is := othersPart(before), othersPart(after)
	if controllerOf(before) == nil && controllerOf(after) != nil {
		delete(was.Annotations, "samplecontroller.k8s.io/adopt-by") // spent by that
	}
	if !equality.Semantic.DeepEqual(was, is) {
		s.world.complain("%s changed what is others' in %s (-before +after):\n%s", s.name, idOf(next), diff.Diff(was, is))
	}
}

func (s *session) inspectCreate(next *appsv1.Deployment) {
	ref := controllerOf(next)
	if ref == nil {
		s.world.complain("%s made %s without a controller reference to a Foo", s.name, idOf(next))
		return
	}
	if s.blind {
		return
	}
	if foo := s.liveFoo(ref.Name); foo != nil && s.world.removed[idOf(next)] == askedBy(foo) {
		s.world.complain("%s made %s again, which a controller had removed for the same generation of the Foo", s.name, idOf(next))
	}
}

func (s *session) inspectUpdate(stored, next *appsv1.Deployment) {
	switch ref, nextRef := controllerOf(stored), controllerOf(next); {
	case ref != nil && s.isLive(ref):
		if nextRef == nil || nextRef.UID != ref.UID {
			s.world.complain("%s changed the owner of %s", s.name, idOf(next))
		}
	case metav1.GetControllerOf(stored) == nil && nextRef != nil && s.isLive(nextRef) &&
		stored.Annotations[samplev1alpha1.AnnotationAdoptBy] == nextRef.Name:
		// An adoption that was asked for.
	default:
		s.world.complain("%s wrote to %s, which is not a live Foo's (owners: %v)", s.name, idOf(next), stored.OwnerReferences)
	}
}

func (s *session) inspectDelete(stored *appsv1.Deployment) {
	ref := controllerOf(stored)
	if ref == nil || !s.isLive(ref) {
		s.world.complain("%s deleted %s, which is not a live Foo's (owners: %v)", s.name, idOf(stored), stored.OwnerReferences)
		return
	}
	foo := s.liveFoo(ref.Name)
	if foo.Spec.DeploymentName == stored.Name {
		s.world.complain("%s deleted %s, which its Foo asks for", s.name, idOf(stored))
	}
	wanted, _ := s.world.api.objects[deploymentID(foo.Spec.DeploymentName)].(*appsv1.Deployment)
	if wanted == nil || controllerOf(wanted) == nil || controllerOf(wanted).UID != foo.UID {
		s.world.complain("%s deleted %s before the Foo had %s", s.name, idOf(stored), foo.Spec.DeploymentName)
	}
	s.world.removed[idOf(stored)] = askedBy(foo)
}

// askedBy identifies what a Foo asks for.
func askedBy(foo *samplev1alpha1.Foo) string {
	return fmt.Sprintf("%s, generation %d", foo.UID, foo.Generation)
}

// liveFoo returns a Foo, or nil, while nothing else can be written.
func (s *session) liveFoo(name string) *samplev1alpha1.Foo {
	foo, _ := s.world.api.objects[fooID(name)].(*samplev1alpha1.Foo)
	return foo
}

func (s *session) isLive(ref *metav1.OwnerReference) bool {
	foo := s.liveFoo(ref.Name)
	return foo != nil && foo.UID == ref.UID
}

// controllerOf returns a Deployment's reference to the Foo that controls it, or
// nil. It does not use the code under test.
func controllerOf(deployment *appsv1.Deployment) *metav1.OwnerReference {
	ref := metav1.GetControllerOf(deployment)
	if ref == nil || ref.Kind != "Foo" || ref.APIVersion != "samplecontroller.k8s.io/v1alpha1" {
		return nil
	}
	return ref
}

// othersPart returns a copy of a Deployment without what a Foo may own of it,
// and without what the API server writes.
func othersPart(deployment *appsv1.Deployment) *appsv1.Deployment {
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

// foreign returns a Deployment that somebody has made by hand.
func foreign(name string) *appsv1.Deployment {
	three := int32(3)
	labels := map[string]string{"app": "theirs"}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace, Annotations: map[string]string{"team": "b"}},
		Spec: appsv1.DeploymentSpec{
			Replicas: &three,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "nginx", Image: "nginx:1"}, {Name: "proxy", Image: "envoy:1"}}},
			},
		},
	}
}
