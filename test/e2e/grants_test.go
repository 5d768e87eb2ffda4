// SPDX-License-Identifier: Apache-2.0

// Permissions: the shipped ones, and what they grant, verb by verb.

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
	"strings"
	"testing"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// grant is the permission for one verb on one resource.
type grant struct {
	// role is the kind and name of the role that grants it.
	role string
	// namespace is empty for all namespaces, and for cluster-scoped resources.
	namespace                                string
	group, resource, subresource, name, verb string
}

func (g grant) String() string { return g.verb + " " + g.path() }

// path returns the resource with the subresource, if any.
func (g grant) path() string {
	if g.subresource != "" {
		return g.resource + "/" + g.subresource
	}
	return g.resource
}

// grantsOf returns the permissions of the bound roles among objects.
func grantsOf(objects []*unstructured.Unstructured) ([]grant, error) {
	bound := map[string]bool{}
	for _, object := range objects {
		if strings.HasSuffix(object.GetKind(), "Binding") {
			kind, _, _ := unstructured.NestedString(object.Object, "roleRef", "kind")
			name, _, _ := unstructured.NestedString(object.Object, "roleRef", "name")
			bound[kind+" "+name] = true
		}
	}
	var grants []grant
	for _, object := range objects {
		role := object.GetKind() + " " + object.GetName()
		if !bound[role] {
			continue
		}
		more, err := grantsOfRole(object)
		if err != nil {
			return nil, err
		}
		grants = append(grants, more...)
	}
	if len(grants) == 0 {
		return nil, errors.New("the manifests grant no permissions")
	}
	return grants, nil
}

// grantsOfRole returns the permissions of a Role or ClusterRole, whose rules have the
// same type.
func grantsOfRole(object *unstructured.Unstructured) ([]grant, error) {
	role := object.GetKind() + " " + object.GetName()
	var content rbacv1.ClusterRole
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &content); err != nil {
		return nil, fmt.Errorf("%s: %w", role, err)
	}
	var grants []grant
	for _, rule := range content.Rules {
		grants = append(grants, grantsOfRule(role, object.GetNamespace(), rule)...)
	}
	return grants, nil
}

func grantsOfRule(role, namespace string, rule rbacv1.PolicyRule) []grant {
	names := rule.ResourceNames
	if len(names) == 0 {
		names = []string{""}
	}
	var grants []grant
	for _, url := range rule.NonResourceURLs {
		for _, verb := range rule.Verbs {
			grants = append(grants, grant{role: role, resource: url, verb: verb})
		}
	}
	for _, group := range rule.APIGroups {
		for _, path := range rule.Resources {
			resource, subresource, _ := strings.Cut(path, "/")
			for _, name := range names {
				for _, verb := range rule.Verbs {
					grants = append(grants, grant{
						role: role, namespace: namespace,
						group: group, resource: resource, subresource: subresource, name: name, verb: verb,
					})
				}
			}
		}
	}
	return grants
}

// TestTheManualSaysWhatAThiefCanDo compares the rows of the manual with the permissions of
// the controller's account and with the flow schema, verb by verb.
func TestTheManualSaysWhatAThiefCanDo(t *testing.T) {
	t.Parallel()
	manual, err := os.ReadFile(filepath.Join(moduleRoot, "docs", "operations.md"))
	if err != nil {
		t.Skipf("the documents are missing: %v", err)
	}
	_, table, _ := strings.Cut(string(manual), "| verbs | on | so they can |\n|---|---|---|\n")
	table, _, _ = strings.Cut(table, "\n\n")
	said := map[string]bool{}
	for row := range strings.SplitSeq(strings.ReplaceAll(table, "`", ""), "\n") {
		cells := strings.Split(strings.Trim(row, "| "), " | ")
		if len(cells) != 3 {
			t.Fatalf("docs/operations.md has the row %q", row)
		}
		for verb := range strings.SplitSeq(cells[0], ", ") {
			said[verb+" "+cells[1]] = true
		}
	}
	granted := map[string]bool{}
	for _, folder := range []string{deployFolder, deployFolder + "/namespaced"} {
		for _, right := range rightsIn(t, objectsOf(t, folder)) {
			granted[right] = true
			if !said[right] {
				t.Errorf("docs/operations.md does not say what a thief can do by the permission to %s (%s)", right, folder)
			}
		}
	}
	for right := range said {
		if !granted[right] {
			t.Errorf("docs/operations.md says what a thief can do by the permission to %s, which the manifests do not grant", right)
		}
	}
}

// rightsIn returns what the roles of objects grant and the flow schemas prefer, in the
// words of the manual.
func rightsIn(t *testing.T, objects []*unstructured.Unstructured) []string {
	t.Helper()
	grants, err := grantsOf(objects)
	if err != nil {
		t.Fatal(err)
	}
	var rights []string
	for _, grant := range grants {
		right := grant.String()
		if grant.name != "" {
			right += " named " + grant.name
		}
		rights = append(rights, right)
	}
	for _, object := range objects {
		if object.GetKind() != flowSchema {
			continue
		}
		var schema flowcontrolv1.FlowSchema
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &schema); err != nil {
			t.Fatal(err)
		}
		for _, rule := range schema.Spec.Rules {
			for _, requests := range rule.ResourceRules {
				for _, resource := range requests.Resources {
					for _, verb := range requests.Verbs {
						rights = append(rights, verb+" "+resource+" by the FlowSchema")
					}
				}
			}
		}
	}
	return rights
}

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
