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

package main

import (
	"fmt"
	"unicode/utf8"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// maxServerWords bounds, in bytes, what a condition's message quotes of an
// error: a refusal can list every field of an object.
const maxServerWords = 512

// verdict is what the condition Ready will say.
type verdict struct {
	status  metav1.ConditionStatus
	reason  string
	message string
}

// outcome is what a sync came to.
type outcome struct {
	// action is what the sync decided to do.
	action action
	// named is the Deployment of the wanted name as it was found, whoever
	// controls it, or nil.
	named *appsv1.Deployment
	// deployment is the Foo's Deployment as last read or written; nil where
	// the Foo has none.
	deployment *appsv1.Deployment
	// failure is the API server's refusal of a write; nil unless it would
	// refuse the same again.
	failure error
}

// calculateStatus returns the status that a Foo should have after a sync. now
// becomes the time of the condition's transition if there is one.
func calculateStatus(foo *samplev1alpha1.Foo, result outcome, now metav1.Time) samplev1alpha1.FooStatus {
	status := *foo.Status.DeepCopy()
	status.ObservedGeneration = foo.Generation
	status.Replicas, status.AvailableReplicas, status.Selector = 0, 0, ""
	if deployment := result.deployment; deployment != nil {
		status.Replicas = deployment.Status.Replicas
		status.AvailableReplicas = deployment.Status.AvailableReplicas
		status.Selector = selectorText(deployment.Spec.Selector)
	}
	ready := judge(foo, result)
	meta.SetStatusCondition(&status.Conditions, metav1.Condition{
		Type:               samplev1alpha1.ConditionReady,
		Status:             ready.status,
		ObservedGeneration: foo.Generation,
		LastTransitionTime: now,
		Reason:             ready.reason,
		Message:            ready.message,
	})
	return status
}

// judge says whether a Foo is ready after a sync, and if not, why and what its
// user can do about it. What stands in the way comes first.
func judge(foo *samplev1alpha1.Foo, result outcome) verdict {
	name := foo.Spec.DeploymentName
	switch {
	case isTerminating(foo):
		return notReady(samplev1alpha1.ReasonTerminating, "The Foo is being deleted")
	case result.action == actionLeave:
		return judgeConflict(foo, result.named)
	case result.action == actionWait:
		return notReady(samplev1alpha1.ReasonTerminating, "Deployment %q is being deleted; it is created again once it is gone", name)
	case result.failure != nil:
		return notReady(samplev1alpha1.ReasonDeploymentFailed, "The API server refused: %s", truncate(result.failure.Error(), maxServerWords))
	case result.deployment == nil:
		return notReady(samplev1alpha1.ReasonProgressing, "Deployment %q is being created", name)
	}
	return judgeRollout(result.deployment)
}

// judgeConflict says whose the Deployment is that a Foo can't have.
func judgeConflict(foo *samplev1alpha1.Foo, taken *appsv1.Deployment) verdict {
	if owner := metav1.GetControllerOfNoCopy(taken); owner != nil {
		return notReady(samplev1alpha1.ReasonDeploymentConflict,
			"Deployment %q belongs to %s %q: choose another spec.deploymentName, or delete the owner", taken.Name, owner.Kind, owner.Name)
	}
	return notReady(samplev1alpha1.ReasonDeploymentConflict,
		"Deployment %q exists and has no controller: choose another spec.deploymentName, delete the Deployment, "+
			"or hand it over with 'kubectl annotate -n %s deployment %s %s=%s'",
		taken.Name, taken.Namespace, taken.Name, samplev1alpha1.AnnotationAdoptBy, foo.Name)
}

// judgeRollout says whether a Deployment has rolled out: its controller has
// seen the newest spec, every Pod is of the newest template, none of an older
// one is left, and all are available. These are kubectl rollout status' terms.
func judgeRollout(deployment *appsv1.Deployment) verdict {
	desired := int32(1)
	if deployment.Spec.Replicas != nil {
		desired = *deployment.Spec.Replicas
	}
	status := &deployment.Status
	if status.ObservedGeneration >= deployment.Generation {
		if failure := rolloutFailure(status.Conditions); failure != "" {
			return notReady(samplev1alpha1.ReasonDeploymentFailed, "Deployment %q %s", deployment.Name, failure)
		}
		if status.UpdatedReplicas == desired && status.Replicas == desired && status.AvailableReplicas == desired {
			return verdict{metav1.ConditionTrue, samplev1alpha1.ReasonAvailable,
				fmt.Sprintf("Deployment %q has %d of %d Pods available", deployment.Name, desired, desired)}
		}
	}
	return notReady(samplev1alpha1.ReasonProgressing, "Deployment %q is rolling out: %d available of %d wanted Pods",
		deployment.Name, status.AvailableReplicas, desired)
}

// rolloutFailure says, in the words of the Deployment's controller, what keeps a
// Deployment from rolling out: its Pods or its ReplicaSet can't be created, or
// nothing has moved for its progressDeadlineSeconds. "" if nothing does.
func rolloutFailure(conditions []appsv1.DeploymentCondition) string {
	for _, condition := range conditions {
		switch {
		case condition.Type == appsv1.DeploymentReplicaFailure && condition.Status == corev1.ConditionTrue:
			return "cannot create its Pods: " + truncate(condition.Message, maxServerWords)
		case condition.Type == appsv1.DeploymentProgressing && condition.Status == corev1.ConditionFalse:
			return "does not roll out: " + truncate(condition.Message, maxServerWords)
		}
	}
	return ""
}

func notReady(reason, format string, args ...any) verdict {
	return verdict{metav1.ConditionFalse, reason, fmt.Sprintf(format, args...)}
}

// readyChanged returns the condition Ready of a new status if its status or
// reason differ from the old one's, else nil. A change of the message alone
// (one more Pod available) is no transition.
func readyChanged(before, after samplev1alpha1.FooStatus) *metav1.Condition {
	was := meta.FindStatusCondition(before.Conditions, samplev1alpha1.ConditionReady)
	is := meta.FindStatusCondition(after.Conditions, samplev1alpha1.ConditionReady)
	if is == nil || was != nil && was.Status == is.Status && was.Reason == is.Reason {
		return nil
	}
	return is
}

// selectorText returns a label selector in the form that a list request takes,
// or "" for one that the API server would not have accepted.
func selectorText(selector *metav1.LabelSelector) string {
	parsed, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return ""
	}
	return parsed.String()
}

// truncate cuts text to at most limit bytes, at the boundary of a character.
func truncate(text string, limit int) string {
	const mark = "..."
	if len(text) <= limit {
		return text
	}
	cut := limit - len(mark)
	for cut > 0 && !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + mark
}
