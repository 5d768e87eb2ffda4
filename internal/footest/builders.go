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

// Package footest has what the tests of several packages share: builders of Foos,
// Deployments and statuses (this file), assertions, and the objects and checks of the fuzz
// targets.
package footest

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"example.com/sample-controller/internal/options"
	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// Namespace is the namespace of the tests' objects, and DefaultImage the image of their
// Pods.
const (
	// Namespace is where the tests' Foos are, DefaultImage what their Pods run.
	Namespace    = "team-a"
	DefaultImage = options.DefaultImage
)

var (
	// Now is the time at which every test begins: the start of a testing/synctest
	// bubble's clock.
	Now = metav1.Date(2000, time.January, 1, 0, 0, 0, 0, time.UTC)
	// Earlier is the time at which the objects of a test were created.
	Earlier = metav1.Date(1999, time.December, 31, 23, 0, 0, 0, time.UTC)
)

// FooOption changes what Foo returns.
type FooOption func(*samplev1alpha1.Foo)

// Foo returns a Foo that asks for 2 Pods in a Deployment named "web".
func Foo(name string, options ...FooOption) *samplev1alpha1.Foo {
	replicas := int32(2)
	object := &samplev1alpha1.Foo{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: Namespace, UID: types.UID("uid-" + name), Generation: 1, ResourceVersion: "10"},
		Spec:       samplev1alpha1.FooSpec{DeploymentName: "web", Replicas: &replicas},
	}
	for _, option := range options {
		option(object)
	}
	return object
}

// WithReplicas sets the number of Pods that a Foo asks for.
func WithReplicas(replicas int32) FooOption {
	return func(foo *samplev1alpha1.Foo) { foo.Spec.Replicas = &replicas }
}

// WithoutReplicas makes a Foo not set the number of Pods.
func WithoutReplicas(foo *samplev1alpha1.Foo) { foo.Spec.Replicas = nil }

// WithDeploymentName sets the name of the Deployment that a Foo asks for.
func WithDeploymentName(name string) FooOption {
	return func(foo *samplev1alpha1.Foo) { foo.Spec.DeploymentName = name }
}

// WithFooUID sets the UID of a Foo.
func WithFooUID(uid types.UID) FooOption {
	return func(foo *samplev1alpha1.Foo) { foo.UID = uid }
}

// WithGeneration sets the generation of a Foo.
func WithGeneration(generation int64) FooOption {
	return func(foo *samplev1alpha1.Foo) { foo.Generation = generation }
}

// BeingDeleted makes a Foo one in foreground deletion, which waits for its Deployment.
func BeingDeleted(foo *samplev1alpha1.Foo) {
	deleted := Earlier
	foo.DeletionTimestamp = &deleted
	foo.Finalizers = []string{metav1.FinalizerDeleteDependents}
}

// WithStatus sets the status of a Foo.
func WithStatus(status samplev1alpha1.FooStatus) FooOption {
	return func(foo *samplev1alpha1.Foo) { foo.Status = status }
}

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
			Strategy: appsv1.DeploymentStrategy{Type: appsv1.RollingUpdateDeploymentStrategyType},
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
	object.Spec.Strategy = appsv1.DeploymentStrategy{}
	object.Spec.Template.Spec = corev1.PodSpec{Containers: []corev1.Container{{Name: "nginx", Image: "nginx:latest"}}}
	return object
}

// Settled returns the status of a Foo named owner whose Deployment "web" has 2 of 2 Pods
// available.
func Settled(owner string) samplev1alpha1.FooStatus {
	return samplev1alpha1.FooStatus{
		ObservedGeneration: 1, Replicas: 2, AvailableReplicas: 2, Selector: "app=nginx,controller=" + owner,
		Conditions: Ready(metav1.ConditionTrue, "Available", `Deployment "web" has 2 of 2 Pods available`, Earlier),
	}
}

// Ready returns the conditions of a Foo of generation 1.
func Ready(status metav1.ConditionStatus, reason, message string, since metav1.Time) []metav1.Condition {
	return []metav1.Condition{{
		Type: "Ready", Status: status, Reason: reason, Message: message, ObservedGeneration: 1, LastTransitionTime: since,
	}}
}

// OfGeneration returns conditions with another generation.
func OfGeneration(generation int64, conditions []metav1.Condition) []metav1.Condition {
	for i := range conditions {
		conditions[i].ObservedGeneration = generation
	}
	return conditions
}

// RefusedStatus returns the status of a Foo whose Deployment a quota refused.
func RefusedStatus() samplev1alpha1.FooStatus {
	status := Settled("a")
	status.Conditions = Ready(metav1.ConditionFalse, "DeploymentFailed", "The API server refused: exceeded quota", Earlier)
	return status
}

// AtVersion sets the resourceVersion of a Deployment.
func AtVersion(resourceVersion string) DeploymentOption {
	return func(deployment *appsv1.Deployment) { deployment.ResourceVersion = resourceVersion }
}

// ConflictWithB and ConflictWithNobody are the messages of a Foo named "a" whose name for
// the Deployment is taken.
const (
	ConflictWithB      = `Deployment "web" belongs to Foo "b": choose another spec.deploymentName, or delete the owner`
	ConflictWithNobody = `Deployment "web" exists and has no controller: choose another spec.deploymentName, delete the Deployment, ` +
		`or hand it over with 'kubectl annotate -n team-a deployment web samplecontroller.k8s.io/adopt-by=a'`
)

// Rolling returns the status of a Foo with a number of Pods, not all of them available.
func Rolling(replicas int32) samplev1alpha1.FooStatus {
	return samplev1alpha1.FooStatus{
		ObservedGeneration: 1, Replicas: replicas, Selector: "app=nginx,controller=a",
		Conditions: Ready(metav1.ConditionFalse, "Progressing", "", Earlier),
	}
}

// AtGeneration sets the generation of a Deployment.
func AtGeneration(generation int64) DeploymentOption {
	return func(deployment *appsv1.Deployment) { deployment.Generation = generation }
}
