// SPDX-License-Identifier: Apache-2.0

package shape

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/sample-controller/tools/migrate/internal/shape/shapetest"
)

// TestWrites makes the writes in process, by the API server's own code.
func TestWrites(t *testing.T) {
	s := newServer(t, Expanded, "", "")
	for name, writes := range shapetest.Histories {
		t.Run(name, func(t *testing.T) {
			var stored map[string]any
			shapetest.Play(t, writes, func(version string, sent map[string]any) (map[string]any, error) {
				got, err := s.write(t, version, sent, stored)
				if err == nil {
					stored = got
				}
				return got, err
			})
		})
	}
}

// TestAValueThatCantBeConverted stays writable where it was stored before.
func TestAValueThatCantBeConverted(t *testing.T) {
	s := newServer(t, Expanded, "", "")
	stored := shapetest.Thing(t, "{name: a, address: noport}")
	got, err := s.write(t, "v1alpha1", shapetest.Thing(t, "{name: a, address: noport, replicas: 2}"), stored)
	if spec, _ := got["spec"].(map[string]any); err != nil || spec["title"] != "a" || spec["host"] != nil {
		t.Errorf("got %v and the error %v", got, err)
	}
	if _, err := s.write(t, "v1alpha1", shapetest.Thing(t, "{name: a, address: another}"), stored); err == nil {
		t.Error("another such value was accepted")
	}
}

func TestSeparators(t *testing.T) {
	for _, separator := range []string{"^", "-", "]", ".", "#"} {
		s := newServer(t, Strict, `separator: ":"`, `separator: "`+separator+`"`)
		got, err := s.write(t, "v1alpha1", shapetest.Thing(t, "{name: a, address: 'h"+separator+"80'}"), nil)
		if spec, _ := got["spec"].(map[string]any); err != nil || spec["host"] != "h" || spec["port"] != int64(80) {
			t.Errorf("%s: got %v and the error %v", separator, got, err)
		}
	}
}

func TestManagedFieldsMove(t *testing.T) {
	d, _, err := load(t, "", "")
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

func TestLossyValuesCanBeRefused(t *testing.T) {
	s := newServer(t, Strict, "lossy: keep", "lossy: refuse")
	for spec, message := range map[string]string{
		"{title: a, size: 2Gi, ips: ['1'], url: 'http://b/'}": "",
		"{title: a, size: 512Mi}":                             "spec.sizeGB can't express this value of spec.size yet",
		"{title: a, ips: ['1', '2']}":                         "spec.ip can't express this value of spec.ips yet",
		"{title: a, url: 'http://b/?q=1'}":                    "spec.scheme can't express this value of spec.url yet",
	} {
		_, err := s.write(t, "v1beta1", shapetest.Thing(t, spec), nil)
		if (err == nil) != (message == "") || err != nil && !strings.Contains(err.Error(), message) {
			t.Errorf("%s: got the error %v, want %q", spec, err, message)
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
		"needs a maximum length":          {"maxLength: 500", ""},
		"needs a maximum of items":        {"maxItems: 8", ""},
		"needs a maximum of properties":   {"maxProperties: 16", ""},
		"[].port needs the Go type int3":  {"format: int32\n                x-", "\n                x-"},
		"portsByName[] needs the Go type": {"additionalProperties:\n                  type: integer\n                  format: int32", "additionalProperties: {type: integer}"},
		"the map would lose one":          {"x-kubernetes-list-type: map", "x-kubernetes-list-type: atomic"},
		"are not those declared: 4":       {"maximum: 3\n", "maximum: 4\n"},
		"spec.host has the type object":   {"host:\n                type: string", "host:\n                type: object"},
		"must be both required or both":   {"- title", "- host"},
	} {
		if _, _, err := load(t, edit.text, edit.by); err == nil || !strings.Contains(err.Error(), message) {
			t.Errorf("got the error %v, want %q", err, message)
		}
	}
}
