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

// What an object asks for.

package main

import (
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// unset is the number of replicas of an object that leaves it to others.
const unset = "unset"

// specOf is what is wanted of an object.
func specOf(object metav1.Object) any {
	switch o := object.(type) {
	case *samplev1alpha1.Foo:
		return o.Spec
	case *appsv1.Deployment:
		return o.Spec
	case *appsv1.ReplicaSet:
		return o.Spec
	case *corev1.Pod:
		return o.Spec
	}
	return nil
}

// wantedReplicas is how many Pods an object asks for; "" for one that asks for none.
func wantedReplicas(object metav1.Object) string {
	var replicas *int32
	switch o := object.(type) {
	case *samplev1alpha1.Foo:
		replicas = o.Spec.Replicas
	case *appsv1.Deployment:
		replicas = o.Spec.Replicas
	case *appsv1.ReplicaSet:
		replicas = o.Spec.Replicas
	default:
		return ""
	}
	if replicas == nil {
		return unset
	}
	return strconv.Itoa(int(*replicas))
}

func deploymentName(object metav1.Object) string {
	if foo, ok := object.(*samplev1alpha1.Foo); ok {
		return foo.Spec.DeploymentName
	}
	return ""
}

// images are those of an object's Pods.
func images(object metav1.Object) string {
	var containers []corev1.Container
	switch o := object.(type) {
	case *appsv1.Deployment:
		containers = o.Spec.Template.Spec.Containers
	case *appsv1.ReplicaSet:
		containers = o.Spec.Template.Spec.Containers
	case *corev1.Pod:
		containers = o.Spec.Containers
	}
	names := make([]string, 0, len(containers))
	for _, container := range containers {
		names = append(names, container.Image)
	}
	return strings.Join(names, ",")
}
