// SPDX-License-Identifier: Apache-2.0

// The description of a write.

package main

import (
	"fmt"
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/sample-controller/internal/audit"
	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// The words for what a write did to its object.
const (
	created  = "created"
	deleted  = "deleted"
	removed  = "removed" // after its deletion, and its grace period or finalizers
	scaled   = "scaled"
	changed  = "changed"
	bound    = "bound"
	reported = "reported"
)

// ready is the note of a Ready object, or the last part of that note.
const ready = "Ready"

// describe returns what a write did to its object, and a note. It returns "" for a write
// that is of no interest, such as a status in which only other counters of the same Pods
// change.
func describe(w audit.Write, before, after audit.Object) (did, note string) {
	switch {
	case creates(w):
		return created, creationNote(after)
	case binds(w):
		return bound, "to " + w.Request.Target.Name
	case !isTerminating(before) && isTerminating(after):
		return deleted, deletionNote(after.Metadata)
	case isTerminating(before) && isGone(after) && (deletes(w) || len(before.Metadata.Finalizers) > 0):
		return removed, ""
	}
	if changes := differences(before.Spec, after.Spec); len(changes) > 0 {
		if len(changes) == 1 && strings.HasPrefix(changes[0], "replicas ") {
			return scaled, changes[0]
		}
		return changed, firstOf(changes)
	}
	if note := metadataNote(before.Metadata, after.Metadata); note != "" {
		return changed, note
	}
	if note := statusNote(after); note != statusNote(before) {
		return reported, note
	}
	return "", ""
}

func creationNote(o audit.Object) string {
	var notes []string
	if owner := metav1.GetControllerOfNoCopy(&o.Metadata); owner != nil {
		notes = append(notes, "owner "+owner.Kind)
	}
	switch replicas := o.Replicas(); replicas {
	case nil:
	case 1.0:
		notes = append(notes, "1 replica")
	default:
		notes = append(notes, fmt.Sprintf("%v replicas", replicas))
	}
	return strings.Join(notes, ", ")
}

// deletionNote returns what an object that is being deleted still waits for.
func deletionNote(m metav1.ObjectMeta) string {
	switch seconds := m.DeletionGracePeriodSeconds; {
	case len(m.Finalizers) > 0:
		return "waits for " + strings.Join(m.Finalizers, ", ")
	case seconds != nil && *seconds > 0:
		return fmt.Sprintf("has %d s to end", *seconds)
	}
	return ""
}

// metadataNote lists the metadata that changed.
func metadataNote(before, after metav1.ObjectMeta) string {
	var notes []string
	addIf := func(differs bool, name string) {
		if differs {
			notes = append(notes, name)
		}
	}
	addIf(!maps.Equal(before.Labels, after.Labels), "labels")
	addIf(!maps.Equal(notable(before.Annotations), notable(after.Annotations)), "annotations")
	addIf(!equality.Semantic.DeepEqual(before.OwnerReferences, after.OwnerReferences), "owners")
	addIf(!equality.Semantic.DeepEqual(before.Finalizers, after.Finalizers), "finalizers")
	return strings.Join(notes, ", ")
}

// notable returns the annotations without those that kubectl and the deployment
// controller maintain for their own use.
func notable(annotations map[string]string) map[string]string {
	kept := maps.Clone(annotations)
	maps.DeleteFunc(kept, func(key, _ string) bool {
		return key == corev1.LastAppliedConfigAnnotation || strings.HasPrefix(key, "deployment.kubernetes.io/")
	})
	return kept
}

// statusNote describes an object's status, with the message if the user has to act.
func statusNote(o audit.Object) string {
	note := o.Report()
	if c := o.Status.Ready(); c != nil && needsUser(c.Reason) {
		note += ": " + c.Message
	}
	return note
}

func needsUser(reason string) bool {
	return reason == samplev1alpha1.ReasonDeploymentConflict || reason == samplev1alpha1.ReasonDeploymentFailed
}
