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

// Service accounts and kubeconfigs for tests, and waiting for what an account may do.

package testcluster

import (
	"context"
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// ServiceAccount is the name of the controller's service account in artifacts/deploy, and
// of its namespace.
const ServiceAccount = "sample-controller"

// tokenLifetime is longer than any test runs.
const tokenLifetime = 24 * time.Hour

// LoadConfig reads a kubeconfig. It turns the client's own rate limit off.
func LoadConfig(kubeconfig string) (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	return config, nil
}

// Token returns a token of a service account.
func Token(ctx context.Context, admin kubernetes.Interface, namespace, name string) (string, error) {
	token, err := admin.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, name, &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: new(int64(tokenLifetime.Seconds()))},
	}, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("getting a token of service account %s/%s: %w", namespace, name, err)
	}
	return token.Status.Token, nil
}

// ConfigOf returns a client configuration for a service account in admin's cluster.
func ConfigOf(ctx context.Context, admin *rest.Config, namespace, name string) (*rest.Config, error) {
	client, err := kubernetes.NewForConfig(admin)
	if err != nil {
		return nil, err
	}
	token, err := Token(ctx, client, namespace, name)
	if err != nil {
		return nil, err
	}
	config := rest.AnonymousClientConfig(admin)
	config.BearerToken, config.QPS = token, -1
	return config, nil
}

// WriteTokenKubeconfig writes a copy of an administrator's kubeconfig whose user is a
// service account. The contexts get the namespace of the account.
func WriteTokenKubeconfig(ctx context.Context, admin kubernetes.Interface, from, to, namespace, name string) error {
	token, err := Token(ctx, admin, namespace, name)
	if err != nil {
		return err
	}
	config, err := clientcmd.LoadFromFile(from)
	if err != nil {
		return err
	}
	for user := range config.AuthInfos {
		config.AuthInfos[user] = &clientcmdapi.AuthInfo{Token: token}
	}
	for _, c := range config.Contexts {
		c.Namespace = namespace
	}
	return clientcmd.WriteToFile(*config, to)
}

// WriteKubeconfig writes a kubeconfig for a server. The certificate authority may be nil.
func WriteKubeconfig(path, server string, authority []byte, user clientcmdapi.AuthInfo) error {
	config := clientcmdapi.NewConfig()
	config.Clusters["it"] = &clientcmdapi.Cluster{Server: server, CertificateAuthorityData: authority}
	config.AuthInfos["it"] = &user
	config.Contexts["it"] = &clientcmdapi.Context{Cluster: "it", AuthInfo: "it"}
	config.CurrentContext = "it"
	return clientcmd.WriteToFile(*config, path)
}

// permissionLimit bounds the wait until the API server knows new permissions, policies
// and kinds.
const permissionLimit = 90 * time.Second

// FoosDeployment returns a Deployment as the controller makes it for a Foo of that name,
// without the number of replicas.
func FoosDeployment(name string) *appsv1.Deployment {
	labels := map[string]string{"app": "nginx", "controller": name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name, OwnerReferences: []metav1.OwnerReference{{
			APIVersion: "samplecontroller.k8s.io/v1alpha1", Kind: "Foo", Name: name, UID: "00000000-0000-0000-0000-000000000000",
			Controller: new(true), BlockOwnerDeletion: new(true),
		}}},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "nginx", Image: "nginx:latest"}}},
			},
		},
	}
}

// AwaitFoosAsOwners waits until an account may create a Deployment with a Foo as its
// owner. The admission plugin OwnerReferencesPermissionEnforcement refreshes its list of
// kinds only every 30 s, and refuses owners of a newer kind.
func AwaitFoosAsOwners(ctx context.Context, account *rest.Config, namespace string) error {
	return awaitCreation(ctx, account, namespace, "a Deployment can have a Foo as its owner", FoosDeployment("foo"), Succeeded)
}

// AwaitPolicy waits until the admission policy refuses a Deployment without an owner from
// the controller's account.
func AwaitPolicy(ctx context.Context, account *rest.Config, namespace string) error {
	nobodys := FoosDeployment("nobodys")
	nobodys.OwnerReferences = nil
	return awaitCreation(ctx, account, namespace, "the admission policy is in force", nobodys, IsDeniedByPolicy)
}

func awaitCreation(ctx context.Context, account *rest.Config, namespace, what string, deployment *appsv1.Deployment, wanted func(error) bool) error {
	client, err := kubernetes.NewForConfig(account)
	if err != nil {
		return err
	}
	return AwaitAnswer(ctx, permissionLimit, what, func(ctx context.Context) error {
		_, err := client.AppsV1().Deployments(namespace).Create(ctx, deployment, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}, wanted)
}

// IsDeniedByPolicy reports whether the controller's admission policy refused a request.
func IsDeniedByPolicy(err error) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "ValidatingAdmissionPolicy '") && strings.Contains(err.Error(), "sample-controller may ")
}
