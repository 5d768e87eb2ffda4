// SPDX-License-Identifier: Apache-2.0

// Each shipped permission is needed, no other is, and the manual says what each allows.

package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"

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
			"list %s": stepStart, "watch %s": stepStart, "get %s": stepRepair,
			"update %s/status": stepStatus, "update %s/finalizers": stepCreate,
		} {
			steps["sample-controller: "+fmt.Sprintf(right, owner.Resource.Resource)] = step
		}
	}
	_ = forEachKind(func(kind *footest.Kind) error {
		for verb, step := range map[string]string{
			"list": stepStart, "watch": stepStart, "get": stepRepair,
			"create": stepCreate, "patch": stepRepair, "delete": stepAdoption,
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
	var cases []permissionCase
	needs, seen := needs(), map[string]bool{}
	for _, variant := range []struct {
		name, folder string
	}{{"all namespaces", deployFolder + "/permissions"}, {"one namespace", namespacedFolder}} {
		objects, err := cluster.accountIn(t.Context(), variant.folder)
		footest.Must(t, err)
		objects = rolesAlone(objects)
		cases = append(cases, permissionCase{"with all permissions in " + variant.name, func(t *testing.T) {
			newTrial(t, objects).expectAllSteps(t)
		}})
		grants, err := grantsOf(objects)
		footest.Must(t, err)
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
				tr := newTrial(t, without(t, objects, permission))
				tr.expectRefusal(t, step, permission)
				if step == stepStart {
					tr.expectStartWith(t, permission, objects)
				}
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

// roleName returns the name of a role of accountIn, without its kind, which differs between
// the variants.
func (g grant) roleName() string {
	_, name, _ := strings.Cut(strings.TrimSuffix(g.role, "-"+home), " ")
	return name
}

// rolesAlone returns the objects without the admission policies and the flow schema.
func rolesAlone(objects manifests) manifests {
	return slices.DeleteFunc(objects, func(object *unstructured.Unstructured) bool {
		return sets.New(policyKind, policyBinding, flowSchema).Has(object.GetKind())
	})
}

// without returns a copy of the objects that lacks one permission.
func without(t *testing.T, objects manifests, missing grant) manifests {
	t.Helper()
	var copies manifests
	for _, object := range objects {
		object = object.DeepCopy()
		copies = append(copies, object)
		if object.GetKind()+" "+object.GetName() != missing.role {
			continue
		}
		grants, err := grantsOfRole(object)
		footest.Must(t, err)
		var rules []any
		for _, g := range grants {
			if g == missing {
				continue
			}
			rule := rbacv1.PolicyRule{APIGroups: []string{g.group}, Resources: []string{g.path()}, Verbs: []string{g.verb}}
			if g.name != "" {
				rule.ResourceNames = []string{g.name}
			}
			untyped, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&rule)
			footest.Must(t, err)
			rules = append(rules, untyped)
		}
		footest.Must(t, unstructured.SetNestedSlice(object.Object, rules, "rules"))
	}
	return copies
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

// expectStartWith gives the account the missing permission, and checks that the
// controller, which has waited for it, starts. If an informer needs the permission, the log
// has said so once.
func (tr *trial) expectStartWith(t *testing.T, missing grant, objects manifests) {
	t.Helper()
	p := tr.controllers[0]
	if missing.resource != "leases" {
		says := "the permission to %s.%s in the namespace %s is missing"
		p.awaitLog(t, fmt.Sprintf(says, missing, missing.group, tr.foos.name), 1)
	}
	_, err := tr.home.apply(t.Context(), t.TempDir(), objects, tr.foos.name)
	footest.Must(t, err)
	p.awaitLog(t, working, 1)
	if p.log.Count("is missing") > 1 || p.log.Count("Failed to watch") > 0 {
		t.Errorf("The log has the missing permission more than once, or something of informers:\n%s", p.log)
	}
}

// awaitEither returns true when a step has succeeded, or false when other returns true.
func (tr *trial) awaitEither(t *testing.T, s step, other func() bool) bool {
	t.Helper()
	succeeded := false
	awaitThat(t, s.name, func(context.Context) error {
		err := s.outcome(t, tr)
		if succeeded = err == nil; succeeded || other() {
			return nil
		}
		return fmt.Errorf("%w; the API server refused %v", err, tr.refused())
	})
	return succeeded
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
	said := sets.New[string]()
	for row := range strings.SplitSeq(strings.ReplaceAll(table, "`", ""), "\n") {
		cells := strings.Split(strings.Trim(row, "| "), " | ")
		if len(cells) != 3 {
			t.Fatalf("docs/operations.md has the row %q", row)
		}
		for verb := range strings.SplitSeq(cells[0], ", ") {
			said.Insert(verb + " " + cells[1])
		}
	}
	granted := sets.New(rightsIn(t, deployFolder)...).Insert(rightsIn(t, namespacedFolder)...)
	for _, right := range sets.List(granted.Difference(said)) {
		t.Errorf("docs/operations.md does not say what a thief can do by the permission to %s", right)
	}
	for _, right := range sets.List(said.Difference(granted)) {
		t.Errorf("docs/operations.md says what a thief can do by the permission to %s, which the manifests do not grant", right)
	}
}

// rightsIn returns what the roles of a folder grant and its flow schemas prefer, in the
// words of the manual.
func rightsIn(t *testing.T, folder string) []string {
	t.Helper()
	objects := objectsOf(t, folder)
	grants, err := grantsOf(objects)
	footest.Must(t, err)
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
		footest.Must(t, runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &schema))
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
