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

// What the caches keep of an object.

package plan

import (
	"maps"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// maxKeptText bounds, in bytes, what the cache keeps of texts that the API server does
// not bound: an owner's kind and name, an image. No message quotes as much.
const maxKeptText = 1024

// A Transformer drops everything that no decision reads from an object before it enters
// an informer's cache. Whoever may write Foos or Deployments can put more than a mebibyte
// into one: annotations, finalizers, owner references. What the caches keep of an object
// is bounded, whatever is in it.
//
// So no update of a Deployment is made from the cache, only from a live read. A Foo's
// status is sent with what is left of the Foo, because the API server takes only the
// status from that request.
type Transformer struct {
	// wanted are the containers of a Deployment that needs no repair. All such Deployments
	// share this one copy: 1.8 KiB are kept of each in place of 2.2.
	wanted []corev1.Container
}

// NewTransformer returns a Transformer for Deployments whose container should have this
// image.
func NewTransformer(image string) *Transformer {
	return &Transformer{wanted: []corev1.Container{{Name: containerName, Image: image}}}
}

// Transform is a cache.TransformFunc.
func (t *Transformer) Transform(object any) (any, error) {
	switch object := object.(type) {
	case *samplev1alpha1.Foo:
		return &samplev1alpha1.Foo{ObjectMeta: identity(&object.ObjectMeta), Spec: object.Spec, Status: object.Status}, nil
	case *appsv1.Deployment:
		return t.trimDeployment(object), nil
	}
	return object, nil
}

// trimDeployment keeps the fields that a Foo owns and those that show the state of the
// rollout. Of a Deployment that no Foo controls, it keeps who controls it.
func (t *Transformer) trimDeployment(deployment *appsv1.Deployment) *appsv1.Deployment {
	kept := &appsv1.Deployment{ObjectMeta: identity(&deployment.ObjectMeta)}
	owner := metav1.GetControllerOfNoCopy(deployment)
	if owner == nil {
		kept.Annotations = consentIn(deployment)
		return kept
	}
	kept.OwnerReferences = []metav1.OwnerReference{keptController(owner)}
	if !isToAFoo(owner) {
		return kept
	}
	t.keepSpec(&kept.Spec, &deployment.Spec)
	kept.Status = appsv1.DeploymentStatus{
		ObservedGeneration: deployment.Status.ObservedGeneration,
		Replicas:           deployment.Status.Replicas,
		UpdatedReplicas:    deployment.Status.UpdatedReplicas,
		AvailableReplicas:  deployment.Status.AvailableReplicas,
		Conditions:         keptConditions(deployment.Status.Conditions),
	}
	return kept
}

// keepSpec copies the fields that a Foo owns, and those that decide whether and when it
// may set them.
func (t *Transformer) keepSpec(kept, spec *appsv1.DeploymentSpec) {
	kept.Replicas = spec.Replicas
	kept.Paused = spec.Paused
	kept.Selector = keptSelector(spec.Selector)
	kept.Template.Labels = keptLabels(spec.Template.Labels, kept.Selector)
	kept.Template.Spec.Containers = t.keptContainers(spec.Template.Spec.Containers)
}

// identity returns the metadata that identifies an object and its version.
func identity(object *metav1.ObjectMeta) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name:              object.Name,
		Namespace:         object.Namespace,
		UID:               object.UID,
		ResourceVersion:   object.ResourceVersion,
		Generation:        object.Generation,
		DeletionTimestamp: object.DeletionTimestamp,
	}
}

// keptController returns the fields of a controller reference that decisions and messages
// read. One that is not to a Foo of our group loses its API version, so that it can't
// become one when its texts are cut.
func keptController(owner *metav1.OwnerReference) metav1.OwnerReference {
	kept := metav1.OwnerReference{
		Kind:       truncate(owner.Kind, maxKeptText),
		Name:       truncate(owner.Name, maxKeptText),
		UID:        types.UID(truncate(string(owner.UID), maxKeptText)),
		Controller: new(true),
	}
	if isToAFoo(owner) {
		kept.APIVersion = samplev1alpha1.SchemeGroupVersion.String()
	}
	return kept
}

// consentIn returns the one annotation that a decision reads, if it can be the name of a
// Foo.
func consentIn(deployment *appsv1.Deployment) map[string]string {
	by, ok := deployment.Annotations[samplev1alpha1.AnnotationAdoptBy]
	if !ok || len(by) > maxKeptText {
		return nil
	}
	return map[string]string{samplev1alpha1.AnnotationAdoptBy: by}
}

// keptSelector returns a selector whole or not at all, because a part of it selects other
// Pods.
func keptSelector(selector *metav1.LabelSelector) *metav1.LabelSelector {
	if isOversized(selector) {
		return nil
	}
	return selector
}

// keptLabels returns those labels of the Pods that a Foo owns. If they are the
// selector's, it returns the selector's map: 1.8 KiB are kept of a Deployment in place of
// 2.1.
func keptLabels(labels map[string]string, selector *metav1.LabelSelector) map[string]string {
	kept := map[string]string{}
	for _, key := range podLabelKeys {
		if value, ok := labels[key]; ok {
			kept[key] = value
		}
	}
	if selector != nil && maps.Equal(kept, selector.MatchLabels) {
		return selector.MatchLabels
	}
	return kept
}

// keptContainers returns the container that a Foo owns, if there is one.
func (t *Transformer) keptContainers(containers []corev1.Container) []corev1.Container {
	for _, container := range containers {
		switch {
		case !isOwnedContainer(container):
			continue
		case container.Image == t.wanted[0].Image:
			return t.wanted
		}
		return []corev1.Container{{Name: containerName, Image: truncate(container.Image, maxKeptText)}}
	}
	return nil
}

// keptConditions returns the conditions that decide over readiness, cut to what messages
// quote.
func keptConditions(conditions []appsv1.DeploymentCondition) []appsv1.DeploymentCondition {
	var kept []appsv1.DeploymentCondition
	for _, condition := range conditions {
		if failure := rolloutFailure([]appsv1.DeploymentCondition{condition}); failure != "" {
			kept = append(kept, appsv1.DeploymentCondition{
				Type: condition.Type, Status: condition.Status, Message: truncate(condition.Message, maxServerWords),
			})
		}
	}
	return kept
}
