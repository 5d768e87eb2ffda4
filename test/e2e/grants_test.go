// SPDX-License-Identifier: Apache-2.0

// Permissions: what the shipped roles grant, verb by verb.

package e2e

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
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
