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
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/duration"

	"example.com/sample-controller/internal/preview"
)

// node is an object of the tree below a Foo.
type node struct {
	kind   string
	object preview.Object
	below  []node
}

// tree returns the Foo's children and what these control.
func (w *why) tree() []node {
	var nodes []node
	for _, row := range w.table {
		for _, child := range w.world.ControlledBy(row.Resource, w.foo) {
			nodes = append(nodes, node{row.Kind, child, w.below.controlledBy(child.GetUID())})
		}
	}
	return nodes
}

// controlledBy returns the ReplicaSets and Pods that an object controls, the newest first.
func (b *below) controlledBy(controller types.UID) []node {
	var nodes []node
	for i := range b.replicaSets {
		set := &b.replicaSets[i]
		// An old one has no Pods, and says nothing.
		if isControlledBy(set, controller) && (set.Status.Replicas > 0 || set.Spec.Replicas == nil || *set.Spec.Replicas > 0) {
			nodes = append(nodes, node{"ReplicaSet", set, b.controlledBy(set.UID)})
		}
	}
	for i := range b.pods {
		if pod := &b.pods[i]; isControlledBy(pod, controller) {
			nodes = append(nodes, node{"Pod", pod, nil})
		}
	}
	slices.SortFunc(nodes, func(a, b node) int {
		return cmp.Or(b.object.GetCreationTimestamp().Compare(a.object.GetCreationTimestamp().Time), strings.Compare(a.object.GetName(), b.object.GetName()))
	})
	return nodes
}

func isControlledBy(object metav1.Object, controller types.UID) bool {
	ref := metav1.GetControllerOfNoCopy(object)
	return ref != nil && ref.UID == controller
}

func (w *why) printTree() {
	nodes := w.tree()
	if len(nodes) == 0 {
		w.printf("  nothing\n")
	}
	w.printNodes(nodes, "  ")
}

func (w *why) printNodes(nodes []node, indent string) {
	for _, n := range nodes {
		w.printf("%s%s %s%s\n", indent, n.kind, n.object.GetName(), state(n.object))
		for _, wait := range append(waits(n.object), deletion(n.object, w.now)) {
			if wait != "" {
				w.printf("%s  ! %s\n", indent, wait)
			}
		}
		w.printNodes(n.below, indent+"  ")
	}
}

// state returns the counts of an object.
func state(object preview.Object) string {
	switch object := object.(type) {
	case *appsv1.Deployment:
		return fmt.Sprintf("  %d of %d available", object.Status.AvailableReplicas, wanted(object.Spec.Replicas))
	case *appsv1.ReplicaSet:
		return fmt.Sprintf("  %d of %d available", object.Status.AvailableReplicas, wanted(object.Spec.Replicas))
	case *corev1.Pod:
		return "  " + string(object.Status.Phase)
	}
	return ""
}

func wanted(replicas *int32) int32 {
	if replicas == nil {
		return 1
	}
	return *replicas
}

// waits returns what an object waits for.
func waits(object preview.Object) []string {
	switch object := object.(type) {
	case *appsv1.Deployment:
		return deploymentWaits(object)
	case *appsv1.ReplicaSet:
		for _, condition := range object.Status.Conditions {
			if condition.Type == appsv1.ReplicaSetReplicaFailure && condition.Status == corev1.ConditionTrue {
				return []string{condition.Reason + ": " + condition.Message}
			}
		}
	case *corev1.Pod:
		return podWaits(object)
	}
	return nil
}

func deploymentWaits(deployment *appsv1.Deployment) []string {
	var found []string
	if deployment.Spec.Paused {
		found = append(found, fmt.Sprintf("it is paused; to go on: kubectl rollout resume -n %s deployment/%s", deployment.Namespace, deployment.Name))
	}
	for _, condition := range deployment.Status.Conditions {
		isFailure := condition.Type == appsv1.DeploymentReplicaFailure && condition.Status == corev1.ConditionTrue
		isLate := condition.Type == appsv1.DeploymentProgressing && condition.Status == corev1.ConditionFalse
		if isFailure || isLate {
			found = append(found, condition.Reason+": "+condition.Message)
		}
	}
	return found
}

func podWaits(pod *corev1.Pod) []string {
	var found []string
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse {
			found = append(found, condition.Reason+": "+condition.Message)
		}
	}
	for _, status := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if waiting := status.State.Waiting; waiting != nil {
			found = append(found, fmt.Sprintf("container %s: %s: %s", status.Name, waiting.Reason, cmp.Or(waiting.Message, "(no message)")))
		}
		if last := status.LastTerminationState.Terminated; last != nil {
			found = append(found, fmt.Sprintf("container %s ended with exit code %d: %s", status.Name, last.ExitCode, last.Reason))
		}
	}
	return found
}

// deletion says what holds up the deletion of an object, or returns "".
func deletion(object metav1.Object, now time.Time) string {
	deleted := object.GetDeletionTimestamp()
	if deleted == nil {
		return ""
	}
	text := "is being deleted for " + duration.HumanDuration(now.Sub(deleted.Time))
	if finalizers := object.GetFinalizers(); len(finalizers) > 0 {
		text += ", and waits until somebody removes the finalizers " + strings.Join(finalizers, ", ")
	}
	return text
}
