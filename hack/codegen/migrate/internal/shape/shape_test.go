// SPDX-License-Identifier: Apache-2.0

package shape

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// load returns the declaration of the kind in testdata, in which one text is replaced by another,
// or an error if the declaration is wrong.
func load(t *testing.T, text, by string) (*Declaration, error) {
	t.Helper()
	kind, err := os.ReadFile("testdata/things.yaml")
	must(t, err)
	declaration, err := os.ReadFile("testdata/versions.yaml")
	must(t, err)
	if !strings.Contains(string(kind)+string(declaration), text) {
		t.Fatalf("%q is nowhere", text)
	}
	raw := &apiextensionsv1.CustomResourceDefinition{}
	must(t, yaml.UnmarshalStrict([]byte(strings.ReplaceAll(string(kind), text, by)), raw))
	all, err := Parse([]byte(strings.ReplaceAll(string(declaration), text, by)))
	must(t, err)
	return all[0], all[0].Check(raw)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestManagedFieldsMove(t *testing.T) {
	d, err := load(t, "crd:", "crd:")
	must(t, err)
	entry := func(manager, version, fields string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: manager, Operation: "Update", APIVersion: "example.org/" + version, FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields)}
	}
	older := []metav1.ManagedFieldsEntry{
		entry("both", "v1alpha1", `{"f:spec":{"f:address":{},"f:name":{}}}`),
		entry("other", "v1alpha1", `{"f:spec":{"f:cpu":{},"f:ports":{"k:{\"name\":\"a\"}":{"f:port":{}}}}}`),
		entry("both", "v1beta1", `{"f:spec":{"f:replicas":{}}}`),
	}
	for back, want := range map[bool][]metav1.ManagedFieldsEntry{
		false: {
			entry("other", "v1beta1", `{"f:spec":{"f:portsByName":{},"f:resources":{"f:cpu":{}}}}`),
			entry("both", "v1beta1", `{"f:spec":{"f:host":{},"f:port":{},"f:replicas":{},"f:title":{}}}`),
		},
		true: {
			entry("other", "v1alpha1", `{"f:spec":{"f:cpu":{},"f:ports":{}}}`),
			entry("both", "v1alpha1", `{"f:spec":{"f:address":{},"f:name":{},"f:replicas":{}}}`),
		},
	} {
		moved, err := d.MoveManagedFields(older, false)
		must(t, err)
		if back {
			moved, err = d.MoveManagedFields(moved, true)
			must(t, err)
		}
		if diff := cmp.Diff(want, moved); diff != "" {
			t.Errorf("back: %t (-want +got)\n%s", back, diff)
		}
	}
}

// TestRefusals makes mistakes in the declaration, or in the types.
func TestRefusals(t *testing.T) {
	for message, edit := range map[string]struct{ text, by string }{
		"needs a conversion webhook":      {"form: enum", "form: lookup"},
		"needs 1 fields in from":          {"[spec.name]", "[spec.name, spec.ip]"},
		"can't have two meanings":         {"[spec.title]", "[spec.name]"},
		"loses something in":              {"unit: Gi\n  lossy: keep", "unit: Gi"},
		"loses nothing":                   {"[spec.title]", "[spec.title]\n  lossy: keep"},
		"could not be found again":        {`"2": Medium`, `"2": Small`},
		"is not a field of the spec":      {"[spec.name]", "[status.phase]"},
		"and no digit":                    {`separator: ":"`, `separator: "7"`},
		"needs a separator":               {`separator: ":"`, ""},
		"unit":                            {"unit: Gi", "unit: GB"},
		"needs a value for each":          {"spec.user: guest, ", ""},
		"have different schemas":          {"- form: rename\n  from: [spec.name]\n  to: [spec.title]\n", ""},
		"has no field spec.elsewhere":     {"[spec.title]", "[spec.elsewhere]"},
		"has a field spec.title, too":     {"address:\n", "title:\n"},
		"has the version v1beta2":         {"- name: v1beta1", "- name: v1beta2"},
		"that the scale subresource set":  {"specReplicasPath: .spec.replicas", "specReplicasPath: .spec.name"},
		"has a default in the schema":     {"maxLength: 500", "default: x"},
		"[].port needs the Go type int3":  {"format: int32\n                x-", "\n                x-"},
		"portsByName[] needs the Go type": {"additionalProperties:\n                  type: integer\n                  format: int32", "additionalProperties: {type: integer}"},
		"the map would lose one":          {"x-kubernetes-list-type: map", "x-kubernetes-list-type: atomic"},
		"are not those declared: 4":       {"maximum: 3\n", "maximum: 4\n"},
		"spec.host has the type object":   {"host:\n                type: string", "host:\n                type: object"},
		"must be both required or both":   {"- title", "- host"},
	} {
		if _, err := load(t, edit.text, edit.by); err == nil || !strings.Contains(err.Error(), message) {
			t.Errorf("got the error %v, want %q", err, message)
		}
	}
}

// TestVersionsThatAreNotDeclared gives the second version another shape, or the same, or does not serve it.
func TestVersionsThatAreNotDeclared(t *testing.T) {
	d, err := load(t, "name", "name")
	must(t, err)
	raw := &apiextensionsv1.CustomResourceDefinition{}
	text, err := os.ReadFile("testdata/things.yaml")
	must(t, err)
	must(t, yaml.UnmarshalStrict(text, raw))
	if err := CheckUndeclared(raw); err == nil || !strings.HasPrefix(err.Error(), d.Name+": v1alpha1 and v1beta1 have different schemas") {
		t.Errorf("versions of other shapes: got the error %v", err)
	}
	raw.Spec.Versions[0].Served = false
	if err := CheckUndeclared(raw); err != nil {
		t.Errorf("one version is served: %v", err)
	}
	raw.Spec.Versions[0].Served, raw.Spec.Versions[0].Schema = true, raw.Spec.Versions[1].Schema
	if err := CheckUndeclared(raw); err != nil {
		t.Errorf("versions of the same shape: %v", err)
	}
	for text, want := range map[string]string{"conversion: Webhook": "", "conversion: None": "is Webhook or nothing", "conversion: Webhook\nold: v1": "neither old, new nor changes"} {
		declared, err := Parse([]byte("crd: " + d.Name + "\n" + text + "\n"))
		must(t, err)
		if err := declared[0].CheckConversion(); (err != nil) != (want != "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got the error %v, want %q", text, err, want)
		}
	}
}
