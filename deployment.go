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
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// The one container of a Foo's Pods. A Foo has no field for them: whoever may
// create a Foo gets these Pods in their own namespace and nothing more.
const (
	containerName  = "nginx"
	containerImage = "nginx:latest"
)

// podLabels are the labels by which a Foo's Deployment finds its Pods. They are
// upstream's: a Deployment's selector can't change, and other labels in the
// template would restart every Pod when this binary replaces upstream's.
func podLabels(foo *samplev1alpha1.Foo) map[string]string {
	return map[string]string{
		"app":        "nginx",
		"controller": foo.Name,
	}
}

// newDeployment returns the Deployment that a Foo asks for, to be created.
func newDeployment(foo *samplev1alpha1.Foo) *appsv1.Deployment {
	deployment := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{
			Name:            foo.Spec.DeploymentName,
			Namespace:       foo.Namespace,
			OwnerReferences: []metav1.OwnerReference{newControllerRef(foo)},
		},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: podLabels(foo)},
		},
	}
	setOwnedFields(deployment, foo)
	return deployment
}

// repairedDeployment returns a copy of a Foo's Deployment in which the fields
// that the Foo owns are as it wants them, or the Deployment itself if they are,
// and whether they were not. Everything else is as found, the resourceVersion
// included: sent as an update, the copy is refused if anybody has written in
// between.
func repairedDeployment(found *appsv1.Deployment, foo *samplev1alpha1.Foo) (*appsv1.Deployment, bool) {
	// Most are as they should be, and a whole copy of each takes a while: what is
	// written to is copied first, the rest only where there is something to send.
	repaired := *found
	template := &repaired.Spec.Template
	template.Labels = maps.Clone(template.Labels)
	template.Spec.Containers = slices.Clone(template.Spec.Containers)
	setOwnedFields(&repaired, foo)
	if ownedFieldsEqual(&found.Spec, &repaired.Spec) {
		return found, false
	}
	return repaired.DeepCopy(), true
}

// ownedFieldsEqual compares the fields that setOwnedFields writes.
func ownedFieldsEqual(a, b *appsv1.DeploymentSpec) bool {
	return ptr.Equal(a.Replicas, b.Replicas) && maps.Equal(a.Template.Labels, b.Template.Labels) &&
		slices.EqualFunc(a.Template.Spec.Containers, b.Template.Spec.Containers, func(a, b corev1.Container) bool {
			return a.Name == b.Name && a.Image == b.Image
		})
}

// adoptedDeployment returns a copy of a Deployment that has the Foo as its
// controller and the fields that the Foo owns as it wants them.
func adoptedDeployment(found *appsv1.Deployment, foo *samplev1alpha1.Foo) *appsv1.Deployment {
	adopted := found.DeepCopy()
	adopted.OwnerReferences = append(adopted.OwnerReferences, newControllerRef(foo))
	setOwnedFields(adopted, foo)
	return adopted
}

// setOwnedFields writes into a Deployment the few fields that a Foo owns. The
// rest belongs to others: annotations, sidecars, the strategy, the time of a
// "kubectl rollout restart", and the replicas where the Foo leaves them out.
func setOwnedFields(deployment *appsv1.Deployment, foo *samplev1alpha1.Foo) {
	if foo.Spec.Replicas != nil {
		replicas := *foo.Spec.Replicas
		deployment.Spec.Replicas = &replicas
	}
	template := &deployment.Spec.Template
	for key, value := range podLabels(foo) {
		// A selector can't change, and the Pods must match it: where an adopted
		// Deployment's asks for another value, that one stands.
		if selected, ok := deployment.Spec.Selector.MatchLabels[key]; ok {
			value = selected
		}
		metav1.SetMetaDataLabel(&template.ObjectMeta, key, value)
	}
	ownedContainer(&template.Spec).Image = containerImage
}

// ownedContainer returns the container that a Foo owns, adding it if it is missing.
func ownedContainer(pod *corev1.PodSpec) *corev1.Container {
	for i := range pod.Containers {
		if pod.Containers[i].Name == containerName {
			return &pod.Containers[i]
		}
	}
	pod.Containers = append(pod.Containers, corev1.Container{Name: containerName})
	return &pod.Containers[len(pod.Containers)-1]
}
