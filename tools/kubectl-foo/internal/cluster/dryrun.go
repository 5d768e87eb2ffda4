// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
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
func (c *Cluster) DryRun(ctx context.Context, write preview.Write) (preview.Object, error) {
	client, err := c.clientOf(write.Resource)
	if err != nil {
		return nil, err
	}
	request, err := requestOf(client, write)
	if err != nil {
		return nil, err
	}
	result := request.Resource(write.Resource.Resource).Do(ctx)
	if err := result.Error(); err != nil {
		return nil, c.dryRunError(ctx, err, verbOf[write.Verb], write.Resource, "", namespaceOf(write))
	}
	if write.Verb == preview.Delete {
		return nil, nil //nolint:nilnil // nothing is left
	}
	stored, err := scheme.Scheme.New(write.Resource.GroupVersion().WithKind(write.Kind))
	if err != nil {
		return nil, err
	}
	if err := result.Into(stored); err != nil {
		return nil, err
	}
	return stored.(preview.Object), nil //nolint:forcetypeassert // all kinds of the API are objects
}

func namespaceOf(write preview.Write) string {
	if write.After != nil {
		return write.After.GetNamespace()
	}
	return write.Before.GetNamespace()
}

// verbOf are the API's verbs for the writes.
var verbOf = map[preview.Verb]string{preview.Create: "create", preview.Update: "patch", preview.Adopt: "patch", preview.Delete: "delete"}

func requestOf(client *rest.RESTClient, write preview.Write) (*rest.Request, error) {
	sent := &metav1.CreateOptions{DryRun: dryRun, FieldManager: names.Controller} // as PatchOptions
	switch write.Verb {
	case preview.Create:
		return client.Post().Namespace(write.After.GetNamespace()).VersionedParams(sent, scheme.ParameterCodec).Body(write.After), nil
	case preview.Update, preview.Adopt:
		patchType, patch, err := write.Patch()
		if err != nil {
			return nil, err
		}
		return client.Patch(patchType).Namespace(write.After.GetNamespace()).Name(write.Name).VersionedParams(sent, scheme.ParameterCodec).Body(patch), nil
	case preview.Delete:
		uid := write.Before.GetUID()
		options := &metav1.DeleteOptions{DryRun: dryRun, Preconditions: &metav1.Preconditions{UID: &uid}}
		return client.Delete().Namespace(write.Before.GetNamespace()).Name(write.Name).Body(options), nil
	case preview.Leave, preview.Wait, preview.Suspend:
	}
	return nil, fmt.Errorf("%s %s %s is no write", write.Verb, write.Kind, write.Name)
}

// DryRunStatus does the same with the status of a Foo.
func (c *Cluster) DryRunStatus(ctx context.Context, foo *samplev1alpha1.Foo, status samplev1alpha1.FooStatus) error {
	foo = foo.DeepCopy()
	foo.Status = status
	_, err := c.Foo.SamplecontrollerV1alpha1().Foos(foo.Namespace).UpdateStatus(ctx, foo, metav1.UpdateOptions{DryRun: dryRun, FieldManager: names.Controller})
	if err != nil {
		return c.dryRunError(ctx, err, "update", foosResource, "status", foo.Namespace)
	}
	return nil
}

// DryRunFoo does the same with a Foo: it is created if it has no UID. The answer has the
// fields that the API server sets.
func (c *Cluster) DryRunFoo(ctx context.Context, foo *samplev1alpha1.Foo) (*samplev1alpha1.Foo, error) {
	client := c.Foo.SamplecontrollerV1alpha1().Foos(foo.Namespace)
	var stored *samplev1alpha1.Foo
	var err error
	verb := "update"
	if foo.UID == "" {
		verb = "create"
		stored, err = client.Create(ctx, foo, metav1.CreateOptions{DryRun: dryRun})
	} else {
		stored, err = client.Update(ctx, foo, metav1.UpdateOptions{DryRun: dryRun})
	}
	if err != nil {
		return nil, c.dryRunError(ctx, err, verb, foosResource, "", foo.Namespace)
	}
	return stored, nil
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
	if setsErr == nil {
		found.ReplicaSets = pointers(sets.Items)
	}
	pods, podsErr := c.Kube.CoreV1().Pods(c.Namespace).List(ctx, all)
	if podsErr == nil {
		found.Pods = pointers(pods.Items)
	}
	events, eventsErr := c.Kube.CoreV1().Events(c.Namespace).List(ctx, all)
	if eventsErr == nil {
		found.Events = pointers(events.Items)
	}
	for resource, err := range map[string]error{"replicasets.apps": setsErr, "pods": podsErr, "events": eventsErr} {
		switch {
		case apierrors.IsForbidden(err):
			found.Missing = append(found.Missing, Describe(err, "list", resource))
		case err != nil:
			return nil, Describe(err, "list", resource)
		}
	}
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
