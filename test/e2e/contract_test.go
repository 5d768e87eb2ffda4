// SPDX-License-Identifier: Apache-2.0

// The contract: what Foos report, settled Foos, what kubectl prints and waits for, server-side apply,
// and a restore from a backup.

package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	applymetav1 "k8s.io/client-go/applyconfigurations/meta/v1"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	applyv1alpha1 "example.com/sample-controller/pkg/generated/applyconfiguration/samplecontroller/v1alpha1"
	"example.com/sample-controller/pkg/reconcile/reconciletest/rows"
	"example.com/sample-controller/test/footest"
)

// newFoo returns a Foo whose child has the same name. With 0 replicas it leaves their number
// to others.
func newFoo(name string, replicas int32) *samplev1alpha1.Foo {
	foo := footest.FooOwner.New(name, name, replicas).(*samplev1alpha1.Foo)
	foo.Namespace = ""
	return foo
}

// createReadyFoo creates a Foo and waits until its Pods are available.
func (ns *namespace) createReadyFoo(t *testing.T, foo *samplev1alpha1.Foo) *samplev1alpha1.Foo {
	t.Helper()
	k := ns.primary()
	k.createOwner(t, foo)
	return k.awaitReady(t, foo.Name).(*samplev1alpha1.Foo)
}

// awaitReplicas waits until a Foo's child is as it asks, and the Foo reports it, with a
// number of Pods that are available.
func (ns *namespace) awaitReplicas(t *testing.T, name string, want int32) {
	t.Helper()
	k := ns.primary()
	awaitThat(t, fmt.Sprintf("Foo %s has %d Pods", name, want), func(ctx context.Context) error {
		foo, err := ns.foos().Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		child, err := k.children().Get(ctx, k.Name(foo), metav1.GetOptions{})
		if err != nil {
			return err
		}
		if misreported := k.Misreported(foo, child); misreported != "" || foo.Status.AvailableReplicas != want {
			return fmt.Errorf("its status is %+v: %s", foo.Status, misreported)
		}
		return errors.Join(k.isAsAsked(foo)(child), isReady(foo))
	})
}

// eventsOf returns the events about an object.
func (ns *namespace) eventsOf(t *testing.T, kind, name string) []corev1.Event {
	t.Helper()
	about := metav1.ListOptions{FieldSelector: "involvedObject.kind=" + kind + ",involvedObject.name=" + name}
	events, err := ns.in.kube.CoreV1().Events(ns.name).List(t.Context(), about)
	footest.Must(t, err)
	return events.Items
}

// TestSettledFoosCostNoWrites checks some resyncs, and a restart. A Foo has one event for each
// transition.
func TestSettledFoosCostNoWrites(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t)
	k := ns.primary()
	killed := ns.startController(t, "-resync=1s", "-v=4")
	names := []string{"settled-0", "settled-1", "settled-2"}
	for _, name := range names {
		foo := ns.createReadyFoo(t, newFoo(name, 1))
		k.awaitSettled(t, foo)
		awaitThat(t, "it has its events", func(context.Context) error {
			var reasons []string
			for _, event := range ns.eventsOf(t, "Foo", name) {
				reasons = append(reasons, event.Reason)
			}
			// Some children are ready as soon as they are there.
			reasons = slices.DeleteFunc(reasons, func(reason string) bool { return reason == samplev1alpha1.ReasonProgressing })
			if want := []string{samplev1alpha1.ReasonAvailable}; !slices.Equal(reasons, want) {
				return fmt.Errorf("its events, without those of progress, have the reasons %q, not %q", reasons, want)
			}
			return nil
		})
	}
	before := ns.versions(t)
	// Each of the two caches logs its resyncs.
	const resynced = "Forcing resync"
	killed.awaitLog(t, resynced, killed.log.Count(resynced)+2*3)
	footest.ExpectEqual(t, "the versions", before, ns.versions(t))
	killed.end(t, syscall.SIGKILL)

	second := ns.startController(t)
	k.awaitSyncs(t)
	// A stop waits for the syncs in progress, so that no write follows.
	second.stop(t)
	footest.ExpectEqual(t, "the versions", before, ns.versions(t))
}

// versionsOf makes kubectl get print the resourceVersions of objects.
const versionsOf = `-o=jsonpath={range .items[*]}{.kind}/{.metadata.name} {.metadata.resourceVersion}{"\n"}{end}`

// versions returns the resourceVersion of each settled Foo, and of its children and events.
func (ns *namespace) versions(t *testing.T) string {
	t.Helper()
	text := ns.kubectl(t, "get", allResources(), versionsOf) + "\n" +
		ns.kubectl(t, "get", "events", "--field-selector=involvedObject.kind=Foo", versionsOf)
	settled := slices.DeleteFunc(strings.Split(text, "\n"), func(line string) bool {
		return !strings.Contains(line, "settled-")
	})
	if len(settled) < 3*3 {
		t.Errorf("There are only these Foos, children and events:\n%s", text)
	}
	return strings.Join(settled, "\n")
}

// TestAfterARestoreOfObjects restores objects as kubectl does: Foos get new UIDs.
func TestAfterARestoreOfObjects(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t)
	ns.startController(t)
	k := ns.primary()
	for name, row := range map[string]struct {
		prepare func(child footest.Object)
		isKept  bool
	}{
		// Its owner is gone: the garbage collector deletes it, and the Foo gets a new one.
		"a child with its owner reference is replaced": {func(footest.Object) {}, false},
		"a child that consents to adoption is kept": {func(child footest.Object) {
			child.SetOwnerReferences(nil)
			footest.WithAdoptBy(child.GetName())(child)
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			foo := ns.createReadyFoo(t, newFoo(fmt.Sprintf("restored-%v", row.isKept), 1))
			saved := get(t, k.children(), k.Name(foo))
			ns.kubectl(t, "delete", "foo", foo.Name, "--cascade=foreground", timeout)
			awaitGone(t, k.children(), saved.GetName())

			saved.SetUID("")
			saved.SetResourceVersion("")
			saved.SetManagedFields(nil)
			row.prepare(saved)
			restored, err := k.children().Create(t.Context(), saved, metav1.CreateOptions{})
			footest.Must(t, err)
			created := k.createOwner(t, newFoo(foo.Name, 1))
			child := k.awaitChild(t, "the Foo has a child", created, k.isAsAsked(created))
			k.awaitReady(t, foo.Name)
			if isKept := child.GetUID() == restored.GetUID(); isKept != row.isKept {
				t.Errorf("The restored child is kept: %v, want %v", isKept, row.isKept)
			}
			if row.isKept {
				footest.ExpectEqual(t, "the restored child", k.othersPart(t, restored, nil), k.othersPart(t, child, nil))
			}
		})
	}
}

// TestKubectlWaitAfterAScaleWaitsForTheNewSize runs kubectl wait while the status still
// reports Ready for the old size. Autoscalers use what the subresource scale says.
func TestKubectlWaitAfterAScaleWaitsForTheNewSize(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t)
	first := ns.startController(t)
	ns.createReadyFoo(t, newFoo("foo", 1))
	first.stop(t)
	ns.kubectl(t, "scale", "foo/foo", "--replicas=3")
	wait := []string{"--namespace=" + ns.name, "wait", "foo/foo", "--for=condition=Ready"}
	if out, err := ns.in.runKubectl(t.Context(), append(wait, "--timeout=1s")...); err == nil {
		t.Errorf("kubectl wait accepted a status that belongs to an older spec: %s", out)
	}

	ns.startController(t)
	ns.in.kubectl(t, append(wait, timeout)...)
	if got := get(t, ns.foos(), "foo").Status.AvailableReplicas; got != 3 {
		t.Errorf("When kubectl wait returns, %d Pods are available, want 3", got)
	}
	scale := ns.kubectl(t, "get", "foo/foo", "--subresource=scale",
		"--output=jsonpath={.spec.replicas} {.status.replicas} {.status.selector}")
	if want := "3 3 app=nginx,controller=foo"; scale != want {
		t.Errorf("The scale is %q, want %q", scale, want)
	}
	ns.kubectl(t, "scale", "foo/foo", "--replicas=1")
	ns.awaitReplicas(t, "foo", 1)
}

// expectRow checks what kubectl get prints of a Foo, between its name and its age.
func (ns *namespace) expectRow(t *testing.T, foo string, cells ...string) {
	t.Helper()
	header, row, _ := strings.Cut(ns.kubectl(t, "get", "fo", foo), "\n")
	footest.ExpectEqual(t, "the columns", strings.Fields("NAME DEPLOYMENT DESIRED AVAILABLE READY REASON AGE"), strings.Fields(header))
	got := strings.Fields(row)
	footest.ExpectEqual(t, "the row of "+foo, append([]string{foo}, cells...), got[:len(got)-1])
}

func TestKubectlGetShowsFoos(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t)
	ns.startController(t)
	foo := newFoo("terminal", 2)
	footest.FooOwner.Rename(foo, "web")
	ns.createReadyFoo(t, foo)
	ns.createReadyFoo(t, newFoo("empty-column", 0))
	ns.expectRow(t, "terminal", "web", "2", "2", "True", "Available")
	ns.expectRow(t, "empty-column", "empty-column", "1", "True", "Available")
	if selected := ns.kubectl(t, "get", "fo", "-o=name", "--field-selector=spec.deploymentName=web"); selected != "foo.samplecontroller.k8s.io/terminal" {
		t.Errorf("of the Foos for the Deployment web, kubectl finds %q", selected)
	}
	if all := ns.kubectl(t, "get", "all"); !strings.Contains(all, "foo.samplecontroller.k8s.io/terminal") {
		t.Errorf("kubectl get all does not show the Foo:\n%s", all)
	}
}

// TestAFooThatNoControllerHasSyncedIsPending also has the status of a Foo that upstream's
// controller left behind: it has no conditions.
func TestAFooThatNoControllerHasSyncedIsPending(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t)
	ns.primary().createOwner(t, newFoo("new", 2))
	ns.primary().createOwner(t, newFoo("left", 2))
	ns.kubectl(t, "patch", "foo", "left", "--subresource=status", "--type=merge",
		`--patch={"status":{"availableReplicas":2,"conditions":null}}`)
	ns.expectRow(t, "new", "new", "2", "Unknown", samplev1alpha1.ReasonPending)
	ns.expectRow(t, "left", "left", "2", "2", "Unknown", samplev1alpha1.ReasonPending)
	ready := footest.ReadyOf(get(t, ns.foos(), "new").Status)
	if ready.Message != "Waiting for the controller" || !ready.LastTransitionTime.Equal(new(metav1.Unix(0, 0))) {
		t.Errorf("The condition is %+v", ready)
	}
	ns.startController(t)
	for _, name := range []string{"new", "left"} {
		ready := rows.ConditionOf(ns.primary().awaitReady(t, name))
		if ready.LastTransitionTime.Unix() == 0 {
			t.Errorf("%s is ready since %v", name, ready.LastTransitionTime)
		}
	}
}

// TestServerSideApplyWithTheTypedClient runs no controller, so that only the appliers
// write.
func TestServerSideApplyWithTheTypedClient(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t)
	apply := func(manager string, spec *applyv1alpha1.FooSpecApplyConfiguration) (*samplev1alpha1.Foo, error) {
		foo := applyv1alpha1.Foo("applied", ns.name).WithSpec(spec)
		return ns.foos().Apply(t.Context(), foo, metav1.ApplyOptions{FieldManager: manager})
	}
	spec := func() *applyv1alpha1.FooSpecApplyConfiguration {
		return applyv1alpha1.FooSpec().WithDeploymentName("web")
	}
	_, err := apply("alice", spec().WithReplicas(2))
	footest.Must(t, err)
	_, err = apply("bob", spec().WithReplicas(3))
	if !apierrors.IsConflict(err) || !strings.Contains(err.Error(), `conflict with "alice": .spec.replicas`) {
		t.Errorf("Bob's apply returned %v, want a conflict that names alice and the field", err)
	}
	got, err := apply("alice", spec())
	footest.Must(t, err)
	if got.Spec.Replicas != nil {
		t.Errorf("Replicas is %d, but its only manager does not apply it any more", *got.Spec.Replicas)
	}

	for manager, condition := range map[string]string{"alice": "Ready", "bob": "Pretty"} {
		status := applyv1alpha1.FooStatus().WithConditions(applymetav1.Condition().WithType(condition).
			WithStatus(metav1.ConditionTrue).WithReason("Said").WithMessage("").WithLastTransitionTime(metav1.Now()))
		foo := applyv1alpha1.Foo("applied", ns.name).WithStatus(status)
		got, err = ns.foos().ApplyStatus(t.Context(), foo, metav1.ApplyOptions{FieldManager: manager})
		footest.Must(t, err)
	}
	if len(got.Status.Conditions) != 2 {
		t.Errorf("The conditions are %v, want that of each manager", got.Status.Conditions)
	}
}
