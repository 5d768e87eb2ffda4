// SPDX-License-Identifier: Apache-2.0

// The shipped manifests as objects: read, rendered, and changed for a test.

package e2e

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// permissionsFolder is the folder of the controller's account and permissions.
const permissionsFolder = "artifacts/deploy/permissions"

// The names in the shipped manifests.
const (
	shippedNamespace = "sample-controller"
	shippedName      = "sample-controller"
	policyBinding    = "ValidatingAdmissionPolicyBinding"
	flowSchema       = "FlowSchema"
)

// shippedPermissions returns the objects of the controller's account in permissionsFolder, as
// "kubectl apply -k" sends them, because the folder patches none of them. It leaves out
// the namespace and the roles of users.
func shippedPermissions() ([]*unstructured.Unstructured, error) {
	folder := filepath.Join(moduleRoot, permissionsFolder)
	kustomization, err := readObject(filepath.Join(folder, "kustomization.yaml"))
	if err != nil {
		return nil, err
	}
	files, _, err := unstructured.NestedStringSlice(kustomization.Object, "resources")
	if err != nil {
		return nil, err
	}
	var objects []*unstructured.Unstructured
	for _, file := range files {
		if file == "namespace.yaml" || file == "users.yaml" {
			continue
		}
		content, err := os.ReadFile(filepath.Join(folder, file))
		if err != nil {
			return nil, err
		}
		found, err := parseObjects(content)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		objects = append(objects, found...)
	}
	return objects, nil
}

// kustomize renders a folder with kubectl.
func kustomize(t *testing.T, folder string) string {
	t.Helper()
	out, err := kubectlCommand(t, []string{"kustomize", folder}).Output()
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// objectsOf returns the objects of a rendered folder.
func objectsOf(t *testing.T, folder string) []*unstructured.Unstructured {
	t.Helper()
	objects, err := parseObjects([]byte(kustomize(t, folder)))
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

// parseObjects reads the objects of a YAML file.
func parseObjects(content []byte) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(content)))
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, err
		}
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(document, &object.Object); err != nil {
			return nil, err
		}
		if object.Object != nil {
			objects = append(objects, object)
		}
	}
}

// move gives shipped objects other namespaces, and cluster-scoped ones other names, so
// that they conflict with no others. places has the new namespace for each old one; that
// of shippedNamespace is the account's.
func move(objects []*unstructured.Unstructured, places map[string]string, run string) error {
	var errs []error
	set := func(object map[string]any, value string, path ...string) {
		errs = append(errs, unstructured.SetNestedField(object, value, path...))
	}
	suffix := "-" + places[shippedNamespace]
	for _, object := range objects {
		object.SetLabels(map[string]string{runLabel: run})
		if object.GetNamespace() != "" {
			object.SetNamespace(places[object.GetNamespace()])
		} else {
			object.SetName(object.GetName() + suffix)
		}
		switch object.GetKind() {
		case "RoleBinding", "ClusterRoleBinding":
			if kind, _, _ := unstructured.NestedString(object.Object, "roleRef", "kind"); kind == "ClusterRole" {
				name, _, _ := unstructured.NestedString(object.Object, "roleRef", "name")
				set(object.Object, name+suffix, "roleRef", "name")
			}
			subjects, _, err := unstructured.NestedSlice(object.Object, "subjects")
			for _, subject := range subjects {
				set(subject.(map[string]any), places[shippedNamespace], "namespace")
			}
			errs = append(errs, err, unstructured.SetNestedSlice(object.Object, subjects, "subjects"))
		case policyBinding:
			name, _, _ := unstructured.NestedString(object.Object, "spec", "policyName")
			set(object.Object, name+suffix, "spec", "policyName")
			set(object.Object, places[shippedNamespace], "spec", "paramRef", "namespace")
		case flowSchema:
			errs = append(errs, moveFlowSchema(object, places[shippedNamespace]))
		}
	}
	return errors.Join(errs...)
}

// moveFlowSchema makes a flow schema apply to the account and the Lease in another
// namespace.
func moveFlowSchema(object *unstructured.Unstructured, namespace string) error {
	var schema flowcontrolv1.FlowSchema
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &schema); err != nil {
		return err
	}
	for i := range schema.Spec.Rules {
		for j := range schema.Spec.Rules[i].Subjects {
			schema.Spec.Rules[i].Subjects[j].ServiceAccount.Namespace = namespace
		}
		for j := range schema.Spec.Rules[i].ResourceRules {
			schema.Spec.Rules[i].ResourceRules[j].Namespaces = []string{namespace}
		}
	}
	var err error
	object.Object, err = runtime.DefaultUnstructuredConverter.ToUnstructured(&schema)
	return err
}

// rolesAlone returns the objects without the admission policy and the flow schema.
func rolesAlone(objects []*unstructured.Unstructured) []*unstructured.Unstructured {
	return slices.DeleteFunc(slices.Clone(objects), func(object *unstructured.Unstructured) bool {
		switch object.GetKind() {
		case policyBinding, "ValidatingAdmissionPolicy", flowSchema:
			return true
		}
		return false
	})
}
