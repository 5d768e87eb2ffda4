// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// crd returns a CustomResourceDefinition whose versions v1, v2, ... have these schemas.
// Objects are stored in the version with the number stored. The third is not served.
func crd(stored int, schemas ...string) string {
	var text strings.Builder
	text.WriteString("metadata: {name: foos.example.com}\nspec:\n  versions:\n")
	for i, schema := range schemas {
		fmt.Fprintf(&text, "  - {name: v%d, served: %t, storage: %t, schema: {openAPIV3Schema: %s}}\n", i+1, i+1 != 3, i+1 == stored, schema)
	}
	return text.String()
}

// spec returns the schema of an object whose spec has these properties.
func spec(properties string) string {
	return "{type: object, properties: {spec: {type: object, properties: {" + properties + "}}}}"
}

func TestDifferences(t *testing.T) {
	for name, test := range map[string]struct {
		one, other string
		want       []string
	}{
		"the same": {spec("host: {type: string}"), spec("host: {type: string}"), nil},
		"only texts for readers": {
			spec("host: {type: string, description: a, title: a, example: a, externalDocs: {url: a}}"),
			spec("host: {type: string, description: b, title: b, externalDocs: {url: b}}"), nil,
		},
		"a renamed field": {
			spec("host: {type: string}"), spec("hostname: {type: string}"),
			[]string{"spec.host: only in v1", "spec.hostname: only in v2"},
		},
		"a field called description": {
			spec("description: {type: string}"), spec(""), []string{"spec.description: only in v1"},
		},
		"the only field": {
			"{type: object}", "{type: object, properties: {data: {type: string}}}", []string{"data: only in v2"},
		},
		"fields of items and of values": {
			spec("list: {items: {properties: {a: {}}}}, map: {additionalProperties: {properties: {a: {}}}}"),
			spec("list: {items: {properties: {b: {}}}}, map: {additionalProperties: {properties: {}}}"),
			[]string{"spec.list[].a: only in v1", "spec.list[].b: only in v2", "spec.map[*].a: only in v1"},
		},
		"a map and an object": {
			spec("map: {additionalProperties: {type: string}}"), spec("map: {additionalProperties: true}"),
			[]string{"spec.map: additionalProperties true only in v2", "spec.map[*]: only in v1"},
		},
		"defaults": {
			spec("a: {default: 1}, b: {default: 1}, c: {}"), spec("a: {default: 2}, b: {}, c: {default: 1}"),
			[]string{"spec.a: default 1 in v1, 2 in v2", "spec.b: default 1 only in v1", "spec.c: default 1 only in v2"},
		},
		"bounds that a float64 cannot tell apart": {
			spec("a: {maximum: 9007199254740992}"), spec("a: {maximum: 9007199254740993}"),
			[]string{"spec.a: maximum 9007199254740992 in v1, 9007199254740993 in v2"},
		},
		"types, rules and extensions": {
			spec("a: {type: string}, b: {x-kubernetes-validations: [{rule: self < 1}]}, c: {x-kubernetes-list-type: set}"),
			spec("a: {type: integer}, b: {}, c: {}"),
			[]string{
				`spec.a: type "string" in v1, "integer" in v2`,
				`spec.b: x-kubernetes-validations [{"rule":"self < 1"}] only in v1`,
				`spec.c: x-kubernetes-list-type "set" only in v1`,
			},
		},
		"a field with fields": {
			spec("a: {properties: {b: {type: string}}}"), spec(""), []string{"spec.a: only in v1"},
		},
		"required fields of the object": {
			"{required: [spec]}", "{}", []string{`the object: required ["spec"] only in v1`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := linesOf(check([]byte(crd(1, test.one, test.other))))
			var want []string
			if test.want != nil {
				want = append([]string{"the schemas of v1 and v2 of foos.example.com differ:"}, test.want...)
			}
			if !slices.Equal(got, want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
		})
	}
}

// linesOf returns the lines of an error, without their indentation and the explanation.
func linesOf(err error) []string {
	if err == nil {
		return nil
	}
	var lines []string
	for line := range strings.Lines(strings.TrimSuffix(err.Error(), explanation)) {
		lines = append(lines, strings.TrimSpace(line))
	}
	return lines
}

func TestEachVersionIsComparedWithTheStoredOne(t *testing.T) {
	a, b := spec("a: {type: string}"), spec("b: {type: string}")
	got := linesOf(check([]byte(crd(2, b, a, b, a))))
	want := []string{
		"the schemas of v2 and v1 of foos.example.com differ:", "spec.a: only in v2", "spec.b: only in v1",
		"the schemas of v2 and v3 of foos.example.com differ:", "spec.a: only in v2", "spec.b: only in v3",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if err := check([]byte(crd(1, a))); err != nil {
		t.Errorf("one version: %v", err)
	}
}
