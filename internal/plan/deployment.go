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

// The Deployment that a Foo asks for: how it is created, and which of its fields the Foo
// owns and keeps.

package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// containerName names the one container of a Foo's Pods. Its image is that of the
// Planner. A Foo has no field for either: whoever may create a Foo gets these Pods in
// their own namespace and nothing more.
const containerName = "nginx"

// The labels by which a Foo's Deployment finds its Pods. They are those of
// kubernetes/sample-controller: a Deployment's selector can't change, and other labels in
// the template would restart every Pod when this program replaces that one.
const (
	labelApp        = "app"
	labelController = "controller"
)

// Planner decides what Foos need. It holds what is the same for all of them.
type Planner struct {
	// Image is the image of the container nginx.
	Image string
}

var podLabelKeys = []string{labelApp, labelController}

// podLabels are the labels of a Foo's Pods.
func podLabels(foo *samplev1alpha1.Foo) map[string]string {
	return map[string]string{labelApp: "nginx", labelController: foo.Name}
}

// NewDeployment returns the Deployment to create for a Foo.
func (p Planner) NewDeployment(foo *samplev1alpha1.Foo) *appsv1.Deployment {
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
	p.setOwnedFields(deployment, foo)
	return deployment
}

// hasDrifted reports whether a field that the Foo owns differs from what the Foo asks
// for.
func (p Planner) hasDrifted(found *appsv1.Deployment, foo *samplev1alpha1.Foo) bool {
	return p.DescribeDrift(found, foo) != ""
}

// withOwnedFields returns a Deployment whose owned fields are as the Foo asks. It shares
// everything else with the one that was found: most need nothing, and copying each whole
// would take time.
func (p Planner) withOwnedFields(found *appsv1.Deployment, foo *samplev1alpha1.Foo) *appsv1.Deployment {
	wanted := *found
	template := &wanted.Spec.Template
	template.Labels = maps.Clone(template.Labels)
	template.Spec.Containers = slices.Clone(template.Spec.Containers)
	p.setOwnedFields(&wanted, foo)
	return &wanted
}

// repairedDeployment returns a copy of a Foo's Deployment whose owned fields are as the
// Foo asks. Everything else is as found, the resourceVersion included, so that the API
// server refuses the copy as an update if anybody has written in between.
func (p Planner) repairedDeployment(found *appsv1.Deployment, foo *samplev1alpha1.Foo) *appsv1.Deployment {
	repaired := found.DeepCopy()
	p.setOwnedFields(repaired, foo)
	return repaired
}

// adoptedDeployment returns a copy of a Deployment with the Foo as its controller and the
// owned fields as the Foo asks. It removes the annotation that asked for the adoption: if
// the Deployment loses its controller again, another adoption needs another annotation.
func (p Planner) adoptedDeployment(found *appsv1.Deployment, foo *samplev1alpha1.Foo) *appsv1.Deployment {
	adopted := found.DeepCopy()
	adopted.OwnerReferences = slices.DeleteFunc(adopted.OwnerReferences, func(ref metav1.OwnerReference) bool {
		return ref.UID == foo.UID && isToAFoo(&ref)
	})
	adopted.OwnerReferences = append(adopted.OwnerReferences, newControllerRef(foo))
	delete(adopted.Annotations, samplev1alpha1.AnnotationAdoptBy)
	p.setOwnedFields(adopted, foo)
	return adopted
}

// setOwnedFields sets the few fields of a Deployment that a Foo owns. The rest belongs to
// others: annotations, sidecars, the strategy, the time of a "kubectl rollout restart",
// and the replicas if the Foo leaves them out.
func (p Planner) setOwnedFields(deployment *appsv1.Deployment, foo *samplev1alpha1.Foo) {
	if foo.Spec.Replicas != nil {
		replicas := *foo.Spec.Replicas
		deployment.Spec.Replicas = &replicas
	}
	setPodLabels(deployment, foo)
	ownedContainer(&deployment.Spec.Template.Spec).Image = p.Image
}

// setPodLabels sets the labels of a Deployment's template that a Foo owns. It leaves them
// alone if the selector is too large for the cache, because then nobody knows which
// labels it allows.
func setPodLabels(deployment *appsv1.Deployment, foo *samplev1alpha1.Foo) {
	if isOversized(deployment.Spec.Selector) {
		return
	}
	for key, value := range podLabels(foo) {
		// A selector can't change, and the Pods must match it: where an adopted
		// Deployment's asks for another value, that one stands.
		if selected, ok := deployment.Spec.Selector.MatchLabels[key]; ok {
			value = selected
		}
		if !isForbidden(deployment.Spec.Selector, key, value) {
			metav1.SetMetaDataLabel(&deployment.Spec.Template.ObjectMeta, key, value)
		}
	}
}

// isOversized reports whether a selector is too large for the cache, and for the status,
// or is missing because it was.
func isOversized(selector *metav1.LabelSelector) bool {
	if selector == nil {
		return true
	}
	texts := len(selector.MatchLabels) + len(selector.MatchExpressions)
	size := 0
	for key, value := range selector.MatchLabels {
		size += len(key) + len(value)
	}
	for _, expression := range selector.MatchExpressions {
		texts += len(expression.Values)
		size += len(expression.Key)
		for _, value := range expression.Values {
			size += len(value)
		}
	}
	return texts > maxSelectorTexts || size > maxSelector
}

// isForbidden reports whether an expression of a selector excludes a label. The API
// server would refuse a template with such a label.
func isForbidden(selector *metav1.LabelSelector, key, value string) bool {
	var about metav1.LabelSelector
	for _, expression := range selector.MatchExpressions {
		if expression.Key == key {
			about.MatchExpressions = append(about.MatchExpressions, expression)
		}
	}
	if about.MatchExpressions == nil {
		return false
	}
	parsed, err := metav1.LabelSelectorAsSelector(&about)
	return err == nil && !parsed.Matches(labels.Set{key: value})
}

// DescribeDrift returns in which owned fields a Deployment differs from what the Foo asks
// for, or "" if in none.
func (p Planner) DescribeDrift(found *appsv1.Deployment, foo *samplev1alpha1.Foo) string {
	if !IsControlledBy(found, foo) {
		return "this Foo is not its controller"
	}
	wanted := p.withOwnedFields(found, foo)
	var differences []string
	if is, want := found.Spec.Replicas, wanted.Spec.Replicas; !ptr.Equal(is, want) {
		differences = append(differences, fmt.Sprintf("replicas is %d, not %d", ptr.Deref(is, 1), ptr.Deref(want, 1)))
	}
	for _, key := range podLabelKeys {
		if is, want := found.Spec.Template.Labels[key], wanted.Spec.Template.Labels[key]; is != want {
			differences = append(differences, fmt.Sprintf("the Pods' label %s is %q, not %q", key, is, want))
		}
	}
	switch i := slices.IndexFunc(found.Spec.Template.Spec.Containers, isOwnedContainer); {
	case i < 0:
		differences = append(differences, fmt.Sprintf("the container %s is missing", containerName))
	case found.Spec.Template.Spec.Containers[i].Image != p.Image:
		differences = append(differences, fmt.Sprintf("the image of container %s is %q, not %q",
			containerName, truncate(found.Spec.Template.Spec.Containers[i].Image, maxQuotedName), p.Image))
	}
	return strings.Join(differences, "; ")
}

func isOwnedContainer(container corev1.Container) bool { return container.Name == containerName }

// ownedContainer returns the container that a Foo owns. It adds it if it is missing.
func ownedContainer(pod *corev1.PodSpec) *corev1.Container {
	for i := range pod.Containers {
		if pod.Containers[i].Name == containerName {
			return &pod.Containers[i]
		}
	}
	pod.Containers = append(pod.Containers, corev1.Container{Name: containerName})
	return &pod.Containers[len(pod.Containers)-1]
}
