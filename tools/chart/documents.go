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

// Chart.yaml, values.yaml and values.schema.json.

package main

import (
	"encoding/json"
	"fmt"
	"strings"
)

const generatedYAML = "# Made by tools/chart: change artifacts/deploy or tools/chart/values.go, then make chart.\n"

// chartFile returns Chart.yaml. A release sets the version: helm package --version=1.2.3
// --app-version=v1.2.3.
func (c *chart) chartFile() (string, error) {
	return generatedYAML + strings.Join([]string{
		"apiVersion: v2",
		"name: " + program,
		"description: A controller that makes a Deployment for each Foo",
		"type: application",
		"version: 0.0.0",
		"appVersion: " + c.appVersion,
		`kubeVersion: ">=` + c.kubernetes + `.0-0"`,
	}, "\n") + "\n", nil
}

// group is a node in the tree of values: a value, or the values below it.
type group struct {
	name   string
	value  *value
	groups []*group
}

// tree returns the values as a tree, by the parts of their names.
func tree() *group {
	root := &group{}
	for i := range values {
		at := root
		for part := range strings.SplitSeq(values[i].name, ".") {
			at = at.child(part)
		}
		at.value = &values[i]
	}
	return root
}

func (g *group) child(name string) *group {
	for _, child := range g.groups {
		if child.name == name {
			return child
		}
	}
	g.groups = append(g.groups, &group{name: name})
	return g.groups[len(g.groups)-1]
}

func (c *chart) valuesFile() (string, error) {
	var out strings.Builder
	out.WriteString(generatedYAML)
	err := c.writeValues(&out, tree(), "")
	return out.String(), err
}

func (c *chart) writeValues(out *strings.Builder, g *group, indent string) error {
	for _, child := range g.groups {
		if child.value == nil {
			fmt.Fprintf(out, "\n%s%s:\n", indent, child.name)
			if err := c.writeValues(out, child, indent+"  "); err != nil {
				return err
			}
			continue
		}
		text, err := toYAML(mapping{child.name: c.defaults[child.value.name]})
		if err != nil {
			return err
		}
		if indent == "" {
			out.WriteString("\n")
		}
		fmt.Fprintf(out, "%s# %s\n", indent, sentence(child.value.about))
		for line := range strings.Lines(text) {
			out.WriteString(indent + line)
		}
	}
	return nil
}

// sentence capitalizes the first letter of a text.
func sentence(text string) string {
	return strings.ToUpper(text[:1]) + text[1:] + "."
}

func (c *chart) schemaFile() (string, error) {
	root := schemaOf(tree())
	root["$schema"] = "http://json-schema.org/draft-07/schema#"
	root["title"] = "Values of the chart " + program
	root["properties"].(mapping)["global"] = mapping{"type": "object", "description": "Values of a chart that contains this one."}
	text, err := json.MarshalIndent(root, "", "  ")
	return string(text) + "\n", err
}

// schemaOf returns the schema of values, which refuses others. A value that can't be null
// is required, because a null removes it from the values.
func schemaOf(g *group) mapping {
	properties, required := mapping{}, []string{}
	for _, child := range g.groups {
		if child.value == nil {
			properties[child.name] = schemaOf(child)
			required = append(required, child.name)
			continue
		}
		var schema mapping
		if err := json.Unmarshal([]byte("{"+child.value.schema+"}"), &schema); err != nil {
			panic(fmt.Sprintf("schema of the value %s: %v", child.value.name, err))
		}
		schema["description"] = sentence(child.value.about)
		properties[child.name] = schema
		if !strings.Contains(child.value.schema, `"null"`) {
			required = append(required, child.name)
		}
	}
	return mapping{"type": "object", "additionalProperties": false, "properties": properties, "required": required}
}
