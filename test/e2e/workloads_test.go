// SPDX-License-Identifier: Apache-2.0

// Workloads that have nothing to do with Foos.

package e2e

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// pauseImage is a small image that does nothing.
const pauseImage = "registry.k8s.io/pause:3.10"

// labelsOf returns the labels of the Pods of a test's workload.
func labelsOf(name string) map[string]string {
	return map[string]string{"workload": name}
}

func selectorOf(name string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: labelsOf(name)}
}

// ofWorkload selects the objects of a workload.
func ofWorkload(name string) metav1.ListOptions {
	return metav1.ListOptions{LabelSelector: "workload=" + name}
}

// templateOf returns the template of a Pod that does nothing.
func templateOf(name string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: labelsOf(name)},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "pause", Image: pauseImage}}},
	}
}
