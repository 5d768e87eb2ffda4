// SPDX-License-Identifier: Apache-2.0

// One kind of an API server, in process: pruning, defaults, the policies and the rules are
// the API server's own code.

package shape

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

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
	"sigs.k8s.io/yaml"

	"example.com/sample-controller/tools/migrate/internal/shape/shapetest"
)

// load returns the declaration and the kind of the tests, in which one text is replaced by
// another, or an error if the declaration is wrong.
func load(t testing.TB, text, by string) (*Declaration, *apiextensionsv1.CustomResourceDefinition, error) {
	t.Helper()
	kind := bytes.ReplaceAll(shapetest.CRD, []byte(text), []byte(by))
	declaration := bytes.ReplaceAll(shapetest.Declaration, []byte(text), []byte(by))
	if text != "" && bytes.Equal(kind, shapetest.CRD) && bytes.Equal(declaration, shapetest.Declaration) {
		t.Fatalf("%q is nowhere", text)
	}
	raw := &apiextensionsv1.CustomResourceDefinition{}
	must(t, yaml.UnmarshalStrict(kind, raw))
	all, err := Parse(declaration)
	must(t, err)
	return all[0], raw, all[0].Check(raw)
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

// newServer returns a server with the kind of the tests in a stage, and with the policy. One text
// of the declaration is replaced by another.
func newServer(t testing.TB, stage Stage, text, by string) *server {
	t.Helper()
	d, raw, err := load(t, text, by)
	must(t, err)
	crd, err := d.CRD(raw, stage)
	must(t, err)
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
	compiler, err := plugincel.NewCompositedCompiler(environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()))
	must(t, err)
	s.compiler = compiler
	options := plugincel.OptionalVariableDeclarations{HasAuthorizer: true}
	var variables []plugincel.NamedExpressionAccessor
	for _, v := range d.SyncPolicy().Spec.Variables {
		variables = append(variables, &validating.Variable{Name: v.Name, Expression: v.Expression})
	}
	compiler.CompileAndStoreVariables(variables, options, environment.StoredExpressions)
	options.HasPatchTypes = true
	for _, m := range d.SyncPolicy().Spec.Mutations {
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
