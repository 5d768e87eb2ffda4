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

// TestEachPermissionIsNeeded checks that the shipped permissions are sufficient for all
// steps, and that without any one of them the API server refuses exactly that, before a step
// has succeeded. If nothing is refused, the permission should not be granted.
func TestEachPermissionIsNeeded(t *testing.T) {
	t.Parallel()
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
	seen := map[string]bool{}
	for _, variant := range []struct {
		name, folder string
	}{{"all namespaces", deployFolder + "/permissions"}, {"one namespace", namespacedFolder}} {
		objects, err := cluster.accountIn(t.Context(), variant.folder)
		footest.Must(t, err)
		objects = rolesAlone(objects)
		cases = append(cases, permissionCase{"with all permissions in " + variant.name, func(t *testing.T) {
			tr := newTrial(t, objects)
			if tr.run(t, "nothing"); len(tr.refused()) > 0 {
				t.Errorf("The API server refused %v", tr.refused())
			}
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
				tr := newTrial(t, without(t, objects, permission))
				held := tr.run(t, permission.asked())
				if held < 0 {
					t.Error("All steps succeed and nothing is refused, so the permission is not needed")
				}
				if refused := tr.refused(); !slices.Equal(refused, []string{permission.asked()}) {
					t.Errorf("The API server refused %v, want only %s", refused, permission.asked())
				}
				if held == 0 {
					tr.expectStartWith(t, permission, objects)
				}
			}})
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
			rule := rbacv1.PolicyRule{APIGroups: []string{g.Group}, Resources: []string{g.path()}, Verbs: []string{g.Verb}}
			if g.Name != "" {
				rule.ResourceNames = []string{g.Name}
			}
			untyped, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&rule)
			footest.Must(t, err)
			rules = append(rules, untyped)
		}
		footest.Must(t, unstructured.SetNestedSlice(object.Object, rules, "rules"))
	}
	return copies
}

// run takes the controller through the steps until the API server has refused a permission and
// the step has not succeeded. It returns the number of that step, or -1 if all steps have
// succeeded. It never waits for something that does not happen.
func (tr *trial) run(t *testing.T, missing string) (held int) {
	t.Helper()
	held = -1
	for i, s := range steps {
		s.begin(t, tr)
		awaitThat(t, s.name, func(context.Context) error {
			err := s.outcome(t, tr)
			refused := tr.refused()
			switch {
			case err == nil:
				return nil
			case slices.Contains(refused, missing):
				held = i
				return nil
			}
			return fmt.Errorf("%w; the API server refused %v", err, refused)
		})
		if held >= 0 {
			break
		}
	}
	return held
}

// expectStartWith gives the account the missing permission, and checks that the
// controller, which has waited for it, starts. If an informer needs the permission, the log
// has said so once.
func (tr *trial) expectStartWith(t *testing.T, missing grant, objects manifests) {
	t.Helper()
	p := tr.controllers[0]
	if missing.Resource != "leases" {
		says := "the permission to %s.%s in the namespace %s is missing"
		p.awaitLog(t, fmt.Sprintf(says, missing, missing.Group, tr.foos.name), 1)
	}
	_, err := tr.home.apply(t.Context(), t.TempDir(), objects, tr.foos.name)
	footest.Must(t, err)
	p.awaitLog(t, working, 1)
	if p.log.Count("is missing") > 1 || p.log.Count("Failed to watch") > 0 {
		t.Errorf("The log has the missing permission more than once, or something of informers:\n%s", p.log)
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
	return fmt.Sprintf("%s %s/%s", g.Verb, g.Group, g.path())
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
		if grant.Name != "" {
			right += " named " + grant.Name
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
				for _, verb := range requests.Verbs {
					rights = append(rights, verb+" "+strings.Join(requests.Resources, " and ")+" by the FlowSchema")
				}
			}
		}
	}
	return rights
}
