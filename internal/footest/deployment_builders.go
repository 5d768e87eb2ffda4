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

// Builders of Deployments.

package footest

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// DeploymentOption changes the Deployment that Deployment builds.
type DeploymentOption func(*appsv1.Deployment)

// Deployment returns a Deployment named "web" that the Foo named owner controls, with the
// API server's defaults: 2 Pods wanted, all of them available.
func Deployment(owner string, options ...DeploymentOption) *appsv1.Deployment {
	replicas := int32(2)
	isTrue := true
	object := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{
			Name: "web", Namespace: Namespace, UID: "uid-deployment", Generation: 1, ResourceVersion: "20",
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "samplecontroller.k8s.io/v1alpha1", Kind: "Foo", Name: owner, UID: types.UID("uid-" + owner),
				Controller: &isTrue, BlockOwnerDeletion: &isTrue,
			}},
		},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "nginx", "controller": owner}},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "nginx", "controller": owner}},
				Spec: corev1.PodSpec{
					Containers: []corev1.Container{{
						Name: "nginx", Image: "nginx:latest",
						ImagePullPolicy: corev1.PullAlways, TerminationMessagePath: "/dev/termination-log",
					}},
					RestartPolicy: corev1.RestartPolicyAlways,
				},
			},
			Strategy:             appsv1.DeploymentStrategy{Type: appsv1.RollingUpdateDeploymentStrategyType},
			RevisionHistoryLimit: new(int32(10)),
		},
		Status: appsv1.DeploymentStatus{ObservedGeneration: 1, Replicas: 2, UpdatedReplicas: 2, ReadyReplicas: 2, AvailableReplicas: 2},
	}
	for _, option := range options {
		option(object)
	}
	return object
}

// Named sets the name of a Deployment.
func Named(name string) DeploymentOption {
	return func(deployment *appsv1.Deployment) { deployment.Name = name }
}

// ScaledTo sets the replicas in the spec of a Deployment.
func ScaledTo(replicas int32) DeploymentOption {
	return func(deployment *appsv1.Deployment) { deployment.Spec.Replicas = &replicas }
}

// WithImage sets the image of a Deployment's container.
func WithImage(image string) DeploymentOption {
	return func(deployment *appsv1.Deployment) { deployment.Spec.Template.Spec.Containers[0].Image = image }
}

// WithTemplateLabel sets a label of a Deployment's Pods.
func WithTemplateLabel(key, value string) DeploymentOption {
	return func(deployment *appsv1.Deployment) { deployment.Spec.Template.Labels[key] = value }
}

// WithAvailable sets the number of available Pods in the status of a Deployment.
func WithAvailable(available int32) DeploymentOption {
	return func(deployment *appsv1.Deployment) { deployment.Status.AvailableReplicas = available }
}

// WithAdoptBy sets the annotation that allows a Foo to adopt a Deployment.
func WithAdoptBy(foo string) DeploymentOption {
	return func(deployment *appsv1.Deployment) {
		metav1.SetMetaDataAnnotation(&deployment.ObjectMeta, "samplecontroller.k8s.io/adopt-by", foo)
	}
}

// WithoutOwner removes the owner references of a Deployment.
func WithoutOwner(deployment *appsv1.Deployment) { deployment.OwnerReferences = nil }

// WithOwner changes the API version, kind and UID in a Deployment's owner reference.
func WithOwner(apiVersion, kind string, uid types.UID) DeploymentOption {
	return func(deployment *appsv1.Deployment) {
		owner := &deployment.OwnerReferences[0]
		owner.APIVersion, owner.Kind, owner.UID = apiVersion, kind, uid
	}
}

// Terminating makes a Deployment one that is being deleted.
func Terminating(deployment *appsv1.Deployment) {
	deleted := Earlier
	deployment.DeletionTimestamp = &deleted
	deployment.Finalizers = []string{metav1.FinalizerDeleteDependents}
}

// WithSidecar makes the changes of others to fields that the Foo does not own.
func WithSidecar(deployment *appsv1.Deployment) {
	deployment.Annotations = map[string]string{"team": "a"}
	deployment.Labels = map[string]string{"cost-centre": "7"}
	deployment.Spec.Template.Annotations = map[string]string{"kubectl.kubernetes.io/restartedAt": "2026-03-01T11:00:00Z"}
	deployment.Spec.Template.Spec.Containers = append([]corev1.Container{{Name: "proxy", Image: "envoy:1"}}, deployment.Spec.Template.Spec.Containers...)
	deployment.Spec.Strategy = appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType}
}

// Created returns the Deployment that the controller creates for a Foo that asks for 2
// Pods.
func Created(owner string) *appsv1.Deployment {
	object := Deployment(owner)
	object.UID, object.ResourceVersion, object.Generation = "", "", 0
	object.Status = appsv1.DeploymentStatus{}
	object.Spec.Strategy, object.Spec.RevisionHistoryLimit = appsv1.DeploymentStrategy{}, nil
	object.Spec.Template.Spec = corev1.PodSpec{Containers: []corev1.Container{{Name: "nginx", Image: "nginx:latest"}}}
	return object
}

// AtVersion sets the resourceVersion of a Deployment.
func AtVersion(resourceVersion string) DeploymentOption {
	return func(deployment *appsv1.Deployment) { deployment.ResourceVersion = resourceVersion }
}

// AtGeneration sets the generation of a Deployment.
func AtGeneration(generation int64) DeploymentOption {
	return func(deployment *appsv1.Deployment) { deployment.Generation = generation }
}

// ConflictWithB and ConflictWithNobody are the messages of a Foo named "a" whose name for
// the Deployment is taken.
const (
	ConflictWithB      = `Deployment "web" belongs to Foo "b": choose another spec.deploymentName, or delete the owner`
	ConflictWithNobody = `Deployment "web" exists and has no controller: choose another spec.deploymentName, delete the Deployment, ` +
		`or hand it over with 'kubectl annotate -n team-a deployment web samplecontroller.k8s.io/adopt-by=a'`
)
