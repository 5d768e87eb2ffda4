// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"example.com/sample-controller/internal/plan"

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
	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/tools/preview"
)

var foosResource = samplev1alpha1.SchemeGroupVersion.WithResource("foos")

// dryRun makes the API server do all that it does with a write, except to store it.
var dryRun = []string{metav1.DryRunAll}

// DryRun sends a write as a server-side dry run. It returns the object that the API server
// would store, or nil after a deletion, or the error that it answers.
func (c *Cluster) DryRun(ctx context.Context, write preview.Write) (plan.Object, error) {
	client, err := c.clientOf(write.Resource)
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
	stored, err := scheme.Scheme.New(write.Resource.GroupVersion().WithKind(write.Kind))
	if err != nil {
		return nil, err
	}
	return stored.(plan.Object), result.Into(stored) //nolint:forcetypeassert // all kinds of the API are objects
}

// DryRunStatus does the same with the status of a Foo.
func (c *Cluster) DryRunStatus(ctx context.Context, owner plan.Owner) error {
	foo := owner.(*samplev1alpha1.Foo) //nolint:forcetypeassert // the plugin plans Foos alone
	_, err := c.Foo.SamplecontrollerV1alpha1().Foos(foo.Namespace).UpdateStatus(ctx, foo, metav1.UpdateOptions{DryRun: dryRun, FieldManager: names.Controller})
	return c.dryRunError(ctx, err, "update", foosResource, "status", foo.Namespace)
}

// DryRunFoo does the same with a Foo: it is created if it has no UID. The answer has the
// fields that the API server sets.
func (c *Cluster) DryRunFoo(ctx context.Context, foo *samplev1alpha1.Foo) (*samplev1alpha1.Foo, error) {
	client := c.Foo.SamplecontrollerV1alpha1().Foos(foo.Namespace)
	if foo.UID == "" {
		stored, err := client.Create(ctx, foo, metav1.CreateOptions{DryRun: dryRun})
		return stored, c.dryRunError(ctx, err, "create", foosResource, "", foo.Namespace)
	}
	stored, err := client.Update(ctx, foo, metav1.UpdateOptions{DryRun: dryRun})
	return stored, c.dryRunError(ctx, err, "update", foosResource, "", foo.Namespace)
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
