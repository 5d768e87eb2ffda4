// SPDX-License-Identifier: Apache-2.0

// Package cluster reads what the controller reads, with the account of a kubeconfig.
package cluster

import (
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"example.com/sample-controller/internal/plan"
	clientset "example.com/sample-controller/pkg/generated/clientset/versioned"
	fooscheme "example.com/sample-controller/pkg/generated/clientset/versioned/scheme"
	"example.com/sample-controller/tools/preview"
)

// protobuf is how built-in kinds are read: it takes half of the time of JSON.
const protobuf = "application/vnd.kubernetes.protobuf,application/json"

// Cluster reads from an API server, with one list per kind.
type Cluster struct {
	// Namespace is the one to read, or "" for all.
	Namespace string
	// Kube and Foo are clients of the account.
	Kube kubernetes.Interface
	Foo  clientset.Interface

	config *rest.Config
}

// New returns the cluster of the usual flags.
func New(flags *genericclioptions.ConfigFlags, allNamespaces bool) (*Cluster, error) {
	config, err := flags.ToRESTConfig()
	if err != nil {
		return nil, err
	}
	config.QPS = -1 // the API server's own limits are enough
	namespace, _, err := flags.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return nil, err
	}
	if allNamespaces {
		namespace = metav1.NamespaceAll
	}
	binary := rest.CopyConfig(config)
	binary.ContentType, binary.AcceptContentTypes = runtime.ContentTypeProtobuf, protobuf
	kube, err := kubernetes.NewForConfig(binary)
	if err != nil {
		return nil, err
	}
	foo, err := clientset.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return &Cluster{namespace, kube, foo, config}, nil
}

// ListOwners reads all objects of a kind of the program.
func (c *Cluster) ListOwners(ctx context.Context, kind *plan.OwnerKind) ([]plan.Owner, error) {
	var owners []plan.Owner
	err := c.eachOf(ctx, kind.Resource, kind.Kind, func(object plan.Object) {
		object.SetManagedFields(nil)                 // a third of the memory
		owners = append(owners, object.(plan.Owner)) //nolint:forcetypeassert // objects of the kind
	})
	return owners, err
}

// GetOwner reads one.
func (c *Cluster) GetOwner(ctx context.Context, kind *plan.OwnerKind, name string) (plan.Owner, error) {
	client, scheme, err := c.clientOf(kind.Resource)
	if err != nil {
		return nil, err
	}
	object, err := scheme.New(kind.Resource.GroupVersion().WithKind(kind.Kind))
	if err != nil {
		return nil, err
	}
	err = client.Get().Namespace(c.Namespace).Resource(kind.Resource.Resource).Name(name).Do(ctx).Into(object)
	switch {
	case isUnknownResource(err):
		return nil, Describe(err, "get", kind.Resource.Resource)
	case apierrors.IsNotFound(err):
		return nil, c.NoOwner(kind, name)
	case err != nil:
		return nil, Describe(err, "get", kind.Resource.Resource)
	}
	return object.(plan.Owner), nil //nolint:forcetypeassert // an object of the kind
}

// NoOwner is the error that there is no object of the name.
func (c *Cluster) NoOwner(kind *plan.OwnerKind, name string) error {
	return fmt.Errorf("there is no %s %q in the namespace %q", kind.Kind, name, c.Namespace)
}

// Below has the objects that Deployments lead to, and the Events.
type Below struct {
	ReplicaSets []*appsv1.ReplicaSet
	Pods        []*corev1.Pod
	Events      []*corev1.Event
	// Missing are the errors of what the account may not read.
	Missing []error
}

// Below reads a namespace. What the account may not read is missing.
func (c *Cluster) Below(ctx context.Context) (*Below, error) {
	found, all := &Below{}, metav1.ListOptions{}
	sets, setsErr := c.Kube.AppsV1().ReplicaSets(c.Namespace).List(ctx, all)
	pods, podsErr := c.Kube.CoreV1().Pods(c.Namespace).List(ctx, all)
	events, eventsErr := c.Kube.CoreV1().Events(c.Namespace).List(ctx, all)
	for _, read := range []struct {
		resource string
		err      error
	}{{"replicasets.apps", setsErr}, {"pods", podsErr}, {"events", eventsErr}} {
		switch {
		case apierrors.IsForbidden(read.err):
			found.Missing = append(found.Missing, Describe(read.err, "list", read.resource))
		case read.err != nil:
			return nil, Describe(read.err, "list", read.resource)
		}
	}
	// After an error, a list is empty.
	found.ReplicaSets, found.Pods, found.Events = pointers(sets.Items), pointers(pods.Items), pointers(events.Items)
	return found, nil
}

func pointers[T any](items []T) []*T {
	all := make([]*T, len(items))
	for i := range items {
		all[i] = &items[i]
	}
	return all
}

// Lease reads the controller's Lease.
func (c *Cluster) Lease(ctx context.Context, namespace, name string) (*coordinationv1.Lease, error) {
	lease, err := c.Kube.CoordinationV1().Leases(namespace).Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsForbidden(err):
		return nil, Describe(err, "get", "leases.coordination.k8s.io")
	case err != nil:
		return nil, err
	case lease.Spec.RenewTime == nil:
		return nil, errors.New("it has never been renewed")
	}
	return lease, nil
}

// World reads the children of all rows of kinds, with what they know of the managers of their
// fields or without, which is half of their memory.
func (c *Cluster) World(ctx context.Context, withManagers bool, kinds ...*plan.OwnerKind) (*preview.World, error) {
	world, read := preview.NewWorld(), sets.New[schema.GroupVersionResource]()
	for _, kind := range kinds {
		for _, row := range kind.Children {
			if read.Has(row.Resource) {
				continue
			}
			read.Insert(row.Resource)
			err := c.eachOf(ctx, row.Resource, row.Kind, func(child plan.Object) {
				if !withManagers {
					child.SetManagedFields(nil)
				}
				world.Add(row.Resource, child)
			})
			if err != nil {
				return nil, err
			}
		}
	}
	return world, nil
}

// eachOf lists the objects of a resource.
func (c *Cluster) eachOf(ctx context.Context, resource schema.GroupVersionResource, kind string, do func(object plan.Object)) error {
	client, scheme, err := c.clientOf(resource)
	if err != nil {
		return err
	}
	list, err := scheme.New(resource.GroupVersion().WithKind(kind + "List"))
	if err != nil {
		return err
	}
	if err := client.Get().NamespaceIfScoped(c.Namespace, c.Namespace != "").Resource(resource.Resource).Do(ctx).Into(list); err != nil {
		return Describe(err, "list", resource.GroupResource().String())
	}
	return meta.EachListItem(list, func(item runtime.Object) error {
		do(item.(plan.Object)) //nolint:forcetypeassert // all kinds of the API are objects
		return nil
	})
}

// clientOf returns a client of a resource's group and version, and the types of these.
func (c *Cluster) clientOf(resource schema.GroupVersionResource) (*rest.RESTClient, *runtime.Scheme, error) {
	version, types, codecs := resource.GroupVersion(), scheme.Scheme, scheme.Codecs
	config := rest.CopyConfig(c.config)
	if types.IsVersionRegistered(version) {
		config.ContentType, config.AcceptContentTypes = runtime.ContentTypeProtobuf, protobuf
	} else {
		types, codecs = fooscheme.Scheme, fooscheme.Codecs
	}
	config.GroupVersion, config.APIPath, config.NegotiatedSerializer = &version, "/apis", codecs.WithoutConversion()
	if version.Group == "" {
		config.APIPath = "/api"
	}
	client, err := rest.RESTClientFor(config)
	return client, types, err
}

// Describe says what failed, and which permission or definition is missing if one is.
func Describe(err error, verb, resource string) error {
	switch {
	case apierrors.IsForbidden(err):
		return fmt.Errorf("the permission to %s %s is missing: %w", verb, resource, err)
	case isUnknownResource(err):
		return fmt.Errorf("the cluster has no %s: apply artifacts/crd first: %w", resource, err)
	}
	return fmt.Errorf("%s %s: %w", verb, resource, err)
}

// isUnknownResource reports whether an API server does not serve a resource. It then
// names no object.
func isUnknownResource(err error) bool {
	status := apierrors.APIStatus(nil)
	return apierrors.IsNotFound(err) && errors.As(err, &status) && (status.Status().Details == nil || status.Status().Details.Name == "")
}
