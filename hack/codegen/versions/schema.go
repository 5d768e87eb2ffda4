// SPDX-License-Identifier: Apache-2.0

// The comparison of two schemas.

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
)

// texts are the keywords that may differ, because they are only for readers. Everything
// else must be the same:
//   - The API server drops fields that a schema lacks, and sets the defaults of the version
//     that a client uses. When the client writes the object back, this is stored.
//   - Bounds, rules, types, required and nullable fields decide which objects are valid. An
//     object of a looser version could not be updated in a stricter one, for instance the
//     status of a Foo that a user wrote in the other version.
//   - The x-kubernetes extensions decide which fields are dropped and how lists merge.
var texts = []string{"description", "title", "example", "externalDocs"}

// comparison collects the differences between the schemas of two versions.
type comparison struct {
	names [2]string // of the versions
	lines []string
}

// differences returns a line for each field, or property of a field, in which the two
// versions differ.
func differences(one, other version) []string {
	c := &comparison{names: [2]string{one.Name, other.Name}}
	c.schemas("", one.Schema.OpenAPIV3Schema, other.Schema.OpenAPIV3Schema)
	return c.lines
}

func (c *comparison) schemas(path string, one, other map[string]any) {
	for _, keyword := range unionOfKeys(one, other) {
		if slices.Contains(texts, keyword) || reflect.DeepEqual(one[keyword], other[keyword]) {
			continue
		}
		a, isSchema := one[keyword].(map[string]any)
		b, areBoth := other[keyword].(map[string]any)
		both := isSchema && areBoth
		switch {
		case keyword == "properties" && (isSchema || areBoth):
			c.properties(path, a, b)
		case keyword == "items" && both:
			c.schemas(path+"[]", a, b)
		case keyword == "additionalProperties" && both:
			c.schemas(path+"[*]", a, b)
		default:
			c.keyword(path, keyword, one, other)
		}
	}
}

func (c *comparison) properties(path string, one, other map[string]any) {
	for _, name := range unionOfKeys(one, other) {
		field := name
		if path != "" {
			field = path + "." + name
		}
		a, inOne := one[name].(map[string]any)
		b, inOther := other[name].(map[string]any)
		switch {
		case !inOther:
			c.add("%s: only in %s", field, c.names[0])
		case !inOne:
			c.add("%s: only in %s", field, c.names[1])
		default:
			c.schemas(field, a, b)
		}
	}
}

// keyword reports a difference in a property of the field at path.
func (c *comparison) keyword(path, keyword string, one, other map[string]any) {
	if path == "" {
		path = "the object"
	}
	a, inOne := one[keyword]
	b, inOther := other[keyword]
	switch {
	case !inOther:
		c.add("%s: %s %s only in %s", path, keyword, asJSON(a), c.names[0])
	case !inOne:
		c.add("%s: %s %s only in %s", path, keyword, asJSON(b), c.names[1])
	default:
		c.add("%s: %s %s in %s, %s in %s", path, keyword, asJSON(a), c.names[0], asJSON(b), c.names[1])
	}
}

func (c *comparison) add(format string, args ...any) {
	c.lines = append(c.lines, fmt.Sprintf(format, args...))
}

func unionOfKeys(one, other map[string]any) []string {
	union := maps.Clone(one)
	if union == nil {
		union = map[string]any{}
	}
	maps.Copy(union, other)
	return slices.Sorted(maps.Keys(union))
}

// asJSON returns a value on one line, with operators of rules such as < as they are.
func asJSON(value any) string {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return fmt.Sprint(value)
	}
	return string(bytes.TrimSpace(text.Bytes()))
}
