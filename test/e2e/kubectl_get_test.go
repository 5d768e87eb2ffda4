// SPDX-License-Identifier: Apache-2.0

// The output of kubectl get.

package e2e

import (
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/restmapper"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

func TestKubectlGetShowsFoos(t *testing.T) {
	t.Parallel()
	needsOurCRD(t)
	ns := newNamespace(t)
	ns.startController(t)
	checkAll(t, ns, []scenario{
		{"with columns for the Deployment, the numbers and the condition", checkColumns},
		{"with Desired empty if the Foo leaves replicas out", checkEmptyColumn},
		{"by the short name fo", checkShortName},
		{"in the category all", checkCategory},
		{"as kubectl prints them", checkKubectlGet},
	})
}

// TestAFooThatNoControllerHasSyncedIsPending also has the status of a Foo that upstream's
// controller left behind: it has no conditions.
func TestAFooThatNoControllerHasSyncedIsPending(t *testing.T) {
	t.Parallel()
	needsOurCRD(t)
	needsNoOtherController(t)
	ns := newNamespace(t)
	ns.createFoo(t, newFoo("new", withReplicas(2)))
	ns.createFoo(t, newFoo("left", withReplicas(2)))
	if _, err := ns.foos().Patch(t.Context(), "left", types.MergePatchType, []byte(`{"status":{"availableReplicas":2,"conditions":null}}`), metav1.PatchOptions{}, "status"); err != nil {
		t.Fatal(err)
	}
	for name, available := range map[string]any{"new": nil, "left": 2.0} {
		got := row(t, tableOf(t, ns, name))
		if got["Available"] != available || got["Ready"] != "Unknown" || got["Reason"] != samplev1alpha1.ReasonPending {
			t.Errorf("%s is shown as %v, want Unknown, Pending, and %v available", name, got, available)
		}
	}
	if ready := readyOf(ns.getFoo(t, "new")); ready.Message != "Waiting for the controller" || !ready.LastTransitionTime.Equal(new(metav1.Unix(0, 0))) {
		t.Errorf("The condition is %+v", ready)
	}
	ns.startController(t)
	for _, name := range []string{"new", "left"} {
		ns.awaitReady(t, name)
		if since := readyOf(ns.getFoo(t, name)).LastTransitionTime; since.Unix() == 0 {
			t.Errorf("%s is ready since %v", name, since)
		}
	}
}

// row returns the cells of a table with one row, by the names of the columns.
func row(t *testing.T, table *metav1.Table) map[string]any {
	t.Helper()
	if len(table.Rows) != 1 {
		t.Fatalf("%d rows, want 1", len(table.Rows))
	}
	cells := map[string]any{}
	for i, column := range table.ColumnDefinitions {
		cells[column.Name] = table.Rows[0].Cells[i]
	}
	return cells
}

func checkColumns(t *testing.T, ns *namespace) {
	ns.createReadyFoo(t, newFoo("columns", withChild("columns-web"), withReplicas(2)))
	table := tableOf(t, ns, "columns")

	var names []string
	for _, column := range table.ColumnDefinitions {
		names = append(names, column.Name)
	}
	if want := []string{"Name", "Deployment", "Desired", "Available", "Ready", "Reason", "Age"}; !slices.Equal(names, want) {
		t.Errorf("The columns are %v, want %v", names, want)
	}
	got := row(t, table)
	for column, want := range map[string]any{
		"Name": "columns", "Deployment": "columns-web", "Desired": 2.0, "Available": 2.0, "Ready": "True", "Reason": "Available",
	} {
		if got[column] != want {
			t.Errorf("Column %s shows %v, want %v", column, got[column], want)
		}
	}
}

func checkEmptyColumn(t *testing.T, ns *namespace) {
	ns.createReadyFoo(t, newFoo("empty-column"))
	got := row(t, tableOf(t, ns, "empty-column"))
	if got["Desired"] != nil || got["Available"] != 1.0 {
		t.Errorf("Desired shows %v and Available %v, want nothing and 1", got["Desired"], got["Available"])
	}
}

func checkShortName(t *testing.T, _ *namespace) {
	discovery := memory.NewMemCacheClient(cluster.kube.Discovery())
	mapper := restmapper.NewShortcutExpander(restmapper.NewDeferredDiscoveryRESTMapper(discovery), discovery, nil)
	got, err := mapper.ResourceFor(schema.GroupVersionResource{Resource: "fo"})
	if want := samplev1alpha1.SchemeGroupVersion.WithResource("foos"); err != nil || got != want {
		t.Errorf("fo is short for %v (%v), want %v", got, err, want)
	}
}

func checkCategory(t *testing.T, _ *namespace) {
	got, _ := restmapper.NewDiscoveryCategoryExpander(cluster.kube.Discovery()).Expand("all")
	if !slices.Contains(got, foosResource) {
		t.Errorf("The category all contains %v, want %v among them", got, foosResource)
	}
}

func checkKubectlGet(t *testing.T, ns *namespace) {
	ns.createReadyFoo(t, newFoo("terminal", withReplicas(2)))
	lines := strings.Split(ns.kubectl(t, "get", "fo", "terminal"), "\n")
	for i, want := range []string{"NAME DEPLOYMENT DESIRED AVAILABLE READY REASON AGE", "terminal terminal 2 2 True Available"} {
		if got := strings.Join(strings.Fields(lines[i]), " "); !strings.HasPrefix(got, want) {
			t.Errorf("Line %d is %q, want %q", i+1, got, want)
		}
	}
	if all := ns.kubectl(t, "get", "all"); !strings.Contains(all, "foo.samplecontroller.k8s.io/terminal") {
		t.Errorf("kubectl get all does not show the Foo:\n%s", all)
	}
}
