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

// Builders of changes and records for the tests.

package main

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// edited returns an object after some edits.
func edited[T any](object *T, edits []func(*T)) *T {
	for _, edit := range edits {
		edit(object)
	}
	return object
}

func named(name, version string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: "default", Name: name, ResourceVersion: version}
}

func foo(replicas int32, edits ...func(*samplev1alpha1.Foo)) *samplev1alpha1.Foo {
	return edited(&samplev1alpha1.Foo{
		ObjectMeta: named("web", "1"),
		Spec:       samplev1alpha1.FooSpec{DeploymentName: "web", Replicas: &replicas},
	}, edits)
}

func withReady(status metav1.ConditionStatus, reason, message string) func(*samplev1alpha1.Foo) {
	return func(f *samplev1alpha1.Foo) {
		f.Status.Conditions = []metav1.Condition{{Type: samplev1alpha1.ConditionReady, Status: status, Reason: reason, Message: message}}
	}
}

func deployment(replicas int32, edits ...func(*appsv1.Deployment)) *appsv1.Deployment {
	return edited(&appsv1.Deployment{
		ObjectMeta: named("web", "1"),
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Image: "nginx:latest"}}}},
		},
	}, edits)
}

func replicaSet(replicas int32, edits ...func(*appsv1.ReplicaSet)) *appsv1.ReplicaSet {
	return edited(&appsv1.ReplicaSet{ObjectMeta: named("web-1", "1"), Spec: appsv1.ReplicaSetSpec{Replicas: &replicas}}, edits)
}

func pod(edits ...func(*corev1.Pod)) *corev1.Pod {
	return edited(&corev1.Pod{ObjectMeta: named("web-1-x", "1")}, edits)
}

func withPodReady(status corev1.ConditionStatus) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: status}}
	}
}

// doomed marks an object as being deleted.
func doomed[T metav1.Object](object T, grace int64, finalizers ...string) T {
	object.SetDeletionTimestamp(&metav1.Time{})
	object.SetDeletionGracePeriodSeconds(&grace)
	object.SetFinalizers(finalizers)
	return object
}

func ownedBy[T metav1.Object](kind string, object T) T {
	yes := true
	object.SetOwnerReferences([]metav1.OwnerReference{{Kind: kind, Controller: &yes}})
	return object
}

func annotated[T metav1.Object](key string, object T) T {
	object.SetAnnotations(map[string]string{key: "1"})
	return object
}

// at gives an object a resourceVersion and the one who wrote it.
func at[T metav1.Object](version, manager, subresource string, object T) T {
	object.SetResourceVersion(version)
	object.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: manager, Subresource: subresource}})
	return object
}
