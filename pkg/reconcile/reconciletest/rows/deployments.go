// SPDX-License-Identifier: Apache-2.0

// What API servers and the Deployment controller do to Deployments.

package rows

import (
	"cmp"
	"encoding/json"
	"fmt"
	"hash/fnv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// DeploymentGeneration reports whether a write raises the generation of a Deployment, which also counts
// changes of its annotations.
func DeploymentGeneration(before, after *appsv1.Deployment) bool {
	return SpecChanged(before, after) || !equality.Semantic.DeepEqual(before.Annotations, after.Annotations)
}

// AdvanceDeployment advances a Deployment's status as its controller does, one Pod at a time.
func AdvanceDeployment(deployment *appsv1.Deployment) bool {
	status, desired := &deployment.Status, *deployment.Spec.Replicas
	switch {
	case status.ObservedGeneration < deployment.Generation:
		status.ObservedGeneration = deployment.Generation
		if progress := progressOf(deployment); !equality.Semantic.DeepEqual(status.Conditions, progress) {
			status.Conditions = progress
			status.UpdatedReplicas, status.AvailableReplicas, status.ReadyReplicas = 0, 0, 0
		}
	case status.UpdatedReplicas != desired || status.Replicas != desired:
		status.Replicas, status.UpdatedReplicas = desired, desired
		status.AvailableReplicas = min(status.AvailableReplicas, desired)
		status.ReadyReplicas = status.AvailableReplicas
	case status.AvailableReplicas < desired:
		status.AvailableReplicas++
		status.ReadyReplicas = status.AvailableReplicas
	default:
		return false
	}
	return true
}

// progressOf returns the conditions of a Deployment that rolls out. As with a real one,
// the message names the ReplicaSet by a hash of the template.
func progressOf(deployment *appsv1.Deployment) []appsv1.DeploymentCondition {
	template, err := json.Marshal(&deployment.Spec.Template)
	if err != nil {
		panic(err)
	}
	hash := fnv.New32a()
	_, _ = hash.Write(template)
	return []appsv1.DeploymentCondition{{
		Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Reason: "ReplicaSetUpdated",
		Message: fmt.Sprintf("ReplicaSet %q is progressing.", fmt.Sprintf("%s-%x", deployment.Name, hash.Sum32())),
	}}
}

// DefaultDeployment sets what the API server sets in a Deployment.
func DefaultDeployment(deployment *appsv1.Deployment) {
	spec := &deployment.Spec
	defaultTo(&spec.Replicas, 1)
	defaultTo(&spec.RevisionHistoryLimit, 10)
	defaultTo(&spec.ProgressDeadlineSeconds, 600)
	spec.Strategy.Type = cmp.Or(spec.Strategy.Type, appsv1.RollingUpdateDeploymentStrategyType)
	if spec.Strategy.Type == appsv1.RollingUpdateDeploymentStrategyType {
		defaultTo(&spec.Strategy.RollingUpdate, appsv1.RollingUpdateDeployment{})
		defaultTo(&spec.Strategy.RollingUpdate.MaxUnavailable, intstr.FromString("25%"))
		defaultTo(&spec.Strategy.RollingUpdate.MaxSurge, intstr.FromString("25%"))
	}
	pod := &spec.Template.Spec
	pod.RestartPolicy = cmp.Or(pod.RestartPolicy, corev1.RestartPolicyAlways)
	pod.DNSPolicy = cmp.Or(pod.DNSPolicy, corev1.DNSClusterFirst)
	pod.SchedulerName = cmp.Or(pod.SchedulerName, corev1.DefaultSchedulerName)
	defaultTo(&pod.TerminationGracePeriodSeconds, corev1.DefaultTerminationGracePeriodSeconds)
	defaultTo(&pod.SecurityContext, corev1.PodSecurityContext{})
	for i := range pod.Containers {
		DefaultContainer(&pod.Containers[i])
	}
}

// DefaultContainer sets what the API server sets in a container.
func DefaultContainer(container *corev1.Container) {
	container.TerminationMessagePath = cmp.Or(container.TerminationMessagePath, corev1.TerminationMessagePathDefault)
	container.TerminationMessagePolicy = cmp.Or(container.TerminationMessagePolicy, corev1.TerminationMessageReadFile)
}

func defaultTo[T any](field **T, value T) {
	if *field == nil {
		*field = &value
	}
}
