// SPDX-License-Identifier: Apache-2.0

// Package test lints, renders and installs the chart with Helm's library, and compares it
// with the output of kubectl kustomize.
package test

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/chart/common"
	chartv2 "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	releasev1 "helm.sh/helm/v4/pkg/release/v1"
)

const everything = "monitoring: {serviceMonitor: true, prometheusRule: true, dashboard: true}"

// TestChartEqualsKustomize compares the objects of the chart with those of kustomize, for
// equivalent values and overlays.
func TestChartEqualsKustomize(t *testing.T) {
	for _, c := range []struct{ say, namespace, values, kustomization string }{
		{"as shipped", program, "", "resources: [BASE/deploy]"},
		{"for the Foos of one namespace", program, "watchNamespace: default", "resources: [BASE/deploy/namespaced]"},
		{"with monitoring", program, everything, "resources: [BASE/deploy, BASE/monitoring]"},
		{"with an image", program, "image: {repository: 'registry.example.com:5000/team/controller', tag: v1.2.3}",
			"resources: [BASE/deploy]\nimages: [{name: sample-controller, newName: 'registry.example.com:5000/team/controller', newTag: v1.2.3}]"},
		{"with a digest", program, "image: {digest: 'sha256:" + strings.Repeat("0a", 32) + "'}",
			"resources: [BASE/deploy]\nimages: [{name: sample-controller, digest: 'sha256:" + strings.Repeat("0a", 32) + "'}]"},
		{"with patches", program, "{replicas: 3, resources: {limits: {memory: 1Gi}}, nodeSelector: {disk: ssd}, workers: 4, podDisruptionBudget: {enabled: false}}",
			`resources: [BASE/deploy]
patches:
- target: {kind: Deployment}
  patch: |-
    - {op: add, path: /spec/replicas, value: 3}
    - {op: add, path: /spec/template/spec/containers/0/resources/limits/memory, value: 1Gi}
    - {op: add, path: /spec/template/spec/containers/0/args/-, value: -workers=4}
- target: {kind: Deployment}
  patch: '{kind: Deployment, apiVersion: apps/v1, metadata: {name: any}, spec: {template: {spec: {nodeSelector: {disk: ssd}}}}}'
- target: {kind: PodDisruptionBudget}
  patch: '{kind: PodDisruptionBudget, apiVersion: policy/v1, metadata: {name: any}, $patch: delete}'`},
		{"under other names", "team-sample-controller", "", "resources: [BASE/deploy]\nnamePrefix: team-\nnamespace: team-sample-controller"},
	} {
		t.Run(c.say, func(t *testing.T) {
			got, want := template(t, c.namespace, c.namespace, c.values), kustomize(t, overlay(t, c.kustomization))
			unlikeKustomize(t, got, c.namespace)
			unlikeHelm(want, c.namespace)
			for _, id := range slices.Sorted(maps.Keys(want)) {
				if got[id] == nil {
					t.Errorf("The chart lacks %s: run make chart, or add a template", id)
				}
			}
			for _, id := range slices.Sorted(maps.Keys(got)) {
				if want[id] == nil {
					t.Errorf("kustomize lacks %s", id)
					continue
				}
				for _, difference := range differences("", got[id], want[id]) {
					t.Errorf("%s%s: run make chart, or change the template", id, difference)
				}
			}
		})
	}
}

// TestMonitoringValuesEqualTheScript compares the chart's label and runbooks with those of
// hack/update-monitoring.sh.
func TestMonitoringValuesEqualTheScript(t *testing.T) {
	made := filepath.Join(t.TempDir(), "made")
	script := exec.CommandContext(t.Context(), filepath.Join(root, "hack", "update-monitoring.sh"), made)
	script.Env = append(os.Environ(), "CLUSTER_LABEL=k8s_cluster", "RUNBOOKS=https://wiki.example.org/run?page=books")
	if output, err := script.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	want := kustomize(t, made)
	got := template(t, program, program, `monitoring: {serviceMonitor: true, prometheusRule: true, dashboard: true, clusterLabel: k8s_cluster, runbooks: "https://wiki.example.org/run?page=books",
  tlsConfig: {insecureSkipVerify: null, serverName: metrics.example.com}}`)
	for id, part := range map[string]string{"PrometheusRule sample-controller": "spec", "ConfigMap sample-controller-dashboard": "data"} {
		for _, difference := range differences("", at(got[id], part), at(want[id], part)) {
			t.Errorf("%s%s", id, difference)
		}
	}
	endpoint := at(got["ServiceMonitor sample-controller"], "spec", "endpoints").([]any)[0]
	if tls := at(endpoint, "tlsConfig"); !reflect.DeepEqual(tls, mapping{"serverName": "metrics.example.com"}) {
		t.Errorf("The tlsConfig is %v", tls)
	}
}

// overlay writes a kustomization, in which BASE stands for artifacts.
func overlay(t *testing.T, text string) string {
	t.Helper()
	folder := t.TempDir()
	base, err := filepath.Abs(root)
	must(t, err)
	base, err = filepath.Rel(folder, filepath.Join(base, "artifacts"))
	must(t, err)
	must(t, os.WriteFile(filepath.Join(folder, "kustomization.yaml"), []byte(strings.ReplaceAll(text, "BASE", filepath.ToSlash(base))), 0o600))
	return folder
}

// unlikeKustomize removes from the chart's objects what only Helm adds. It fails the test
// if any of that is missing.
func unlikeKustomize(t *testing.T, objects map[string]mapping, release string) {
	t.Helper()
	take := func(id string, from any, key, want string) {
		labels, _ := from.(mapping)
		if got := labels[key]; got != want {
			t.Errorf("%s has %s=%v, not %s", id, key, got, want)
		}
		delete(labels, key)
	}
	for id, object := range objects {
		labels := at(object, "metadata", "labels")
		take(id, labels, "app.kubernetes.io/managed-by", "Helm")
		take(id, labels, "helm.sh/chart", program+"-0.0.0")
		take(id, labels, "app.kubernetes.io/instance", release)
		// Pods and selectors have the release's label, because two releases may be in one
		// namespace.
		for _, path := range map[string][]string{
			"Deployment": {"spec selector matchLabels", "spec template metadata labels"}, "Service": {"spec selector"},
			"PodDisruptionBudget": {"spec selector matchLabels"}, "NetworkPolicy": {"spec podSelector matchLabels"},
			"ServiceMonitor": {"spec selector matchLabels"},
		}[object["kind"].(string)] {
			take(id, at(object, strings.Fields(path)...), "app.kubernetes.io/instance", release)
		}
		if object["kind"] == "CustomResourceDefinition" {
			take(id, at(object, "metadata", "annotations"), "helm.sh/resource-policy", "keep")
			delete(at(object, "metadata").(mapping), "labels")
		}
	}
}

// unlikeHelm removes from kustomize's objects what the chart does not contain: the
// Namespace, which Helm creates, the namespaces of cluster-scoped objects, and the
// annotation against pruning, which the chart sets itself.
func unlikeHelm(objects map[string]mapping, namespace string) {
	for id, object := range objects {
		switch kind := object["kind"].(string); {
		case kind == "Namespace":
			delete(objects, id)
		case strings.HasPrefix(kind, "ValidatingAdmissionPolicy") || kind == "FlowSchema":
			delete(at(object, "metadata").(mapping), "namespace")
		case kind == "CustomResourceDefinition":
			delete(at(object, "metadata", "annotations").(mapping), "helm.sh/resource-policy")
		}
		unlabel(object, namespace)
		// kustomize adds an empty line to a folded text with an indented line.
		for _, part := range []string{"variables", "validations"} {
			expressions, _ := at(object, "spec", part).([]any)
			for _, expression := range expressions {
				e := expression.(mapping)
				e["expression"] = strings.ReplaceAll(e["expression"].(string), "\n\n", "\n")
			}
		}
	}
}

// unlabel restores the label of the Pods in a value. kustomize tells installations apart by
// it, the chart by the release's label.
func unlabel(value any, name string) {
	switch value := value.(type) {
	case mapping:
		if value["app.kubernetes.io/name"] == name {
			value["app.kubernetes.io/name"] = program
		}
		for _, inner := range value {
			unlabel(inner, name)
		}
	case []any:
		for _, inner := range value {
			unlabel(inner, name)
		}
	}
}

// differences returns the places where two values differ.
func differences(path string, got, want any) []string {
	if g, ok := got.(mapping); ok {
		if w, ok := want.(mapping); ok {
			var found []string
			keys := maps.Clone(g)
			maps.Copy(keys, w)
			for _, key := range slices.Sorted(maps.Keys(keys)) {
				found = append(found, differences(path+" "+key, g[key], w[key])...)
			}
			return found
		}
	}
	g, gok := got.([]any)
	w, wok := want.([]any)
	if gok && wok && len(g) == len(w) {
		var found []string
		for i := range g {
			found = append(found, differences(fmt.Sprint(path, " ", i), g[i], w[i])...)
		}
		return found
	}
	if reflect.DeepEqual(got, want) {
		return nil
	}
	return []string{fmt.Sprintf("%s: the chart has %v, kustomize %v", path, got, want)}
}

const (
	root    = "../.."
	folder  = root + "/artifacts/chart"
	program = "sample-controller"
)

// mapping is a mapping of YAML.
type mapping = map[string]any

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// parse reads values in the format of a values file.
func parse(t *testing.T, text string) mapping {
	t.Helper()
	values := mapping{}
	must(t, yaml.Unmarshal([]byte(text), &values))
	return values
}

func loadChart(t *testing.T) *chartv2.Chart {
	t.Helper()
	chart, err := loader.LoadDir(folder)
	must(t, err)
	return chart
}

// kubernetesRelease parses the version of Kubernetes to render the chart for.
func kubernetesRelease(t *testing.T, version string) *common.KubeVersion {
	t.Helper()
	release, err := common.ParseKubeVersion(version)
	must(t, err)
	return release
}

// tryTemplate does what helm template does.
func tryTemplate(t *testing.T, release, namespace, values string) (*releasev1.Release, error) {
	t.Helper()
	install := action.NewInstall(action.NewConfiguration())
	install.DryRunStrategy = action.DryRunClient
	install.ReleaseName, install.Namespace, install.KubeVersion = release, namespace, kubernetesRelease(t, "v1.37.0")
	made, err := install.RunWithContext(t.Context(), loadChart(t), parse(t, values))
	if err != nil {
		return nil, err
	}
	return made.(*releasev1.Release), nil
}

// template returns the objects that helm template prints, by kind and name.
func template(t *testing.T, release, namespace, values string) map[string]mapping {
	t.Helper()
	made, err := tryTemplate(t, release, namespace, values)
	must(t, err)
	return objectsOf(t, made.Manifest)
}

// objectsOf reads objects, and returns them by kind and name.
func objectsOf(t *testing.T, manifests string) map[string]mapping {
	t.Helper()
	objects := map[string]mapping{}
	decoder := yaml.NewDecoder(strings.NewReader(manifests))
	for {
		var object mapping
		err := decoder.Decode(&object)
		if errors.Is(err, io.EOF) {
			return objects
		}
		must(t, err)
		if object == nil {
			continue
		}
		id := object["kind"].(string) + " " + at(object, "metadata", "name").(string)
		if _, twice := objects[id]; twice {
			t.Errorf("%s occurs twice", id)
		}
		objects[id] = object
	}
}

// at returns the value at a path of keys, or nil.
func at(object any, keys ...string) any {
	for _, key := range keys {
		m, ok := object.(mapping)
		if !ok {
			return nil
		}
		object = m[key]
	}
	return object
}

// container returns the container of the only Deployment.
func container(t *testing.T, objects map[string]mapping) mapping {
	t.Helper()
	for id, object := range objects {
		if strings.HasPrefix(id, "Deployment ") {
			return at(object, "spec", "template", "spec", "containers").([]any)[0].(mapping)
		}
	}
	t.Fatal("no Deployment was rendered")
	return nil
}

func devcluster(t *testing.T) string {
	t.Helper()
	program := os.Getenv("DEVCLUSTER_BIN")
	if program == "" {
		t.Skip("DEVCLUSTER_BIN is not set: make test-chart sets it")
	}
	return program
}

// kustomize returns the objects that kubectl kustomize prints for a folder.
func kustomize(t *testing.T, folder string) map[string]mapping {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), devcluster(t), "kubectl", "kustomize", folder).Output()
	must(t, err)
	return objectsOf(t, string(out))
}
