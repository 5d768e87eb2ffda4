// SPDX-License-Identifier: Apache-2.0

// Package test lints, renders and installs the chart with Helm's library, and compares it
// with the output of kubectl kustomize.
package test

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/chart/common"
	chartv2 "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	releasev1 "helm.sh/helm/v4/pkg/release/v1"
)

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
