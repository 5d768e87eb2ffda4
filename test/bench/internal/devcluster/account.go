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

// The account that is measured. By it the API server tells its requests from all
// others, and treats them as those of any workload.
const (
	accountNamespace = "contender"
	accountName      = "contender"
	// User is its name to the API server.
	User = "system:serviceaccount:" + accountNamespace + ":" + accountName

	fooDefinition = "customresourcedefinition/foos.samplecontroller.k8s.io"
	// longEstablished are conditions as the API server writes them, but for the time.
	longEstablished = `{"status":{"conditions":[
{"type":"NamesAccepted","status":"True","reason":"NoConflicts","message":"no conflicts found","lastTransitionTime":"2000-01-01T00:00:00Z"},
{"type":"Established","status":"True","reason":"InitialNamesAccepted","message":"the initial names have been accepted","lastTransitionTime":"2000-01-01T00:00:00Z"}]}}`
)

// Protobuf returns a configuration by which built-in types travel as protobuf.
func Protobuf(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.ContentType = runtime.ContentTypeProtobuf
	config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	return config
}

// installFoo installs the CustomResourceDefinition and waits until it is served.
// The API server would hold up each creation for two seconds, as long as the
// definition is younger than that; so it is told that it is older.
func (c *Cluster) installFoo(ctx context.Context, options Options) error {
	definition := filepath.Join(options.Repository, "artifacts/crd")
	for _, args := range [][]string{
		{"apply", "-k", definition},
		{"wait", "--for=condition=Established", "--timeout=30s", fooDefinition},
		{"patch", fooDefinition, "--subresource=status", "--type=merge", "--patch", longEstablished},
	} {
		if _, err := testcluster.Kubectl(ctx, options.Program, c.Kubeconfig, args...); err != nil {
			return err
		}
	}
	return nil
}

// makeAccount makes the service account, with all rights, and its kubeconfig.
func (c *Cluster) makeAccount(ctx context.Context) error {
	if err := c.makeNamespaces(ctx, []string{accountNamespace}); err != nil {
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
		return fmt.Errorf("making the account that is measured: %w", err)
	}
	c.ContenderKubeconfig = c.path("contender.kubeconfig")
	err := testcluster.WriteTokenKubeconfig(ctx, c.Kube, c.Kubeconfig, c.ContenderKubeconfig, accountNamespace, accountName)
	if err != nil {
		return err
	}
	c.Contender, err = clientcmd.BuildConfigFromFlags("", c.ContenderKubeconfig)
	return err
}

func (c *Cluster) makeNamespaces(ctx context.Context, names []string) error {
	for _, name := range names {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if _, err := c.Kube.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("creating namespace %s: %w", name, err)
		}
	}
	return nil
}
