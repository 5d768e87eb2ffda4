// SPDX-License-Identifier: Apache-2.0

package examples

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// deps returns the packages, or their modules, that packages are built from.
func deps(t *testing.T, format string, packages ...string) []string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", append([]string{"list", "-deps", "-f", format}, packages...)...).Output()
	if err != nil {
		t.Fatal(err)
	}
	return slices.Compact(slices.Sorted(slices.Values(strings.Fields(string(out)))))
}

const (
	module = `{{with .Module}}{{.Path}}{{end}}`
	own    = "example.com/sample-controller"
)

// A project that imports the heart gets no module that client-go does not bring anyway.
func TestTheLibraryNeedsNothingThatClientGoDoesNotNeed(t *testing.T) {
	clientGo := deps(t, module, "k8s.io/client-go/kubernetes", "k8s.io/client-go/informers", "k8s.io/client-go/util/workqueue", "k8s.io/apimachinery/pkg/util/strategicpatch")
	var library []string
	for _, pkg := range deps(t, `{{.ImportPath}}`, own+"/pkg/reconcile/...") {
		if strings.HasPrefix(pkg, own) && !strings.Contains(pkg, "/reconciletest") { // only tests import that
			library = append(library, pkg)
		}
	}
	for _, needed := range deps(t, module, library...) {
		if needed != own && !slices.Contains(clientGo, needed) {
			t.Errorf("pkg/reconcile needs the module %s, which client-go does not", needed)
		}
	}
}

// Each part is usable alone, and none knows the API of this project.
func TestPartsOfTheLibraryAreUsableAlone(t *testing.T) {
	for from, allowed := range map[string][]string{
		"pkg/reconcile/failure": {}, "pkg/reconcile/queue": {"pkg/reconcile/failure"},
		"pkg/reconcile/plan":     {"pkg/reconcile/failure"},
		"pkg/reconcile/memory":   {"pkg/reconcile/failure", "pkg/reconcile/plan"},
		"pkg/reconcile/external": {"pkg/reconcile/failure", "pkg/reconcile/queue"},
		"pkg/reconcile/table":    {"pkg/reconcile/external", "pkg/reconcile/failure", "pkg/reconcile/plan", "pkg/reconcile/queue"},
		"examples/fair-queue":    {"pkg/reconcile/failure", "pkg/reconcile/queue"},
		"examples/write-guard":   {"pkg/reconcile/failure", "pkg/reconcile/memory", "pkg/reconcile/plan"},
	} {
		for _, imported := range deps(t, `{{.ImportPath}}`, own+"/"+from) {
			if part, isOwn := strings.CutPrefix(imported, own+"/"); isOwn && part != from && !slices.Contains(allowed, part) {
				t.Errorf("%s imports %s", from, part)
			}
		}
	}
}
