// SPDX-License-Identifier: Apache-2.0

// Helpers of the tests of the contract: what Foos report, and what they ask for.

package e2e

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
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
