// SPDX-License-Identifier: Apache-2.0

// Tests of Test and Golden, with a kind of which the package knows nothing.

package reconciletest

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	"example.com/sample-controller/pkg/reconcile/plan"
)

// TestMain replaces the handlers of errors that client-go can't return: see traceErrors.
func TestMain(m *testing.M) {
	utilruntime.ErrorHandlers = nil
	os.Exit(m.Run())
}

func controllerOfPages(d defect) Controller[*Page] {
	return Controller[*Page]{
		Kind:    declaredPages(),
		Example: &Page{Spec: PageSpec{Name: "web", Text: "one"}},
		Edits: []func(*Page){
			func(page *Page) { page.Spec.Text = "two" },
			func(page *Page) { page.Spec.Name = "api" },
		},
		Start: startPages(plainPages, d), NoEvents: true, Every: 25,
	}
}

func TestPages(t *testing.T)       { Test(t, controllerOfPages(defect{})) }
func TestPagesRandom(t *testing.T) { TestRandom(t, controllerOfPages(defect{})) }

func TestBrokenControllersOfAnyKindAreDetected(t *testing.T) {
	for name, row := range map[string]struct {
		defect    defect
		steps     []step
		violation string
	}{
		"forgets the precondition of a deletion": {defect{noPrecondition: true}, []step{"create a web", "rename a api"}, "without the UID of what it deletes"},
		"forgets the precondition of an update":  {defect{noPrecondition: true}, []step{"create a web", "drift ConfigMap/web"}, "without the resourceVersion that it was made from"},
		"does not try again":                     {defect{noRequeue: true}, []step{"create a web"}, "at rest: Page a has no ConfigMap web"},
		"writes at each resync":                  {defect{rewrites: true}, []step{"create a web"}, "the calls do not end: ["},
		"trusts a stale cache":                   {defect{trustsCache: true}, []step{"create a web", "scale a 2"}, "although its own write"},
	} {
		t.Run(name, func(t *testing.T) {
			c := controllerOfPages(row.defect)
			owner, err := derive(c)
			if err != nil {
				t.Fatal(err)
			}
			w := workload{name: "some", steps: row.steps}
			run, baseline := w.runWithoutFaults(t, owner, c.Start)
			violations := run.violations
			isDetected := func() bool {
				return slices.ContainsFunc(violations, func(text string) bool { return strings.Contains(text, row.violation) })
			}
			for _, one := range injectionsAt(owner, baseline.points) {
				if isDetected() {
					break
				}
				violations = append(violations, w.runWithFaults(t, owner, c.Start, baseline, one).violations...)
			}
			if !isDetected() {
				t.Errorf("no violation contains %q:\n%s", row.violation, strings.Join(violations, "\n"))
			}
		})
	}
}

func TestWrongControllersAreRefused(t *testing.T) {
	for says, change := range map[string]func(c *Controller[*Page]){
		"needs a Kind":                    func(c *Controller[*Page]) { c.Example = nil },
		"at least one of Edits":           func(c *Controller[*Page]) { c.Edits = nil },
		"edit 2 does not change the spec": func(c *Controller[*Page]) { c.Edits[1] = func(*Page) {} },
		"wants no ConfigMap":              func(c *Controller[*Page]) { c.Kind.Children[0].Wanted = func(plan.Owner) bool { return false } },
		`the row of the kind "ConfigMap" la`: func(c *Controller[*Page]) {
			c.Kind.Children[0] = plan.Row[*Page, *corev1.ConfigMap]{Kind: "ConfigMap"}.Of(c.Kind)
		},
	} {
		c := controllerOfPages(defect{})
		change(&c)
		if _, err := derive(c); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("it says %v, want %q", err, says)
		}
	}
}

func TestDriftIsInEachOwnedField(t *testing.T) {
	owner, err := derive(controllerOfPages(defect{}))
	if err != nil {
		t.Fatal(err)
	}
	page := owner.Asking("a", "web", 1)
	for _, kind := range owner.Kinds {
		child := kind.Stored(page)
		kind.Drift(child, nil)
		if kind.Differs(child, page) == "" || kind.DescribeTaken(kind.Stored(page), child, nil) != "" {
			t.Errorf("%v has drifted by %q, and in fields of others by %q", child, kind.Differs(child, page), kind.DescribeTaken(kind.Stored(page), child, nil))
		}
	}
}

func TestGoldenFilesOfPages(t *testing.T) { Golden[*Page](t, declaredPages(), "testdata") }

// Decisions about an object that isn't the program's own read what Keep copies, and it owns none of its own fields.
func TestGoldenFilesOfOthers(t *testing.T) {
	kind := &plan.Kind{Name: "Namespace", Resource: corev1.SchemeGroupVersion.WithResource("namespaces"), ClusterScoped: true, Group: "example.com"}
	kind.Keep = func(kept, found plan.Object) { kept.SetLabels(map[string]string{"team": found.GetLabels()["team"]}) }
	sets := plan.Row[*corev1.Namespace, *corev1.Namespace]{Kind: kind.Name, Resource: kind.Resource}
	sets.SetOwned = func(namespace, of *corev1.Namespace, _ *plan.View) {
		namespace.Annotations = map[string]string{"of": of.Labels["team"] + of.Labels["other"]}
	}
	sets.Keep = func(_, _ *corev1.Namespace) {}
	owns := plan.Row[*corev1.Namespace, *corev1.ConfigMap]{Kind: "ConfigMap", Resource: corev1.SchemeGroupVersion.WithResource("configmaps")}
	owns.Name, owns.Namespace = (*corev1.Namespace).GetName, (*corev1.Namespace).GetName
	owns.SetOwned, owns.Keep = func(*corev1.ConfigMap, *corev1.Namespace, *plan.View) {}, func(_, _ *corev1.ConfigMap) {}
	kind.Children = []*plan.ChildKind{sets.OfItself(kind), owns.Of(kind)}
	file := filepath.Join(t.TempDir(), "a.yaml")
	const namespace = "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop, uid: x, labels: {team: a, other: b}}"
	if err := errors.Join(os.WriteFile(file, []byte(namespace), 0o600), compareChildren[*corev1.Namespace](kind, file, true)); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(strings.TrimSuffix(file, ".yaml") + childrenSuffix)
	const want = "apiVersion: v1\nkind: Namespace\nmetadata:\n  annotations:\n    of: a\n  name: shop\nspec: {}\n---\napiVersion: v1\nkind: ConfigMap\n" +
		"metadata:\n  name: shop\n  namespace: shop\n  ownerReferences:\n  - apiVersion: v1\n    blockOwnerDeletion: true\n    controller: true\n" +
		"    kind: Namespace\n    name: shop\n    uid: x\n"
	if err != nil || string(got) != want {
		t.Errorf("it has\n%s%v", got, err)
	}
}

func TestWrongGoldenFilesAreRefused(t *testing.T) {
	const head = "apiVersion: example.com/v1\nkind: Page\nmetadata: {name: a}\n"
	for name, row := range map[string]struct{ owner, children, says string }{
		"an unknown field":        {head + "spec: {name: web, texts: one}", "", `unknown field "spec.texts"`},
		"a field twice":           {head + "spec: {name: web, name: api}", "", `"name" already set`},
		"a field of another type": {head + "spec: {name: 7}", "", "it is no Page"},
		"another kind":            {"apiVersion: v1\nkind: Pod", "", "it has the kind Pod of v1, want Page of example.com/v1"},
		"no name":                 {"apiVersion: example.com/v1\nkind: Page", "", "has no metadata.name"},
		"no children yet":         {head + "spec: {name: web}", "", "run the test with -update"},
		"other children":          {head + "spec: {name: web}", "kind: ConfigMap\n", "a.children.yaml differs"},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "a.yaml")
			err := os.WriteFile(file, []byte(row.owner), 0o600)
			if row.children != "" {
				err = errors.Join(err, os.WriteFile(strings.TrimSuffix(file, ".yaml")+childrenSuffix, []byte(row.children), 0o600))
			}
			if err != nil {
				t.Fatal(err)
			}
			if err := compareChildren[*Page](declaredPages(), file, false); err == nil || !strings.Contains(err.Error(), row.says) {
				t.Errorf("it says %v, want %q", err, row.says)
			}
			if isRight := strings.HasPrefix(name, "no children") || row.children != ""; (compareChildren[*Page](declaredPages(), file, true) == nil) != isRight {
				t.Errorf("whether -update writes the children is not %v", isRight)
			} else if isRight && compareChildren[*Page](declaredPages(), file, false) != nil {
				t.Error("the written children differ")
			}
		})
	}
}
