// SPDX-License-Identifier: Apache-2.0

// Who set a field.

package plan

import (
	"encoding/json"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ChangedBy returns the manager that last set one of the fields of an object that a patch
// is about to change, or "" if the object does not say.
func ChangedBy(live metav1.Object, patch []byte) string {
	var changes map[string]any
	if err := json.Unmarshal(patch, &changes); err != nil {
		return ""
	}
	var last metav1.ManagedFieldsEntry
	for _, entry := range live.GetManagedFields() {
		var fields map[string]any
		if entry.Subresource == "status" || entry.FieldsV1 == nil || json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields) != nil {
			continue
		}
		if anyOwned(fields, changes) && !entry.Time.Before(last.Time) {
			last = entry
		}
	}
	return last.Manager
}

// anyOwned reports whether one of the fields that a patch sets is among those of a manager,
// in the form of metav1.FieldsV1: "f:NAME" for a field, `k:{"name":"NAME"}` for an element.
func anyOwned(fields, changes map[string]any) bool {
	for name, change := range changes {
		owned, found := fields["f:"+name].(map[string]any)
		if !found {
			continue
		}
		switch change := change.(type) {
		case map[string]any:
			if anyOwned(owned, change) {
				return true
			}
		case []any:
			for _, element := range change {
				changed, _ := element.(map[string]any)
				name, _ := changed["name"].(string)
				if of, found := owned[`k:{"name":`+strconv.Quote(name)+`}`].(map[string]any); found && anyOwned(of, changed) {
					return true
				}
			}
		default:
			return true
		}
	}
	return false
}
