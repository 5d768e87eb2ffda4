// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/json"

	"example.com/sample-controller/internal/plan"
	"example.com/sample-controller/tools/kubectl-foo/internal/report"
)

// Owned says who wrote the fields of a child that the Foo owns, by the managers of fields.
type Owned struct {
	Kind   string  `json:"kind"`
	Name   string  `json:"name"`
	Fields []Field `json:"fields"`
}

// Field is a field with the manager that wrote it last.
type Field struct {
	Path      string `json:"path"`
	Manager   string `json:"manager"`
	Operation string `json:"operation"`
	Age       string `json:"age,omitempty"`
}

func (s *Subject) owners() ([]Owned, error) {
	var owners []Owned
	for _, row := range s.Kind.Children {
		for _, child := range s.ControlledBy(row, s.Owner) {
			asked, err := report.FieldsOf(row.Desired(s.Owner, plan.Seen{}))
			if err != nil {
				return nil, err
			}
			for _, field := range []string{"apiVersion", "kind", "metadata"} {
				delete(asked, field)
			}
			if fields := s.writers(asked, child.GetManagedFields()); len(fields) > 0 {
				owners = append(owners, Owned{row.Kind, child.GetName(), fields})
			}
		}
	}
	return owners, nil
}

func (o *Owned) print(out *report.Printer, owner string) {
	out.Printf("\nWho wrote what the %s owns of %s %s:\n", owner, o.Kind, o.Name)
	for _, field := range o.Fields {
		ago := ""
		if field.Age != "" {
			ago = ", " + field.Age + " ago"
		}
		out.Printf("  %s: %s (%s)%s\n", field.Path, field.Manager, field.Operation, ago)
	}
}

// writers returns the fields that managers own, in the order of their paths.
func (s *Subject) writers(asked map[string]any, entries []metav1.ManagedFieldsEntry) []Field {
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
	var fields []Field
	for _, path := range slices.Sorted(maps.Keys(last)) {
		entry, age := last[path], ""
		if entry.Time != nil {
			age = s.age(entry.Time.Time)
		}
		fields = append(fields, Field{path, entry.Manager, string(entry.Operation), age})
	}
	return fields
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
	if json.Unmarshal([]byte(text), &keys) != nil {
		return false
	}
	for name, value := range keys {
		if fmt.Sprint(fields[name]) != fmt.Sprint(value) {
			return false
		}
	}
	return true
}
