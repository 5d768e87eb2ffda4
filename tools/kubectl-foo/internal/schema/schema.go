// SPDX-License-Identifier: Apache-2.0

// Package schema judges Foos as the API server does.
package schema

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apiextensions-apiserver/pkg/registry/customresource"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"sigs.k8s.io/yaml"

	"example.com/sample-controller/artifacts/crd"
	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// Validator judges Foos as the API server does, with the libraries that the API server is
// made of and the CustomResourceDefinition of this build.
type Validator struct {
	// Namespace is that of requests. Objects without a namespace get it.
	Namespace string

	kind     schema.GroupVersionKind
	schema   *structuralschema.Structural
	strategy strategy
}

// strategy is what the API server calls before it stores an object.
type strategy interface {
	rest.RESTCreateStrategy
	rest.RESTUpdateStrategy
}

// New returns a Validator.
func New() (*Validator, error) {
	kind := samplev1alpha1.SchemeGroupVersion.WithKind("Foo")
	definition, err := definitionOf(kind)
	if err != nil {
		return nil, err
	}
	for i := range definition.Spec.Versions {
		if version := &definition.Spec.Versions[i]; version.Name == kind.Version {
			return validatorOf(kind, definition.Spec.Scope, version)
		}
	}
	return nil, fmt.Errorf("the CustomResourceDefinition %s has no version %s", definition.Name, kind.Version)
}

// definitionOf returns the CustomResourceDefinition of a kind.
func definitionOf(kind schema.GroupVersionKind) (*apiextensionsv1.CustomResourceDefinition, error) {
	entries, err := crd.Files.ReadDir(".")
	if err != nil {
		return nil, err
	}
	for _, entry := range entries {
		text, err := crd.Files.ReadFile(path.Base(entry.Name()))
		if err != nil {
			return nil, err
		}
		definition := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.Unmarshal(text, definition); err != nil {
			return nil, fmt.Errorf("%s: %w", entry.Name(), err)
		}
		if definition.Spec.Group == kind.Group && definition.Spec.Names.Kind == kind.Kind {
			return definition, nil
		}
	}
	return nil, fmt.Errorf("this build has no CustomResourceDefinition of %s", kind)
}

func validatorOf(kind schema.GroupVersionKind, scope apiextensionsv1.ResourceScope, version *apiextensionsv1.CustomResourceDefinitionVersion) (*Validator, error) {
	internal := &apiextensions.CustomResourceDefinitionVersion{}
	if err := apiextensionsv1.Convert_v1_CustomResourceDefinitionVersion_To_apiextensions_CustomResourceDefinitionVersion(version, internal, nil); err != nil {
		return nil, err
	}
	properties := internal.Schema.OpenAPIV3Schema
	structural, err := structuralschema.NewStructural(properties)
	if err != nil {
		return nil, err
	}
	whole, _, err := validation.NewSchemaValidator(properties)
	if err != nil {
		return nil, err
	}
	var status *apiextensions.CustomResourceSubresourceStatus
	var scale *apiextensions.CustomResourceSubresourceScale
	if internal.Subresources != nil {
		status, scale = internal.Subresources.Status, internal.Subresources.Scale
	}
	made := customresource.NewStrategy(unstructuredTyper{}, scope == apiextensionsv1.NamespaceScoped, kind, whole, nil, structural, status, scale, version.SelectableFields)
	return &Validator{metav1.NamespaceDefault, kind, structural, made}, nil
}

// unstructuredTyper reads the kind of an object from the object.
type unstructuredTyper struct{}

// ObjectKinds implements runtime.ObjectTyper.
func (unstructuredTyper) ObjectKinds(object runtime.Object) ([]schema.GroupVersionKind, bool, error) {
	return []schema.GroupVersionKind{object.GetObjectKind().GroupVersionKind()}, false, nil
}

// Recognizes implements runtime.ObjectTyper.
func (unstructuredTyper) Recognizes(schema.GroupVersionKind) bool { return true }

// Create returns the object that the API server would store, or the error that it would
// answer.
func (v *Validator) Create(ctx context.Context, object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	object = object.DeepCopy()
	if err := v.coerce(object); err != nil {
		return nil, err
	}
	if object.GetNamespace() == "" {
		object.SetNamespace(v.Namespace)
	}
	ctx = request.WithNamespace(ctx, object.GetNamespace())
	rest.FillObjectMetaSystemFields(object)
	if object.GetGenerateName() != "" && object.GetName() == "" {
		object.SetName(v.strategy.GenerateName(object.GetGenerateName()))
	}
	return object, rest.BeforeCreate(v.strategy, ctx, object)
}

// Update does the same for an update of a stored object.
func (v *Validator) Update(ctx context.Context, object, old *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	object, old = object.DeepCopy(), old.DeepCopy()
	if err := errors.Join(v.coerce(object), v.coerce(old)); err != nil {
		return nil, err
	}
	for _, o := range []*unstructured.Unstructured{object, old} {
		if o.GetNamespace() == "" {
			o.SetNamespace(v.Namespace)
		}
	}
	rest.FillObjectMetaSystemFields(old) // unless it has them
	if uid := object.GetUID(); uid != "" && uid != old.GetUID() {
		return nil, apierrors.NewConflict(schema.GroupResource{Group: v.kind.Group, Resource: v.kind.Kind}, object.GetName(),
			fmt.Errorf("the stored object has the UID %s, not %s", old.GetUID(), uid))
	}
	// What an apply takes from the stored object.
	object.SetUID(old.GetUID())
	object.SetCreationTimestamp(old.GetCreationTimestamp())
	object.SetGeneration(old.GetGeneration())
	object.SetResourceVersion(old.GetResourceVersion())
	if object.GetResourceVersion() == "" {
		object.SetResourceVersion("1") // which every stored object has
		old.SetResourceVersion("1")
	}
	ctx = request.WithNamespace(ctx, object.GetNamespace())
	return object, rest.BeforeUpdate(v.strategy, ctx, object, old)
}

// coerce does what the API server does to an object that it has decoded: it refuses
// unknown fields, as for kubectl, whose default is --validate=strict, and sets the
// defaults.
func (v *Validator) coerce(object *unstructured.Unstructured) error {
	if got := object.GroupVersionKind(); got != v.kind {
		return fmt.Errorf("this is a %s of %q, not a %s of %s", got.Kind, got.GroupVersion(), v.kind.Kind, v.kind.GroupVersion())
	}
	metadata, found, unknown, err := objectmeta.GetObjectMetaWithOptions(object.Object, objectmeta.ObjectMetaOptions{ReturnUnknownFieldPaths: true})
	if err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	if !found {
		return errors.New("there is no metadata")
	}
	paths := pruning.PruneWithOptions(object.Object, v.schema, true, structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
	unknown = append(unknown, paths...)
	if len(unknown) > 0 {
		return &UnknownFieldsError{unknown}
	}
	defaulting.PruneNonNullableNullsWithoutDefaults(object.Object, v.schema)
	defaulting.Default(object.Object, v.schema)
	object.SetGroupVersionKind(v.kind)
	return objectmeta.SetObjectMeta(object.Object, metadata)
}

// UnknownFieldsError is about fields that the definition does not have.
type UnknownFieldsError struct{ Paths []string }

func (e *UnknownFieldsError) Error() string {
	var quoted []string
	for _, path := range e.Paths {
		quoted = append(quoted, fmt.Sprintf("unknown field %q", path))
	}
	return "strict decoding error: " + strings.Join(quoted, ", ")
}
