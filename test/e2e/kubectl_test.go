// SPDX-License-Identifier: Apache-2.0

// kubectl: how the tests run it, what it prints of a Foo, and server-side apply.

package e2e

import (
	"errors"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	applymetav1 "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/restmapper"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	applyv1alpha1 "example.com/sample-controller/pkg/generated/applyconfiguration/samplecontroller/v1alpha1"
)

// kubectl runs kubectl in the namespace and returns its output. The test fails if kubectl
// fails.
func (ns *namespace) kubectl(t *testing.T, args ...string) string {
	t.Helper()
	command := kubectlCommand(t, append([]string{"--kubeconfig=" + ns.in.kubeconfig, "--namespace=" + ns.name}, args...))
	out, err := command.Output()
	if err != nil {
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			t.Fatalf("%v: %v\n%s%s", command.Args, err, out, exit.Stderr)
		}
		t.Fatalf("%v: %v", command.Args, err)
	}
	return string(out)
}

// kubectlCommand returns a command that runs kubectl: devcluster's, or the one on PATH.
// If there is none it skips the test.
func kubectlCommand(t *testing.T, args []string) *exec.Cmd {
	t.Helper()
	program := "kubectl"
	if devcluster := os.Getenv("DEVCLUSTER_BIN"); devcluster != "" {
		program = devcluster
		args = append([]string{"kubectl"}, args...)
	} else if _, err := exec.LookPath(program); err != nil {
		t.Skip("no kubectl: DEVCLUSTER_BIN is not set and there is none on PATH")
	}
	command := exec.CommandContext(t.Context(), program, args...)
	command.Env = append(os.Environ(), "KUBECONFIG="+cluster.kubeconfig)
	return command
}

// needsDevclusterProgram returns the path of the devcluster program, which starts a
// cluster for one test. If there is none it skips the test.
func needsDevclusterProgram(t *testing.T) string {
	t.Helper()
	program := os.Getenv("DEVCLUSTER_BIN")
	if program == "" {
		t.Skip("DEVCLUSTER_BIN is not set, and this test needs a cluster of its own")
	}
	return program
}

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

// TestServerSideApplyWithTheTypedClient runs no controller, so that only the appliers
// write.
func TestServerSideApplyWithTheTypedClient(t *testing.T) {
	t.Parallel()
	needsNoOtherController(t)
	checkAll(t, newNamespace(t), []scenario{
		{"creates a missing Foo", checkApplyCreates},
		{"does not take another manager's field, unless forced", checkApplyConflict},
		{"removes a field that its manager no longer applies", checkApplyRemoves},
		{"writes the status, condition by condition", checkApplyStatus},
	})
}

func specOf(ns *namespace, name string, replicas int32) *applyv1alpha1.FooApplyConfiguration {
	return applyv1alpha1.Foo(name, ns.name).WithSpec(applyv1alpha1.FooSpec().WithDeploymentName("web").WithReplicas(replicas))
}

func as(manager string) metav1.ApplyOptions {
	return metav1.ApplyOptions{FieldManager: manager}
}

// apply applies a configuration, and fails the test if it is refused.
func apply(t *testing.T, ns *namespace, foo *applyv1alpha1.FooApplyConfiguration, options metav1.ApplyOptions) *samplev1alpha1.Foo {
	t.Helper()
	applied, err := ns.foos().Apply(t.Context(), foo, options)
	if err != nil {
		t.Fatalf("Applying as %s: %v", options.FieldManager, err)
	}
	return applied
}

func checkApplyCreates(t *testing.T, ns *namespace) {
	got := apply(t, ns, specOf(ns, "applied", 2), as("alice"))
	if got.UID == "" || got.Spec.DeploymentName != "web" || *got.Spec.Replicas != 2 {
		t.Errorf("Apply created %s", show(got))
	}
}

func checkApplyConflict(t *testing.T, ns *namespace) {
	apply(t, ns, specOf(ns, "disputed", 2), as("alice"))
	_, err := ns.foos().Apply(t.Context(), specOf(ns, "disputed", 3), as("bob"))
	if !apierrors.IsConflict(err) || !strings.Contains(err.Error(), `conflict with "alice": .spec.replicas`) {
		t.Errorf("Bob's apply returned %v, want a conflict that names alice and the field", err)
	}
	if got := ns.getFoo(t, "disputed"); *got.Spec.Replicas != 2 {
		t.Errorf("After the conflict replicas is %d, want 2", *got.Spec.Replicas)
	}

	forced := as("bob")
	forced.Force = true
	if got := apply(t, ns, specOf(ns, "disputed", 3), forced); *got.Spec.Replicas != 3 {
		t.Errorf("After the forced apply replicas is %d, want 3", *got.Spec.Replicas)
	}
	if _, err := ns.foos().Apply(t.Context(), specOf(ns, "disputed", 2), as("alice")); !apierrors.IsConflict(err) {
		t.Errorf("Alice's next apply returned %v, want a conflict, because bob owns the field now", err)
	}
}

func checkApplyRemoves(t *testing.T, ns *namespace) {
	apply(t, ns, specOf(ns, "shrinking", 2), as("alice"))
	withoutReplicas := applyv1alpha1.Foo("shrinking", ns.name).WithSpec(applyv1alpha1.FooSpec().WithDeploymentName("web"))
	if got := apply(t, ns, withoutReplicas, as("alice")); got.Spec.Replicas != nil {
		t.Errorf("Replicas is %d, want none", *got.Spec.Replicas)
	}
}

func checkApplyStatus(t *testing.T, ns *namespace) {
	ns.createFoo(t, newFoo("status", withReplicas(1)))
	first := applyv1alpha1.Foo("status", ns.name).WithStatus(applyv1alpha1.FooStatus().
		WithAvailableReplicas(5).WithConditions(condition("Ready")))
	if _, err := ns.foos().ApplyStatus(t.Context(), first, as("alice")); err != nil {
		t.Fatal(err)
	}
	second := applyv1alpha1.Foo("status", ns.name).WithStatus(applyv1alpha1.FooStatus().WithConditions(condition("Pretty")))
	got, err := ns.foos().ApplyStatus(t.Context(), second, as("bob"))
	if err != nil {
		t.Fatal(err)
	}
	if got.Status.AvailableReplicas != 5 || len(got.Status.Conditions) != 2 || *got.Spec.Replicas != 1 {
		t.Errorf("After the statuses of two managers the Foo is %s\nwant both conditions, 5 available, and the spec unchanged", show(got))
	}
}

func condition(kind string) *applymetav1.ConditionApplyConfiguration {
	return applymetav1.Condition().WithType(kind).WithStatus(metav1.ConditionTrue).
		WithReason("Said").WithMessage("").WithLastTransitionTime(metav1.Now())
}
