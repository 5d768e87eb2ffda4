// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// JudgeDefinition returns what is wrong with a CustomResourceDefinition as the API server has
// it: a schema that is not structural or prunes nothing, a status that is not a subresource.
func JudgeDefinition(crd map[string]any) []Finding {
	var findings []Finding
	add := func(format string, args ...any) {
		findings = append(findings, Finding{Definition, "definition", fmt.Sprintf(format, args...)})
	}
	conditions, _, _ := unstructured.NestedSlice(crd, "status", "conditions")
	for _, element := range conditions {
		if c, _ := element.(map[string]any); c["type"] == "NonStructuralSchema" && c["status"] == "True" {
			add("the schema is not structural: %v", c["message"])
		}
	}
	versions, _, _ := unstructured.NestedSlice(crd, "spec", "versions")
	for _, element := range versions {
		version, _ := element.(map[string]any)
		if version["served"] != true {
			continue
		}
		schema, _, _ := unstructured.NestedMap(version, "schema", "openAPIV3Schema")
		if schema["x-kubernetes-preserve-unknown-fields"] == true || len(schema) == 0 {
			add("%v: the schema keeps unknown fields, so a misspelled field is no error", version["name"])
		}
		_, hasStatus, _ := unstructured.NestedMap(schema, "properties", "status")
		if _, is, _ := unstructured.NestedMap(version, "subresources", "status"); hasStatus && !is {
			add("%v: the status is no subresource, so whoever writes one part overwrites the other", version["name"])
		}
	}
	return findings
}
