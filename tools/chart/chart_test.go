// SPDX-License-Identifier: Apache-2.0

// Tests of the generated files, and of the errors for manifests from which no chart can
// be generated.

package main

import (
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

const root = "../.."

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestChartIsUpToDate(t *testing.T) {
	want, err := generate(root)
	must(t, err)
	got, err := readFiles(filepath.Join(root, chartFolder))
	must(t, err)
	for name := range want {
		if got[name] != want[name] {
			t.Errorf("%s/%s is out of date: run make chart", chartFolder, name)
		}
	}
	for name := range got {
		if _, made := want[name]; !made {
			t.Errorf("%s/%s is not generated any more: run make chart", chartFolder, name)
		}
	}
}

// manifestsOf returns manifests with these objects, as kustomize renders them.
func manifestsOf(t *testing.T, texts ...string) []*object {
	t.Helper()
	var objects []*object
	for _, text := range texts {
		var document yaml.Node
		must(t, yaml.Unmarshal([]byte(text), &document))
		node := document.Content[0]
		objects = append(objects, &object{find(node, "kind")[0].Value, find(node, "metadata name")[0].Value, node})
	}
	return objects
}

func TestMissingPlaceIsAnError(t *testing.T) {
	all, err := readManifests(root)
	must(t, err)
	for _, change := range []struct{ kind, path, want string }{
		{"Deployment", container + "resources", "value resources: no manifest has Deployment spec template spec containers 0 resources"},
		{"Deployment", container + "args", "value watchNamespace"},
		{"Deployment", pod + "topologySpreadConstraints", "value topologySpreadConstraints"},
		{"NetworkPolicy", "spec egress", "value networkPolicy.egress"},
		{"NetworkPolicy", "spec ingress", "value networkPolicy.ingressFrom"},
	} {
		c := &chart{manifests: all.without(change.kind, change.path), defaults: map[string]any{}}
		if err := c.readDefaults(); err == nil || !strings.HasPrefix(err.Error(), change.want) {
			t.Errorf("Without %s %s: %v", change.kind, change.path, err)
		}
	}
	c := &chart{manifests: all.without("PodDisruptionBudget", ""), defaults: map[string]any{}}
	if err := c.readDefaults(); err == nil || err.Error() != "value podDisruptionBudget.enabled: no manifest is PodDisruptionBudget" {
		t.Errorf("Without a PodDisruptionBudget: %v", err)
	}
}

// without returns the manifests without a path in the objects of a kind, or without the
// objects.
func (m *manifests) without(kind, path string) *manifests {
	part := func(objects []*object) []*object {
		var kept []*object
		for _, o := range objects {
			switch {
			case o.kind != kind:
				kept = append(kept, o)
			case path != "":
				changed := clone(o.node)
				parent, key := split(path)
				remove(find(changed, parent)[0], key)
				kept = append(kept, &object{o.kind, o.name, changed})
			}
		}
		return kept
	}
	return &manifests{part(m.everywhere), part(m.single), part(m.monitoring), m.watched, m.podSecurity}
}

func clone(node *yaml.Node) *yaml.Node {
	copied := *node
	copied.Content = nil
	for _, child := range node.Content {
		copied.Content = append(copied.Content, clone(child))
	}
	return &copied
}

func TestUnknownNameIsAnError(t *testing.T) {
	for _, c := range []struct{ manifest, want string }{
		{"{kind: Service, metadata: {name: sample-controller}, spec: {externalName: sample-controller-metrics}}", "Service spec externalName is sample-controller-metrics: add the place"},
		{"{kind: Service, metadata: {name: other}}", "Service other does not start with sample-controller"},
		{"{kind: Service, metadata: {name: sample-controller, namespace: kube-system}}", "Service metadata namespace is kube-system"},
		{"{kind: ValidatingAdmissionPolicy, metadata: {name: sample-controller}, spec: {variables: [{expression: \"user == 'a:sample-controller'\"}]}}", "expression is user =="},
	} {
		made := &chart{manifests: &manifests{watched: "default"}, defaults: map[string]any{}}
		if _, err := made.template(manifestsOf(t, c.manifest)[0]); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.manifest, err)
		}
	}
}

func TestDifferenceBetweenVariantsIsAnError(t *testing.T) {
	c := &chart{manifests: &manifests{
		everywhere: manifestsOf(t, "{kind: Service, metadata: {name: sample-controller}, spec: {port: 1}}"),
		single:     manifestsOf(t, "{kind: Service, metadata: {name: sample-controller}, spec: {port: 2}}"),
	}, defaults: map[string]any{}}
	if _, err := c.templates(); err == nil || !strings.HasPrefix(err.Error(), "Service/sample-controller differs between") {
		t.Error(err)
	}
}

// TestBracesAreEscaped checks that braces in the manifests do not become template
// expressions.
func TestBracesAreEscaped(t *testing.T) {
	made := &chart{manifests: &manifests{}, defaults: map[string]any{}}
	text, err := made.template(manifestsOf(t, "{kind: PrometheusRule, metadata: {name: sample-controller, labels: {}}, spec: {summary: 'in {{ $labels.namespace }}'}}")[0])
	must(t, err)
	if want := `summary: 'in {{ "{{" }} $labels.namespace }}'`; !strings.Contains(text, want) {
		t.Errorf("want %s, got\n%s", want, text)
	}
}

func TestObsoleteFilesAreRemoved(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "chart")
	must(t, replaceFiles(folder, map[string]string{"a": "1", "templates/b": "2"}))
	want := map[string]string{"a": "3", "c": "4"}
	must(t, replaceFiles(folder, want))
	got, err := readFiles(folder)
	must(t, err)
	if len(got) != 2 || got["a"] != "3" || got["c"] != "4" {
		t.Errorf("The files are %v, not %v", got, want)
	}
}
