// SPDX-License-Identifier: Apache-2.0

// Package cluster reads what the controller reads, with a kubeconfig's account.
package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"

	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	apitypes "k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/kubernetes/scheme"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"example.com/sample-controller/internal/names"
	fooscheme "example.com/sample-controller/pkg/generated/clientset/versioned/scheme"
	"example.com/sample-controller/pkg/reconcile/plan"
	"example.com/sample-controller/tools/preview"
)

// Cluster reads from an API server, with one list per kind.
type Cluster struct {
	// Namespace is the namespace to read, or "" for all.
	Namespace string

	config *rest.Config
}

// New returns the cluster that kubectl's usual flags select.
func New(flags *genericclioptions.ConfigFlags, allNamespaces bool) (*Cluster, error) {
	config, err := flags.ToRESTConfig()
	if err != nil {
		return nil, err
	}
	config.QPS = -1 // the API server's own limits are enough
	// Protobuf takes half as long as JSON. Custom resources have only JSON.
	config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	namespace, _, err := flags.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return nil, err
	}
	if allNamespaces {
		namespace = metav1.NamespaceAll
	}
	return &Cluster{namespace, config}, nil
}

// Find reads resources. missing has an error for each optional resource that the account may not read.
func (c *Cluster) Find(ctx context.Context, resources []Resource) (world preview.World, missing []error, err error) {
	world = preview.World{}
	for _, r := range resources {
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
	client, err := c.clientOf(r.GroupVersionResource)
	if err != nil {
		return err
	}
	list, err := types.New(r.GroupVersion().WithKind(r.Kind + "List"))
	if err != nil {
		return err
	}
	request := client.Get().NamespaceIfScoped(c.Namespace, c.Namespace != "").Resource(r.Resource)
	if name != "" {
		request = request.Param("fieldSelector", fields.OneTermEqualSelector(metav1.ObjectNameField, name).String())
	}
	if err := request.Do(ctx).Into(list); err != nil {
		return describe(err, "list", r.GroupResource())
	}
	return meta.EachListItem(list, func(item runtime.Object) error {
		do(r.trimmed(item.(plan.Object))) //nolint:forcetypeassert // all kinds of the API are objects
		return nil
	})
}

// Informer returns an informer of a resource. It calls notify(nil) after each change, and notify(err) if it can't read
// the resource.
func (c *Cluster) Informer(r Resource, notify func(err error)) (cache.SharedIndexInformer, error) {
	client, err := c.clientOf(r.GroupVersionResource)
	if err != nil {
		return nil, err
	}
	object, err := types.New(r.GroupVersion().WithKind(r.Kind))
	if err != nil {
		return nil, err
	}
	list := cache.NewListWatchFromClient(client, r.Resource, c.Namespace, fields.Everything())
	informer := cache.NewSharedIndexInformer(list, object, 0, preview.Indexers)
	trimming := informer.SetTransform(func(object any) (any, error) {
		if object, ok := object.(plan.Object); ok {
			return r.trimmed(object), nil
		}
		return object, nil
	})
	handling := informer.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *cache.Reflector, err error) {
		if isOver := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || apierrors.IsResourceExpired(err) || apierrors.IsGone(err); !isOver {
			notify(describe(err, "list and watch", r.GroupResource()))
		}
	})
	_, watching := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { notify(nil) }, UpdateFunc: func(any, any) { notify(nil) }, DeleteFunc: func(any) { notify(nil) },
	})
	return informer, errors.Join(trimming, handling, watching)
}

// types has the types of all resources.
var types = func() *runtime.Scheme {
	types := runtime.NewScheme()
	utilruntime.Must(errors.Join(scheme.AddToScheme(types), fooscheme.AddToScheme(types)))
	return types
}()

// clientOf returns a client for a resource's group and version.
func (c *Cluster) clientOf(resource schema.GroupVersionResource) (*rest.RESTClient, error) {
	config, version := rest.CopyConfig(c.config), resource.GroupVersion()
	config.GroupVersion, config.APIPath = &version, "/apis"
	config.NegotiatedSerializer = serializer.NewCodecFactory(types).WithoutConversion()
	if version.Group == "" {
		config.APIPath = "/api"
	}
	return rest.RESTClientFor(config)
}

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
	client, err := c.clientOf(resource)
	if err != nil {
		return err
	}
	request := client.Patch(apitypes.MergePatchType).Namespace(object.GetNamespace()).Resource(resource.Resource).Name(object.GetName())
	if isDryRun {
		request.Param("dryRun", metav1.DryRunAll)
	}
	patch := fmt.Sprintf(`{"metadata":{"uid":%q,"annotations":{%q:%q}}}`, object.GetUID(), key, value)
	return request.Param("fieldManager", "kubectl-foo").Body([]byte(patch)).Do(ctx).Error()
}

// DryRun sends a write as a server-side dry run. It returns the object that the API server would
// store, or nil for a deletion, or the API server's error.
func (c *Cluster) DryRun(ctx context.Context, write preview.Write) (plan.Object, error) {
	object := cmp.Or(write.After, write.Before)
	switch write.Action {
	case plan.ActionCreate:
		return dryRun(ctx, c, (*rest.RESTClient).Post, "create", write.Resource, "", object, object)
	case plan.ActionDelete:
		body := metav1.NewPreconditionDeleteOptions(string(object.GetUID()))
		body.DryRun = []string{metav1.DryRunAll}
		_, err := dryRun(ctx, c, (*rest.RESTClient).Delete, "delete", write.Resource, "", object, body)
		return nil, err
	}
	patchType, patch, err := write.Patch()
	if err != nil {
		return nil, err
	}
	begin := func(client *rest.RESTClient) *rest.Request { return client.Patch(patchType) }
	return dryRun(ctx, c, begin, "patch", write.Resource, "", object, patch)
}

// DryRunOwner does the same with an owner or, as a subresource, its status. An owner without a UID
// is created. The result has the fields that the API server sets.
func (c *Cluster) DryRunOwner(ctx context.Context, kind *plan.Kind, owner plan.Owner, subresource string) (plan.Owner, error) {
	if owner.GetUID() == "" {
		return dryRun(ctx, c, (*rest.RESTClient).Post, "create", kind.Resource, "", owner, owner)
	}
	return dryRun(ctx, c, (*rest.RESTClient).Put, "update", kind.Resource, subresource, owner, owner)
}

// dryRun sends a request about an object, and returns the object in the response, if any.
func dryRun[T plan.Object](ctx context.Context, c *Cluster, begin func(*rest.RESTClient) *rest.Request, verb string,
	resource schema.GroupVersionResource, subresource string, object T, body any,
) (stored T, err error) {
	client, err := c.clientOf(resource)
	if err != nil {
		return stored, err
	}
	request := begin(client).Namespace(object.GetNamespace()).Resource(resource.Resource).SubResource(subresource)
	if verb != "create" {
		request = request.Name(object.GetName())
	}
	// The API server does everything that it does for a write, except storing the object.
	answer, err := request.Param("dryRun", metav1.DryRunAll).Param("fieldManager", names.Controller).Body(body).Do(ctx).Get()
	stored, _ = answer.(T)
	return stored, c.dryRunError(ctx, err, verb, resource, subresource, object.GetNamespace())
}

// dryRunError distinguishes a missing permission of this account, which says nothing about the
// controller's account, from the verdict of an admission policy. Both are 403.
func (c *Cluster) dryRunError(ctx context.Context, err error, verb string, resource schema.GroupVersionResource, subresource, namespace string) error {
	if !apierrors.IsForbidden(err) {
		return err
	}
	attributes := &authorizationv1.ResourceAttributes{
		Namespace: namespace, Verb: verb, Group: resource.Group, Resource: resource.Resource, Subresource: subresource,
	}
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: attributes}}
	client, reviewErr := authorizationclient.NewForConfig(c.config)
	if reviewErr == nil {
		review, reviewErr = client.SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
	}
	if reviewErr != nil || review.Status.Allowed {
		return err
	}
	name := resource.GroupResource().String()
	if subresource != "" {
		name = resource.Resource + "/" + subresource + "." + resource.Group
	}
	return fmt.Errorf("--server-dry-run requires permission to %s %s, which this account lacks: %w", verb, name, errors.Join(ErrPermission, err))
}

// ErrPermission means that the account may not make a dry run, so the API server has not judged the write.
var ErrPermission = errors.New("no permission")
