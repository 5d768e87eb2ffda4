// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"testing"
)

// TestJSONSchemas converts what a schema of Foos lacks.
func TestJSONSchemas(t *testing.T) {
	for say, test := range map[string]struct{ from, to string }{
		"a struct": {
			`{"type": "object", "properties": {"a": {"type": "object", "properties": {"b": {"type": "string"}}}}}`,
			`{"additionalProperties":false,"properties":{"a":{"additionalProperties":false,"properties":{"b":{"type":"string"}},"type":"object"}},"type":"object"}`,
		},
		"a list and a map of structs": {
			`{"type": "array", "items": {"type": "object", "additionalProperties": {"type": "object", "properties": {}}}}`,
			`{"items":{"additionalProperties":{"additionalProperties":false,"properties":{},"type":"object"},"type":"object"},"type":"array"}`,
		},
		"a map without a schema": {`{"type": "object"}`, `{"type":"object"}`},
		"any fields":             {`{"type": "object", "properties": {}, "x-kubernetes-preserve-unknown-fields": true}`, `{"properties":{},"type":"object"}`},
		"an embedded object":     {`{"type": "object", "properties": {"spec": {}}, "x-kubernetes-embedded-resource": true}`, `{"properties":{"spec":{}},"type":"object"}`},
		"an integer or a string": {`{"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": true}`, `{"anyOf":[{"type":"integer"},{"type":"string"}]}`},
		"null":                   {`{"type": "string", "nullable": true}`, `{"type":["string","null"]}`},
	} {
		var schema map[string]any
		if err := json.Unmarshal([]byte(test.from), &schema); err != nil {
			t.Fatal(err)
		}
		toJSONSchema(schema)
		if got, err := json.Marshal(schema); err != nil || string(got) != test.to {
			t.Errorf("%s: got %s (%v), want %s", say, got, err, test.to)
		}
	}
}
