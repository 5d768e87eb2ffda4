// SPDX-License-Identifier: Apache-2.0

// The API server of the fuzz targets, made of the real one's libraries.

package fuzz

import (
	"errors"
	"os"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apiextensions-apiserver/pkg/registry/customresource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/rest"
	"sigs.k8s.io/yaml"
)

const crdFile = "../../artifacts/crd/samplecontroller.k8s.io_foos.yaml"

// server handles objects of one version of a CustomResourceDefinition, as the API server
// does in pkg/apiserver/customresource_handler.go of k8s.io/apiextensions-apiserver, without a
// network and a store.
type server struct {
	schema   *structuralschema.Structural
	strategy rest.RESTCreateStrategy
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
	version, s := crd.Spec.Versions[0], &server{}
	var properties apiextensions.JSONSchemaProps
	must(tb, apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(version.Schema.OpenAPIV3Schema, &properties, nil))
	s.schema, err = structuralschema.NewStructural(&properties)
	must(tb, err)
	validator, _, err := validation.NewSchemaValidator(&properties)
	must(tb, err)
	var parts apiextensions.CustomResourceSubresources
	must(tb, apiextensionsv1.Convert_v1_CustomResourceSubresources_To_apiextensions_CustomResourceSubresources(version.Subresources, &parts, nil))
	kind := schema.GroupVersionKind{Group: crd.Spec.Group, Version: version.Name, Kind: crd.Spec.Names.Kind}
	s.strategy = customresource.NewStrategy(nil, true, kind, validator, nil, s.schema, parts.Status, parts.Scale, nil)
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
	return object, s.strategy.Validate(tb.Context(), object).ToAggregate()
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

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}
