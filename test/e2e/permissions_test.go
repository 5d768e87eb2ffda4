// SPDX-License-Identifier: Apache-2.0

// Each shipped permission is needed, and no other.

package e2e

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"example.com/sample-controller/test/footest"
)

// needs returns an entry for each verb of each rule in the shipped roles that are bound to
// the controller's account: the first step that fails without it.
func needs() map[string]string {
	steps := map[string]string{
		"sample-controller: create events":                            stepLeaderEvent,
		"sample-controller: patch events":                             stepRepeatedEvent,
		"sample-controller-election: create leases":                   stepStart,
		"sample-controller-election: get leases":                      stepStart,
		"sample-controller-election: update leases":                   stepRenewal,
		"sample-controller-election: watch leases":                    stepHandOver,
		"sample-controller-metrics-auth: create tokenreviews":         stepMetrics,
		"sample-controller-metrics-auth: create subjectaccessreviews": stepMetrics,
		// Only in the namespaced variant.
		"sample-controller-election-events: create events": stepLeaderEvent,
	}
	for _, owner := range footest.Owners {
		for right, step := range map[string]string{
			"list %s": stepStart, "watch %s": stepStart, "get %s": stepRepair, "update %s/status": stepStatus, "update %s/finalizers": stepCreate,
		} {
			steps["sample-controller: "+fmt.Sprintf(right, owner.Resource.Resource)] = step
		}
	}
	_ = forEachKind(func(kind *footest.Kind) error {
		for verb, step := range map[string]string{
			"list": stepStart, "watch": stepStart, "get": stepRepair, "create": stepCreate, "patch": stepRepair, "delete": stepAdoption,
		} {
			steps["sample-controller: "+verb+" "+kind.Resource.Resource] = step
		}
		return nil
	})
	return steps
}

// TestEachPermissionIsNeeded checks that the shipped permissions are sufficient for all
// steps, and that without any one of them the API server refuses exactly that and a step
// fails. If nothing is refused, the permission should not be granted.
func TestEachPermissionIsNeeded(t *testing.T) {
	t.Parallel()
	needsNoOtherController(t)
	cases := permissionCases(t)
	for i := range atOnce {
		t.Run(fmt.Sprintf("%d of %d", i+1, atOnce), func(t *testing.T) {
			t.Parallel()
			for j := i; j < len(cases); j += atOnce {
				t.Run(cases[j].name, cases[j].check)
			}
		})
	}
}

// atOnce is the number of parallel cases. Each starts a controller.
const atOnce = 4

// permissionCase is a controller with some permissions, and a check of what it can do.
type permissionCase struct {
	name  string
	check func(t *testing.T)
}

// permissionCases returns a case for each shipped variant, and one without each
// permission. The variants have most permissions in common.
func permissionCases(t *testing.T) []permissionCase {
	t.Helper()
	everywhere, err := shippedPermissions()
	if err != nil {
		t.Fatal(err)
	}
	var cases []permissionCase
	needs, seen := needs(), map[string]bool{}
	for _, variant := range []struct {
		name    string
		objects []*unstructured.Unstructured
	}{{"all namespaces", everywhere}, {"one namespace", namespacedPermissions(t)}} {
		cases = append(cases, permissionCase{"with all permissions in " + variant.name, func(t *testing.T) {
			newTrial(t, variant.objects).expectAllSteps(t)
		}})
		grants, err := grantsOf(variant.objects)
		if err != nil {
			t.Fatal(err)
		}
		for _, permission := range grants {
			name := permission.roleName() + ": " + permission.String()
			if seen[name] {
				continue
			}
			seen[name] = true
			cases = append(cases, permissionCase{"without " + name, func(t *testing.T) {
				step, known := needs[name]
				if !known {
					t.Fatal("The permission is shipped, but needs does not return it")
				}
				newTrial(t, without(t, variant.objects, permission)).expectRefusal(t, step, permission)
			}})
		}
	}
	for name := range needs {
		if !seen[name] {
			t.Errorf("%s: needs returns a permission that is not shipped", name)
		}
	}
	return cases
}

// roleName returns the role's name without its kind, which differs between the variants.
func (g grant) roleName() string {
	_, name, _ := strings.Cut(g.role, " ")
	return name
}

// namespacedPermissions returns the objects of the account in the namespaced variant,
// rendered by kubectl kustomize.
func namespacedPermissions(t *testing.T) []*unstructured.Unstructured {
	t.Helper()
	out, err := kubectlCommand(t, []string{"kustomize", moduleRoot + "/artifacts/deploy/namespaced"}).Output()
	if err != nil {
		t.Fatal(err)
	}
	objects, err := parseObjects(out)
	if err != nil {
		t.Fatal(err)
	}
	ofUsers := func(o *unstructured.Unstructured) bool {
		return strings.HasPrefix(o.GetName(), "sample-controller-foo-")
	}
	return slices.DeleteFunc(objects, func(o *unstructured.Unstructured) bool {
		switch o.GetKind() {
		case "ServiceAccount", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding":
			return ofUsers(o)
		}
		return true
	})
}

// without returns a copy of the objects that lacks one permission.
func without(t *testing.T, objects []*unstructured.Unstructured, missing grant) []*unstructured.Unstructured {
	t.Helper()
	var copies []*unstructured.Unstructured
	for _, object := range objects {
		object = object.DeepCopy()
		copies = append(copies, object)
		role := object.GetKind() + " " + object.GetName()
		if role != missing.role {
			continue
		}
		var rules []any
		for _, g := range rulesOf(t, object) {
			if g == missing {
				continue
			}
			rule, err := runtime.DefaultUnstructuredConverter.ToUnstructured(g.rule())
			if err != nil {
				t.Fatal(err)
			}
			rules = append(rules, rule)
		}
		if err := unstructured.SetNestedSlice(object.Object, rules, "rules"); err != nil {
			t.Fatal(err)
		}
	}
	return copies
}

func rulesOf(t *testing.T, role *unstructured.Unstructured) []grant {
	t.Helper()
	grants, err := grantsOfRole(role)
	if err != nil {
		t.Fatal(err)
	}
	return grants
}

// rule returns a rule that grants only g.
func (g grant) rule() *rbacv1.PolicyRule {
	rule := &rbacv1.PolicyRule{APIGroups: []string{g.group}, Resources: []string{g.path()}, Verbs: []string{g.verb}}
	if g.name != "" {
		rule.ResourceNames = []string{g.name}
	}
	return rule
}

// expectAllSteps checks that all steps succeed and that nothing is refused.
func (tr *trial) expectAllSteps(t *testing.T) {
	t.Helper()
	for _, s := range steps {
		s.begin(t, tr)
		tr.awaitEither(t, s, func() bool { return false })
	}
	if refused := tr.refused(); len(refused) > 0 {
		t.Errorf("The API server refused %v", refused)
	}
}

// expectRefusal checks that the controller reaches a step, that the API server then
// refuses a request for lack of one permission, and nothing else, and that the step
// fails. It never waits for something that does not happen.
func (tr *trial) expectRefusal(t *testing.T, fails string, missing grant) {
	t.Helper()
	isRefused := func() bool { return slices.Contains(tr.refused(), missing.asked()) }
	for _, s := range steps {
		s.begin(t, tr)
		if !tr.awaitEither(t, s, func() bool { return fails == s.name && isRefused() }) {
			if refused := tr.refused(); len(refused) != 1 {
				t.Errorf("The API server refused %v, want only %s", refused, missing.asked())
			}
			return
		}
		if fails == s.name {
			t.Fatalf("%s: this step succeeds without the permission", s.name)
		}
	}
	t.Error("All steps succeed and nothing is refused, so the permission is not needed")
}

// awaitEither returns true when a step has succeeded, or false when other returns true.
func (tr *trial) awaitEither(t *testing.T, s step, other func() bool) bool {
	t.Helper()
	deadline := time.Now().Add(cluster.patience())
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for {
		err := s.outcome(t, tr)
		switch {
		case err == nil:
			return true
		case other():
			return false
		case time.Now().After(deadline):
			t.Fatalf("%s: %v; the API server refused %v", s.name, err, tr.refused())
		}
		<-ticker.C
	}
}

// refusal matches the API server's refusals in a log. The admission plugin for owner
// references has messages of its own: who adopts an object must be allowed to delete it.
var (
	refusal         = regexp.MustCompile(`cannot (\w+) resource "([^"]+)" in API group "([^"]*)"`)
	adoption        = regexp.MustCompile(`(\w+)\.?([\w.]*) "[^"]+" is forbidden: cannot set an ownerRef on a resource you can't delete`)
	finalizersWords = regexp.MustCompile(`creating (\w+) "[^\n]*cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on`)
)

// refused returns the requests that the API server refused, each once.
func (tr *trial) refused() []string {
	var all []string
	for _, p := range tr.controllers {
		text := strings.ReplaceAll(p.log.String(), `\`, "") // the log escapes quotes
		for _, words := range refusal.FindAllStringSubmatch(text, -1) {
			all = append(all, fmt.Sprintf("%s %s/%s", words[1], words[3], words[2]))
		}
		for _, words := range adoption.FindAllStringSubmatch(text, -1) {
			all = append(all, fmt.Sprintf("delete %s/%s", words[2], words[1]))
		}
		for _, words := range finalizersWords.FindAllStringSubmatch(text, -1) {
			_ = forEachKind(func(kind *footest.Kind) error {
				if kind.Kind == words[1] {
					all = append(all, "update samplecontroller.k8s.io/"+kind.Owner().Resource.Resource+"/finalizers")
				}
				return nil
			})
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// asked returns a permission in the form of refused.
func (g grant) asked() string {
	return fmt.Sprintf("%s %s/%s", g.verb, g.group, g.path())
}
