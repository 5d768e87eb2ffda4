// SPDX-License-Identifier: Apache-2.0

// Waiting at start until the informers can list and watch.

package kubeclient

import (
	"context"
	"fmt"
	"iter"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// WaitUntilReadable returns when the API server lets this client list and watch the
// resources in a namespace, or in all namespaces, or when ctx is done. If a
// CustomResourceDefinition or a permission is missing, it logs that once and waits, so
// that the parts of an installation can be applied in any order. Without it, informers
// would report the problem repeatedly, and a program that lacks only the permission to watch
// would seem to work. It also waits while the server tells clients to retry later. If the
// server can't be reached or refuses the credentials, it returns an error that says what to
// do.
func (c *Clients) WaitUntilReadable(ctx context.Context, namespace string, resources ...schema.GroupVersionResource) error {
	logged := sets.New[string]()
	for {
		wait := time.Duration(0)
		for _, resource := range resources {
			for verb, err := range c.obstacles(ctx, namespace, resource) {
				switch {
				case ctx.Err() != nil:
					return nil
				case !isWorthWaiting(err):
					return explainUnreachable(err, c.host)
				}
				wait = max(wait, pollPeriod(err))
				if kind := fmt.Sprint(verb, resource, apierrors.ReasonForError(err)); !logged.Has(kind) {
					logged.Insert(kind)
					klog.FromContext(ctx).Info("Waiting until the informers can list and watch",
						"resource", resource.GroupResource().String(), "cause", remedy(verb, resource, namespace, err))
				}
			}
		}
		if wait == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
	}
}

// obstacles yields the verbs, list and watch, that an informer of a resource can't use now,
// with the errors.
func (c *Clients) obstacles(ctx context.Context, namespace string, resource schema.GroupVersionResource) iter.Seq2[string, error] {
	return func(yield func(verb string, err error) bool) {
		err := c.probe(ctx, namespace, resource, "list")
		if err != nil && (!yield("list", err) || !apierrors.IsForbidden(err)) {
			return // a watch would fail in the same way
		}
		// The informers handle any other failure of a watch: they retry.
		if err := c.probe(ctx, namespace, resource, "watch"); apierrors.IsForbidden(err) || isBusy(err) {
			yield("watch", err)
		}
	}
}

// probe makes a request that requires the same permission as an informer. A list returns one
// object. A watch starts from a version that no API server still knows, so it ends at
// once.
func (c *Clients) probe(ctx context.Context, namespace string, resource schema.GroupVersionResource, verb string) error {
	ctx, cancel := context.WithTimeout(ctx, c.requestTimeout)
	defer cancel()
	root := "/apis"
	if resource.Group == "" {
		root = "/api"
	}
	request := c.Foos.Discovery().RESTClient().Get().AbsPath(root, resource.Group, resource.Version).
		NamespaceIfScoped(namespace, namespace != metav1.NamespaceAll).Resource(resource.Resource)
	if verb == "list" {
		return request.Param("limit", "1").Do(ctx).Error()
	}
	body, err := request.Param("watch", "true").Param("resourceVersion", "1").Stream(ctx)
	if err != nil {
		return err
	}
	return body.Close()
}

const (
	// shortestPollPeriod is the time between two attempts if the API server suggests none.
	shortestPollPeriod = 2 * time.Second
	// longestPollPeriod bounds the time that the API server may suggest.
	longestPollPeriod = time.Minute
)

// pollPeriod returns the time to wait after an error: the API server's suggestion, within
// bounds.
func pollPeriod(err error) time.Duration {
	seconds, _ := apierrors.SuggestsClientDelay(err)
	return min(max(time.Duration(seconds)*time.Second, shortestPollPeriod), longestPollPeriod)
}

// isWorthWaiting reports whether someone may resolve an error while the program runs.
func isWorthWaiting(err error) bool {
	return apierrors.IsNotFound(err) || apierrors.IsForbidden(err) || isBusy(err)
}

// isBusy reports whether the API server, or a proxy in front of it, tells clients to retry
// later.
func isBusy(err error) bool {
	_, later := apierrors.SuggestsClientDelay(err)
	return later || apierrors.IsTooManyRequests(err)
}

// remedy describes what is missing, and what to do about it.
func remedy(verb string, of schema.GroupVersionResource, namespace string, cause error) string {
	resource := of.GroupResource()
	switch {
	case isBusy(cause):
		return fmt.Sprintf("the API server is busy and asks clients to retry later (%v)", cause)
	case apierrors.IsForbidden(cause):
		scope, manifest := "all namespaces", "artifacts/deploy/permissions/controller.yaml"
		if namespace != metav1.NamespaceAll {
			scope, manifest = "the namespace "+namespace, "artifacts/deploy/namespaced"
		}
		return fmt.Sprintf("the permission to %s %s in %s is missing: grant it, as %s does, to the identity that the controller runs as (%v)",
			verb, resource, scope, manifest, cause)
	case resource.Group == samplev1alpha1.GroupName:
		return fmt.Sprintf("the CustomResourceDefinition %s is not installed: install it with 'kubectl apply --server-side -f artifacts/crd'", resource)
	}
	return fmt.Sprintf("the API server does not serve %s in version %s: install what provides it", resource, of.Version)
}

// explainUnreachable returns an error that says in one line why the API server can't be
// used, and what to check.
func explainUnreachable(err error, host string) error {
	if apierrors.IsUnauthorized(err) {
		return fmt.Errorf("the API server at %s does not accept the credentials: renew them in the kubeconfig: %w", host, err)
	}
	return fmt.Errorf("the API server at %s can't be reached: check that it is running and that -kubeconfig or -master names it: %w", host, err)
}
