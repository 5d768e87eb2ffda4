// SPDX-License-Identifier: Apache-2.0

// Permissions: what the role of a controller grants, and what its tables need.

package reconciletest

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"
)

// permission is to do something with the objects of a resource, or only with those of some names.
type permission struct{ group, resource, verb, names string }

// of returns the resource, without the subresource if it is one.
func (p permission) of() string {
	resource, _, _ := strings.Cut(p.resource, "/")
	return p.group + "/" + resource
}

// Permissions fails if the roles in a file do not grant what the kinds of a program need, or if they grant
// anything else on the resources of these kinds, their children and their references. With the flag -update it
// adds what is missing to the first role; it takes nothing away.
func Permissions[K interface{ Rules() []rbacv1.PolicyRule }](t *testing.T, file string, kinds []K) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var needs []rbacv1.PolicyRule
	for _, kind := range kinds {
		needs = append(needs, kind.Rules()...)
	}
	missing, surplus, err := comparePermissions(text, needs)
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	if len(surplus) > 0 {
		t.Errorf("%s grants what no table needs:\n%s", file, rulesText(surplus))
	}
	switch {
	case len(missing) == 0:
	case *update:
		if err := os.WriteFile(file, bytes.Replace(text, []byte("\nrules:\n"), []byte("\nrules:\n"+rulesText(missing)), 1), 0o600); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("%s lacks what the tables need. Run the test with -update to add it:\n%s", file, rulesText(missing))
	}
}

// comparePermissions returns what the roles in a text lack, and what they grant beyond the needs, of the same
// resources.
func comparePermissions(text []byte, needs []rbacv1.PolicyRule) (missing, surplus []permission, err error) {
	var granted []permission
	for document := range strings.SplitSeq("\n"+string(text), "\n---") {
		var role rbacv1.ClusterRole
		if err := yaml.Unmarshal([]byte(document), &role); err != nil {
			return nil, nil, err
		}
		granted = append(granted, permissionsOf(role.Rules)...)
	}
	needed := permissionsOf(needs)
	for _, n := range needed {
		if !slices.Contains(granted, n) {
			missing = append(missing, n)
		}
	}
	for _, g := range granted {
		isOurs := slices.ContainsFunc(needed, func(n permission) bool {
			return (g.group == n.group || g.group == "*") && (g.of() == n.of() || strings.HasPrefix(g.resource, "*"))
		})
		if isOurs && !slices.Contains(needed, g) {
			surplus = append(surplus, g)
		}
	}
	return missing, surplus, nil
}

// permissionsOf returns the permissions of rules, each once. One that holds for some objects only is not the
// same.
func permissionsOf(rules []rbacv1.PolicyRule) (all []permission) {
	for _, rule := range rules {
		of := strings.Join(rule.ResourceNames, ", ")
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					if p := (permission{group, resource, verb, of}); !slices.Contains(all, p) {
						all = append(all, p)
					}
				}
			}
		}
	}
	return all
}

// rulesText returns permissions as rules in YAML, one for each resource.
func rulesText(all []permission) string {
	var text strings.Builder
	for i := 0; i < len(all); {
		first, verbs := all[i], []string{}
		for ; i < len(all) && all[i].group == first.group && all[i].resource == first.resource; i++ {
			verbs = append(verbs, all[i].verb)
		}
		fmt.Fprintf(&text, "- apiGroups: [%s]\n  resources: [%s]\n  verbs: [%s]\n", cmp.Or(first.group, `""`), first.resource, strings.Join(verbs, ", "))
	}
	return text.String()
}
