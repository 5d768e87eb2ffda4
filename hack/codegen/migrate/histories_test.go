// SPDX-License-Identifier: Apache-2.0

// What clients of both versions write, and what is then stored.

package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"
)

// sent is a write of a client that sends a whole object, as typed clients do.
type sent struct{ version, spec, want string } // want is the stored spec, or "!" and the error

// ofAll are fields of all changes, as the versions write them, with characters that mean something to
// YAML, CEL, patterns or URLs, and with the extremes of numbers.
const (
	ofAllOld = `name: "a'\"\\{$é世", address: "[a:b]-.:65535", level: 3, sizeGB: 99999, scheme: https, site: a.b.c, path: '/a-b//b', ` +
		`ip: '0:1.2', cpu: -4503599627370496, user: 'u^w', realm: 65535, ports: [{name: "p'", port: 0}]`
	ofAllNew = `title: "a'\"\\{$é世", host: "[a:b]-.", port: 65535, tier: Large, size: 99999Gi, url: 'https://a.b.c/a-b//b', ` +
		`ips: ['0:1.2'], resources: {cpu: -4503599627370496}, login: 'u^w^65535', portsByName: {"p'": 0}`
)

// histories are writes of one object, one after the other.
var histories = map[string][]sent{
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
	"a number that becomes an enum": {
		{"v1alpha1", "{name: a, level: 2}", "{name: a, title: a, level: 2, tier: Medium}"},
		{"v1beta1", "{title: a, tier: Large}", "{name: a, title: a, level: 3, tier: Large}"},
		{"v1alpha1", "{name: a, level: 7}", "!spec.level"},
	},
	"a quantity: what the old version can't express is kept": {
		{"v1alpha1", "{name: a, sizeGB: 2}", "{name: a, title: a, sizeGB: 2, size: 2Gi}"},
		{"v1beta1", "{title: a, size: 512Mi}", "{name: a, title: a, sizeGB: 0, size: 512Mi}"},
		{"v1alpha1", "{name: a, sizeGB: 0, replicas: 2}", "{name: a, title: a, sizeGB: 0, size: 512Mi, replicas: 2}"},
		{"v1alpha1", "{name: a, sizeGB: 3}", "{name: a, title: a, sizeGB: 3, size: 3Gi}"},
		{"v1beta1", "{title: a, size: much}", "!spec.size can't be converted to spec.sizeGB"},
	},
	"a URL: what the old version can't express is refused": {
		{"v1alpha1", "{name: a, scheme: https, site: 'x.y:8', path: /z}", "{name: a, title: a, scheme: https, site: 'x.y:8', path: /z, url: 'https://x.y:8/z'}"},
		{"v1beta1", "{title: a, url: 'http://b'}", "{name: a, title: a, scheme: http, site: b, path: '', url: 'http://b'}"},
		{"v1beta1", "{title: a, url: 'http://b/?q=1'}", "!can't express"},
		{"v1alpha1", "{name: a, scheme: http, site: b, path: '/a b?'}", "!spec.scheme, spec.site, spec.path can't be converted to spec.url"},
		{"v1beta1", "{title: a, url: nowhere}", "!spec.url can't be converted to spec.scheme, spec.site, spec.path"},
	},
	"a list: all but the first are kept": {
		{"v1alpha1", "{name: a, ip: '1'}", "{name: a, title: a, ip: '1', ips: ['1']}"},
		{"v1beta1", "{title: a, ips: ['1', '2']}", "{name: a, title: a, ip: '1', ips: ['1', '2']}"},
		{"v1alpha1", "{name: a, ip: '1', replicas: 2}", "{name: a, title: a, ip: '1', ips: ['1', '2'], replicas: 2}"},
		{"v1alpha1", "{name: a, ip: '3'}", "{name: a, title: a, ip: '3', ips: ['3']}"},
	},
	"a field that moves into a struct": {
		{"v1alpha1", "{name: a, cpu: 2}", "{name: a, title: a, cpu: 2, resources: {cpu: 2}}"},
		{"v1beta1", "{title: a, resources: {cpu: 3}}", "{name: a, title: a, cpu: 3, resources: {cpu: 3}}"},
		{"v1beta1", "{title: a, resources: {}}", "{name: a, title: a, resources: {}}"},
	},
	"a join, with a default": {
		{"v1alpha1", "{name: a, user: u, realm: 2}", "{name: a, title: a, user: u, realm: 2, login: 'u^2'}"},
		{"v1beta1", "{title: a, login: 'v^3'}", "{name: a, title: a, user: v, realm: 3, login: 'v^3'}"},
		{"v1beta1", "{title: a}", "{name: a, title: a}"},
		{"v1beta1", "{title: a, login: nobody}", "!spec.login can't be converted to spec.user, spec.realm"},
	},
	"a list that becomes a map": {
		{"v1alpha1", "{name: a, ports: [{name: z, port: 1}, {name: b, port: 2}]}", "{name: a, title: a, ports: [{name: z, port: 1}, {name: b, port: 2}], portsByName: {z: 1, b: 2}}"},
		{"v1beta1", "{title: a, portsByName: {z: 1, b: 2}}", "{name: a, title: a, ports: [{name: z, port: 1}, {name: b, port: 2}], portsByName: {z: 1, b: 2}}"},
		{"v1beta1", "{title: a, portsByName: {c: 3}}", "{name: a, title: a, ports: [{name: c, port: 3}], portsByName: {c: 3}}"},
	},
	"values of other types, which the schema refuses": {
		{"v1alpha1", "{name: 5}", "!spec.name: Invalid value: \"integer\""},
		{"v1alpha1", "{name: a, address: 5}", "!spec.address: Invalid value: \"integer\""},
		{"v1beta1", "{title: a, host: h, port: x}", "!spec.port: Invalid value: \"string\""},
		{"v1alpha1", "{name: a, level: two}", "!spec.level: Invalid value: \"string\""},
		{"v1beta1", "{title: a, size: 2}", "!spec.size: Invalid value: \"integer\""},
		{"v1beta1", "{title: a, url: true}", "!spec.url: Invalid value: \"boolean\""},
		{"v1beta1", "{title: a, ips: x}", "!spec.ips: Invalid value: \"string\""},
		{"v1beta1", "{title: a, login: [x]}", "!spec.login: Invalid value: \"array\""},
		{"v1alpha1", "{name: a, ports: [{name: z}]}", "!spec.ports[0].port: Required value"},
		{"v1beta1", "{title: a, portsByName: x}", "!spec.portsByName: Invalid value: \"string\""},
	},
	"all changes, from the old side": {
		{"v1alpha1", "{" + ofAllOld + "}", "{" + ofAllOld + ", " + ofAllNew + "}"},
		{"v1beta1", "{" + ofAllNew + ", replicas: 7}", "{" + ofAllOld + ", " + ofAllNew + ", replicas: 7}"},
	},
	"all changes, from the new side": {
		{"v1beta1", "{" + ofAllNew + "}", "{" + ofAllOld + ", " + ofAllNew + "}"},
		{"v1alpha1", "{" + ofAllOld + ", replicas: 7}", "{" + ofAllOld + ", " + ofAllNew + ", replicas: 7}"},
	},
	"a required change that guest gives": {
		{"v1beta1", "{replicas: 1}", "!one of them is required"},
	},
}

// play makes writes, and compares what is stored.
func (w *walk) play(t *testing.T, writes []sent) {
	t.Helper()
	var stored *unstructured.Unstructured
	for _, write := range writes {
		got, err := w.send(t, write.version, specOf(t, write.spec), stored)
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
		if diff := cmp.Diff(withDefaults(specOf(t, write.want)), got.Object["spec"]); diff != "" {
			t.Errorf("%s %s: (-want +got)\n%s", write.version, write.spec, diff)
		}
	}
}

// send creates an object through a version, or replaces the spec of one that is stored.
func (w *walk) send(t *testing.T, version string, spec map[string]any, stored *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	object := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	object.SetAPIVersion("example.org/" + version)
	object.SetKind("Thing")
	if stored == nil {
		object.SetGenerateName("history-")
		return w.things(version).Create(t.Context(), object, metav1.CreateOptions{})
	}
	object.SetName(stored.GetName())
	object.SetResourceVersion(stored.GetResourceVersion())
	return w.things(version).Update(t.Context(), object, metav1.UpdateOptions{})
}

// specOf returns a spec that is written with YAML's ease.
func specOf(t *testing.T, text string) (spec map[string]any) {
	t.Helper()
	content, err := yaml.YAMLToJSON([]byte(text))
	if err == nil {
		err = json.Unmarshal(content, &spec)
	}
	if err != nil {
		t.Fatal(err)
	}
	return spec
}

// withDefaults adds the defaults of the declaration to a spec.
func withDefaults(spec map[string]any) map[string]any {
	for key, value := range map[string]any{"user": "guest", "realm": int64(1), "login": "guest^1"} {
		if _, ok := spec[key]; !ok {
			spec[key] = value
		}
	}
	return spec
}
