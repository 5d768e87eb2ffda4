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

// What a change means, in words.

package main

import (
	"fmt"
	"maps"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// What is done to an object.
const (
	created  = "created"
	deleted  = "deleted"
	removed  = "removed" // after it was deleted and got time to end
	scaled   = "scaled"
	changed  = "changed"
	bound    = "bound"
	reported = "reported"
)

// ready is the note, or its last part, of an object that reports to be so.
const ready = "Ready"

// describe says what a change did to its object, and what there is to note of it. It says "" of changes that
// would tell a reader nothing, such as a status that counts the same Pods in another way.
func describe(c change) (did, note string) {
	switch {
	case c.before == nil:
		return created, creationNote(c.after)
	case c.after == nil && c.before.GetDeletionTimestamp() != nil:
		return removed, ""
	case c.after == nil:
		return deleted, ""
	case c.before.GetDeletionTimestamp() == nil && c.after.GetDeletionTimestamp() != nil:
		return deleted, deletionNote(c.after)
	}
	if did, note := describeSpec(c.before, c.after); did != "" {
		return did, note
	}
	if note := metadataNote(c.before, c.after); note != "" {
		return changed, note
	}
	if note := statusNote(c.after); note != statusNote(c.before) {
		return reported, note
	}
	return "", ""
}

func creationNote(object metav1.Object) string {
	var notes []string
	if owner := metav1.GetControllerOf(object); owner != nil {
		notes = append(notes, "owner "+owner.Kind)
	}
	switch replicas := wantedReplicas(object); replicas {
	case "", unset:
	case "1":
		notes = append(notes, "1 replica")
	default:
		notes = append(notes, replicas+" replicas")
	}
	return strings.Join(notes, ", ")
}

// deletionNote says what an object that is being deleted still waits for.
func deletionNote(object metav1.Object) string {
	if finalizers := object.GetFinalizers(); len(finalizers) > 0 {
		return "waits for " + strings.Join(finalizers, ", ")
	}
	if seconds := object.GetDeletionGracePeriodSeconds(); seconds != nil {
		return fmt.Sprintf("has %d s to end", *seconds)
	}
	return ""
}

// describeSpec says what became different in what is wanted.
func describeSpec(before, after metav1.Object) (did, note string) {
	if pod, ok := after.(*corev1.Pod); ok {
		if node := pod.Spec.NodeName; node != before.(*corev1.Pod).Spec.NodeName {
			return bound, "to " + node
		}
	}
	if equality.Semantic.DeepEqual(specOf(before), specOf(after)) {
		return "", ""
	}
	var notes []string
	addIfChanged := func(field, was, is string) {
		if was != is {
			notes = append(notes, fmt.Sprintf("%s %s -> %s", field, was, is))
		}
	}
	addIfChanged("image", images(before), images(after))
	addIfChanged("deploymentName", deploymentName(before), deploymentName(after))
	others := len(notes)
	addIfChanged("replicas", wantedReplicas(before), wantedReplicas(after))
	switch {
	case len(notes) == 0:
		return changed, "spec"
	case others == 0:
		return scaled, notes[0]
	}
	return changed, strings.Join(notes, ", ")
}

// metadataNote names the metadata that became different.
func metadataNote(before, after metav1.Object) string {
	var notes []string
	addIf := func(differs bool, name string) {
		if differs {
			notes = append(notes, name)
		}
	}
	addIf(!maps.Equal(before.GetLabels(), after.GetLabels()), "labels")
	addIf(!maps.Equal(notable(before.GetAnnotations()), notable(after.GetAnnotations())), "annotations")
	addIf(!equality.Semantic.DeepEqual(before.GetOwnerReferences(), after.GetOwnerReferences()), "owners")
	addIf(!equality.Semantic.DeepEqual(before.GetFinalizers(), after.GetFinalizers()), "finalizers")
	return strings.Join(notes, ", ")
}

// notable leaves out the annotations in which kubectl and the deployment controller take notes for themselves.
func notable(annotations map[string]string) map[string]string {
	kept := maps.Clone(annotations)
	maps.DeleteFunc(kept, func(key, _ string) bool {
		return key == corev1.LastAppliedConfigAnnotation || strings.HasPrefix(key, "deployment.kubernetes.io/")
	})
	return kept
}

// statusNote says what an object reports, in a few words.
func statusNote(object metav1.Object) string {
	switch o := object.(type) {
	case *samplev1alpha1.Foo:
		return available(o.Status.AvailableReplicas, wantedReplicas(o)) + readiness(o.Status.Conditions)
	case *appsv1.Deployment:
		return available(o.Status.AvailableReplicas, wantedReplicas(o))
	case *appsv1.ReplicaSet:
		return available(o.Status.AvailableReplicas, wantedReplicas(o))
	case *corev1.Pod:
		return podNote(o)
	}
	return ""
}

func available(is int32, wanted string) string {
	if wanted == unset {
		return fmt.Sprintf("%d available", is)
	}
	return fmt.Sprintf("%d/%s available", is, wanted)
}

// readiness is a Foo's condition Ready, with the message where the user has to do something about it.
func readiness(conditions []metav1.Condition) string {
	condition := meta.FindStatusCondition(conditions, samplev1alpha1.ConditionReady)
	switch {
	case condition == nil:
		return ""
	case condition.Status == metav1.ConditionTrue:
		return ", " + ready
	case condition.Reason == samplev1alpha1.ReasonDeploymentConflict, condition.Reason == samplev1alpha1.ReasonDeploymentFailed:
		return ", " + condition.Reason + ": " + condition.Message
	}
	return ", " + condition.Reason
}

func podNote(pod *corev1.Pod) string {
	if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return string(pod.Status.Phase)
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue {
			return ready
		}
	}
	return "not " + ready
}
