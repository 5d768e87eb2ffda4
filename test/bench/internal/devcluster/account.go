// SPDX-License-Identifier: Apache-2.0

// The service account of the measured program, and the CustomResourceDefinition.

package devcluster

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"example.com/sample-controller/internal/testcluster"
)

// The account of the measured program. It lets the API server tell the program's requests
// from all others, and gives them the priority of any workload.
const (
	accountNamespace = "contender"
	accountName      = "contender"
	// User is the account's user name.
	User = "system:serviceaccount:" + accountNamespace + ":" + accountName

	fooCRD = "customresourcedefinition/foos.samplecontroller.k8s.io"
	// oldConditions are the conditions that the API server writes, with an old transition
	// time.
	oldConditions = `{"status":{"conditions":[
{"type":"NamesAccepted","status":"True","reason":"NoConflicts","message":"no conflicts found","lastTransitionTime":"2000-01-01T00:00:00Z"},
{"type":"Established","status":"True","reason":"InitialNamesAccepted","message":"the initial names have been accepted","lastTransitionTime":"2000-01-01T00:00:00Z"}]}}`
)

// Protobuf returns a copy of a configuration that uses protobuf for built-in types.
func Protobuf(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.ContentType = runtime.ContentTypeProtobuf
	config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	return config
}

// installFoo installs the CustomResourceDefinition and waits until it is served. The API
// server delays each creation of a Foo while the CRD has been established for less than a
// few seconds, so its conditions get an older transition time.
func (c *Cluster) installFoo(ctx context.Context, options Options) error {
	definition := filepath.Join(options.Repository, "artifacts/crd")
	for _, args := range [][]string{
		{"apply", "-k", definition},
		{"wait", "--for=condition=Established", "--timeout=30s", fooCRD},
		{"patch", fooCRD, "--subresource=status", "--type=merge", "--patch", oldConditions},
	} {
		if _, err := testcluster.Kubectl(ctx, options.Program, c.Kubeconfig, args...); err != nil {
			return err
		}
	}
	return nil
}

// createAccount creates the service account, with all permissions, and its kubeconfig.
func (c *Cluster) createAccount(ctx context.Context) error {
	if err := c.createNamespaces(ctx, []string{accountNamespace}); err != nil {
		return err
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: accountName}}
	accounts := c.Kube.CoreV1().ServiceAccounts(accountNamespace)
	_, errAccount := accounts.Create(ctx, account, metav1.CreateOptions{})
	_, errBinding := c.Kube.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: accountName},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: accountNamespace, Name: accountName}},
	}, metav1.CreateOptions{})
	if err := errors.Join(errAccount, errBinding); err != nil {
		return fmt.Errorf("creating the account of the measured program: %w", err)
	}
	c.ContenderKubeconfig = c.path("contender.kubeconfig")
	err := testcluster.WriteTokenKubeconfig(ctx, c.Kube, c.Kubeconfig, c.ContenderKubeconfig, accountNamespace, accountName)
	if err != nil {
		return err
	}
	c.Contender, err = clientcmd.BuildConfigFromFlags("", c.ContenderKubeconfig)
	return err
}

func (c *Cluster) createNamespaces(ctx context.Context, names []string) error {
	for _, name := range names {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if _, err := c.Kube.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("creating namespace %s: %w", name, err)
		}
	}
	return nil
}
