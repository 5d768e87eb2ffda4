// SPDX-License-Identifier: Apache-2.0

// Tests that the CEL rules compile on each supported release of Kubernetes.

package fuzz

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	schemacel "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apimachinery/pkg/util/version"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/environment"
	"sigs.k8s.io/yaml"
)

const policyFiles = "../../../artifacts/deploy/permissions/admission-policy*.yaml"

// The minor versions of the oldest supported and the newest release of Kubernetes.
const (
	oldestMinor = 34
	newestMinor = 37
)

// An API server of minor n compiles new expressions with the environment of minor n-1, so
// that they still compile after a rollback.
func TestTheRulesCompileOnEachRelease(t *testing.T) {
	for minor := uint(oldestMinor); minor <= newestMinor; minor++ {
		t.Run(fmt.Sprintf("1.%d", minor), func(t *testing.T) {
			for _, failure := range failuresOn(t, minor) {
				t.Error(failure)
			}
		})
	}
}

// The test above fails for a release that is too old: 1.31 refuses the CRD's rule for the
// name.
func TestTheRulesDoNotCompileOnAReleaseThatIsTooOld(t *testing.T) {
	for _, failure := range failuresOn(t, 31) {
		if strings.Contains(failure, "format") {
			return
		}
	}
	t.Error("All rules compile on 1.31, although it does not have the function format.dns1123Subdomain")
}

// The documents must name the oldest release that is tested.
func TestTheDocumentsNameTheOldestRelease(t *testing.T) {
	promise := regexp.MustCompile(`Kubernetes 1\.(\d+) or newer`)
	for _, file := range []string{"../../../README.md", "../../../docs/operations.md", "../../../pkg/apis/samplecontroller/v1alpha1/doc.go"} {
		text, err := os.ReadFile(file)
		must(t, err)
		found := promise.FindAllSubmatch(text, -1)
		if len(found) == 0 {
			t.Errorf("%s does not say which release of Kubernetes it requires", file)
		}
		for _, match := range found {
			if string(match[1]) != fmt.Sprint(oldestMinor) {
				t.Errorf("%s says %q, want 1.%d", file, match[0], oldestMinor)
			}
		}
	}
}

// failuresOn compiles the rules of the CRD and of the admission policies as an API server
// of a release does, and returns the errors.
func failuresOn(t *testing.T, minor uint) []string {
	t.Helper()
	known := environment.MustBaseEnvSet(version.MajorMinor(1, minor-1))
	rules, failures := compileSchema(t, known, newServer(t).schema)
	if rules == 0 {
		t.Fatal("The CRD has no rules")
	}
	files, err := filepath.Glob(policyFiles)
	must(t, err)
	if len(files) == 0 {
		t.Fatal("There is no policy")
	}
	for _, file := range files {
		failures = append(failures, compilePolicy(t, known, file)...)
	}
	return failures
}

// compileSchema compiles the rules of a schema and of its subschemas, and returns their
// number and the errors.
func compileSchema(t *testing.T, known *environment.EnvSet, root *structuralschema.Structural) (rules int, failures []string) {
	t.Helper()
	visitor := structuralschema.Visitor{Structural: func(schema *structuralschema.Structural) bool {
		declared := model.SchemaDeclType(schema, schema == root)
		results, err := schemacel.Compile(schema, declared, celconfig.PerCallLimit, known, schemacel.NewExpressionsEnvLoader())
		must(t, err)
		for i, result := range results {
			if result.Error != nil {
				failures = append(failures, fmt.Sprintf("the CRD's rule %q: %v", schema.XValidations[i].Rule, result.Error))
			}
		}
		rules += len(results)
		return false
	}}
	visitor.Visit(root)
	return rules, failures
}

// compilePolicy compiles the expressions of an admission policy.
func compilePolicy(t *testing.T, known *environment.EnvSet, file string) (failures []string) {
	t.Helper()
	text, err := os.ReadFile(file)
	must(t, err)
	var policy admissionregistrationv1.ValidatingAdmissionPolicy
	must(t, yaml.UnmarshalStrict(bytes.Split(text, []byte("\n---\n"))[0], &policy))
	if len(policy.Spec.MatchConditions) == 0 || len(policy.Spec.Variables) == 0 || len(policy.Spec.Validations) == 0 {
		t.Fatalf("%s is empty", file)
	}
	compiler, err := plugincel.NewCompositedCompiler(known)
	must(t, err)
	given := plugincel.OptionalVariableDeclarations{HasParams: policy.Spec.ParamKind != nil, HasAuthorizer: true}
	judge := func(what string, result plugincel.CompilationResult) {
		if result.Error != nil {
			failures = append(failures, fmt.Sprintf("%s: %s: %v", file, what, result.Error))
		}
	}
	for _, v := range policy.Spec.Variables {
		judge("variable "+v.Name, compiler.CompileAndStoreVariable(&validating.Variable{Name: v.Name, Expression: v.Expression}, given, environment.NewExpressions))
	}
	for i := range policy.Spec.MatchConditions {
		condition := matchconditions.MatchCondition(policy.Spec.MatchConditions[i])
		judge("condition "+condition.Name, compiler.CompileCELExpression(&condition, given, environment.NewExpressions))
	}
	for _, v := range policy.Spec.Validations {
		judge("validation "+v.Message, compiler.CompileCELExpression(&validating.ValidationCondition{Expression: v.Expression}, given, environment.NewExpressions))
		if v.MessageExpression != "" {
			judge("message "+v.MessageExpression, compiler.CompileCELExpression(&validating.MessageExpressionCondition{MessageExpression: v.MessageExpression}, given, environment.NewExpressions))
		}
	}
	return failures
}
