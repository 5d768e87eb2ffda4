// SPDX-License-Identifier: Apache-2.0

// Updates as patches, and the last manager of the fields that a patch changes.

package plan

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/jsonmergepatch"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/client-go/kubernetes/scheme"
)

// Patch returns the patch that turns a live child into the desired one. It names the live
// child's UID and resourceVersion: if anyone has written in between, the API server
// returns Conflict.
//
// Fields that this client does not know are in neither object, so they stay unchanged.
// The patch is a strategic merge patch, which merges lists by key. The API server accepts
// those only for its own kinds; for a kind that a CustomResourceDefinition declares, Patch
// returns a JSON merge patch, which replaces a changed list as a whole.
func (c *ChildKind) Patch(live, desired Object) (types.PatchType, []byte, error) {
	was := CopyOf(live)
	was.SetUID("") // so that the patch contains both
	was.SetResourceVersion("")
	before, err := json.Marshal(was)
	if err != nil {
		return "", nil, fmt.Errorf("encoding the live %s %q: %w", c.Kind, live.GetName(), err)
	}
	after, err := json.Marshal(desired)
	if err != nil {
		return "", nil, fmt.Errorf("encoding the desired %s %q: %w", c.Kind, live.GetName(), err)
	}
	patchType, patch := types.StrategicMergePatchType, []byte(nil)
	if scheme.Scheme.IsGroupRegistered(c.Resource.Group) {
		patch, err = strategicPatch(before, after, c.Empty())
	} else {
		patchType = types.MergePatchType
		patch, err = jsonmergepatch.CreateThreeWayJSONMergePatch(before, after, before)
	}
	if err != nil {
		return "", nil, fmt.Errorf("comparing %s %q with its desired state: %w", c.Kind, live.GetName(), err)
	}
	return patchType, patch, nil
}

// strategicPatch returns the strategic merge patch between two objects. It leaves out the
// lists that do not change: the comparison fails on a list in which an element lacks the
// merge key, and the API server stores such lists, for example imagePullSecrets: [{}].
func strategicPatch(before, after []byte, schema any) ([]byte, error) {
	var was, becomes map[string]any
	if err := errors.Join(json.Unmarshal(before, &was), json.Unmarshal(after, &becomes)); err != nil {
		return nil, err
	}
	dropCommonLists(was, becomes)
	patch, err := strategicpatch.CreateTwoWayMergeMapPatch(was, becomes, schema)
	if err != nil {
		return nil, err
	}
	return json.Marshal(patch)
}

func dropCommonLists(was, becomes map[string]any) {
	for name, value := range was {
		switch value := value.(type) {
		case map[string]any:
			if other, ok := becomes[name].(map[string]any); ok {
				dropCommonLists(value, other)
			}
		case []any:
			if reflect.DeepEqual(value, becomes[name]) {
				delete(was, name)
				delete(becomes, name)
			}
		}
	}
}

// Manager identifies the client that has set a field.
type Manager struct {
	// Name is the client's field manager, and Subresource the subresource that it wrote to, such
	// as "scale". Either may be "".
	Name, Subresource string
}

const scaleSubresource = "scale"

func (m Manager) describe() string {
	name := fmt.Sprintf("%q", Truncate(cmp.Or(m.Name, "an unknown manager"), maxQuotedName))
	if m.Subresource != "" {
		name += fmt.Sprintf(" through the subresource %q", Truncate(m.Subresource, maxQuotedName))
	}
	return name
}

// CreatedBy returns the manager that has created an object, as far as the object records it.
func CreatedBy(live metav1.Object) Manager {
	var first metav1.ManagedFieldsEntry
	for _, entry := range live.GetManagedFields() {
		if entry.Subresource == "" && (first.Manager == "" || entry.Time.Before(first.Time)) {
			first = entry
		}
	}
	return Manager{Name: first.Manager}
}

// ChangedBy returns the manager that last set one of the fields of an object that a patch
// is about to change. It has no name if the object does not record it.
func ChangedBy(live metav1.Object, patch []byte) Manager {
	var changes map[string]any
	if err := json.Unmarshal(patch, &changes); err != nil {
		return Manager{}
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
	return Manager{last.Manager, last.Subresource}
}

// anyOwned reports whether a patch sets one of a manager's fields. These have the form of
// metav1.FieldsV1: "f:NAME" for a field, `k:{"name":"NAME"}` for an element.
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
