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
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// printOwners says who wrote the fields that the Foo owns, by the managers of fields.
func (w *why) printOwners() {
	for _, row := range w.table {
		for _, child := range w.world.ControlledBy(row.Resource, w.foo) {
			asked, err := fieldsOf(row.Desired(w.foo))
			w.errs = append(w.errs, err)
			lines := w.writers(map[string]any{"spec": asked["spec"], "data": asked["data"]}, child.GetManagedFields())
			if len(lines) == 0 {
				continue
			}
			w.printf("\nWho wrote what the Foo owns of %s %s:\n", row.Kind, child.GetName())
			for _, line := range lines {
				w.printf("  %s\n", line)
			}
		}
	}
}

// writers returns a line for each field, with the manager that wrote it last.
func (w *why) writers(asked map[string]any, entries []metav1.ManagedFieldsEntry) []string {
	last := map[string]metav1.ManagedFieldsEntry{}
	for _, entry := range entries {
		var owned map[string]any
		if entry.FieldsV1 == nil || entry.Subresource == "status" || json.Unmarshal(entry.FieldsV1.GetRawBytes(), &owned) != nil {
			continue
		}
		for _, path := range ownedLeaves(asked, owned, "") {
			if known, found := last[path]; !found || known.Time.Before(entry.Time) {
				last[path] = entry
			}
		}
	}
	var lines []string
	for _, path := range slices.Sorted(maps.Keys(last)) {
		entry, ago := last[path], ""
		if entry.Time != nil {
			ago = ", " + w.age(entry.Time.Time) + " ago"
		}
		lines = append(lines, fmt.Sprintf("%s: %s (%s)%s", path, entry.Manager, entry.Operation, ago))
	}
	return lines
}

// ownedLeaves returns the paths of the leaves of a value that a manager owns.
func ownedLeaves(value any, owned map[string]any, path string) []string {
	var leaves []string
	switch value := value.(type) {
	case map[string]any:
		for name, field := range value {
			if below, ok := owned["f:"+name].(map[string]any); ok {
				leaves = append(leaves, ownedLeaves(field, below, strings.TrimPrefix(path+"."+name, "."))...)
			}
		}
	case []any:
		for i, element := range value {
			for key, below := range owned {
				if below, ok := below.(map[string]any); ok && isElement(element, key) {
					leaves = append(leaves, ownedLeaves(element, below, fmt.Sprintf("%s[%d]", path, i))...)
				}
			}
		}
	default:
		leaves = append(leaves, path)
	}
	return leaves
}

// isElement reports whether a list's element has the key of a managed field, such as
// k:{"name":"nginx"}.
func isElement(element any, key string) bool {
	text, isKey := strings.CutPrefix(key, "k:")
	fields, isMap := element.(map[string]any)
	if !isKey || !isMap {
		return false
	}
	var keys map[string]any
	decoder := json.NewDecoder(bytes.NewReader([]byte(text)))
	decoder.UseNumber()
	if decoder.Decode(&keys) != nil {
		return false
	}
	for name, value := range keys {
		if fmt.Sprint(fields[name]) != fmt.Sprint(value) {
			return false
		}
	}
	return true
}
