// SPDX-License-Identifier: Apache-2.0

// The fields of a Deployment that the caches keep, and the meaning of its status.

package kinds

import (
	"cmp"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/pkg/reconcile/plan"
)

// keepDeployment returns the function that copies the fields of a Deployment that the caches
// keep: those that a Foo owns, those that determine whether and when it may set them, and
// those that show the state of the rollout.
func keepDeployment(image string) func(kept, found *appsv1.Deployment) {
	// All Deployments that need no repair share one copy of the containers, so that each
	// takes 1.8 KiB instead of 2.2.
	wanted := []corev1.Container{{Name: containerName, Image: image}}
	return func(kept, found *appsv1.Deployment) {
		kept.Spec.Replicas = found.Spec.Replicas
		kept.Spec.Paused = found.Spec.Paused
		if _, ok := found.Annotations[revisionAnnotation]; ok && found.Spec.Paused {
			kept.Annotations = withRevision
		}
		kept.Spec.Selector = keptSelector(found.Spec.Selector)
		kept.Spec.Template.Labels = keptLabels(found.Spec.Template.Labels, kept.Spec.Selector)
		kept.Spec.Template.Spec.Containers = keptContainers(found.Spec.Template.Spec.Containers, wanted)
		kept.Status = appsv1.DeploymentStatus{
			ObservedGeneration: found.Status.ObservedGeneration,
			Replicas:           found.Status.Replicas,
			UpdatedReplicas:    found.Status.UpdatedReplicas,
			AvailableReplicas:  found.Status.AvailableReplicas,
			Conditions:         keptConditions(found.Status.Conditions),
		}
	}
}

// keptSelector returns a selector whole or not at all, because a part of it would select
// other Pods.
func keptSelector(selector *metav1.LabelSelector) *metav1.LabelSelector {
	if isOversized(selector) {
		return nil
	}
	return selector
}

// keptLabels returns the Pod labels that a Foo owns. If they equal the selector's labels, it
// returns the selector's map, so that a Deployment takes 1.8 KiB instead of 2.1.
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
func keptContainers(containers, wanted []corev1.Container) []corev1.Container {
	i := slices.IndexFunc(containers, isOwnedContainer)
	switch {
	case i < 0:
		return nil
	case containers[i].Image == wanted[0].Image:
		return wanted
	}
	return []corev1.Container{{Name: containerName, Image: plan.Truncate(containers[i].Image, plan.MaxKept)}}
}

// finished is the condition of a Deployment whose rollout is complete, and withRevision the
// annotation of one that has had a ReplicaSet. All Deployments in the cache share them.
var (
	finished = []appsv1.DeploymentCondition{{
		Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Reason: newReplicaSetAvailable,
	}}
	withRevision = map[string]string{revisionAnnotation: "some"}
)

// The names that Kubernetes' Deployment controller uses
// (k8s.io/kubernetes/pkg/controller/deployment/util).
const (
	newReplicaSetAvailable = "NewReplicaSetAvailable"
	revisionAnnotation     = "deployment.kubernetes.io/revision"
)

// keptConditions returns the conditions that determine readiness, truncated to what messages
// quote.
func keptConditions(conditions []appsv1.DeploymentCondition) []appsv1.DeploymentCondition {
	if isFinished(conditions) {
		return finished
	}
	var kept []appsv1.DeploymentCondition
	for _, condition := range conditions {
		if failure, _ := rolloutFailure([]appsv1.DeploymentCondition{condition}); failure != "" {
			kept = append(kept, appsv1.DeploymentCondition{
				Type: condition.Type, Status: condition.Status, Message: plan.Truncate(condition.Message, plan.MaxQuote),
			})
		}
	}
	return kept
}

// reportDeployment copies a Deployment's Pod counts and selector to the Foo's status.
func reportDeployment(foo *samplev1alpha1.Foo, deployment *appsv1.Deployment) {
	foo.Status.Replicas = deployment.Status.Replicas
	foo.Status.AvailableReplicas = deployment.Status.AvailableReplicas
	foo.Status.Selector = selectorText(deployment.Spec.Selector)
}

// judgeRollout returns whether a Deployment is rolled out: its controller has observed the
// newest spec, all Pods have the newest template, and all are available. These are the
// criteria of kubectl rollout status.
func judgeRollout(deployment *appsv1.Deployment) plan.Readiness {
	desired := ptr.Deref(deployment.Spec.Replicas, 1)
	status := &deployment.Status
	if status.ObservedGeneration >= deployment.Generation {
		if isHeldBack(deployment) { // first, because it also causes what follows
			return plan.Stalled(samplev1alpha1.ReasonProgressing,
				"Deployment %q is paused with changes to roll out: resume it with 'kubectl rollout resume -n %s deployment %s'",
				deployment.Name, deployment.Namespace, deployment.Name)
		}
		if failure, final := rolloutFailure(status.Conditions); failure != "" {
			readiness := plan.NotReady(samplev1alpha1.ReasonDeploymentFailed, "Deployment %q %s", deployment.Name, failure)
			readiness.Stalled = final
			return readiness
		}
		if status.UpdatedReplicas == desired && status.Replicas == desired && status.AvailableReplicas == desired {
			return plan.Ready("Deployment %q has %d of %d Pods available", deployment.Name, desired, desired)
		}
		if isFinished(status.Conditions) && status.UpdatedReplicas == status.Replicas {
			return judgeFinished(deployment, desired)
		}
	}
	return plan.NotReady(samplev1alpha1.ReasonProgressing, "Deployment %q is rolling out: %d of %d Pods available",
		deployment.Name, status.AvailableReplicas, desired)
}

// judgeFinished judges a Deployment that was rolled out and has too few, too many or
// unavailable Pods now: it is scaled, or it has lost Pods.
func judgeFinished(deployment *appsv1.Deployment, desired int32) plan.Readiness {
	available := deployment.Status.AvailableReplicas
	readiness := plan.NotReady(samplev1alpha1.ReasonProgressing, "Deployment %q has %d of %d Pods available", deployment.Name, available, desired)
	if deployment.Status.Replicas == desired {
		reason := samplev1alpha1.ReasonDegraded
		if available == 0 {
			reason = samplev1alpha1.ReasonUnavailable
		}
		readiness.AfterReady = new(plan.NotReady(reason, "Deployment %q has lost Pods: %d of %d available", deployment.Name, available, desired))
	}
	return readiness
}

// isFinished reports whether the Deployment's controller has completed the rollout of its newest
// template. It leaves the condition as it is while the Deployment is scaled or loses Pods.
func isFinished(conditions []appsv1.DeploymentCondition) bool {
	complete := false
	for _, condition := range conditions {
		switch {
		case condition.Type == appsv1.DeploymentProgressing:
			complete = condition.Status == corev1.ConditionTrue && condition.Reason == newReplicaSetAvailable
		case condition.Type == appsv1.DeploymentReplicaFailure && condition.Status == corev1.ConditionTrue:
			return false
		}
	}
	return complete
}

// isHeldBack reports whether a paused Deployment has changes to roll out: it has Pods with an
// older template, or it has never had a ReplicaSet. A paused Deployment is scaled like any other.
func isHeldBack(deployment *appsv1.Deployment) bool {
	_, hadReplicaSet := deployment.Annotations[revisionAnnotation]
	status := &deployment.Status
	return deployment.Spec.Paused && (status.UpdatedReplicas < status.Replicas || status.Replicas == 0 && !hadReplicaSet)
}

// rolloutFailure returns why a Deployment does not roll out, as reported by its controller:
// its Pods or its ReplicaSet can't be created, or there was no progress for
// progressDeadlineSeconds. It returns "" if there is no such reason. final is true only for
// the latter: Pods that can't be created now may be created tomorrow, or, in a new namespace,
// a second later.
func rolloutFailure(conditions []appsv1.DeploymentCondition) (failure string, final bool) {
	for _, condition := range conditions {
		switch {
		case condition.Type == appsv1.DeploymentReplicaFailure && condition.Status == corev1.ConditionTrue:
			failure = "cannot create its Pods: " + plan.Truncate(condition.Message, plan.MaxQuote)
		case condition.Type == appsv1.DeploymentProgressing && condition.Status == corev1.ConditionFalse:
			final = true
			failure = cmp.Or(failure, "does not roll out: "+plan.Truncate(condition.Message, plan.MaxQuote))
		}
	}
	return failure, final
}

// selectorText returns a label selector in the form that list requests use. It returns "" for
// a selector that the API server would not have accepted, and for one that is too large
// for the status or the cache, because a part of it would select other Pods.
func selectorText(selector *metav1.LabelSelector) string {
	if isOversized(selector) {
		return ""
	}
	text, isOurs := textOfPodLabels(selector)
	if !isOurs {
		parsed, err := metav1.LabelSelectorAsSelector(selector)
		if err != nil {
			return ""
		}
		text = parsed.String()
	}
	if len(text) <= maxSelector {
		return text
	}
	return ""
}

// textOfPodLabels returns the text of a selector that has only labels of podLabels. To parse
// one of any labels takes a quarter of a sync that changes nothing.
func textOfPodLabels(selector *metav1.LabelSelector) (text string, isOurs bool) {
	if len(selector.MatchExpressions) > 0 {
		return "", false
	}
	for key, value := range selector.MatchLabels {
		if !slices.Contains(podLabelKeys, key) || len(validation.IsValidLabelValue(value)) > 0 {
			return "", false
		}
	}
	return labels.Set(selector.MatchLabels).String(), true
}
