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

// Whether a Foo is ready, and if not, why and what its user can do.

package plan

import (
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// verdict is what the condition Ready is going to say.
type verdict struct {
	status  metav1.ConditionStatus
	reason  string
	message string
}

// judge returns whether a Foo is ready after a sync. The first obstacle decides. A Foo
// becomes ready only by a sync in which nothing failed, and only by a Deployment that is
// as the Foo asks.
func (p Planner) judge(foo *samplev1alpha1.Foo, result Outcome) verdict {
	name := truncate(foo.Spec.DeploymentName, maxQuotedName)
	switch {
	case IsTerminating(foo):
		return notReady(samplev1alpha1.ReasonTerminating, "The Foo is being deleted")
	case result.Action == ActionLeave:
		return judgeConflict(foo, result.Named)
	case result.Action == ActionWait:
		return notReady(samplev1alpha1.ReasonTerminating, "Deployment %q is being deleted; it is created again once it is gone", name)
	case IsRefusal(result.Failure):
		return notReady(samplev1alpha1.ReasonDeploymentFailed, "The API server refused: %s", truncate(result.Failure.Error(), maxServerWords))
	case result.Failure != nil:
		return judgeOutage(foo, result)
	case result.Deployment == nil:
		return notReady(samplev1alpha1.ReasonProgressing, "Deployment %q is being created", name)
	}
	if differs := p.DescribeDrift(result.Deployment, foo); differs != "" {
		return notReady(samplev1alpha1.ReasonDeploymentFailed, "The API server stored Deployment %q otherwise than asked: %s", name, truncate(differs, maxServerWords))
	}
	return judgeRollout(result.Deployment)
}

// judgeOutage is the verdict after a write or a live read that failed for a reason that
// will pass. It says nothing about the Deployment as it was before. If the API server
// refused the same spec earlier, somebody has to act, so the condition goes on saying
// that: outages and refusals in turns are one condition.
func judgeOutage(foo *samplev1alpha1.Foo, result Outcome) verdict {
	ready := meta.FindStatusCondition(foo.Status.Conditions, samplev1alpha1.ConditionReady)
	if ready != nil && ready.Reason == samplev1alpha1.ReasonDeploymentFailed && ready.Status == metav1.ConditionFalse &&
		ready.ObservedGeneration == foo.Generation {
		return verdict{ready.Status, ready.Reason, ready.Message}
	}
	name, done := foo.Spec.DeploymentName, participles[result.Action]
	if failed := (*WriteError)(nil); errors.As(result.Failure, &failed) {
		name, done = failed.Deployment, failed.Done
	}
	return notReady(samplev1alpha1.ReasonProgressing, "Deployment %q could not be %s yet: %s",
		truncate(name, maxQuotedName), done, describeOutage(result.Failure))
}

// participles name what a sync was going to do to a Deployment when a live read failed.
var participles = map[Action]string{
	ActionCreate: "created", ActionUpdate: "updated", ActionAdopt: "adopted", ActionNone: "checked",
}

// describeOutage quotes the API server's answer. It does not quote other errors: they
// name ports and addresses that differ each time, and the status would, too.
func describeOutage(err error) string {
	var answer apierrors.APIStatus
	switch {
	case errors.As(err, &answer) && answer.Status().Message != "":
		return truncate(answer.Status().Message, maxServerWords)
	case errors.Is(err, context.DeadlineExceeded):
		return "the API server did not answer in time"
	}
	return "the API server could not be reached"
}

// judgeConflict says who has the Deployment that a Foo asks for.
func judgeConflict(foo *samplev1alpha1.Foo, taken *appsv1.Deployment) verdict {
	if owner := metav1.GetControllerOfNoCopy(taken); owner != nil {
		return notReady(samplev1alpha1.ReasonDeploymentConflict,
			"Deployment %q belongs to %s %q: choose another spec.deploymentName, or delete the owner",
			taken.Name, truncate(owner.Kind, maxQuotedName), truncate(owner.Name, maxQuotedName))
	}
	return notReady(samplev1alpha1.ReasonDeploymentConflict,
		"Deployment %q exists and has no controller: choose another spec.deploymentName, delete the Deployment, "+
			"or hand it over with 'kubectl annotate -n %s deployment %s %s=%s'",
		taken.Name, taken.Namespace, taken.Name, samplev1alpha1.AnnotationAdoptBy, foo.Name)
}

// judgeRollout returns whether a Deployment is rolled out: its controller has seen the
// newest spec, all Pods are of the newest template, and all are available. These are the
// terms of kubectl rollout status.
func judgeRollout(deployment *appsv1.Deployment) verdict {
	desired := ptr.Deref(deployment.Spec.Replicas, 1)
	status := &deployment.Status
	if status.ObservedGeneration >= deployment.Generation {
		if failure := rolloutFailure(status.Conditions); failure != "" {
			return notReady(samplev1alpha1.ReasonDeploymentFailed, "Deployment %q %s", deployment.Name, failure)
		}
		if status.UpdatedReplicas == desired && status.Replicas == desired && status.AvailableReplicas == desired {
			return verdict{metav1.ConditionTrue, samplev1alpha1.ReasonAvailable,
				fmt.Sprintf("Deployment %q has %d of %d Pods available", deployment.Name, desired, desired)}
		}
		if isHeldBack(deployment) {
			return notReady(samplev1alpha1.ReasonProgressing,
				"Deployment %q is paused and has something to roll out: let it with 'kubectl rollout resume -n %s deployment %s'",
				deployment.Name, deployment.Namespace, deployment.Name)
		}
	}
	return notReady(samplev1alpha1.ReasonProgressing, "Deployment %q is rolling out: %d available of %d wanted Pods",
		deployment.Name, status.AvailableReplicas, desired)
}

// IsRolledOut reports whether a Foo can be ready by this Deployment, if it is as the Foo
// asks.
func IsRolledOut(deployment *appsv1.Deployment) bool {
	return judgeRollout(deployment).status == metav1.ConditionTrue
}

// isHeldBack reports whether a paused Deployment has something to roll out: Pods of an
// older template, or no Pods yet.
func isHeldBack(deployment *appsv1.Deployment) bool {
	status := &deployment.Status
	return deployment.Spec.Paused && (status.UpdatedReplicas < status.Replicas || status.Replicas == 0)
}

// rolloutFailure returns why a Deployment does not roll out, in the words of its
// controller: its Pods or its ReplicaSet can't be created, or there was no progress for
// progressDeadlineSeconds. It returns "" if there is no such reason.
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
