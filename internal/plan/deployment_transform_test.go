// SPDX-License-Identifier: Apache-2.0

// Tests of what the caches keep of Deployments.

package plan

import (
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/sample-controller/test/footest"
)

// A Deployment has more that users can fill.
func TestWhatTheCacheKeepsOfADeploymentIsBounded(t *testing.T) {
	full := func(options ...footest.ChildOption) *appsv1.Deployment {
		deployment := largest(footest.Deployment("a", options...), metav1.OwnerReference{
			APIVersion: "samplecontroller.k8s.io/v1alpha1", Kind: "Foo", Name: "a", UID: "uid-a", Controller: new(true),
		})
		fillDeployment(deployment)
		return deployment
	}
	checkBounded(t, map[string]metav1.Object{
		"all fields are full":             full(),
		"a selector of many small labels": full(footest.Changed(withManyLabels)),
		"a selector of a huge expression": full(footest.Changed(withHugeExpression)),
	})
}

func fillDeployment(deployment *appsv1.Deployment) {
	template := &deployment.Spec.Template
	template.Annotations = deployment.Annotations
	template.Labels["other"] = "label"
	template.Spec.Containers[0].Image = "example.com/" + strings.Repeat("i", 100<<10)
	template.Spec.Containers[0].Args = []string{strings.Repeat("a", 100<<10)}
	template.Spec.Containers = append(template.Spec.Containers, corev1.Container{Name: "other", Image: strings.Repeat("i", 100<<10)})
	deployment.Status.Conditions = []appsv1.DeploymentCondition{
		{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionFalse, Message: strings.Repeat("m", 100<<10)},
		{Type: "Others", Status: corev1.ConditionTrue, Message: strings.Repeat("m", 100<<10)},
	}
}

func withManyLabels(deployment *appsv1.Deployment) {
	for i := range 2000 {
		deployment.Spec.Selector.MatchLabels[fmt.Sprintf("%x", i)] = ""
	}
}

func withHugeExpression(deployment *appsv1.Deployment) {
	values := make([]string, 20_000)
	for i := range values {
		values[i] = fmt.Sprint(i)
	}
	deployment.Spec.Selector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "other", Operator: metav1.LabelSelectorOpNotIn, Values: values}}
}

func TestAPausedDeploymentIsPausedInTheCache(t *testing.T) {
	paused := footest.Deployment("a", footest.Changed(func(deployment *appsv1.Deployment) {
		deployment.Spec.Paused = true
		deployment.Status.UpdatedReplicas, deployment.Status.Replicas = 1, 2
	}))
	if want, got := judgeRollout(paused), judgeRollout(trimmedCopy(t, paused)); got != want {
		t.Errorf("the verdict is %v, not %v", got, want)
	}
}

func TestDeploymentsWithoutDriftShareMemory(t *testing.T) {
	kept := func(options ...footest.ChildOption) *appsv1.Deployment {
		return trimmedCopy(t, footest.Deployment("a", options...))
	}
	first, second, other := kept(), kept(footest.WithSidecar), kept(footest.WithImage("nginx:1"))
	containers := func(d *appsv1.Deployment) *corev1.Container { return &d.Spec.Template.Spec.Containers[0] }
	if containers(first) != containers(second) {
		t.Error("two equal Deployments do not share the memory of their containers")
	}
	if image := containers(other).Image; image != "nginx:1" || containers(first).Image != "nginx:latest" {
		t.Errorf("a Deployment with another image has %s in the cache, the others %s", image, containers(first).Image)
	}
}
