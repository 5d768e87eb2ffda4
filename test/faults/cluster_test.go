// SPDX-License-Identifier: Apache-2.0

// The cluster of a run: the CustomResourceDefinition, the permissions, and the accounts
// that controllers connect as.

package faults

import (
	"context"
	"errors"
	"os"
	"path/filepath"

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
	for _, args := range [][]string{
		{"apply", "-k", filepath.Join(moduleRoot, "artifacts/crd")},
		{"wait", "--for=condition=Established", "crd", "--all", "--timeout=60s"},
		{"apply", "-k", filepath.Join(moduleRoot, "artifacts/deploy/permissions")},
	} {
		if err := c.kubectl(ctx, args...); err != nil {
			return err
		}
	}
	return nil
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
