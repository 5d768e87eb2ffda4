// SPDX-License-Identifier: Apache-2.0

// The cluster of a run: the CustomResourceDefinition, the permissions, the policy, and the
// accounts that controllers connect as.

package faults

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	clientset "example.com/sample-controller/pkg/generated/clientset/versioned"
	"example.com/sample-controller/test/footest"
	"example.com/sample-controller/test/testcluster"
)

// The shipped account, and another with the same roles, which may also do what only
// upstream's controller does. The shipped admission policy applies to the first only: it
// restricts this controller to the writes that it is known to make.
const (
	shippedName   = "sample-controller"
	shippedRoles  = "sample-controller"
	exemptAccount = "upstream"
)

// testCluster is a control plane with the Foo API and the accounts.
type testCluster struct {
	kubeconfig string
	config     *rest.Config
	kube       *kubernetes.Clientset
	foos       *clientset.Clientset
	// account and exempt are what a controller connects as. The admission policy applies
	// to account.
	account, exempt *rest.Config
}

// prepare installs the shipped manifests and creates the accounts.
func prepare(ctx context.Context, kubeconfig string) (*testCluster, error) {
	c := &testCluster{kubeconfig: kubeconfig}
	if err := c.connect(); err != nil {
		return nil, err
	}
	if err := c.install(ctx); err != nil {
		return nil, err
	}
	if err := c.createExemptAccount(ctx); err != nil {
		return nil, err
	}
	var err error
	if c.account, err = testcluster.ConfigOf(ctx, c.config, shippedName, shippedName); err != nil {
		return nil, err
	}
	if c.exempt, err = testcluster.ConfigOf(ctx, c.config, shippedName, exemptAccount); err != nil {
		return nil, err
	}
	return c, errors.Join(
		testcluster.AwaitFoosAsOwners(ctx, c.account, metav1.NamespaceDefault, footest.Primary.Resource, footest.Unstored("foo")),
		testcluster.AwaitFoosAsOwners(ctx, c.exempt, metav1.NamespaceDefault, footest.Primary.Resource, footest.Unstored("foo")),
		testcluster.AwaitPolicy(ctx, c.account, metav1.NamespaceDefault, footest.Primary.Resource, footest.Unstored("nobodys")))
}

// install applies the shipped CustomResourceDefinitions and permissions.
func (c *testCluster) install(ctx context.Context) error {
	if err := testcluster.InstallCRDs(ctx, os.Getenv("DEVCLUSTER_BIN"), c.kubeconfig, moduleRoot); err != nil {
		return err
	}
	return c.kubectl(ctx, "apply", "-k", filepath.Join(moduleRoot, "artifacts/deploy/permissions"))
}

func (c *testCluster) connect() error {
	var err error
	if c.config, err = testcluster.LoadConfig(c.kubeconfig); err != nil {
		return err
	}
	if c.kube, err = kubernetes.NewForConfig(c.config); err != nil {
		return err
	}
	c.foos, err = clientset.NewForConfig(c.config)
	return err
}

func (c *testCluster) kubectl(ctx context.Context, args ...string) error {
	_, err := testcluster.Kubectl(ctx, os.Getenv("DEVCLUSTER_BIN"), c.kubeconfig, args...)
	return err
}

// upstreamRules allow what upstream's controller does and ours does not: it updates
// Deployments, where ours sends patches.
func upstreamRules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{{APIGroups: []string{appsv1.GroupName}, Resources: []string{"deployments"}, Verbs: []string{"update"}}}
}

func (c *testCluster) createExemptAccount(ctx context.Context) error {
	name, rbac := metav1.ObjectMeta{Name: exemptAccount}, c.kube.RbacV1()
	_, err := c.kube.CoreV1().ServiceAccounts(shippedName).Create(ctx, &corev1.ServiceAccount{ObjectMeta: name}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	_, err = rbac.ClusterRoles().Create(ctx, &rbacv1.ClusterRole{ObjectMeta: name, Rules: upstreamRules()}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	for _, role := range []string{shippedRoles, exemptAccount} {
		_, err := rbac.ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: exemptAccount + "-" + role},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: shippedName, Name: exemptAccount}},
		}, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	return nil
}

// newDeployment returns a Deployment like that of a Foo, with one Pod and without an
// owner.
func newDeployment(name string, options ...func(*appsv1.Deployment)) *appsv1.Deployment {
	d := footest.UnstoredDeployment(name)
	d.OwnerReferences, d.Spec.Replicas = nil, new(int32(1))
	for _, option := range options {
		option(d)
	}
	return d
}

// ownedBy makes a Foo the controller of a Deployment.
func ownedBy(foo, uid string) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) {
		d.OwnerReferences = footest.UnstoredDeployment(foo).OwnerReferences
		d.OwnerReferences[0].UID = types.UID(uid)
	}
}

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
