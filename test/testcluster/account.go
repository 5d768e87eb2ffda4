// SPDX-License-Identifier: Apache-2.0

// Service accounts and kubeconfigs for tests, and waiting for what an account may do.

package testcluster

import (
	"context"
	"fmt"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
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

// Child is an object that a Foo owns, of any kind.
type Child interface {
	metav1.Object
	runtime.Object
}

// AwaitFoosAsOwners waits until an account may create a child with a Foo as its owner. The
// admission plugin OwnerReferencesPermissionEnforcement refreshes its list of kinds only
// every 30 s, and refuses owners of a newer kind. The child is one as the controller
// makes it, of a resource.
func AwaitFoosAsOwners(ctx context.Context, account *rest.Config, namespace string, resource schema.GroupVersionResource, child Child) error {
	return awaitCreation(ctx, account, namespace, resource, "a child can have a Foo as its owner", child, Succeeded)
}

// AwaitPolicy waits until the admission policy refuses such a child without an owner from
// the controller's account.
func AwaitPolicy(ctx context.Context, account *rest.Config, namespace string, resource schema.GroupVersionResource, child Child) error {
	child.SetOwnerReferences(nil)
	return awaitCreation(ctx, account, namespace, resource, "the admission policy is in force", child, IsDeniedByPolicy)
}

func awaitCreation(ctx context.Context, account *rest.Config, namespace string, resource schema.GroupVersionResource, what string, child Child, wanted func(error) bool) error {
	client, err := dynamic.NewForConfig(account)
	if err != nil {
		return err
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(child)
	if err != nil {
		return err
	}
	kinds, _, err := scheme.Scheme.ObjectKinds(child)
	if err != nil {
		return err
	}
	object := &unstructured.Unstructured{Object: fields}
	object.SetGroupVersionKind(kinds[0])
	return AwaitAnswer(ctx, permissionLimit, what, func(ctx context.Context) error {
		_, err := client.Resource(resource).Namespace(namespace).Create(ctx, object, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}, wanted)
}

// IsDeniedByPolicy reports whether the controller's admission policy refused a request.
func IsDeniedByPolicy(err error) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "ValidatingAdmissionPolicy '") && strings.Contains(err.Error(), "sample-controller may ")
}
