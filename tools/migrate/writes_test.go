// SPDX-License-Identifier: Apache-2.0

// Writes of both versions' clients, and what is stored of them.

package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// clientWrite is a write of a client that sends a whole object, as typed clients do.
type clientWrite struct{ version, spec, want string } // want is the stored spec, or "!" and the error

// histories are writes of one object, one after the other.
var histories = map[string][]clientWrite{
	"a rename, from each side": {
		{"v1alpha1", "{name: a}", "{name: a, title: a}"},
		{"v1beta1", "{title: b}", "{name: b, title: b}"},
		{"v1alpha1", "{name: c, title: b}", "{name: c, title: c}"},
		{"v1beta1", "{name: c, title: d}", "{name: d, title: d}"},
	},
	"a typed client of one version knows no field of the other": {
		{"v1beta1", "{title: a}", "{name: a, title: a}"},
		{"v1alpha1", "{name: a, replicas: 3}", "{name: a, title: a, replicas: 3}"},
		{"v1beta1", "{title: a, replicas: 4}", "{name: a, title: a, replicas: 4}"},
	},
	"both sides, which differ": {
		{"v1alpha1", "{name: a, title: b}", "!name and title must say the same"},
		{"v1alpha1", "{name: a}", "{name: a, title: a}"},
		{"v1alpha1", "{name: b, title: c}", "!name and title must say the same"},
		{"v1alpha1", "{name: b, title: b}", "{name: b, title: b}"},
	},
	"an address, split": {
		{"v1alpha1", "{name: a, address: 'h:80'}", "{name: a, title: a, address: 'h:80', host: h, port: 80}"},
		{"v1beta1", "{title: a, host: '[::1]', port: 9}", "{name: a, title: a, address: '[::1]:9', host: '[::1]', port: 9}"},
		{"v1alpha1", "{name: a, address: '[::1]:9', replicas: 1}", "{name: a, title: a, address: '[::1]:9', host: '[::1]', port: 9, replicas: 1}"},
		{"v1beta1", "{title: a, host: h, port: 9}", "{name: a, title: a, address: 'h:9', host: h, port: 9}"},
		{"v1alpha1", "{name: a, host: h, port: 9}", "{name: a, title: a, address: 'h:9', host: h, port: 9}"},
		{"v1alpha1", "{name: a}", "{name: a, title: a}"},
		{"v1beta1", "{title: a, host: only}", "!spec.host and spec.port must be given together"},
		{"v1alpha1", "{name: a, address: noport}", "!spec.address can't be converted to spec.host, spec.port"},
	},
	"a number that becomes an enum, with a default": {
		{"v1beta1", "{title: a}", "{name: a, title: a, level: 1, tier: Small}"},
		{"v1alpha1", "{name: a, level: 2}", "{name: a, title: a, level: 2, tier: Medium}"},
		{"v1beta1", "{title: a, tier: Large}", "{name: a, title: a, level: 3, tier: Large}"},
		{"v1alpha1", "{name: a, level: 7}", "!spec.level"},
	},
	"a field that moves into a struct": {
		{"v1alpha1", "{name: a, cpu: 2}", "{name: a, title: a, cpu: 2, resources: {cpu: 2}}"},
		{"v1beta1", "{title: a, resources: {cpu: 3}}", "{name: a, title: a, cpu: 3, resources: {cpu: 3}}"},
		{"v1beta1", "{title: a, resources: {}}", "{name: a, title: a, resources: {}}"},
	},
	"values of other types, which the schema refuses": {
		{"v1alpha1", "{name: 5}", "!spec.name: Invalid value: \"integer\""},
		{"v1alpha1", "{name: a, address: 5}", "!spec.address: Invalid value: \"integer\""},
		{"v1beta1", "{title: a, host: h, port: x}", "!spec.port: Invalid value: \"string\""},
		{"v1alpha1", "{name: a, level: two}", "!spec.level: Invalid value: \"string\""},
	},
	"values in need of quotes, large numbers, and a map": {
		{"v1alpha1", `{name: "aZ9 '\"\\{$é世", cpu: 4503599627370496}`, `{name: "aZ9 '\"\\{$é世", title: "aZ9 '\"\\{$é世", cpu: 4503599627370496, resources: {cpu: 4503599627370496}}`},
		{"v1beta1", "{title: a, numbers: {\"p'1\": 1, b/c: 2}}", "{name: a, title: a, numbers: {\"p'1\": 1, b/c: 2}, codes: {\"p'1\": 1, b/c: 2}}"},
		{"v1beta1", "{title: a, host: 'a.b:[]-', port: 65535}", "{name: a, title: a, address: 'a.b:[]-:65535', host: 'a.b:[]-', port: 65535}"},
	},
	"a required change that is missing": {
		{"v1beta1", "{replicas: 1}", "!one of them is required"},
	},
}

// play makes writes, and compares what is stored.
func (w *walk) play(t *testing.T, writes []clientWrite) {
	t.Helper()
	var stored *unstructured.Unstructured
	for _, write := range writes {
		sent := thing(t, write.version, write.spec)
		got, err := w.send(t, write.version, sent, stored)
		if message, refused := strings.CutPrefix(write.want, "!"); refused {
			if err == nil || !strings.Contains(err.Error(), message) {
				t.Errorf("%s %s: got %v and the error %v, want %q", write.version, write.spec, got, err, message)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		stored = got
		if diff := cmp.Diff(withDefaults(thing(t, write.version, write.want).Object["spec"].(map[string]any)), got.Object["spec"]); diff != "" {
			t.Errorf("%s %s: (-want +got)\n%s", write.version, write.spec, diff)
		}
	}
}

// send creates an object, or updates the stored one.
func (w *walk) send(t *testing.T, version string, sent, stored *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	t.Helper()
	if stored == nil {
		sent.SetGenerateName("history-")
		return w.things(version).Create(t.Context(), sent, metav1.CreateOptions{})
	}
	sent.SetName(stored.GetName())
	sent.SetResourceVersion(stored.GetResourceVersion())
	return w.things(version).Update(t.Context(), sent, metav1.UpdateOptions{})
}

// thing returns an object with a spec in YAML.
func thing(t *testing.T, version, spec string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	text, err := yaml.ToJSON(fmt.Appendf(nil, "apiVersion: example.org/%s\nkind: Thing\nspec: %s", version, spec))
	if err == nil {
		err = object.UnmarshalJSON(text)
	}
	if err != nil {
		t.Fatal(err)
	}
	return object
}

// withDefaults adds the defaults of the declaration to a spec.
func withDefaults(spec map[string]any) map[string]any {
	for key, value := range map[string]any{"level": int64(1), "tier": "Small"} {
		if _, ok := spec[key]; !ok {
			spec[key] = value
		}
	}
	return spec
}
