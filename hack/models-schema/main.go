// SPDX-License-Identifier: Apache-2.0

// Command models-schema prints the generated OpenAPI definitions as one OpenAPI v2
// document. applyconfiguration-gen reads it to learn how lists and maps merge;
// fake.NewClientset needs that to answer an Apply.
package main

import (
	"encoding/json"
	"fmt"
	"os"

	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"example.com/sample-controller/pkg/generated/openapi"
)

func main() {
	encoder := json.NewEncoder(os.Stdout)
	encoder.SetIndent("", " ")
	if err := encoder.Encode(document()); err != nil {
		fmt.Fprintf(os.Stderr, "models-schema: cannot write the OpenAPI document: %v\n", err)
		os.Exit(1)
	}
}

// document wraps the definitions of every type in a Swagger 2.0 document.
func document() *spec.Swagger {
	definitions := openapi.GetOpenAPIDefinitions(func(name string) spec.Ref {
		return spec.MustCreateRef("#/definitions/" + name)
	})
	schemas := make(spec.Definitions, len(definitions))
	for name, definition := range definitions {
		schemas[name] = v2Schema(definition)
		for _, other := range definition.Dependencies {
			if _, ok := definitions[other]; !ok {
				schemas[other] = unknown()
			}
		}
	}
	return &spec.Swagger{SwaggerProps: spec.SwaggerProps{
		Swagger:     "2.0",
		Info:        &spec.Info{InfoProps: spec.InfoProps{Title: "Sample controller", Version: "unversioned"}},
		Definitions: schemas,
	}}
}

// unknown returns the schema of a type whose package has no definitions. Its fields merge one by
// one, and its lists as a whole, as the API server merges types without markers.
func unknown() (schema spec.Schema) {
	schema.AddExtension("x-kubernetes-preserve-unknown-fields", true)
	return schema
}

// v2Schema returns a type's OpenAPI v2 schema. Types such as IntOrString use oneOf in v3,
// and have their v2 schema in an extension.
func v2Schema(definition common.OpenAPIDefinition) spec.Schema {
	if schema, ok := definition.Schema.Extensions[common.ExtensionV2Schema].(spec.Schema); ok {
		return schema
	}
	return definition.Schema
}
