// SPDX-License-Identifier: Apache-2.0

// The service account of a controller under test: how it is created, and when its
// permissions are in force.

package e2e

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"

	"example.com/sample-controller/test/footest"
	"example.com/sample-controller/test/testcluster"
)

// account is the service account of a controller under test, with the permissions of the
// shipped manifests.
type account struct {
	// namespace is the namespace of the account, of its Lease, and of the kubeconfig's
	// context.
	namespace  string
	kubeconfig string
	config     *rest.Config
}

// makeAccount creates the account of the run, in a namespace of its own.
func (c *testCluster) makeAccount(ctx context.Context, folder string) error {
	ctx, cancel := context.WithTimeout(ctx, c.patience())
	defer cancel()
	place, err := c.createNamespace(ctx)
	if err != nil {
		return err
	}
	objects, err := shippedPermissions()
	if err == nil {
		err = move(objects, map[string]string{shippedNamespace: place.Name}, c.run)
	}
	if err != nil {
		return err
	}
	if c.account, err = installAccount(ctx, c.kubeconfig, place.Name, objects, folder); err != nil {
		return err
	}
	return c.account.awaitFoosAsOwners(ctx, place.Name)
}

// newAccount creates another account with the shipped permissions, in a namespace of the
// test. A controller that needs a Lease of its own uses it.
func (ns *namespace) newAccount(t *testing.T) *account {
	t.Helper()
	objects, err := shippedPermissions()
	if err != nil {
		t.Fatal(err)
	}
	return newAccountWith(t, cluster.kubeconfig, ns.name, objects)
}

// newAccountIn creates an account with the shipped permissions in another cluster.
func newAccountIn(t *testing.T, kubeconfig, namespace string) *account {
	t.Helper()
	objects, err := shippedPermissions()
	if err != nil {
		t.Fatal(err)
	}
	return newAccountWith(t, kubeconfig, namespace, objects)
}

func newAccountWith(t *testing.T, kubeconfig, namespace string, objects []*unstructured.Unstructured) *account {
	t.Helper()
	if err := move(objects, map[string]string{shippedNamespace: namespace}, cluster.run); err != nil {
		t.Fatal(err)
	}
	made, err := installAccount(t.Context(), kubeconfig, namespace, objects, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// installAccount creates the objects of an account, and returns it when its permissions,
// and the policy that restricts them, are in force. kubeconfig is an administrator's; the
// account's is written into folder.
func installAccount(ctx context.Context, kubeconfig, namespace string, objects []*unstructured.Unstructured, folder string) (*account, error) {
	config, err := testcluster.LoadConfig(kubeconfig)
	if err != nil {
		return nil, err
	}
	admin, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	if err := createAll(ctx, config, admin, objects); err != nil {
		return nil, err
	}
	a, err := useAccount(ctx, admin, kubeconfig, namespace, folder)
	if err != nil {
		return nil, err
	}
	if err := awaitPermissions(ctx, admin, a.user(), objects); err != nil {
		return nil, err
	}
	return a, awaitPolicy(ctx, a, objects)
}

// useAccount returns an existing account, with a new token.
func useAccount(ctx context.Context, admin kubernetes.Interface, kubeconfig, namespace, folder string) (*account, error) {
	a := &account{namespace: namespace, kubeconfig: filepath.Join(folder, "controller.kubeconfig")}
	err := testcluster.WriteTokenKubeconfig(ctx, admin, kubeconfig, a.kubeconfig, namespace, shippedName)
	if err != nil {
		return nil, err
	}
	a.config, err = testcluster.LoadConfig(a.kubeconfig)
	return a, err
}

// user returns the user name of an account.
func (a *account) user() string {
	return "system:serviceaccount:" + a.namespace + ":" + shippedName
}

// createAll creates objects of any kind.
func createAll(ctx context.Context, config *rest.Config, admin kubernetes.Interface, objects []*unstructured.Unstructured) error {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	groups, err := restmapper.GetAPIGroupResources(admin.Discovery())
	if err != nil {
		return err
	}
	mapper := restmapper.NewDiscoveryRESTMapper(groups)
	for _, object := range objects {
		kind := object.GroupVersionKind()
		mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
		if err != nil {
			return err
		}
		_, err = client.Resource(mapping.Resource).Namespace(object.GetNamespace()).Create(ctx, object, metav1.CreateOptions{})
		if err != nil {
			return fmt.Errorf("creating %s %s: %w", kind.Kind, object.GetName(), err)
		}
	}
	return nil
}

// awaitPermissions waits until a user has all permissions of the roles among the objects.
// The API server learns of roles by a watch.
func awaitPermissions(ctx context.Context, admin kubernetes.Interface, user string, objects []*unstructured.Unstructured) error {
	wanted, err := grantsOf(objects)
	if err != nil {
		return err
	}
	for _, grant := range wanted {
		err := wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
			return isAllowed(ctx, admin, user, grant)
		})
		if err != nil {
			return fmt.Errorf("waiting until %s may %s: %w", user, grant, err)
		}
	}
	return nil
}

func isAllowed(ctx context.Context, admin kubernetes.Interface, user string, g grant) (bool, error) {
	review, err := admin.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{
		Spec: authorizationv1.SubjectAccessReviewSpec{User: user, ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: g.namespace, Verb: g.verb, Group: g.group, Resource: g.resource, Subresource: g.subresource, Name: g.name,
		}},
	}, metav1.CreateOptions{})
	if err != nil {
		return false, err
	}
	return review.Status.Allowed, nil
}

// awaitPolicy waits until the admission policy among the objects, if there is one, is in
// force for the account.
func awaitPolicy(ctx context.Context, a *account, objects []*unstructured.Unstructured) error {
	bound := false
	for _, object := range objects {
		bound = bound || object.GetKind() == policyBinding
	}
	if !bound {
		return nil
	}
	return testcluster.AwaitPolicy(ctx, a.config, a.namespace, footest.Primary.Resource, footest.Unstored("nobodys"))
}

// awaitFoosAsOwners waits until the account may create a child that a Foo of a
// namespace owns.
func (a *account) awaitFoosAsOwners(ctx context.Context, namespace string) error {
	return testcluster.AwaitFoosAsOwners(ctx, a.config, namespace, footest.Primary.Resource, footest.Unstored("foo"))
}
