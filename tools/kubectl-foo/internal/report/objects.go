// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"encoding/json"
	"unicode"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"

	fooscheme "example.com/sample-controller/pkg/generated/clientset/versioned/scheme"
	"example.com/sample-controller/tools/internal/printable"
	"example.com/sample-controller/tools/preview"
)

// marshal returns a value as YAML. YAML leaves some characters as they are that are not safe
// to print, such as those that reverse text. JSON need not, and is YAML, too.
func marshal(value any) ([]byte, error) {
	data, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return nil, err
	}
	// The library refuses control characters, which its own encoder of JSON does not escape.
	data = printable.EscapeJSON(data)
	text, err := yaml.JSONToYAML(data)
	if bytes.ContainsFunc(text, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }) {
		return append(data, '\n'), err
	}
	return text, err
}

// quoted quotes the strings of a value, so that each takes one line.
func quoted(value any) any {
	switch value := value.(type) {
	case string:
		return printable.Quote(value)
	case map[string]any:
		for name, field := range value {
			value[name] = quoted(field)
		}
	case []any:
		for i, element := range value {
			value[i] = quoted(element)
		}
	}
	return value
}

// FieldsOf returns an object's fields, with apiVersion and kind, and without those that are
// null or that only API servers read.
func FieldsOf(object preview.Object) (map[string]any, error) {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, err
	}
	gvks, _, err := scheme.Scheme.ObjectKinds(object)
	if err != nil {
		gvks, _, err = fooscheme.Scheme.ObjectKinds(object)
	}
	if err != nil {
		return nil, err
	}
	fields["apiVersion"], fields["kind"] = gvks[0].ToAPIVersionAndKind()
	if metadata, ok := fields["metadata"].(map[string]any); ok {
		delete(metadata, "managedFields")
		dropNull(metadata)
	}
	if status, ok := fields["status"].(map[string]any); ok && len(status) == 0 {
		delete(fields, "status")
	}
	dropNull(fields)
	return fields, nil
}

// dropNull drops fields that are null, such as the creationTimestamp of a template.
func dropNull(fields map[string]any) {
	for name, value := range fields {
		switch value := value.(type) {
		case nil:
			delete(fields, name)
		case map[string]any:
			dropNull(value)
		}
	}
}
