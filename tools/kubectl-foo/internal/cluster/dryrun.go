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
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"example.com/sample-controller/internal/names"
	"example.com/sample-controller/internal/plan"
	fooscheme "example.com/sample-controller/pkg/generated/clientset/versioned/scheme"
	"example.com/sample-controller/tools/preview"
)

// dryRun makes the API server do all that it does with a write, except to store it.
var dryRun = []string{metav1.DryRunAll}

// DryRun sends a write as a server-side dry run. It returns the object that the API server
// would store, or nil after a deletion, or the error that it answers.
func (c *Cluster) DryRun(ctx context.Context, write preview.Write) (plan.Object, error) {
	client, types, err := c.clientOf(write.Resource)
	if err != nil {
		return nil, err
	}
	request, verb := (*rest.Request)(nil), "patch"
	options := &metav1.CreateOptions{DryRun: dryRun, FieldManager: names.Controller} // as PatchOptions
	switch write.Action {
	case plan.ActionCreate:
		verb, request = "create", client.Post().VersionedParams(options, scheme.ParameterCodec).Body(write.After)
	case plan.ActionDelete:
		uid := write.Before.GetUID()
		body := &metav1.DeleteOptions{DryRun: dryRun, Preconditions: &metav1.Preconditions{UID: &uid}}
		verb, request = "delete", client.Delete().Name(write.Name).Body(body)
	default:
		patchType, patch, err := write.Patch()
		if err != nil {
			return nil, err
		}
		request = client.Patch(patchType).Name(write.Name).VersionedParams(options, scheme.ParameterCodec).Body(patch)
	}
	namespace := cmp.Or(write.Before, write.After).GetNamespace()
	result := request.Namespace(namespace).Resource(write.Resource.Resource).Do(ctx)
	if err := result.Error(); err != nil {
		return nil, c.dryRunError(ctx, err, verb, write.Resource, "", namespace)
	}
	if write.Action == plan.ActionDelete {
		return nil, nil //nolint:nilnil // nothing is left
	}
	stored, err := types.New(write.Resource.GroupVersion().WithKind(write.Kind))
	if err != nil {
		return nil, err
	}
	return stored.(plan.Object), result.Into(stored) //nolint:forcetypeassert // all kinds of the API are objects
}

// DryRunStatus does the same with the status of an owner.
func (c *Cluster) DryRunStatus(ctx context.Context, kind *plan.OwnerKind, owner plan.Owner) error {
	client, _, err := c.clientOf(kind.Resource)
	if err != nil {
		return err
	}
	options := &metav1.UpdateOptions{DryRun: dryRun, FieldManager: names.Controller}
	err = client.Put().Namespace(owner.GetNamespace()).Resource(kind.Resource.Resource).Name(owner.GetName()).SubResource("status").
		VersionedParams(options, fooscheme.ParameterCodec).Body(owner).Do(ctx).Error()
	return c.dryRunError(ctx, err, "update", kind.Resource, "status", owner.GetNamespace())
}

// DryRunOwner does the same with an owner: it is created if it has no UID. The answer has the
// fields that the API server sets.
func (c *Cluster) DryRunOwner(ctx context.Context, kind *plan.OwnerKind, owner plan.Owner) (plan.Owner, error) {
	client, _, err := c.clientOf(kind.Resource)
	if err != nil {
		return nil, err
	}
	request, verb := client.Put().Name(owner.GetName()), "update"
	if owner.GetUID() == "" {
		request, verb = client.Post(), "create"
	}
	stored := plan.CopyOf(owner)
	err = request.Namespace(owner.GetNamespace()).Resource(kind.Resource.Resource).
		VersionedParams(&metav1.UpdateOptions{DryRun: dryRun}, fooscheme.ParameterCodec).Body(owner).Do(ctx).Into(stored)
	return stored, c.dryRunError(ctx, err, verb, kind.Resource, "", owner.GetNamespace())
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
	review, reviewErr := c.Kube.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, &authorizationv1.SelfSubjectAccessReview{
		Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: attributes},
	}, metav1.CreateOptions{})
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
