// SPDX-License-Identifier: Apache-2.0

// Webhooks that refuse or change children, for the tests of admission.

package e2e

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"example.com/sample-controller/internal/footest"
)

// needsAdmission skips a test that changes the cluster's admission, unless the cluster is
// a development cluster.
func needsAdmission(t *testing.T) {
	t.Helper()
	needsNoOtherController(t)
	if !cluster.devcluster {
		t.Skip("this test changes the admission of the whole cluster")
	}
}

// childRule matches each write of a child, but not of its status.
func childRule() admissionregistrationv1.RuleWithOperations {
	resource := footest.Primary.Resource
	return admissionregistrationv1.RuleWithOperations{
		Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
		Rule:       admissionregistrationv1.Rule{APIGroups: []string{resource.Group}, APIVersions: []string{resource.Version}, Resources: []string{resource.Resource}},
	}
}

// selector returns a selector for the namespace.
func (ns *namespace) selector() *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: ns.name}}
}

// breakWebhook makes the API server call an unreachable webhook for each write of a
// child, until the returned function is called.
func (ns *namespace) breakWebhook(t *testing.T) (repair func()) {
	t.Helper()
	client := ns.in.kube.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	repair = removing(t, ns.name, client.Delete)
	_, err := client.Create(t.Context(), &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: ofRun(ns.name),
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name:                    "down.e2e.samplecontroller.k8s.io",
			ClientConfig:            admissionregistrationv1.WebhookClientConfig{URL: new("https://127.0.0.1:1/")},
			Rules:                   []admissionregistrationv1.RuleWithOperations{childRule()},
			FailurePolicy:           new(admissionregistrationv1.Fail),
			NamespaceSelector:       ns.selector(),
			SideEffects:             new(admissionregistrationv1.SideEffectClassNone),
			AdmissionReviewVersions: []string{"v1"},
		}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ns.awaitAdmission(t, "the webhook is in force", func(_ *child, err error) bool {
		return err != nil && strings.Contains(err.Error(), webhookDown)
	})
	return repair
}

// webhookDown is part of the API server's message in that case.
const webhookDown = "failed calling webhook"

// mutate adds a webhook that replaces a value in each written child that meets a
// condition, until the returned function is called. condition is in CEL, value in JSON.
// isMutated recognizes a child after that. It is not a
// MutatingAdmissionPolicy because these are off before Kubernetes 1.36.
func (ns *namespace) mutate(t *testing.T, condition, path, value string, isMutated func(*child) bool) (withdraw func()) {
	t.Helper()
	server := patchServer(t, fmt.Sprintf(`[{"op": "replace", "path": %q, "value": %s}]`, path, value))
	client := ns.in.kube.AdmissionregistrationV1().MutatingWebhookConfigurations()
	remove := removing(t, ns.name, client.Delete)
	_, err := client.Create(t.Context(), &admissionregistrationv1.MutatingWebhookConfiguration{
		ObjectMeta: ofRun(ns.name),
		Webhooks: []admissionregistrationv1.MutatingWebhook{{
			Name: "mutates.e2e.samplecontroller.k8s.io",
			ClientConfig: admissionregistrationv1.WebhookClientConfig{
				URL:      &server.URL,
				CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
			},
			Rules:                   []admissionregistrationv1.RuleWithOperations{childRule()},
			MatchConditions:         []admissionregistrationv1.MatchCondition{{Name: "which", Expression: condition}},
			FailurePolicy:           new(admissionregistrationv1.Fail),
			NamespaceSelector:       ns.selector(),
			SideEffects:             new(admissionregistrationv1.SideEffectClassNone),
			AdmissionReviewVersions: []string{"v1"},
		}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ns.awaitAdmission(t, "the webhook is in force", func(d *child, err error) bool { return err == nil && isMutated(d) })
	return func() {
		t.Helper()
		remove()
		ns.awaitAdmission(t, "the webhook is no longer in force", func(d *child, err error) bool { return err == nil && !isMutated(d) })
	}
}

// patchServer starts a webhook that answers each request with the same JSON patch, until
// the test ends.
func patchServer(t *testing.T, patch string) *httptest.Server {
	t.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		var review admissionv1.AdmissionReview
		if err := json.NewDecoder(request.Body).Decode(&review); err != nil || review.Request == nil {
			http.Error(w, fmt.Sprintf("not an AdmissionReview: %v", err), http.StatusBadRequest)
			return
		}
		review.Response = &admissionv1.AdmissionResponse{
			UID: review.Request.UID, Allowed: true, Patch: []byte(patch), PatchType: new(admissionv1.PatchTypeJSONPatch),
		}
		review.Request = nil
		_ = json.NewEncoder(w).Encode(&review) // if the answer is lost, the API server reports it
	}))
	t.Cleanup(server.Close)
	return server
}

// awaitAdmission creates a child of 10 Pods that no Foo controls, as a dry run, until the
// result is accepted. A change of admission is in force only after a moment, which shows in
// no other way.
func (ns *namespace) awaitAdmission(t *testing.T, what string, accept func(*child, error) bool) {
	t.Helper()
	probe := footest.Primary.New(newFoo("probe", withReplicas(10)))
	probe.SetNamespace(ns.name)
	probe.SetOwnerReferences(nil)
	sent := ns.primary().untyped(t, probe)
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, cluster.patience(), true, func(ctx context.Context) (bool, error) {
		var stored *child
		stored, last = ns.children().Create(ctx, sent, metav1.CreateOptions{DryRun: dryRun})
		return accept(stored, last), nil
	})
	if err != nil {
		t.Fatalf("Waiting until %s: %v: %v", what, err, last)
	}
}

// removing returns a function that deletes the cluster-scoped objects of a name. It is
// also called when the test ends.
func removing(t *testing.T, name string, deletes ...func(context.Context, string, metav1.DeleteOptions) error) func() {
	t.Helper()
	remove := func() {
		t.Helper()
		ctx, cancel := context.WithTimeout(cluster.ctx, 30*time.Second)
		defer cancel()
		for _, remove := range deletes {
			if err := remove(ctx, name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
				t.Errorf("Removing %s: %v", name, err)
			}
		}
	}
	t.Cleanup(remove)
	return remove
}
