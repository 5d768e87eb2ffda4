// SPDX-License-Identifier: Apache-2.0

// The object after a write.

package main

import (
	"maps"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/sample-controller/internal/audit"
)

// deleteMany is the verb of a request to delete all objects that match a selector.
const deleteMany = "deletecollection"

// result returns the object after a write.
func result(w audit.Write, before audit.Object) audit.Object {
	after := before
	switch got := w.Response; {
	case got == nil || got.Kind == "Status": // The response to a Binding, an Eviction, and most deletions.
	case got.Kind == "Scale":
		after.Spec = with(before.Spec, "replicas", got.Replicas())
	case got.Kind == "PartialObjectMetadata": // The garbage collector requests only metadata.
		after.Metadata = got.Metadata
	default:
		after = *got
	}
	switch {
	case binds(w):
		after.Spec = with(before.Spec, "nodeName", w.Request.Target.Name)
	case deletes(w) && after.Metadata.DeletionTimestamp == nil:
		after.Metadata.DeletionTimestamp = &metav1.Time{Time: w.Done}
	}
	return after
}

// creates reports whether a write created its object. It may have any verb: server-side
// apply is a patch.
func creates(w audit.Write) bool { return w.Code == http.StatusCreated && w.Subresource == "" }

// binds reports whether a write bound a Pod to a node.
func binds(w audit.Write) bool { return w.Subresource == "binding" && w.Request != nil }

// deletes reports whether a write is a request to delete its object.
func deletes(w audit.Write) bool {
	return w.Verb == "delete" || w.Verb == deleteMany || w.Subresource == "eviction"
}

// isTerminating reports whether an object is being deleted.
func isTerminating(o audit.Object) bool { return o.Metadata.DeletionTimestamp != nil }

// isGone reports whether an object is being deleted and nothing delays its removal.
func isGone(o audit.Object) bool {
	grace := o.Metadata.DeletionGracePeriodSeconds
	return isTerminating(o) && len(o.Metadata.Finalizers) == 0 && (grace == nil || *grace == 0)
}

// with returns a copy of a JSON object with one field set.
func with(object any, name string, value any) any {
	fields, _ := object.(map[string]any)
	copied := map[string]any{}
	maps.Copy(copied, fields)
	copied[name] = value
	return copied
}
