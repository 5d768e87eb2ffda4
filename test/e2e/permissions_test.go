/*
Copyright The Sample Controller Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

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
)

// need is what goes wrong without a right.
type need struct {
	// step is the first that fails; empty where all of them still come to
	// pass, but late: then it is the log that tells.
	step string
	// environment is the controller's, where it takes another for the right
	// to be used.
	environment []string
}

// needs has an entry for each verb of each rule that is shipped, in the roles
// that are bound to the controller's account.
var needs = map[string]need{
	"sample-controller: list foos":              {step: stepStart},
	"sample-controller: watch foos":             {}, // lists them again and again, ever more rarely
	"sample-controller: get foos":               {step: stepScale},
	"sample-controller: update foos/status":     {step: stepStatus},
	"sample-controller: update foos/finalizers": {step: stepCreate},
	// The API server of this test can send the first list as a stream, which takes the right to watch. Others can't.
	"sample-controller: list deployments":                         {step: stepStart, environment: []string{"KUBE_FEATURE_WatchListClient=false"}},
	"sample-controller: watch deployments":                        {},
	"sample-controller: get deployments":                          {step: stepScale},
	"sample-controller: create deployments":                       {step: stepCreate},
	"sample-controller: update deployments":                       {step: stepScale},
	"sample-controller: delete deployments":                       {step: stepRename},
	"sample-controller: create events":                            {step: stepLeaderEvent},
	"sample-controller: patch events":                             {step: stepRepeatedEvent},
	"sample-controller-election: create leases":                   {step: stepStart},
	"sample-controller-election: get leases":                      {step: stepStart},
	"sample-controller-election: update leases":                   {step: stepRenewal},
	"sample-controller-election: watch leases":                    {step: stepHandOver},
	"sample-controller-metrics-auth: create tokenreviews":         {step: stepMetrics},
	"sample-controller-metrics-auth: create subjectaccessreviews": {step: stepMetrics},
	// In the namespaced variant alone.
	"sample-controller-election-events: create events": {step: stepLeaderEvent},
}

// The shipped rights are enough for all that the controller does, and without
// any one of them something fails, by the API server's refusal of exactly that.
// A right without which nothing is refused is one too many.
func TestEachRightIsNeeded(t *testing.T) {
	t.Parallel()
	needsToBeAlone(t)
	rows := rightsRows(t)
	for i := range atOnce {
		t.Run(fmt.Sprintf("%d of %d", i+1, atOnce), func(t *testing.T) {
			t.Parallel()
			for j := i; j < len(rows); j += atOnce {
				t.Run(rows[j].name, rows[j].check)
			}
		})
	}
}

// atOnce is how many rows are tried at the same time: each is a controller that
// starts, and other tests go by the clock.
const atOnce = 4

// rightsRow is a controller with some rights, and what is to come of it.
type rightsRow struct {
	name  string
	check func(t *testing.T)
}

// rightsRows returns a row for each shipped variant, and one for each right.
// The variants have most of them in common.
func rightsRows(t *testing.T) []rightsRow {
	t.Helper()
	everywhere, err := shippedRights()
	if err != nil {
		t.Fatal(err)
	}
	var rows []rightsRow
	seen := map[string]bool{}
	for _, variant := range []struct {
		name    string
		objects []*unstructured.Unstructured
	}{{"all namespaces", everywhere}, {"one namespace", namespacedRights(t)}} {
		rows = append(rows, rightsRow{"with all rights in " + variant.name, func(t *testing.T) {
			newTrial(t, variant.objects, nil).expectAllSteps(t)
		}})
		grants, err := grantsOf(variant.objects)
		if err != nil {
			t.Fatal(err)
		}
		for _, right := range grants {
			name := right.roleName() + ": " + right.String()
			if seen[name] {
				continue
			}
			seen[name] = true
			rows = append(rows, rightsRow{"without " + name, func(t *testing.T) {
				need, known := needs[name]
				if !known {
					t.Fatal("The right is shipped, and the table does not say what for")
				}
				newTrial(t, without(t, variant.objects, right), need.environment).expectRefusal(t, need.step, right)
			}})
		}
	}
	for name := range needs {
		if !seen[name] {
			t.Errorf("%s: the table has a right that is not shipped", name)
		}
	}
	return rows
}

// roleName is the name without the kind, which differs between the variants.
func (g grant) roleName() string {
	_, name, _ := strings.Cut(g.role, " ")
	return name
}

// namespacedRights returns the objects of the namespaced variant that make the
// account. It takes kustomize, in the form of kubectl.
func namespacedRights(t *testing.T) []*unstructured.Unstructured {
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

// without returns a copy of the objects in which one right is not granted.
func without(t *testing.T, objects []*unstructured.Unstructured, right grant) []*unstructured.Unstructured {
	t.Helper()
	var copies []*unstructured.Unstructured
	for _, object := range objects {
		object = object.DeepCopy()
		copies = append(copies, object)
		role := object.GetKind() + " " + object.GetName()
		if role != right.role {
			continue
		}
		var rules []any
		for _, g := range rulesOf(t, object) {
			if g == right {
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

// rule grants what g says, and no more.
func (g grant) rule() *rbacv1.PolicyRule {
	rule := &rbacv1.PolicyRule{APIGroups: []string{g.group}, Resources: []string{g.path()}, Verbs: []string{g.verb}}
	if g.name != "" {
		rule.ResourceNames = []string{g.name}
	}
	return rule
}

// expectAllSteps checks that the controller can do all that it has to.
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

// expectRefusal checks that the controller gets as far as to a step, that the
// API server then refuses what takes a right, and nothing else, and that the
// step fails; or, where no step is named, that the refusal is told at any time.
// None of this has to be waited for in vain.
func (tr *trial) expectRefusal(t *testing.T, fails string, right grant) {
	t.Helper()
	told := func() bool { return slices.Contains(tr.refused(), right.asked()) }
	for _, s := range steps {
		s.begin(t, tr)
		looked := fails == "" || fails == s.name
		if fails == "" && told() || !tr.awaitEither(t, s, func() bool { return looked && told() }) {
			if refused := tr.refused(); len(refused) != 1 {
				t.Errorf("The API server refused %v, want nothing but %s", refused, right.asked())
			}
			return
		}
		if fails == s.name {
			t.Fatalf("%s: this comes to pass without the right", s.name)
		}
	}
	t.Error("Everything comes to pass, and nothing is refused: the right is one too many")
}

// awaitEither waits until a step has come to pass, and then returns true, or
// another thing has happened, and returns false.
func (tr *trial) awaitEither(t *testing.T, s step, other func() bool) bool {
	t.Helper()
	deadline := time.Now().Add(cluster.patience())
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for {
		objection := s.outcome(t, tr)
		switch {
		case objection == nil:
			return true
		case other():
			return false
		case time.Now().After(deadline):
			t.Fatalf("%s: %v; refused was %v", s.name, objection, tr.refused())
		}
		<-ticker.C
	}
}

// refusal finds in a log what the API server refused; the plugin that guards
// owner references has words of its own.
var (
	refusal         = regexp.MustCompile(`cannot (\w+) resource "([^"]+)" in API group "([^"]*)"`)
	finalizersWords = "cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on"
)

// refused lists what the API server has refused the controllers, each once.
func (tr *trial) refused() []string {
	var all []string
	for _, p := range tr.controllers {
		text := strings.ReplaceAll(p.log.String(), `\`, "") // the log quotes
		for _, words := range refusal.FindAllStringSubmatch(text, -1) {
			all = append(all, fmt.Sprintf("%s %s/%s", words[1], words[3], words[2]))
		}
		if strings.Contains(text, finalizersWords) {
			all = append(all, "update samplecontroller.k8s.io/foos/finalizers")
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// asked is a right as refused names it.
func (g grant) asked() string {
	return fmt.Sprintf("%s %s/%s", g.verb, g.group, g.path())
}
