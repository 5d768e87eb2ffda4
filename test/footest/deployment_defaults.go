// SPDX-License-Identifier: Apache-2.0

// What the API server sets in a Deployment. The comparison of the explorer with a real API
// server shows that nothing is missing, for the fields that the tests use.

package footest

import (
	"cmp"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

func defaultDeployment(deployment *appsv1.Deployment) {
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
		defaultContainer(&pod.Containers[i])
	}
}

func defaultContainer(container *corev1.Container) {
	container.TerminationMessagePath = cmp.Or(container.TerminationMessagePath, corev1.TerminationMessagePathDefault)
	container.TerminationMessagePolicy = cmp.Or(container.TerminationMessagePolicy, corev1.TerminationMessageReadFile)
}

// derivePullPolicies sets the pull policies that an API server derives from the images.
func derivePullPolicies(deployment *appsv1.Deployment) {
	containers := deployment.Spec.Template.Spec.Containers
	for i := range containers {
		containers[i].ImagePullPolicy = cmp.Or(containers[i].ImagePullPolicy, pullPolicyOf(containers[i].Image))
	}
}

// pullPolicyOf returns the policy of an image: an image without a tag is the latest one.
func pullPolicyOf(image string) corev1.PullPolicy {
	name := image[strings.LastIndex(image, "/")+1:]
	if _, tag, tagged := strings.Cut(name, ":"); strings.Contains(name, "@") || tagged && tag != "latest" {
		return corev1.PullIfNotPresent
	}
	return corev1.PullAlways
}

func defaultTo[T any](field **T, value T) {
	if *field == nil {
		*field = &value
	}
}
