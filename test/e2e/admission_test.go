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
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
)

// needsAdmission skips a test that changes what the API server admits, which is
// the whole cluster's, on one that is somebody's.
func needsAdmission(t *testing.T) {
	t.Helper()
	needsToBeAlone(t)
	if !cluster.devcluster {
		t.Skip("this test changes what is admitted, which is the whole cluster's")
	}
}

// deploymentRule is about each write of a Deployment, but not of its status.
func deploymentRule() admissionregistrationv1.RuleWithOperations {
	return admissionregistrationv1.RuleWithOperations{
		Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
		Rule:       admissionregistrationv1.Rule{APIGroups: []string{appsv1.GroupName}, APIVersions: []string{"v1"}, Resources: []string{"deployments"}},
	}
}

// selector selects the namespace.
func (ns *namespace) selector() *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: ns.name}}
}

// breakWebhook has the API server ask a webhook that is down about each
// Deployment that is written, until mend is called.
func (ns *namespace) breakWebhook(t *testing.T) (mend func()) {
	t.Helper()
	client := ns.in.kube.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	mend = removing(t, ns.name, client.Delete)
	_, err := client.Create(t.Context(), &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: ofRun(ns.name),
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name:                    "down.e2e.samplecontroller.k8s.io",
			ClientConfig:            admissionregistrationv1.WebhookClientConfig{URL: new("https://127.0.0.1:1/")},
			Rules:                   []admissionregistrationv1.RuleWithOperations{deploymentRule()},
			FailurePolicy:           new(admissionregistrationv1.Fail),
			NamespaceSelector:       ns.selector(),
			SideEffects:             new(admissionregistrationv1.SideEffectClassNone),
			AdmissionReviewVersions: []string{"v1"},
		}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ns.awaitAdmission(t, "the webhook counts", func(_ *appsv1.Deployment, err error) bool {
		return err != nil && strings.Contains(err.Error(), webhookDown)
	})
	return mend
}

// webhookDown is what the API server says then.
const webhookDown = "failed calling webhook"

// mutate has an admission policy replace a value in each Deployment that is
// written and meets a condition, until withdraw is called. condition and value
// are in CEL. isMutated recognizes what becomes of Foo "foo"'s Deployment.
func (ns *namespace) mutate(t *testing.T, condition, path, value string, isMutated func(*appsv1.Deployment) bool) (withdraw func()) {
	t.Helper()
	policies := ns.in.kube.AdmissionregistrationV1().MutatingAdmissionPolicies()
	bindings := ns.in.kube.AdmissionregistrationV1().MutatingAdmissionPolicyBindings()
	remove := removing(t, ns.name, bindings.Delete, policies.Delete)
	_, err1 := policies.Create(t.Context(), &admissionregistrationv1.MutatingAdmissionPolicy{
		ObjectMeta: ofRun(ns.name),
		Spec: admissionregistrationv1.MutatingAdmissionPolicySpec{
			MatchConstraints: &admissionregistrationv1.MatchResources{
				NamespaceSelector: ns.selector(),
				ResourceRules:     []admissionregistrationv1.NamedRuleWithOperations{{RuleWithOperations: deploymentRule()}},
			},
			MatchConditions: []admissionregistrationv1.MatchCondition{{Name: "which", Expression: condition}},
			Mutations: []admissionregistrationv1.Mutation{{
				PatchType: admissionregistrationv1.PatchTypeJSONPatch,
				JSONPatch: &admissionregistrationv1.JSONPatch{Expression: fmt.Sprintf(`[JSONPatch{op: "replace", path: %q, value: %s}]`, path, value)},
			}},
			ReinvocationPolicy: admissionregistrationv1.NeverReinvocationPolicy,
		},
	}, metav1.CreateOptions{})
	_, err2 := bindings.Create(t.Context(), &admissionregistrationv1.MutatingAdmissionPolicyBinding{
		ObjectMeta: ofRun(ns.name),
		Spec:       admissionregistrationv1.MutatingAdmissionPolicyBindingSpec{PolicyName: ns.name},
	}, metav1.CreateOptions{})
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	ns.awaitAdmission(t, "the policy counts", func(d *appsv1.Deployment, err error) bool { return err == nil && isMutated(d) })
	return func() {
		t.Helper()
		remove()
		ns.awaitAdmission(t, "the policy counts no more", func(d *appsv1.Deployment, err error) bool { return err == nil && !isMutated(d) })
	}
}

// awaitAdmission waits until the API server takes a Deployment of 10 Pods of
// nginx as it should: it notices a change of its admission a moment later, and
// there is no other way to ask.
func (ns *namespace) awaitAdmission(t *testing.T, what string, isSo func(*appsv1.Deployment, error) bool) {
	t.Helper()
	probe := foosDeployment()
	probe.Name, probe.OwnerReferences, probe.Spec.Replicas = "probe", nil, new(int32(10))
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, cluster.patience(), true, func(ctx context.Context) (bool, error) {
		var stored *appsv1.Deployment
		stored, last = ns.deployments().Create(ctx, probe, metav1.CreateOptions{DryRun: dryRun})
		return isSo(stored, last), nil
	})
	if err != nil {
		t.Fatalf("Waiting until %s: %v: %v", what, err, last)
	}
}

// removing returns what removes objects of a name that are in no namespace. It
// is done when the test ends at the latest.
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
