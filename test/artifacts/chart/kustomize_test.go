// SPDX-License-Identifier: Apache-2.0

// Package test lints, renders and installs the chart with Helm's program, and compares it
// with the output of kubectl kustomize.
package test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"go.yaml.in/yaml/v3"

	"example.com/sample-controller/test/footest"
	"example.com/sample-controller/test/testcluster"
)

// digest is one of an image.
var digest = "sha256:" + strings.Repeat("0a", 32)

const everything = "monitoring: {serviceMonitor: true, prometheusRule: true, dashboard: true}"

// TestChartEqualsKustomize compares the objects of the chart with those of kustomize, for
// equivalent values and overlays.
func TestChartEqualsKustomize(t *testing.T) {
	for _, c := range []struct{ say, namespace, values, kustomization string }{
		{"as shipped", program, "", "resources: [BASE/deploy]"},
		{"for the Foos of one namespace", program, "watchNamespace: default", "resources: [BASE/deploy/namespaced]"},
		{"with monitoring", program, everything, "resources: [BASE/deploy, BASE/monitoring]"},
		{"with an image", program, "image: {repository: 'registry.example.com:5000/team/controller', tag: '1.20'}",
			"resources: [BASE/deploy]\nimages: [{name: sample-controller, newName: 'registry.example.com:5000/team/controller', newTag: '1.20'}]"},
		{"with a tag and a digest", program, "image: {repository: r/c, tag: v1, digest: '" + digest + "'}",
			"resources: [BASE/deploy]\nimages: [{name: sample-controller, newName: r/c, newTag: v1, digest: '" + digest + "'}]"},
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
		{"under other names", "team-sample-controller", everything, `resources: [BASE/deploy, BASE/monitoring]
namePrefix: team-
namespace: team-sample-controller
patches:
- target: {kind: Secret}
  patch: |-
    - {op: replace, path: /metadata/annotations/kubernetes.io~1service-account.name, value: team-sample-controller-scraper}
- target: {kind: ServiceMonitor}
  patch: |-
    - {op: replace, path: /spec/endpoints/0/authorization/credentials/name, value: team-sample-controller-scraper}`},
	} {
		t.Run(c.say, func(t *testing.T) {
			_, err := helm(t, c.values, "lint", folder, "--strict", "--namespace="+c.namespace)
			footest.Must(t, err)
			release := strings.TrimSuffix(c.namespace, "-"+program) // its objects have the name of the namespace
			got, want := template(t, release, c.namespace, c.values), kustomize(t, overlay(t, c.kustomization))
			unlikeKustomize(t, got, release)
			unlikeHelm(t, want, c.namespace)
			footest.ExpectEqual(t, "the chart (run make chart, or change a template)", want, got)
		})
	}
}

// overlay writes a kustomization, in which BASE stands for artifacts.
func overlay(t *testing.T, text string) string {
	t.Helper()
	folder := t.TempDir()
	base, err := filepath.Abs(root)
	footest.Must(t, err)
	base, err = filepath.Rel(folder, filepath.Join(base, "artifacts"))
	footest.Must(t, err)
	footest.Must(t, os.WriteFile(filepath.Join(folder, "kustomization.yaml"), []byte(strings.ReplaceAll(text, "BASE", filepath.ToSlash(base))), 0o600))
	return folder
}

// podLabels are the places where each kind has labels of the Pods. Both kustomize and Helm
// make them those of one installation, because two may be in one namespace.
var podLabels = map[string][]string{
	"Deployment": {"spec selector matchLabels", "spec template metadata labels"}, "Service": {"spec selector"},
	"PodDisruptionBudget": {"spec selector matchLabels"}, "NetworkPolicy": {"spec podSelector matchLabels"},
}

// take returns a check that labels in an object have a value, which then removes it.
func take(t *testing.T, id string, object mapping) func(path, key, want string) {
	t.Helper()
	return func(path, key, want string) {
		labels, _ := at(object, strings.Fields(path)...).(mapping)
		if got := labels[key]; got != want {
			t.Errorf("%s has %s=%v in %s, not %s", id, key, got, path, want)
		}
		delete(labels, key)
	}
}

// unlikeKustomize removes from the chart's objects what only Helm adds. It fails the test
// if any of that is missing.
func unlikeKustomize(t *testing.T, objects map[string]mapping, release string) {
	t.Helper()
	for id, object := range objects {
		take := take(t, id, object)
		take("metadata labels", "app.kubernetes.io/managed-by", "Helm")
		take("metadata labels", "helm.sh/chart", program+"-0.0.0")
		take("metadata labels", "app.kubernetes.io/instance", release)
		for _, path := range podLabels[object["kind"].(string)] {
			take(path, "app.kubernetes.io/instance", release)
			take(path, "app.kubernetes.io/name", program)
		}
		switch object["kind"] {
		case "Deployment":
			take(ofSpread, "app.kubernetes.io/name", program)
		case "ServiceMonitor":
			take("spec selector matchLabels", "app.kubernetes.io/instance", release)
		case "CustomResourceDefinition":
			take("metadata annotations", "helm.sh/resource-policy", "keep")
			delete(at(object, "metadata").(mapping), "labels")
		}
	}
}

// ofSpread are the labels by which the Pods of an installation are spread.
const ofSpread = "spec template spec topologySpreadConstraints 0 labelSelector matchLabels"

// unlikeHelm removes from kustomize's objects what the chart does not contain: the
// Namespace, which Helm creates, the namespaces of cluster-scoped objects, and the
// annotation against pruning, which the chart sets itself. It fails the test unless the
// labels of the Pods are the installation's own.
func unlikeHelm(t *testing.T, objects map[string]mapping, namespace string) {
	t.Helper()
	for id, object := range objects {
		take := take(t, id, object)
		for _, path := range podLabels[object["kind"].(string)] {
			take(path, "app.kubernetes.io/name", namespace)
		}
		switch kind := object["kind"].(string); {
		case kind == "Namespace":
			delete(objects, id)
		case kind == "Deployment":
			take(ofSpread, "app.kubernetes.io/name", namespace)
		case strings.HasPrefix(kind, "ValidatingAdmissionPolicy") || kind == "FlowSchema":
			delete(at(object, "metadata").(mapping), "namespace")
		case kind == "CustomResourceDefinition":
			take("metadata annotations", "helm.sh/resource-policy", "keep")
		}
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

const (
	root    = "../../.."
	folder  = root + "/artifacts/chart"
	program = "sample-controller"
)

// mapping is a mapping of YAML.
type mapping = map[string]any

// helmProgram returns the path of Helm's program, which the module requires as a tool.
var helmProgram = sync.OnceValues(func() (string, error) {
	path, err := exec.Command("go", "tool", "-n", "helm").Output()
	return strings.TrimSpace(string(path)), err
})

// helm runs Helm with values in the format of a values file, and returns what it prints.
func helm(t *testing.T, values string, args ...string) (string, error) {
	t.Helper()
	path, err := helmProgram()
	footest.Must(t, err)
	command := exec.CommandContext(t.Context(), path, args...)
	if values != "" {
		command.Args = append(command.Args, "--values=-")
		command.Stdin = strings.NewReader(values)
	}
	var out, messages strings.Builder
	command.Stdout, command.Stderr = &out, &messages
	if err := command.Run(); err != nil {
		return "", fmt.Errorf("helm %s: %w\n%s%s", args, err, &out, &messages)
	}
	return out.String(), nil
}

func tryTemplate(t *testing.T, release, namespace, values string) (string, error) {
	t.Helper()
	return helm(t, values, "template", release, folder, "--namespace="+namespace, "--kube-version=v1.37.0")
}

// template returns the objects that helm template prints, by kind and name.
func template(t *testing.T, release, namespace, values string) map[string]mapping {
	t.Helper()
	made, err := tryTemplate(t, release, namespace, values)
	footest.Must(t, err)
	return objectsOf(t, made)
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
		footest.Must(t, err)
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

// at returns the value at a path of keys, or of an index of a list, or nil.
func at(object any, keys ...string) any {
	for _, key := range keys {
		switch value := object.(type) {
		case mapping:
			object = value[key]
		case []any:
			index, err := strconv.Atoi(key)
			if err != nil || index >= len(value) {
				return nil
			}
			object = value[index]
		default:
			return nil
		}
	}
	return object
}

// kustomize returns the objects that kubectl kustomize prints for a directory.
func kustomize(t *testing.T, folder string) map[string]mapping {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), testcluster.Devcluster(t), "kubectl", "kustomize", folder).Output()
	footest.Must(t, err)
	return objectsOf(t, string(out))
}
