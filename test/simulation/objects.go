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

// The two kinds of objects: their names, their defaults, and which fields a write
// changes.

package simulation

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// namespace is the namespace of all objects.
const namespace = "team-a"

// objectID names an object of the namespace.
type objectID struct{ resource, name string }

func (id objectID) String() string { return id.resource + " " + id.name }

func fooID(name string) objectID        { return objectID{"foos", name} }
func deploymentID(name string) objectID { return objectID{"deployments", name} }

func idOf(object runtime.Object) objectID {
	if foo, ok := object.(*samplev1alpha1.Foo); ok {
		return fooID(foo.Name)
	}
	return deploymentID(object.(*appsv1.Deployment).Name)
}

func (id objectID) groupResource() schema.GroupResource {
	if id.resource == "foos" {
		return samplev1alpha1.SchemeGroupVersion.WithResource(id.resource).GroupResource()
	}
	return appsv1.SchemeGroupVersion.WithResource(id.resource).GroupResource()
}

func metaOf(object runtime.Object) metav1.Object {
	accessor, err := meta.Accessor(object)
	if err != nil {
		panic(err)
	}
	return accessor
}

func isTerminating(object metav1.Object) bool { return object.GetDeletionTimestamp() != nil }

// controllerOf returns a Deployment's reference to the Foo that controls it, or nil.
func controllerOf(deployment *appsv1.Deployment) *metav1.OwnerReference {
	ref := metav1.GetControllerOf(deployment)
	if ref == nil || ref.Kind != "Foo" || ref.APIVersion != "samplecontroller.k8s.io/v1alpha1" {
		return nil
	}
	return ref
}

// newFoo returns a Foo. With 0 replicas it leaves the number to others.
func newFoo(name, deploymentName string, replicas int32) *samplev1alpha1.Foo {
	foo := &samplev1alpha1.Foo{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace},
		Spec:       samplev1alpha1.FooSpec{DeploymentName: deploymentName},
	}
	if replicas > 0 {
		foo.Spec.Replicas = &replicas
	}
	return foo
}

// newForeign returns a Deployment that a user created.
func newForeign(name string) *appsv1.Deployment {
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

// setDefaults sets some of the defaults that the API server sets.
func setDefaults(object runtime.Object) {
	deployment, ok := object.(*appsv1.Deployment)
	if !ok {
		return
	}
	one, ten := int32(1), int32(10)
	spec := &deployment.Spec
	if spec.Replicas == nil {
		spec.Replicas = &one
	}
	if spec.RevisionHistoryLimit == nil {
		spec.RevisionHistoryLimit = &ten
	}
	if spec.Strategy.Type == "" {
		spec.Strategy.Type = appsv1.RollingUpdateDeploymentStrategyType
	}
	for i := range spec.Template.Spec.Containers {
		spec.Template.Spec.Containers[i].TerminationMessagePath = "/dev/termination-log"
	}
}

// merge returns the stored object after a write: a write to the status changes only the
// status, any other write everything else.
func merge(stored, sent runtime.Object, subresource string) runtime.Object {
	switch stored := stored.(type) {
	case *appsv1.Deployment:
		sent := sent.(*appsv1.Deployment)
		if subresource == "status" {
			stored.Status = sent.Status
			return stored
		}
		sent.Status = stored.Status
		// The generation of a Deployment also counts changes of its annotations.
		sent.Generation = nextGeneration(stored, equality.Semantic.DeepEqual(stored.Spec, sent.Spec) &&
			equality.Semantic.DeepEqual(stored.Annotations, sent.Annotations))
		return sent
	case *samplev1alpha1.Foo:
		sent := sent.(*samplev1alpha1.Foo)
		if subresource == "status" {
			stored.Status = sent.Status
			return stored
		}
		sent.Status = stored.Status
		sent.Generation = nextGeneration(stored, equality.Semantic.DeepEqual(stored.Spec, sent.Spec))
		return sent
	}
	panic(fmt.Sprintf("the API server has no %T", stored))
}

func nextGeneration(stored metav1.Object, sameSpec bool) int64 {
	if sameSpec {
		return stored.GetGeneration()
	}
	return stored.GetGeneration() + 1
}
