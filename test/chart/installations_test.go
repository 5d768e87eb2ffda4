// SPDX-License-Identifier: Apache-2.0

// Several installations in one namespace.

package test

import (
	"slices"
	"strings"
	"testing"
)

// installation is what must not concern another installation in the same namespace.
type installation struct {
	lease string
	// leases are the names of the Leases that its permissions cover.
	leases []any
	pods   mapping
	// selectors are those of its Pods, by kind.
	selectors map[string]mapping
}

// TestInstallationsInOneNamespaceAreSeparate checks that none competes for the Lease of
// another, and none's objects select the Pods of another: two PodDisruptionBudgets that
// select a Pod prevent its eviction.
func TestInstallationsInOneNamespaceAreSeparate(t *testing.T) {
	const resources = "resources: [BASE/deploy/namespaced]\n"
	for way, pair := range map[string][2]map[string]mapping{
		"a prefix or none":     {kustomize(t, overlay(t, resources)), kustomize(t, overlay(t, resources+"namePrefix: a-"))},
		"two prefixes":         {kustomize(t, overlay(t, resources+"namePrefix: a-")), kustomize(t, overlay(t, resources+"namePrefix: b-"))},
		"a prefix or suffix":   {kustomize(t, overlay(t, resources+"namePrefix: a-")), kustomize(t, overlay(t, resources+"nameSuffix: -b"))},
		"two releases by Helm": {template(t, "a", program, "watchNamespace: red"), template(t, "b", program, "watchNamespace: blue")},
	} {
		t.Run(way, func(t *testing.T) {
			one, two := readInstallation(t, pair[0]), readInstallation(t, pair[1])
			if one.lease == two.lease {
				t.Errorf("Both elect a leader by the Lease %s", one.lease)
			}
			for _, i := range []installation{one, two} {
				if len(i.leases) != 1 || i.leases[0] != i.lease {
					t.Errorf("The permissions cover the Leases %v, not %s", i.leases, i.lease)
				}
				for kind, selector := range i.selectors {
					if first, second := selects(selector, one.pods), selects(selector, two.pods); first == second {
						t.Errorf("The %s with the selector %v selects the Pods of both, or of none", kind, selector)
					}
				}
			}
		})
	}
}

func readInstallation(t *testing.T, objects map[string]mapping) installation {
	t.Helper()
	args := container(t, objects)["args"].([]any)
	made := installation{lease: args[slices.Index(args, any("-leader-elect-resource-name"))+1].(string), selectors: map[string]mapping{}}
	for id, object := range objects {
		kind, _, _ := strings.Cut(id, " ")
		switch kind {
		case "Deployment":
			made.pods = at(object, "spec", "template", "metadata", "labels").(mapping)
			spread := at(object, "spec", "template", "spec", "topologySpreadConstraints").([]any)[0]
			// Of other installations' Pods, matchLabelKeys distinguishes them.
			if selector := at(spread, "labelSelector", "matchLabels").(mapping); !selects(selector, made.pods) {
				t.Errorf("The Pods are not spread by their labels, but by %v", selector)
			}
			fallthrough
		case "PodDisruptionBudget":
			made.selectors[kind] = at(object, "spec", "selector", "matchLabels").(mapping)
		case "NetworkPolicy":
			made.selectors[kind] = at(object, "spec", "podSelector", "matchLabels").(mapping)
		case "Service":
			made.selectors[kind] = at(object, "spec", "selector").(mapping)
		case "Role":
			for _, rule := range at(object, "rules").([]any) {
				names, _ := at(rule, "resourceNames").([]any)
				made.leases = append(made.leases, names...)
			}
		}
	}
	if len(made.selectors) != 4 {
		t.Fatalf("There are not 4 selectors of Pods: %v", made.selectors)
	}
	return made
}

// selects reports whether a selector by labels matches.
func selects(selector, labels mapping) bool {
	for key, value := range selector {
		if labels[key] != value {
			return false
		}
	}
	return len(selector) > 0
}
