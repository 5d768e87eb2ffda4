// SPDX-License-Identifier: Apache-2.0

// The API server of the fuzz targets, made of the real one's libraries.

package fuzz

import (
	"errors"
	"fmt"
	"math"
	"os"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	metavalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"
)

const crdFile = "../../artifacts/crd/samplecontroller.k8s.io_foos.yaml"

// server handles objects of one version of a CustomResourceDefinition, as the API server
// does in pkg/apiserver/customresource_handler.go and pkg/registry/customresource of
// k8s.io/apiextensions-apiserver, without a network and a store.
type server struct {
	version   apiextensionsv1.CustomResourceDefinitionVersion
	schema    *structuralschema.Structural
	validator validation.SchemaValidator
	rules     *cel.Validator
}

func newServer(tb testing.TB) *server {
	tb.Helper()
	text, err := os.ReadFile(crdFile)
	must(tb, err)
	var crd apiextensionsv1.CustomResourceDefinition
	must(tb, yaml.UnmarshalStrict(text, &crd))
	if len(crd.Spec.Versions) != 1 {
		tb.Fatalf("the CRD has %d versions, but the tests cover only one", len(crd.Spec.Versions))
	}
	s := &server{version: crd.Spec.Versions[0]}
	var properties apiextensions.JSONSchemaProps
	must(tb, apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(s.version.Schema.OpenAPIV3Schema, &properties, nil))
	s.schema, err = structuralschema.NewStructural(&properties)
	must(tb, err)
	s.validator, _, err = validation.NewSchemaValidator(&properties)
	must(tb, err)
	s.rules = cel.NewValidator(s.schema, true, celconfig.PerCallLimit)
	return s
}

// accept returns the object of a request as it would be stored, including its status, or
// the error that refuses it.
func (s *server) accept(tb testing.TB, request []byte) (*unstructured.Unstructured, error) {
	tb.Helper()
	decoded, err := runtime.Decode(unstructured.UnstructuredJSONScheme, request)
	if err != nil {
		return nil, err
	}
	object, ok := decoded.(*unstructured.Unstructured)
	if !ok {
		return nil, errors.New("a list")
	}
	if err := s.coerce(object); err != nil {
		return nil, err
	}
	return object, s.validate(tb, object)
}

// coerce sets defaults, drops unknown fields, and checks the types of the metadata.
func (s *server) coerce(object *unstructured.Unstructured) error {
	apiVersion, kind := object.GetAPIVersion(), object.GetKind()
	defaulting.Default(object.Object, s.schema)
	metadata, found, err := objectmeta.GetObjectMeta(object.Object, false)
	if err != nil {
		return err
	}
	if !found {
		return errors.New("no metadata")
	}
	pruning.Prune(object.Object, s.schema, true)
	defaulting.PruneNonNullableNullsWithoutDefaults(object.Object, s.schema)
	if err := objectmeta.Coerce(nil, object.Object, s.schema, false, false); err != nil {
		return err
	}
	object.SetAPIVersion(apiVersion)
	object.SetKind(kind)
	return objectmeta.SetObjectMeta(object.Object, metadata)
}

func (s *server) validate(tb testing.TB, object *unstructured.Unstructured) error {
	tb.Helper()
	if object.GetAPIVersion() != "samplecontroller.k8s.io/"+s.version.Name || object.GetKind() != "Foo" {
		return fmt.Errorf("%s %s", object.GetAPIVersion(), object.GetKind())
	}
	errs := metavalidation.ValidateObjectMetaAccessor(object, true, metavalidation.NameIsDNSSubdomain, field.NewPath("metadata"))
	errs = append(errs, validation.ValidateCustomResource(nil, object.Object, s.validator)...)
	errs = append(errs, objectmeta.Validate(tb.Context(), nil, object.Object, s.schema, false)...)
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, s.schema, object.Object)...)
	errs = append(errs, validateScale(object.Object)...)
	// If the schema refuses the object, its rules are not evaluated.
	if len(errs) == 0 {
		broken, _ := s.rules.Validate(tb.Context(), nil, s.schema, object.Object, nil, celconfig.RuntimeCELCostBudget)
		errs = append(errs, broken...)
	}
	return errs.ToAggregate()
}

// validateScale does the validation of the scale subresource.
func validateScale(object map[string]any) field.ErrorList {
	var errs field.ErrorList
	for _, part := range []string{"spec", "status"} {
		path := field.NewPath(part, "replicas")
		replicas, _, err := unstructured.NestedInt64(object, part, "replicas")
		if err != nil || replicas < 0 || replicas > math.MaxInt32 {
			errs = append(errs, field.Invalid(path, replicas, "must be an integer that the scale can have"))
		}
	}
	return errs
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}
