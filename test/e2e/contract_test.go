// SPDX-License-Identifier: Apache-2.0

// The contract: what Foos report, and what they ask for; waits with kubectl, and a restore
// from a backup.

package e2e

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/test/footest"
)

// awaitResyncs waits for a number of resyncs. The controller needs -resync=1s -v=4.
func (p *process) awaitResyncs(t *testing.T, times int) {
	t.Helper()
	const resynced = "Forcing resync"
	// Each of the two caches logs its resyncs.
	p.awaitLog(t, resynced, p.log.Count(resynced)+2*times)
}

// awaitConflict waits until a Foo reports that its child's name is taken.
func (ns *namespace) awaitConflict(t *testing.T, name string) *samplev1alpha1.Foo {
	t.Helper()
	return awaitOne(t, "Foo "+name+" reports the conflict", ns.foos(), name, isConflicted)
}

// isConflicted returns an error unless a Foo reports that its child's name is taken.
func isConflicted(foo *samplev1alpha1.Foo) error {
	if err := hasReady(foo, metav1.ConditionFalse, reasonConflict); err != nil {
		return err
	}
	if message := readyOf(foo).Message; !strings.Contains(message, footest.Primary.Name(foo)) {
		return errors.New("the message does not name the child: " + message)
	}
	if foo.Status.AvailableReplicas != 0 {
		return errors.New("the status counts the Pods of a child that the Foo does not control")
	}
	return nil
}

// awaitReason waits until a Foo reports Ready=False with a reason.
func (ns *namespace) awaitReason(t *testing.T, name, reason string) *samplev1alpha1.Foo {
	t.Helper()
	return awaitOne(t, "Foo "+name+" reports "+reason, ns.foos(), name, func(foo *samplev1alpha1.Foo) error {
		return hasReady(foo, metav1.ConditionFalse, reason)
	})
}

// awaitMessage waits until a Foo reports Ready=False for its newest spec, with a reason
// and a message that begins with one text and contains another.
func (ns *namespace) awaitMessage(t *testing.T, name, reason, begins, has string) *samplev1alpha1.Foo {
	t.Helper()
	want := fmt.Sprintf("Foo %s reports %q", name, begins+"…"+has)
	return awaitOne(t, want, ns.foos(), name, func(foo *samplev1alpha1.Foo) error {
		if message := readyOf(foo).Message; !strings.HasPrefix(message, begins) || !strings.Contains(message, has) {
			return fmt.Errorf("the message is %q", message)
		}
		return hasReady(foo, metav1.ConditionFalse, reason)
	})
}

// commandIn returns the arguments of the kubectl command that a message quotes.
func commandIn(t *testing.T, message string) []string {
	t.Helper()
	_, rest, _ := strings.Cut(message, "'kubectl ")
	command, _, found := strings.Cut(rest, "'")
	if !found {
		t.Fatalf("There is no kubectl command in %q", message)
	}
	return strings.Fields(command)
}

// rename makes a Foo ask for a child of another name.
func (ns *namespace) rename(t *testing.T, foo, child string) {
	t.Helper()
	field := strings.TrimPrefix(footest.Primary.NamedBy, "spec.")
	mergePatch(t, ns.foos(), foo, `{"spec":{"`+field+`":"`+child+`"}}`)
}

// deleteFoo deletes a Foo with a propagation policy.
func (ns *namespace) deleteFoo(t *testing.T, name string, how metav1.DeletionPropagation) {
	t.Helper()
	if err := ns.foos().Delete(t.Context(), name, metav1.DeleteOptions{PropagationPolicy: &how}); err != nil {
		t.Fatalf("Deleting Foo %s: %v", name, err)
	}
}

// setQuota limits a resource of the namespace and waits until the quota is in force.
func (ns *namespace) setQuota(t *testing.T, name corev1.ResourceName, limit string) {
	t.Helper()
	ns.setQuotas(t, corev1.ResourceList{name: resource.MustParse(limit)})
}

// setQuotas is setQuota for several resources.
func (ns *namespace) setQuotas(t *testing.T, hard corev1.ResourceList) {
	t.Helper()
	quotas := cluster.kube.CoreV1().ResourceQuotas(ns.name)
	_, err := quotas.Create(t.Context(), &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "limit"},
		Spec:       corev1.ResourceQuotaSpec{Hard: hard},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	awaitOne(t, "the quota is in force", quotas, "limit", func(quota *corev1.ResourceQuota) error {
		for name := range hard {
			if _, counted := quota.Status.Used[name]; !counted {
				return errNone
			}
		}
		return nil
	})
}

// TestAfterARestoreOfObjectsAFooGetsANewChild restores objects as Velero does: Foos
// get new UIDs. A child whose owner reference has the old UID has no owner any more.
// The garbage collector deletes it, and the Foo gets a new one.
func TestAfterARestoreOfObjectsAFooGetsANewChild(t *testing.T) {
	t.Parallel()
	needsNoOtherController(t)
	ns := newNamespace(t)
	ns.startController(t)
	foo, saved := ns.backUpAndDelete(t)
	restored := ns.restore(t, saved)
	created := ns.createFoo(t, newFoo(foo.Name))
	awaitOne(t, "the Foo has a child of its own", ns.children(), saved.GetName(), func(found *child) error {
		if !metav1.IsControlledBy(found, created) {
			return errNone
		}
		return nil
	})
	ns.awaitReady(t, foo.Name)
	if ns.getChild(t, saved.GetName()).GetUID() == restored.GetUID() {
		t.Error("The restored child still exists, with another owner")
	}
}

// TestAfterARestoreOfObjectsAnAnnotatedChildIsKept restores a child without its
// owner reference but with the annotation that consents to adoption. It and its Pods
// stay.
func TestAfterARestoreOfObjectsAnAnnotatedChildIsKept(t *testing.T) {
	t.Parallel()
	needsNoOtherController(t)
	ns := newNamespace(t)
	ns.startController(t)
	foo, saved := ns.backUpAndDelete(t)
	saved.SetOwnerReferences(nil)
	saved.SetAnnotations(map[string]string{samplev1alpha1.AnnotationAdoptBy: foo.Name})
	restored := ns.restore(t, saved)
	created := ns.createFoo(t, newFoo(foo.Name))
	ns.awaitReady(t, foo.Name)
	kept := ns.getChild(t, saved.GetName())
	if kept.GetUID() != restored.GetUID() || !metav1.IsControlledBy(kept, created) {
		t.Errorf("The child is %s, owned by %v; want %s, owned by the new Foo", kept.GetUID(), kept.GetOwnerReferences(), restored.GetUID())
	}
	if !equality.Semantic.DeepEqual(contentOf(kept), contentOf(restored)) {
		t.Errorf("The restored child has changed: %v", contentOf(kept))
	}
}

// backUpAndDelete creates a Foo, reads it and its child as a backup would, and
// deletes them.
func (ns *namespace) backUpAndDelete(t *testing.T) (*samplev1alpha1.Foo, *child) {
	t.Helper()
	foo := ns.createReadyFoo(t, newFoo("restored", withReplicas(1)))
	saved := ns.getChild(t, footest.Primary.Name(foo))
	ns.deleteFoo(t, foo.Name, metav1.DeletePropagationForeground)
	awaitGone(t, ns.foos(), foo.Name)
	awaitGone(t, ns.children(), saved.GetName())
	return foo, saved
}

// restore creates a child again, as an administrator.
func (ns *namespace) restore(t *testing.T, saved *child) *child {
	t.Helper()
	saved.SetUID("")
	saved.SetResourceVersion("")
	saved.SetManagedFields(nil)
	delete(saved.Object, "status")
	restored, err := ns.children().Create(t.Context(), saved, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return restored
}

// TestKubectlWaitAfterAScaleWaitsForTheNewSize runs kubectl wait while the status still
// reports Ready for the old size.
func TestKubectlWaitAfterAScaleWaitsForTheNewSize(t *testing.T) {
	t.Parallel()
	needsNoOtherController(t)
	ns := newNamespace(t)
	first := ns.startController(t)
	ns.createReadyFoo(t, newFoo("foo", withReplicas(1)))
	first.stop(t)
	ns.kubectl(t, "scale", "foo/foo", "--replicas=3")
	command := kubectlCommand(t, []string{"--namespace=" + ns.name, "wait", "foo/foo", "--for=condition=Ready", "--timeout=1s"})
	if out, err := command.CombinedOutput(); err == nil {
		t.Errorf("kubectl wait accepted a status that belongs to an older spec: %s", out)
	}

	ns.startController(t)
	ns.kubectl(t, "wait", "foo/foo", "--for=condition=Ready", "--timeout="+cluster.patience().String())
	if got := ns.getFoo(t, "foo").Status.AvailableReplicas; got != 3 {
		t.Errorf("When kubectl wait returns, %d Pods are available, want 3", got)
	}
}
