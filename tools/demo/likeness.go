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

// Which request made a change.

package main

import (
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/sample-controller/internal/audit"
)

// deleteMany is the verb of a request that deletes all objects that a selector selects.
const deleteMany = "deletecollection"

// likeness says how surely a request made a change; 0 means that it did not.
func likeness(c change, r audit.Write) int {
	object := c.object()
	named := r.Name == object.GetName() || r.Name == "" && (r.Verb == "create" || r.Verb == deleteMany)
	switch {
	case r.Resource != c.resource, r.Namespace != object.GetNamespace(), !named, !canMake(r, c):
		return 0
	case c.before == nil, c.after == nil, r.Replaces == "":
	case r.Replaces == c.before.GetResourceVersion():
		return 3
	default:
		return 0
	}
	if c.after == nil && isDelete(r) || isWriter(r, c) {
		return 2
	}
	return 1
}

// canMake reports whether a request of this verb can make a change of this sort.
func canMake(r audit.Write, c change) bool {
	writes := r.Verb == "update" || r.Verb == "patch"
	switch {
	case c.before == nil:
		return r.Subresource == "" && (writes || r.Verb == "create")
	case c.after == nil:
		// The request that removes the last finalizer removes the object, too.
		return isDelete(r) || writes && c.before.GetDeletionTimestamp() != nil
	case c.before.GetDeletionTimestamp() == nil && c.after.GetDeletionTimestamp() != nil:
		return isDelete(r)
	}
	return writes || r.Verb == "create" && r.Subresource != ""
}

func isDelete(r audit.Write) bool {
	return r.Verb == "delete" || r.Verb == deleteMany || r.Subresource == "eviction"
}

// isWriter reports whether the object names the request's writer as that of the change.
func isWriter(r audit.Write, c change) bool {
	for _, writer := range writers(c) {
		if writer.Manager == r.Manager && writer.Subresource == r.Subresource {
			return true
		}
	}
	return false
}

// writers are the entries of managedFields that a change has touched: its writer's, and of those who lost a field
// to it. There are none where it changed only the values of fields that its writer had already.
func writers(c change) []metav1.ManagedFieldsEntry {
	if c.after == nil {
		return nil
	}
	var before []metav1.ManagedFieldsEntry
	if c.before != nil {
		before = c.before.GetManagedFields()
	}
	var touched []metav1.ManagedFieldsEntry
	for _, entry := range c.after.GetManagedFields() {
		if !contains(before, entry) {
			touched = append(touched, entry)
		}
	}
	return touched
}

func contains(entries []metav1.ManagedFieldsEntry, wanted metav1.ManagedFieldsEntry) bool {
	for _, entry := range entries {
		if equality.Semantic.DeepEqual(entry, wanted) {
			return true
		}
	}
	return false
}
