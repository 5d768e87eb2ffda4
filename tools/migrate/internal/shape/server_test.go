// SPDX-License-Identifier: Apache-2.0

// One kind of an API server, in process: pruning, defaults, the policies and the rules are
// the API server's own code.

package shape

import (
	"errors"
	"fmt"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	apiservervalidation "k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/mutating/patch"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/environment"

	"example.com/sample-controller/tools/migrate/internal/shape/shapetest"
)

// load returns the kind and the declaration of the tests.
func load(t testing.TB) (*Declaration, *apiextensionsv1.CustomResourceDefinition) {
	t.Helper()
	declarations, err := Parse(shapetest.Declaration(t))
	must(t, err)
	return declarations[0], shapetest.Raw(t)
}

// server is an API server for one kind.
type server struct {
	versions map[string]*version
	compiler *plugincel.CompositedCompiler
	patchers []patch.Patcher
}

type version struct {
	structural *structuralschema.Structural
	validator  apiservervalidation.SchemaValidator
	rules      *cel.Validator
}

// newServer returns a server with a CustomResourceDefinition and a policy, which may be nil.
func newServer(t testing.TB, crd *apiextensionsv1.CustomResourceDefinition, policy *admissionregistrationv1.MutatingAdmissionPolicy) *server {
	t.Helper()
	s := &server{versions: map[string]*version{}}
	for i := range crd.Spec.Versions {
		var internal apiextensions.JSONSchemaProps
		must(t, apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(crd.Spec.Versions[i].Schema.OpenAPIV3Schema, &internal, nil))
		structural, err := structuralschema.NewStructural(&internal)
		must(t, err)
		validator, _, err := apiservervalidation.NewSchemaValidator(&internal)
		must(t, err)
		s.versions[crd.Spec.Versions[i].Name] = &version{structural, validator, cel.NewValidator(structural, true, celconfig.PerCallLimit)}
	}
	if policy == nil {
		return s
	}
	compiler, err := plugincel.NewCompositedCompiler(environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()))
	must(t, err)
	s.compiler = compiler
	options := plugincel.OptionalVariableDeclarations{HasAuthorizer: true}
	var variables []plugincel.NamedExpressionAccessor
	for _, v := range policy.Spec.Variables {
		variables = append(variables, &validating.Variable{Name: v.Name, Expression: v.Expression})
	}
	compiler.CompileAndStoreVariables(variables, options, environment.StoredExpressions)
	options.HasPatchTypes = true
	for _, m := range policy.Spec.Mutations {
		evaluator := compiler.CompileMutatingEvaluator(&patch.JSONPatchCondition{Expression: m.JSONPatch.Expression}, options, environment.StoredExpressions)
		must(t, errors.Join(evaluator.CompilationErrors()...))
		s.patchers = append(s.patchers, patch.NewJSONPatcher(evaluator))
	}
	return s
}

// write stores an object that a client sends through a version, and returns it as stored,
// or an error. before is the stored object, or nil.
func (s *server) write(t testing.TB, name string, sent, before map[string]any) (map[string]any, error) {
	t.Helper()
	v, gvk := s.versions[name], schema.GroupVersionKind{Group: "example.org", Version: name, Kind: "Thing"}
	object := func(content map[string]any) *unstructured.Unstructured {
		u := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(content)}
		u.SetGroupVersionKind(gvk)
		u.SetName("a")
		return u
	}
	now := object(sent)
	defaulting.Default(now.Object, v.structural)
	pruning.Prune(now.Object, v.structural, true)
	operation, old := admission.Create, runtime.Object(nil)
	var oldContent any
	if before != nil {
		stored := object(before)
		operation, old, oldContent = admission.Update, stored, stored.Object
	}
	record := admission.NewAttributesRecord(now, old, gvk, "", "a", gvk.GroupVersion().WithResource("things"), "", operation, nil, false, nil)
	attributes := &admission.VersionedAttributes{Attributes: record, VersionedKind: gvk}
	attributes.VersionedOldObject.Set(old)
	for _, patcher := range s.patchers {
		attributes.UpdateObject(now)
		patched, err := patcher.Patch(s.compiler.CreateContext(t.Context()), patch.Request{
			MatchedResource: record.GetResource(), VersionedAttributes: attributes, ObjectInterfaces: admission.NewObjectInterfacesFromScheme(runtime.NewScheme()),
		}, celconfig.RuntimeCELCostBudget)
		if err != nil {
			return nil, fmt.Errorf("policy: %w", err)
		}
		now = patched.(*unstructured.Unstructured)
	}
	defaulting.Default(now.Object, v.structural)
	pruning.Prune(now.Object, v.structural, true)
	errs := apiservervalidation.ValidateCustomResource(nil, now.Object, v.validator)
	if len(errs) == 0 {
		errs, _ = v.rules.Validate(t.Context(), nil, v.structural, now.Object, oldContent, celconfig.RuntimeCELCostBudget)
	}
	return now.Object, errs.ToAggregate()
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
