// SPDX-License-Identifier: Apache-2.0

// The service accounts of controllers under test: the shipped manifests, the permissions that
// they grant, and when these are in force.

package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"example.com/sample-controller/test/footest"
	"example.com/sample-controller/test/testcluster"
)

// The shipped directories and names.
const (
	deployFolder     = moduleRoot + "/artifacts/deploy"
	namespacedFolder = deployFolder + "/namespaced"
	shippedNamespace = "sample-controller"
	shippedName      = "sample-controller"
	// watchedNamespace is the one in which the namespaced variant has permissions.
	watchedNamespace = metav1.NamespaceDefault
	policyKind       = "ValidatingAdmissionPolicy"
	policyBinding    = "ValidatingAdmissionPolicyBinding"
	flowSchema       = "FlowSchema"
)

// ofAccounts are the kinds of objects that an account consists of.
var ofAccounts = sets.New("ServiceAccount", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding",
	policyKind, policyBinding, flowSchema)

// manifests are objects as they are applied.
type manifests []*unstructured.Unstructured

// account is the service account of a controller under test, with the permissions of the
// shipped manifests.
type account struct {
	// namespace is the namespace of the account, of its Lease, and of the kubeconfig's
	// context. name is that of the account and of the Lease.
	namespace, name string
	kubeconfig      string
	config          *rest.Config
	// granted are its permissions, if a test has created it.
	granted []grant
}

// user returns the user name of an account.
func (a *account) user() string {
	return "system:serviceaccount:" + a.namespace + ":" + a.name
}

// flags returns those of a controller that uses the account and competes for its Lease.
func (a *account) flags() []string {
	return []string{"-kubeconfig=" + a.kubeconfig, "-leader-elect", "-leader-elect-resource-name=" + a.name}
}

// createAccount creates the account of the run.
func (ns *namespace) createAccount(ctx context.Context) error {
	objects, err := ns.in.accountIn(ctx, deployFolder+"/permissions")
	if err != nil {
		return err
	}
	if ns.in.account, err = ns.install(ctx, objects, ns.name); err != nil {
		return err
	}
	return ns.in.account.awaitFoosAsOwners(ctx, ns.name)
}

// newAccount creates another account with the shipped permissions. A controller that needs
// its own Lease uses it.
func (ns *namespace) newAccount(t *testing.T) *account {
	t.Helper()
	objects, err := ns.in.accountIn(t.Context(), deployFolder+"/permissions")
	footest.Must(t, err)
	return ns.newAccountWith(t, objects, ns.name)
}

// newAccountWith creates an account with the objects of accountIn. It may write in a watched
// namespace if the objects are those of the namespaced variant.
func (ns *namespace) newAccountWith(t *testing.T, objects manifests, watched string) *account {
	t.Helper()
	made, err := ns.install(t.Context(), objects, watched)
	t.Cleanup(func() {
		// While a binding refers to an account that is gone, the API server looks for it at
		// each write of other tests, and refuses those for which that takes too long.
		if err := ns.in.deleteClusterScoped(context.Background(), "--selector="+accountLabel+"="+ns.name); err != nil {
			t.Error(err)
		}
	})
	footest.Must(t, err)
	return made
}

const (
	// accountLabel is the label of the objects of an account. Its value is the namespace.
	accountLabel = "e2e.samplecontroller.k8s.io/account"
	// home stands for the account's namespace in what accountIn returns.
	home = "home-of-the-account"
)

// accountIn renders the objects of the controller's account in a shipped directory, without
// the namespace and the roles of users. The names end with home, so that they conflict with
// no others.
func (c *testCluster) accountIn(ctx context.Context, folder string) (manifests, error) {
	overlay, err := os.MkdirTemp(filepath.Dir(c.kubeconfig), "account-")
	if err != nil {
		return nil, err
	}
	labels := fmt.Sprintf("labels: [{pairs: {%s: '%s', %s: %s}}]\n", runLabel, c.run, accountLabel, home)
	if err := writeKustomization(overlay, folder, "nameSuffix: -"+home+"\n"+labels); err != nil {
		return nil, err
	}
	objects, err := c.render(ctx, overlay)
	return slices.DeleteFunc(objects, func(object *unstructured.Unstructured) bool {
		return !ofAccounts.Has(object.GetKind()) || strings.HasPrefix(object.GetName(), "sample-controller-foo-")
	}), err
}

// writeKustomization writes a kustomization with a shipped directory as its base.
func writeKustomization(folder, base, text string) error {
	base, err := filepath.Abs(base)
	if err == nil {
		base, err = filepath.Rel(folder, base)
	}
	if err != nil {
		return err
	}
	text += "resources: ['" + filepath.ToSlash(base) + "']\n"
	return os.WriteFile(filepath.Join(folder, "kustomization.yaml"), []byte(text), 0o600)
}

// render returns the objects of a rendered directory.
func (c *testCluster) render(ctx context.Context, folder string) (manifests, error) {
	text, err := c.runKubectl(ctx, "kustomize", folder)
	if err != nil {
		return nil, err
	}
	var objects manifests
	for documents := utilyaml.NewYAMLOrJSONDecoder(strings.NewReader(text), len(text)); ; {
		object := &unstructured.Unstructured{}
		err := documents.Decode(&object.Object)
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", folder, err)
		}
		objects = append(objects, object)
	}
}

// objectsOf returns the objects of a rendered directory.
func objectsOf(t *testing.T, folder string) manifests {
	t.Helper()
	objects, err := cluster.render(t.Context(), folder)
	footest.Must(t, err)
	return objects
}

// install creates an account in the namespace with the objects of accountIn, and returns it
// when its permissions, and the policies that restrict it, are in force.
func (ns *namespace) install(ctx context.Context, objects manifests, watched string) (*account, error) {
	folder, err := os.MkdirTemp(filepath.Dir(ns.in.kubeconfig), "account-")
	if err != nil {
		return nil, err
	}
	if objects, err = ns.apply(ctx, folder, objects, watched); err != nil {
		return nil, err
	}
	a, err := useAccount(ctx, ns.in, folder, ns.name, shippedName+"-"+ns.name)
	if err != nil {
		return nil, err
	}
	if a.granted, err = grantsOf(objects); err != nil {
		return nil, err
	}
	for _, grant := range a.granted {
		if err := awaitAllowed(ctx, ns.in.kube, a.user(), grant); err != nil {
			return nil, err
		}
	}
	for _, object := range objects {
		if object.GetKind() == policyBinding {
			return a, a.awaitPolicies(ctx, watched)
		}
	}
	return a, nil
}

// awaitPolicies waits until the admission policy of each kind of children refuses one without
// an owner in a namespace.
func (a *account) awaitPolicies(ctx context.Context, namespace string) error {
	for _, kind := range kindsOfChildren() {
		foo := kind.Owner().New("nobodys", "nobodys", 0)
		foo.SetNamespace("")
		kind.Ask(foo)
		if err := testcluster.AwaitPolicy(ctx, a.config, namespace, kind.Resource, kind.New(foo)); err != nil {
			return err
		}
	}
	return nil
}

// apply applies the objects of accountIn, with the namespace in the place of home, and returns
// them.
func (ns *namespace) apply(ctx context.Context, folder string, objects manifests, watched string) (manifests, error) {
	text, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "List", "items": objects})
	if err != nil {
		return nil, err
	}
	moved := strings.NewReplacer(home, ns.name,
		`"namespace":"`+shippedNamespace+`"`, `"namespace":"`+ns.name+`"`,
		`"namespaces":["`+shippedNamespace+`"]`, `"namespaces":["`+ns.name+`"]`,
		`"namespace":"`+watchedNamespace+`"`, `"namespace":"`+watched+`"`,
	).Replace(string(text))
	file := filepath.Join(folder, "objects.json")
	if err := os.WriteFile(file, []byte(moved), 0o600); err != nil {
		return nil, err
	}
	if _, err := ns.in.runKubectl(ctx, "apply", "--server-side", "--filename="+file); err != nil {
		return nil, err
	}
	var list struct {
		Items manifests `json:"items"`
	}
	err = json.Unmarshal([]byte(moved), &list)
	return list.Items, err
}

// useAccount returns an existing account, with a new token. The kubeconfig is written into
// a directory.
func useAccount(ctx context.Context, c *testCluster, folder, namespace, name string) (*account, error) {
	a := &account{namespace: namespace, name: name, kubeconfig: filepath.Join(folder, "controller.kubeconfig")}
	err := testcluster.WriteTokenKubeconfig(ctx, c.kube, c.kubeconfig, a.kubeconfig, namespace, name)
	if err != nil {
		return nil, err
	}
	a.config, err = testcluster.LoadConfig(a.kubeconfig)
	return a, err
}

// awaitFoosAsOwners waits until the account may create a child that a Foo of a
// namespace owns.
func (a *account) awaitFoosAsOwners(ctx context.Context, namespace string) error {
	return testcluster.AwaitFoosAsOwners(ctx, a.config, namespace, footest.Primary.Resource, footest.Unstored("made-up"))
}

// grant is the permission for one verb on one resource, or on a path of a URL, which is then the
// resource.
type grant struct {
	authorizationv1.ResourceAttributes

	// role is the kind and name of the role that grants it.
	role string
}

func (g grant) String() string { return g.Verb + " " + g.path() }

// path returns the resource with the subresource, if any.
func (g grant) path() string {
	return strings.TrimSuffix(g.Resource+"/"+g.Subresource, "/")
}

// grantsOf returns the permissions of the bound roles among objects.
func grantsOf(objects manifests) ([]grant, error) {
	bound := map[string]bool{}
	for _, object := range objects {
		if strings.HasSuffix(object.GetKind(), "Binding") {
			kind, _, _ := unstructured.NestedString(object.Object, "roleRef", "kind")
			name, _, _ := unstructured.NestedString(object.Object, "roleRef", "name")
			bound[kind+" "+name] = true
		}
	}
	var grants []grant
	for _, object := range objects {
		if !bound[object.GetKind()+" "+object.GetName()] {
			continue
		}
		more, err := grantsOfRole(object)
		if err != nil {
			return nil, err
		}
		grants = append(grants, more...)
	}
	if len(grants) == 0 {
		return nil, errors.New("the manifests grant no permissions")
	}
	return grants, nil
}

// grantsOfRole returns the permissions of a Role or ClusterRole, whose rules have the
// same type.
func grantsOfRole(object *unstructured.Unstructured) ([]grant, error) {
	role := object.GetKind() + " " + object.GetName()
	var content rbacv1.ClusterRole
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &content); err != nil {
		return nil, fmt.Errorf("%s: %w", role, err)
	}
	var grants []grant
	add := func(attributes authorizationv1.ResourceAttributes) { grants = append(grants, grant{attributes, role}) }
	for _, rule := range content.Rules {
		names := rule.ResourceNames
		if len(names) == 0 {
			names = []string{""}
		}
		for _, verb := range rule.Verbs {
			for _, url := range rule.NonResourceURLs {
				add(authorizationv1.ResourceAttributes{Resource: url, Verb: verb})
			}
			for _, group := range rule.APIGroups {
				for _, path := range rule.Resources {
					resource, subresource, _ := strings.Cut(path, "/")
					for _, name := range names {
						add(authorizationv1.ResourceAttributes{
							Namespace: object.GetNamespace(), Verb: verb, Group: group, Resource: resource, Subresource: subresource, Name: name,
						})
					}
				}
			}
		}
	}
	return grants, nil
}

var errNotAllowed = errors.New("the API server says no")

// awaitAllowed waits until a user has a permission. The API server learns of roles by a
// watch.
func awaitAllowed(ctx context.Context, admin kubernetes.Interface, user string, g grant) error {
	return testcluster.Await(ctx, patience, user+" may "+g.String(), func(ctx context.Context) error {
		allowed, err := isAllowed(ctx, admin, user, g)
		if err == nil && !allowed {
			err = errNotAllowed
		}
		return err
	})
}

func isAllowed(ctx context.Context, admin kubernetes.Interface, user string, g grant) (bool, error) {
	spec := authorizationv1.SubjectAccessReviewSpec{User: user, ResourceAttributes: &g.ResourceAttributes}
	if strings.HasPrefix(g.Resource, "/") {
		spec.ResourceAttributes = nil
		spec.NonResourceAttributes = &authorizationv1.NonResourceAttributes{Path: g.Resource, Verb: g.Verb}
	}
	reviews := admin.AuthorizationV1().SubjectAccessReviews()
	review, err := reviews.Create(ctx, &authorizationv1.SubjectAccessReview{Spec: spec}, metav1.CreateOptions{})
	return err == nil && review.Status.Allowed, err
}
