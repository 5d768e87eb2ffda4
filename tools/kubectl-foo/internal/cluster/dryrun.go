// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/rest"

	"example.com/sample-controller/internal/names"
	"example.com/sample-controller/internal/plan"
	"example.com/sample-controller/tools/preview"
)

// DryRun sends a write as a server-side dry run. It returns the object that the API server
// would store, or nil after a deletion, or the error that it answers.
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

// DryRunOwner does the same with an owner or, as its subresource, with its status: it is created
// if it has no UID. The answer has the fields that the API server sets.
func (c *Cluster) DryRunOwner(ctx context.Context, kind *plan.OwnerKind, owner plan.Owner, subresource string) (plan.Owner, error) {
	if owner.GetUID() == "" {
		return dryRun(ctx, c, (*rest.RESTClient).Post, "create", kind.Resource, "", owner, owner)
	}
	return dryRun(ctx, c, (*rest.RESTClient).Put, "update", kind.Resource, subresource, owner, owner)
}

// dryRun sends a request about an object, and returns the object of the answer, if any.
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
	// It makes the API server do all that it does with a write, except to store it.
	answer, err := request.Param("dryRun", metav1.DryRunAll).Param("fieldManager", names.Controller).Body(body).Do(ctx).Get()
	stored, _ = answer.(T)
	return stored, c.dryRunError(ctx, err, verb, resource, subresource, object.GetNamespace())
}

// dryRunError tells a missing permission, which says nothing about the controller's
// account, from the verdict of an admission policy. Both are 403.
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
	return fmt.Errorf("--server-dry-run needs the permission to %s %s, which this account lacks: %w", verb, name, errors.Join(ErrPermission, err))
}

// ErrPermission means that the account lacks the permission for a dry run, so that the API
// server has not judged the write.
var ErrPermission = errors.New("no permission")
