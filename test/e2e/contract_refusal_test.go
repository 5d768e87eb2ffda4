// SPDX-License-Identifier: Apache-2.0

// The contract: a refused write is reported in the condition, and rarely retried.

package e2e

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

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

func TestARefusedChildIsReportedAndNotHammered(t *testing.T) {
	t.Parallel()
	needsNoOtherController(t)
	ns := newNamespace(t)
	ns.setQuota(t, countOfChildren, "0")
	p, sent := ns.startRecorded(t, nil, "-resync=1s", "-v=4")
	ns.createFoo(t, newFoo("refused", withReplicas(1)))
	foo := ns.awaitReason(t, "refused", reasonFailed)
	if message := readyOf(foo).Message; !strings.Contains(message, "exceeded quota: limit") {
		t.Errorf("The message %q does not quote the API server", message)
	}
	awaitEvent(t, ns, "refused", corev1.EventTypeWarning, reasonFailed)
	p.awaitResyncs(t, 15)
	// After 0, 1, 3, 7, 15 and 31 s.
	if got := sent.count(http.MethodPost, "/"+childResource); got > 6 {
		t.Errorf("The controller tried to create the child %d times in 15 resyncs, want at most 6", got)
	}
	if got := ns.eventCount(t, "refused", reasonFailed); got != 1 {
		t.Errorf("%d events, want 1", got)
	}

	mergePatch(t, cluster.kube.CoreV1().ResourceQuotas(ns.name), "limit", fmt.Sprintf(`{"spec":{"hard":{%q:"5"}}}`, countOfChildren))
	awaitOne(t, "the higher quota is in force", cluster.kube.CoreV1().ResourceQuotas(ns.name), "limit", func(quota *corev1.ResourceQuota) error {
		if allowed := quota.Status.Hard[countOfChildren]; allowed.Value() != 5 {
			return errNone
		}
		return nil
	})
	// The controller must retry although nobody changes the Foo.
	ns.awaitReplicas(t, "refused", 1)
}

// eventCount returns how often an event about a Foo was recorded.
func (ns *namespace) eventCount(t *testing.T, foo, reason string) int {
	t.Helper()
	events, err := ns.events().List(t.Context(), eventsOf(foo))
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for i := range events.Items {
		if events.Items[i].Reason == reason {
			count += max(1, int(events.Items[i].Count))
		}
	}
	return count
}

// TestATerminatingNamespaceIsLeftAlone keeps a namespace terminating by Foos that can't
// be deleted. Its children are gone, so a controller would try to recreate them.
func TestATerminatingNamespaceIsLeftAlone(t *testing.T) {
	t.Parallel()
	needsAdmission(t)
	ns := newNamespace(t)
	p, sent := ns.startRecorded(t, nil, "-resync=1s", "-v=4")
	names := []string{"one", "two", "three"}
	for _, name := range names {
		ns.createReadyFoo(t, newFoo(name))
		awaitEvent(t, ns, name, corev1.EventTypeNormal, samplev1alpha1.ReasonAvailable)
	}
	ns.forbidDeletionOfFoos(t, names[0])
	creates, events := sent.count(http.MethodPost, "/"+childResource), sent.writes("events")
	if err := cluster.kube.CoreV1().Namespaces().Delete(t.Context(), ns.name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		awaitGone(t, ns.children(), name)
	}
	// A retry that was scheduled before the first refusal still happens, and is refused,
	// too.
	p.awaitLog(t, `after="5m0s"`, len(names))
	p.awaitResyncs(t, 1)
	refused := sent.count(http.MethodPost, "/"+childResource)
	p.awaitResyncs(t, 3)

	// The child's last event may come after the first refusal and cause another
	// sync.
	if got := refused - creates; got > 2*len(names) {
		t.Errorf("%d creates were refused for %d Foos", got, len(names))
	}
	if got := sent.count(http.MethodPost, "/"+childResource) - refused; got != 0 {
		t.Errorf("%d more creates in three resyncs", got)
	}
	if got := sent.writes("events") - events; got > len(names) {
		t.Errorf("%d events, want at most one for each Foo", got)
	}
	for _, name := range names {
		if foo := ns.getFoo(t, name); foo.DeletionTimestamp != nil {
			t.Errorf("Foo %s is being deleted, so this test shows nothing", name)
		}
	}
	if p.HasEnded() {
		t.Error("The controller has ended")
	}
}

// forbidDeletionOfFoos adds a policy that refuses to delete the namespace's Foos, until
// the test ends.
func (ns *namespace) forbidDeletionOfFoos(t *testing.T, probe string) {
	t.Helper()
	policies := cluster.kube.AdmissionregistrationV1().ValidatingAdmissionPolicies()
	bindings := cluster.kube.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings()
	removing(t, ns.name, bindings.Delete, policies.Delete)
	if _, err := policies.Create(t.Context(), ns.keepFoos(), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	_, err := bindings.Create(t.Context(), &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: ofRun(ns.name),
		Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName:        ns.name,
			ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	// A policy is in force only after a moment, which shows in no other way.
	err = wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, cluster.patience(), true, func(ctx context.Context) (bool, error) {
		err := ns.foos().Delete(ctx, probe, metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}})
		return apierrors.IsInvalid(err) || apierrors.IsForbidden(err), nil
	})
	if err != nil {
		t.Fatalf("Waiting for the policy: %v", err)
	}
}

// ofRun returns the metadata of a cluster-scoped object, with the label by which tidyUp
// finds it.
func ofRun(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Labels: map[string]string{runLabel: cluster.run}}
}

// keepFoos returns a policy that forbids the deletion of the namespace's Foos.
func (ns *namespace) keepFoos() *admissionregistrationv1.ValidatingAdmissionPolicy {
	return &admissionregistrationv1.ValidatingAdmissionPolicy{
		ObjectMeta: ofRun(ns.name),
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionregistrationv1.MatchResources{
				NamespaceSelector: ns.selector(),
				ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{
					RuleWithOperations: admissionregistrationv1.RuleWithOperations{
						Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Delete},
						Rule: admissionregistrationv1.Rule{
							APIGroups:   []string{samplev1alpha1.GroupName},
							APIVersions: []string{"*"},
							Resources:   []string{"foos"},
						},
					},
				}},
			},
			Validations: []admissionregistrationv1.Validation{{Expression: "false", Message: "kept by a test"}},
		},
	}
}
