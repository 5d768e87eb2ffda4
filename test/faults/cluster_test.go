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

package faults

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"example.com/sample-controller/internal/testcluster"
	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	clientset "example.com/sample-controller/pkg/generated/clientset/versioned"
)

// The account as it is shipped, and one for upstream's controller, with the
// same roles. The shipped admission policy is about the first alone: it holds
// our controller to what ours does.
const (
	shippedName      = "sample-controller"
	shippedRoles     = "sample-controller"
	upstreamsAccount = "upstream"
)

// testCluster is a control plane with the Foo API and the accounts.
type testCluster struct {
	kubeconfig string
	config     *rest.Config
	kube       *kubernetes.Clientset
	foos       *clientset.Clientset
	// account and bare are what a controller connects as: with the admission
	// policy, and without.
	account, bare *rest.Config
}

// prepare installs what is shipped and makes the accounts.
func prepare(ctx context.Context, kubeconfig string) (*testCluster, error) {
	c := &testCluster{kubeconfig: kubeconfig}
	if err := c.connect(); err != nil {
		return nil, err
	}
	if err := c.install(ctx); err != nil {
		return nil, err
	}
	if err := c.makeBareAccount(ctx); err != nil {
		return nil, err
	}
	var err error
	if c.account, err = c.configOf(ctx, shippedName, shippedName); err != nil {
		return nil, err
	}
	if c.bare, err = c.configOf(ctx, shippedName, upstreamsAccount); err != nil {
		return nil, err
	}
	return c, errors.Join(awaitRights(ctx, c.account, true), awaitRights(ctx, c.bare, false))
}

// install applies what is shipped: the definition and the rights.
func (c *testCluster) install(ctx context.Context) error {
	for _, args := range [][]string{
		{"apply", "-f", filepath.Join(moduleRoot, "artifacts/crd/samplecontroller.k8s.io_foos.yaml")},
		{"wait", "--for=condition=Established", "crd/foos.samplecontroller.k8s.io", "--timeout=60s"},
		{"apply", "-k", filepath.Join(moduleRoot, "artifacts/deploy/rights")},
	} {
		if err := c.kubectl(ctx, args...); err != nil {
			return err
		}
	}
	return nil
}

func (c *testCluster) connect() error {
	var err error
	if c.config, err = clientcmd.BuildConfigFromFlags("", c.kubeconfig); err != nil {
		return err
	}
	c.config.QPS = -1
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

func (c *testCluster) makeBareAccount(ctx context.Context) error {
	_, err := c.kube.CoreV1().ServiceAccounts(shippedName).Create(ctx, &corev1.ServiceAccount{
		ObjectMeta: metav1.ObjectMeta{Name: upstreamsAccount},
	}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	_, err = c.kube.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: upstreamsAccount},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: shippedRoles},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: shippedName, Name: upstreamsAccount}},
	}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	return nil
}

// configOf returns a configuration with a token of a service account.
func (c *testCluster) configOf(ctx context.Context, namespace, name string) (*rest.Config, error) {
	token, err := c.kube.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, name, &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: new(int64(4 * 60 * 60))},
	}, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("getting a token of service account %s/%s: %w", namespace, name, err)
	}
	config := rest.AnonymousClientConfig(c.config)
	config.BearerToken = token.Status.Token
	config.QPS = -1
	return config, nil
}

// awaitRights waits until an account may create a Foo's Deployment and, if
// that is forbidden to it, no other.
func awaitRights(ctx context.Context, config *rest.Config, policy bool) error {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	deployments := client.AppsV1().Deployments(metav1.NamespaceDefault)
	dryRun := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
	var last error
	err = wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		_, last = deployments.Create(ctx, newDeployment("foo", ownedBy("foo", "00000000-0000-0000-0000-000000000000")), dryRun)
		_, refused := deployments.Create(ctx, newDeployment("foo"), dryRun)
		return last == nil && apierrors.IsForbidden(refused) == policy, nil
	})
	if err != nil {
		return fmt.Errorf("waiting until the rights are in force: %w: %w", err, last)
	}
	return nil
}

// newDeployment returns a Deployment as a Foo's looks.
func newDeployment(name string, options ...func(*appsv1.Deployment)) *appsv1.Deployment {
	labels := map[string]string{"app": "nginx", "controller": name}
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(1)),
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "nginx", Image: "nginx:latest"}}},
			},
		},
	}
	for _, option := range options {
		option(d)
	}
	return d
}

// ownedBy makes a Foo the controller.
func ownedBy(foo, uid string) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) {
		d.OwnerReferences = []metav1.OwnerReference{{
			APIVersion: samplev1alpha1.SchemeGroupVersion.String(), Kind: "Foo", Name: foo, UID: types.UID(uid),
			Controller: new(true), BlockOwnerDeletion: new(true),
		}}
	}
}
