// SPDX-License-Identifier: Apache-2.0

// Admission policies and webhooks that refuse or change a trial's Deployments. They are
// cluster objects: they have the name of the trial's namespace, and match only objects in
// it.

package faults

import (
	"context"
	"errors"
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// deny creates an admission policy that refuses an operation on one Deployment, with the
// message that messageExpression, in CEL, yields.
func (tr *trial) deny(ctx context.Context, deployment string, operation admissionregistrationv1.OperationType, messageExpression string) error {
	name, client := metav1.ObjectMeta{Name: tr.ns}, tr.cluster.kube.AdmissionregistrationV1()
	_, err := client.ValidatingAdmissionPolicies().Create(ctx, &admissionregistrationv1.ValidatingAdmissionPolicy{
		ObjectMeta: name,
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: tr.deploymentsHere(operation),
			MatchConditions:  []admissionregistrationv1.MatchCondition{{Name: "this-one", Expression: fmt.Sprintf("object.metadata.name == %q", deployment)}},
			Validations:      []admissionregistrationv1.Validation{{Expression: "false", MessageExpression: messageExpression}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	_, err = client.ValidatingAdmissionPolicyBindings().Create(ctx, &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: name,
		Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: tr.ns, ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
		},
	}, metav1.CreateOptions{})
	return err
}

// mutate creates an admission policy that replaces a value in each Deployment at some
// operations. value is in CEL.
func (tr *trial) mutate(ctx context.Context, path, value string, operations ...admissionregistrationv1.OperationType) error {
	name, client := metav1.ObjectMeta{Name: tr.ns}, tr.cluster.kube.AdmissionregistrationV1()
	_, err := client.MutatingAdmissionPolicies().Create(ctx, &admissionregistrationv1.MutatingAdmissionPolicy{
		ObjectMeta: name,
		Spec: admissionregistrationv1.MutatingAdmissionPolicySpec{
			MatchConstraints: tr.deploymentsHere(operations...),
			Mutations: []admissionregistrationv1.Mutation{{
				PatchType: admissionregistrationv1.PatchTypeJSONPatch,
				JSONPatch: &admissionregistrationv1.JSONPatch{Expression: fmt.Sprintf(`[JSONPatch{op: "replace", path: %q, value: %s}]`, path, value)},
			}},
			ReinvocationPolicy: admissionregistrationv1.NeverReinvocationPolicy,
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	_, err = client.MutatingAdmissionPolicyBindings().Create(ctx, &admissionregistrationv1.MutatingAdmissionPolicyBinding{
		ObjectMeta: name,
		Spec:       admissionregistrationv1.MutatingAdmissionPolicyBindingSpec{PolicyName: tr.ns},
	}, metav1.CreateOptions{})
	return err
}

// failClosed registers an admission webhook for each Deployment that is created or
// updated. Nothing answers at its address, so the API server refuses the request. It
// answers 500, because the request was not denied by a policy.
func (tr *trial) failClosed(ctx context.Context) error {
	here := tr.deploymentsHere(admissionregistrationv1.Create, admissionregistrationv1.Update)
	_, err := tr.cluster.kube.AdmissionregistrationV1().ValidatingWebhookConfigurations().Create(ctx, &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: tr.ns},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name:                    "down.faults.example.com",
			ClientConfig:            admissionregistrationv1.WebhookClientConfig{URL: new("https://127.0.0.1:1/")},
			NamespaceSelector:       here.NamespaceSelector,
			Rules:                   []admissionregistrationv1.RuleWithOperations{here.ResourceRules[0].RuleWithOperations},
			FailurePolicy:           new(admissionregistrationv1.Fail),
			SideEffects:             new(admissionregistrationv1.SideEffectClassNone),
			AdmissionReviewVersions: []string{"v1"},
		}},
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	return tr.awaitAdmission(ctx, "the webhook is called", newDeployment("probe"),
		func(_ *appsv1.Deployment, err error) bool { return apierrors.IsInternalError(err) })
}

// deploymentsHere matches operations on the Deployments of the trial's namespace.
func (tr *trial) deploymentsHere(operations ...admissionregistrationv1.OperationType) *admissionregistrationv1.MatchResources {
	return &admissionregistrationv1.MatchResources{
		NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: tr.ns}},
		ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{RuleWithOperations: admissionregistrationv1.RuleWithOperations{
			Operations: operations,
			Rule:       admissionregistrationv1.Rule{APIGroups: []string{appsv1.GroupName}, APIVersions: []string{"v1"}, Resources: []string{"deployments"}},
		}}},
	}
}

// withdraw deletes the trial's policies and webhook, if there are any, even if ctx is
// done.
func (tr *trial) withdraw(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), waitTimeout)
	defer cancel()
	client := tr.cluster.kube.AdmissionregistrationV1()
	var errs []error
	for _, remove := range []func(context.Context, string, metav1.DeleteOptions) error{
		client.ValidatingAdmissionPolicyBindings().Delete, client.ValidatingAdmissionPolicies().Delete,
		client.MutatingAdmissionPolicyBindings().Delete, client.MutatingAdmissionPolicies().Delete,
		client.ValidatingWebhookConfigurations().Delete,
	} {
		if err := remove(ctx, tr.ns, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// awaitAdmission waits until the API server's answer to a create is right. The API server
// applies a policy a little later than it stores it.
func (tr *trial) awaitAdmission(ctx context.Context, what string, tried *appsv1.Deployment, right func(*appsv1.Deployment, error) bool) error {
	return tr.await(ctx, what, func(ctx context.Context) error {
		made, err := tr.deployments().Create(ctx, tried, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if !right(made, err) {
			return errors.Join(errors.New("not yet"), err)
		}
		return nil
	})
}
