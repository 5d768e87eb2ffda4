// SPDX-License-Identifier: Apache-2.0

// Package schemas tests the JSON schemas that editors read. It is in this module because the linter brings
// the validator.
package schemas

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"sigs.k8s.io/yaml"
)

// named matches the line by which a file names its schema to editors.
var named = regexp.MustCompile(`^# yaml-language-server: \$schema=(\S+)\n`)

// example returns the example of a Foo, and the schema that it names.
func example(t *testing.T) (text string, schema *jsonschema.Schema) {
	t.Helper()
	const file = "../../../artifacts/examples/example-foo.yaml"
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	name := named.FindStringSubmatch(string(data))
	if name == nil {
		t.Fatalf("%s does not begin with %s", file, named)
	}
	schema, err = jsonschema.NewCompiler().Compile(filepath.Join(filepath.Dir(file), name[1]))
	if err != nil {
		t.Fatal(err)
	}
	return string(data), schema
}

// TestSchemaOfFoos changes the example. The API server stores and refuses the same, which test/e2e
// TestWhichFoosTheAPIServerAccepts shows; only the rules in CEL are not in the schema.
func TestSchemaOfFoos(t *testing.T) {
	text, schema := example(t)
	for say, test := range map[string]struct{ from, to, want string }{
		"the example":              {"", "", ""},
		"no replicas":              {"  replicas: 1\n", "", ""},
		"a label":                  {"metadata:\n", "metadata:\n  labels: {team: a}\n", ""},
		"a stored status":          {"spec:\n", "status: {availableReplicas: 1, conditions: [{type: Ready, status: 'True', reason: A, message: '', lastTransitionTime: '2026-11-21T12:00:00Z'}]}\nspec:\n", ""},
		"another kind":             {"kind: Foo", "kind: Fool", "'/kind'"},
		"another version":          {"samplecontroller.k8s.io/v1alpha1", "samplecontroller.k8s.io/v1", "'/apiVersion'"},
		"no name of a field":       {"replicas: 1", "replica: 1", "additional properties 'replica' not allowed"},
		"a field at the top":       {"spec:\n", "replicas: 1\nspec:\n", "additional properties 'replicas' not allowed"},
		"no metadata":              {"metadata:\n  name: example-foo\n", "", "missing property 'metadata'"},
		"no spec":                  {"spec:\n  deploymentName: example-foo\n  replicas: 1\n", "", "missing property 'spec'"},
		"no deploymentName":        {"  deploymentName: example-foo\n", "", "missing property 'deploymentName'"},
		"an empty name":            {"deploymentName: example-foo", "deploymentName: ''", "'/spec/deploymentName': minLength"},
		"too many replicas":        {"replicas: 1", "replicas: 11", "'/spec/replicas': maximum"},
		"replicas in a string":     {"replicas: 1", "replicas: '1'", "'/spec/replicas': got string, want integer"},
		"a label that is a number": {"metadata:\n", "metadata:\n  labels: {team: 1}\n", "'/metadata/labels/team': got number, want string"},
	} {
		t.Run(say, func(t *testing.T) {
			if !strings.Contains(text, test.from) {
				t.Fatalf("the example has no %q", test.from)
			}
			var foo any
			if err := yaml.Unmarshal([]byte(strings.Replace(text, test.from, test.to, 1)), &foo); err != nil {
				t.Fatal(err)
			}
			err := schema.Validate(foo)
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("got %v, want %q in it", err, test.want)
			}
		})
	}
}
