// SPDX-License-Identifier: Apache-2.0

// Package shape describes how two versions of an API kind differ, and derives from that
// what keeps both right on one stored object: fields and rules of the
// CustomResourceDefinition, and mutating admission policies. Nothing here calls a cluster.
package shape

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/yaml"
)

// Declaration says how a kind differs between two versions of its group.
type Declaration struct {
	// Name is the name of the CustomResourceDefinition: foos.samplecontroller.k8s.io.
	Name string `json:"crd"`
	// Old and New are the versions.
	Old string `json:"old"`
	New string `json:"new"`
	// Changes are all differences between the schemas, except for descriptions. Without
	// any, both versions have the same schema.
	Changes []Change `json:"changes,omitempty"`
	// Conversion is Webhook if a webhook of the author's own converts. Then the versions may be any, and
	// nothing else is declared.
	Conversion string `json:"conversion,omitempty"`
}

// Webhook is the conversion by a webhook.
const Webhook = "Webhook"

// Change is one difference: fields of the old version that became fields of the new one.
type Change struct {
	// Form is how values are converted: a key of forms.
	Form string `json:"form"`
	// From and To are the fields in the old and the new version: paths such as
	// spec.resources.cpu.
	From []string `json:"from"`
	To   []string `json:"to"`
	// Lossy says what happens to values of the new version that the old one can't express:
	// Keep or Refuse. It is required for the forms that have such values.
	Lossy string `json:"lossy,omitempty"`
	// Default has a value for each field of the old version, by its path. An object that gives
	// none of the fields gets these, and the new version's from them.
	Default map[string]any `json:"default,omitempty"`

	// Separator separates the two parts of a split or join.
	Separator string `json:"separator,omitempty"`
	// Values are the new values of an enum by the old ones.
	Values map[string]string `json:"values,omitempty"`
	// Unit is the binary suffix that the old number of a quantity counts in: Ki, Mi, Gi, Ti.
	Unit string `json:"unit,omitempty"`
	// Key and Value are the names of the two fields of the items of a map's old list.
	Key   string `json:"key,omitempty"`
	Value string `json:"value,omitempty"`
}

// What happens to values of the new version that the old one can't express.
const (
	// Keep keeps them when a client of the old version writes the object back.
	Keep = "keep"
	// Refuse refuses them as long as the old version exists.
	Refuse = "refuse"
)

// Parse returns the declarations in a text, one for each kind, separated as YAML documents. They
// are not checked.
func Parse(text []byte) (all []*Declaration, err error) {
	for document := range bytes.SplitSeq(text, []byte("\n---\n")) {
		d := &Declaration{}
		if err := yaml.UnmarshalStrict(document, d); err != nil {
			return nil, err
		}
		all = append(all, d)
	}
	return all, nil
}

// Group returns the API group of the kind.
func (d *Declaration) Group() string {
	_, group, _ := strings.Cut(d.Name, ".")
	return group
}

// Resource returns the plural of the kind.
func (d *Declaration) Resource() string {
	plural, _, _ := strings.Cut(d.Name, ".")
	return plural
}

// fields returns the paths of a change, the old ones first.
func (c *Change) fields() []string { return slices.Concat(c.From, c.To) }

// check returns an error for what is wrong whatever the schemas are.
func (c *Change) check() error {
	f, ok := forms[c.Form]
	if !ok {
		return fmt.Errorf("form %q is unknown: use %s; another change needs a conversion webhook", c.Form, strings.Join(sets.List(sets.KeySet(forms)), ", "))
	}
	if len(c.From) != len(f.from) || len(c.To) != len(f.to) {
		return fmt.Errorf("%s: needs %d fields in from and %d in to", c.Form, len(f.from), len(f.to))
	}
	for _, path := range c.fields() {
		if parts := strings.Split(path, "."); len(parts) < 2 || parts[0] != "spec" || slices.Contains(parts, "") {
			return fmt.Errorf("%s: %q is not a field of the spec, such as spec.host: the status is written by the controller, which can fill fields of both versions", c.Form, path)
		}
	}
	switch {
	case f.loses == "" && c.Lossy != "":
		return fmt.Errorf("%s: loses nothing: remove lossy", c.Form)
	case f.loses != "" && c.Lossy != Keep && c.Lossy != Refuse:
		return fmt.Errorf("%s: loses something in %s: %s. Declare lossy: %s (clients of the old version don't see it, and don't destroy it), or lossy: %s (it is refused until the old version is gone)",
			c.Form, c.From[0], f.loses, Keep, Refuse)
	}
	if len(c.Default) > 0 {
		if missing := sets.New(c.From...).SymmetricDifference(sets.KeySet(c.Default)); len(missing) > 0 {
			return fmt.Errorf("%s: default needs a value for each field in from, and for no other: %s", c.Form, strings.Join(sets.List(missing), ", "))
		}
	}
	return nil
}

// IsComplete reports whether an object has both sides of each change, or neither if there
// is no default.
func (d *Declaration) IsComplete(object map[string]any) bool {
	return !slices.ContainsFunc(d.Changes, func(c Change) bool {
		older, newer := has(object, c.From), has(object, c.To)
		return older != newer || !older && len(c.Default) > 0
	})
}

// has reports whether an object has all fields of a side. Empty lists and maps don't count.
func has(object map[string]any, paths []string) bool {
	return !slices.ContainsFunc(paths, func(path string) bool {
		value, found, err := unstructured.NestedFieldNoCopy(object, strings.Split(path, ".")...)
		items, isList := value.([]any)
		entries, isMap := value.(map[string]any)
		return !found || err != nil || isList && len(items) == 0 || isMap && len(entries) == 0
	})
}
