// SPDX-License-Identifier: Apache-2.0

// Package cluster reads what the controller reads, with a kubeconfig's account.
package cluster

import (
	"context"
	"errors"
	"fmt"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apitypes "k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes/scheme"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	fooscheme "example.com/sample-controller/pkg/generated/clientset/versioned/scheme"
	"example.com/sample-controller/pkg/reconcile/plan"
	"example.com/sample-controller/tools/preview"
)

// Cluster reads from an API server, with one list per kind.
type Cluster struct {
	// Namespace is the namespace to read, or "" for all.
	Namespace string

	config *rest.Config
	client dynamic.Interface
}

// New returns the cluster that kubectl's usual flags select.
func New(flags *genericclioptions.ConfigFlags, allNamespaces bool) (*Cluster, error) {
	config, err := flags.ToRESTConfig()
	if err != nil {
		return nil, err
	}
	config.QPS = -1 // the API server's own limits are enough
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	namespace, _, err := flags.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return nil, err
	}
	if allNamespaces {
		namespace = metav1.NamespaceAll
	}
	return &Cluster{namespace, config, client}, nil
}

// In returns the cluster with another namespace to read.
func (c *Cluster) In(namespace string) *Cluster { return &Cluster{namespace, c.config, c.client} }

// Find reads resources, each once. missing has an error for each optional resource that the account may not read.
func (c *Cluster) Find(ctx context.Context, resources []Resource) (world preview.World, missing []error, err error) {
	world = preview.World{}
	read := sets.New[schema.GroupVersionResource]()
	for _, r := range resources {
		if read.Has(r.GroupVersionResource) {
			continue
		}
		read.Insert(r.GroupVersionResource)
		err := c.eachOf(ctx, r, "", func(object plan.Object) { world.Add(r.GroupVersionResource, object) })
		switch {
		case r.IsOptional && apierrors.IsForbidden(err):
			missing = append(missing, err)
		case err != nil:
			return nil, nil, err
		}
	}
	return world, missing, nil
}

// ListOwners reads all objects of a kind, or the one with a name.
func (c *Cluster) ListOwners(ctx context.Context, kind *plan.Kind, name string) ([]plan.Owner, error) {
	var owners []plan.Owner
	err := c.eachOf(ctx, ownersOf(kind), name, func(object plan.Object) {
		owners = append(owners, object.(plan.Owner)) //nolint:forcetypeassert // objects of the kind
	})
	return owners, err
}

// NoOwner is the error for an object that does not exist.
func (c *Cluster) NoOwner(kind *plan.Kind, name string) error {
	return fmt.Errorf("there is no %s %q in the namespace %q", kind.Name, name, c.Namespace)
}

// Lease is the controller's Lease, which has been renewed at least once, or an error.
type Lease struct {
	*coordinationv1.Lease

	Name cache.ObjectName
	Err  error
}

// Lease reads the controller's Lease.
func (c *Cluster) Lease(ctx context.Context, name cache.ObjectName) Lease {
	client, err := coordinationclient.NewForConfig(c.config)
	if err != nil {
		return Lease{nil, name, err}
	}
	lease, err := client.Leases(name.Namespace).Get(ctx, name.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsForbidden(err):
		err = describe(err, "get", coordinationv1.Resource("leases"))
	case err == nil && lease.Spec.RenewTime == nil:
		err = errors.New("it has never been renewed")
	}
	return Lease{lease, name, err}
}

// eachOf lists the objects of a resource, or the one with a name.
func (c *Cluster) eachOf(ctx context.Context, r Resource, name string, do func(object plan.Object)) error {
	var opts metav1.ListOptions
	if name != "" {
		opts.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()
	}
	list, err := c.client.Resource(r.GroupVersionResource).Namespace(c.Namespace).List(ctx, opts)
	if err != nil {
		return describe(err, "list", r.GroupResource())
	}
	for i := range list.Items {
		object, err := types.New(r.GroupVersion().WithKind(r.Kind))
		if err == nil {
			err = runtime.DefaultUnstructuredConverter.FromUnstructured(list.Items[i].Object, object)
		}
		if err != nil {
			return fmt.Errorf("%s %s: %w", r.Kind, list.Items[i].GetName(), err)
		}
		do(object.(plan.Object)) //nolint:forcetypeassert // all kinds of the API are objects
	}
	return nil
}

// types has the types of all resources.
var types = func() *runtime.Scheme {
	types := runtime.NewScheme()
	utilruntime.Must(errors.Join(scheme.AddToScheme(types), fooscheme.AddToScheme(types)))
	return types
}()

// describe adds what failed, and the permission or the definition that is missing.
func describe(err error, verb string, resource schema.GroupResource) error {
	switch {
	case apierrors.IsForbidden(err):
		return fmt.Errorf("the permission to %s %s is missing: %w", verb, resource, err)
	case apierrors.IsNotFound(err): // a list names no object
		return fmt.Errorf("the cluster has no %s: apply artifacts/crd first: %w", resource, err)
	}
	return fmt.Errorf("%s %s: %w", verb, resource, err)
}

// Annotate sets an annotation of an object.
func (c *Cluster) Annotate(ctx context.Context, resource schema.GroupVersionResource, object plan.Object, key, value string, isDryRun bool) error {
	opts := metav1.PatchOptions{FieldManager: "kubectl-foo"}
	if isDryRun {
		opts.DryRun = []string{metav1.DryRunAll}
	}
	patch := fmt.Sprintf(`{"metadata":{"uid":%q,"annotations":{%q:%q}}}`, object.GetUID(), key, value)
	_, err := c.client.Resource(resource).Namespace(object.GetNamespace()).Patch(ctx, object.GetName(), apitypes.MergePatchType, []byte(patch), opts)
	return err
}
