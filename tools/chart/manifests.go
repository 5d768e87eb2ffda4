// SPDX-License-Identifier: Apache-2.0

// The manifests, as kustomize renders them.

package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v3"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

const (
	// program is the name of the chart, and in the manifests the namespace and the prefix
	// of all names.
	program = "sample-controller"

	chartFolder      = "artifacts/chart"
	deployFolder     = "artifacts/deploy"
	namespacedFolder = "artifacts/deploy/namespaced"
	monitoringFolder = "artifacts/monitoring"
)

// namespaced reports for each kind whether its objects belong to a namespace. kustomize
// does not know all of the kinds.
var namespaced = map[string]bool{
	"Namespace": false, "CustomResourceDefinition": false, "ClusterRole": false, "ClusterRoleBinding": false,
	"ValidatingAdmissionPolicy": false, "ValidatingAdmissionPolicyBinding": false, "FlowSchema": false,
	"PriorityLevelConfiguration": false,
	"ServiceAccount":             true, "Role": true, "RoleBinding": true, "Service": true, "Deployment": true,
	"PodDisruptionBudget": true, "NetworkPolicy": true, "ConfigMap": true, "Secret": true,
	"ServiceMonitor": true, "PrometheusRule": true,
}

// object is a manifest as kustomize renders it.
type object struct {
	kind, name string
	node       *yaml.Node
}

// id returns a string that is unique within the manifests: no two objects of a kind have
// the same name.
func (o *object) id() string { return o.kind + "/" + o.name }

// manifests are the sources of the chart: the installation for all namespaces, the one
// for a single namespace, and the objects for monitoring.
type manifests struct {
	everywhere, single, monitoring []*object
	// watched is the namespace whose Foos the installation for a single namespace
	// reconciles.
	watched string
	// podSecurity are the Namespace's labels for Pod Security. Helm creates the Namespace
	// without labels.
	podSecurity []string
}

func readManifests(root string) (*manifests, error) {
	var all manifests
	for folder, objects := range map[string]*[]*object{
		deployFolder: &all.everywhere, namespacedFolder: &all.single, monitoringFolder: &all.monitoring,
	} {
		var err error
		if *objects, err = render(filepath.Join(root, filepath.FromSlash(folder))); err != nil {
			return nil, fmt.Errorf("%s: %w", folder, err)
		}
	}
	if err := all.takeWatched(); err != nil {
		return nil, fmt.Errorf("%s: %w", namespacedFolder, err)
	}
	return &all, all.takeNamespaces()
}

// render returns the objects that kustomize renders from a folder.
func render(folder string) ([]*object, error) {
	rendered, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), folder)
	if err != nil {
		return nil, err
	}
	var objects []*object
	for _, resource := range rendered.Resources() {
		if _, known := namespaced[resource.GetKind()]; !known {
			return nil, fmt.Errorf("unknown kind %s: add to tools/chart whether its objects belong to a namespace", resource.GetKind())
		}
		text, err := resource.AsYAML()
		if err != nil {
			return nil, err
		}
		var document yaml.Node
		if err := yaml.Unmarshal(text, &document); err != nil {
			return nil, err
		}
		objects = append(objects, &object{resource.GetKind(), resource.GetName(), document.Content[0]})
	}
	return objects, nil
}

// takeWatched returns the namespace in the flag -namespace, and removes the flag, because
// the chart has a value for it.
func (m *manifests) takeWatched() error {
	const flag = "-namespace="
	for _, o := range m.single {
		for _, args := range find(o.node, "spec template spec containers 0 args") {
			for i, arg := range args.Content {
				if namespace, ok := strings.CutPrefix(arg.Value, flag); ok {
					m.watched = namespace
					args.Content = append(args.Content[:i:i], args.Content[i+1:]...)
					return nil
				}
			}
		}
	}
	return errors.New("no container has the flag " + flag)
}

// takeNamespaces removes the Namespaces, because Helm can create the release's namespace,
// before the chart's objects.
func (m *manifests) takeNamespaces() error {
	for _, objects := range []*[]*object{&m.everywhere, &m.single} {
		var kept []*object
		for _, o := range *objects {
			if o.kind != "Namespace" {
				kept = append(kept, o)
				continue
			}
			m.podSecurity = nil
			for _, labels := range find(o.node, "metadata labels") {
				for i := 0; i < len(labels.Content); i += 2 {
					if key := labels.Content[i].Value; strings.HasPrefix(key, "pod-security.kubernetes.io/") {
						m.podSecurity = append(m.podSecurity, key+"="+labels.Content[i+1].Value)
					}
				}
			}
		}
		*objects = kept
	}
	if m.podSecurity == nil {
		return errors.New("no Namespace with labels for Pod Security")
	}
	return nil
}
