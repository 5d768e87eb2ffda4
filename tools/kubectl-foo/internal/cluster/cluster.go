// SPDX-License-Identifier: Apache-2.0

// Package cluster reads what the controller reads, with the account of a kubeconfig.
package cluster

import (
	"example.com/sample-controller/internal/plan"

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
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	clientset "example.com/sample-controller/pkg/generated/clientset/versioned"
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
	return &Cluster{namespace, kube, foo, binary}, nil
}

// ListFoos reads all Foos.
func (c *Cluster) ListFoos(ctx context.Context) ([]*samplev1alpha1.Foo, error) {
	list, err := c.Foo.SamplecontrollerV1alpha1().Foos(c.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, Describe(err, "list", samplev1alpha1.SchemeGroupVersion.WithResource("foos").GroupResource().String())
	}
	foos := pointers(list.Items)
	for _, foo := range foos {
		foo.ManagedFields = nil // a third of the memory
	}
	return foos, nil
}

// GetFoo reads one Foo.
func (c *Cluster) GetFoo(ctx context.Context, name string) (*samplev1alpha1.Foo, error) {
	foo, err := c.Foo.SamplecontrollerV1alpha1().Foos(c.Namespace).Get(ctx, name, metav1.GetOptions{})
	switch {
	case isUnknownResource(err):
		return nil, Describe(err, "get", "foos")
	case apierrors.IsNotFound(err):
		return nil, fmt.Errorf("there is no Foo %q in the namespace %q", name, c.Namespace)
	case err != nil:
		return nil, Describe(err, "get", "foos")
	}
	return foo, nil
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

// World reads the children of all rows, with what they know of the managers of their fields
// or without, which is half of their memory.
func (c *Cluster) World(ctx context.Context, kind *plan.OwnerKind, withManagers bool) (*preview.World, error) {
	world := preview.NewWorld()
	for _, row := range kind.Children {
		list, err := c.list(ctx, row)
		if err != nil {
			return nil, Describe(err, "list", row.Resource.GroupResource().String())
		}
		err = meta.EachListItem(list, func(item runtime.Object) error {
			child := item.(plan.Object) //nolint:forcetypeassert // the items are of the row's kind
			if !withManagers {
				child.SetManagedFields(nil)
			}
			world.Add(row.Resource, child)
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return world, nil
}

func (c *Cluster) list(ctx context.Context, row *plan.ChildKind) (runtime.Object, error) {
	client, err := c.clientOf(row.Resource)
	if err != nil {
		return nil, err
	}
	list, err := scheme.Scheme.New(row.Resource.GroupVersion().WithKind(row.Kind + "List"))
	if err != nil {
		return nil, err
	}
	return list, client.Get().NamespaceIfScoped(c.Namespace, c.Namespace != "").Resource(row.Resource.Resource).Do(ctx).Into(list)
}

// clientOf returns a client of a resource's group and version.
func (c *Cluster) clientOf(resource schema.GroupVersionResource) (*rest.RESTClient, error) {
	config, version := rest.CopyConfig(c.config), resource.GroupVersion()
	config.GroupVersion, config.APIPath, config.NegotiatedSerializer = &version, "/apis", scheme.Codecs.WithoutConversion()
	if version.Group == "" {
		config.APIPath = "/api"
	}
	return rest.RESTClientFor(config)
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
