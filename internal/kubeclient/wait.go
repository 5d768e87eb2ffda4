// SPDX-License-Identifier: Apache-2.0

// Waiting at start until the informers can list and watch.

package kubeclient

import (
	"context"
	"fmt"
	"path"
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
// would report that again and again, and a program that only lacks a permission to watch
// would seem to work. It also waits while the server answers that clients should retry
// later. If the server can't be reached or refuses the credentials, it returns an error
// that says what to do.
func (c *Clients) WaitUntilReadable(ctx context.Context, namespace string, resources ...schema.GroupVersionResource) error {
	logged := sets.New[string]()
	for {
		obstacles, err := c.probeAll(ctx, namespace, resources)
		switch {
		case ctx.Err() != nil:
			return nil //nolint:nilerr // a requested stop is not a failure
		case err != nil:
			return explainUnreachable(err, c.host)
		case len(obstacles) == 0:
			return nil
		}
		wait := shortestPollPeriod
		for _, o := range obstacles {
			wait = max(wait, pollPeriod(o.cause))
			if kind := o.kind(); !logged.Has(kind) {
				logged.Insert(kind)
				klog.FromContext(ctx).Info("Waiting until the informers can list and watch",
					"resource", o.resource.GroupResource().String(), "cause", o.remedy(namespace))
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
	}
}

// obstacle is a request that fails for a reason that is worth waiting for.
type obstacle struct {
	verb     string // list or watch
	resource schema.GroupVersionResource
	cause    error
}

// kind returns the same text for obstacles that need not both be logged.
func (o obstacle) kind() string {
	return fmt.Sprint(o.verb, o.resource, apierrors.ReasonForError(o.cause))
}

// probeAll returns the obstacles, or an error that is no reason to wait.
func (c *Clients) probeAll(ctx context.Context, namespace string, resources []schema.GroupVersionResource) ([]obstacle, error) {
	var obstacles []obstacle
	for _, resource := range resources {
		if err := c.probe(ctx, namespace, resource, "list"); err != nil {
			if !isWorthWaiting(err) {
				return nil, err
			}
			obstacles = append(obstacles, obstacle{"list", resource, err})
			if !apierrors.IsForbidden(err) {
				continue // a watch would meet the same
			}
		}
		// Any other failure of a watch is left to the informers, which try again.
		if err := c.probe(ctx, namespace, resource, "watch"); apierrors.IsForbidden(err) || isBusy(err) {
			obstacles = append(obstacles, obstacle{"watch", resource, err})
		}
	}
	return obstacles, nil
}

// probe makes a request with the permission that an informer needs. A list returns one
// object. A watch starts from a version that no API server still knows, so it ends at
// once.
func (c *Clients) probe(ctx context.Context, namespace string, resource schema.GroupVersionResource, verb string) error {
	ctx, cancel := context.WithTimeout(ctx, c.requestTimeout)
	defer cancel()
	request := c.Foos.Discovery().RESTClient().Get().AbsPath(pathOf(namespace, resource))
	if verb == "list" {
		return request.Param("limit", "1").Do(ctx).Error()
	}
	body, err := request.Param("watch", "true").Param("resourceVersion", "1").Stream(ctx)
	if err != nil {
		return err
	}
	return body.Close()
}

// pathOf returns the path of a collection on the API server.
func pathOf(namespace string, resource schema.GroupVersionResource) string {
	root := path.Join("/apis", resource.Group, resource.Version)
	if resource.Group == "" {
		root = path.Join("/api", resource.Version)
	}
	if namespace != metav1.NamespaceAll {
		root = path.Join(root, "namespaces", namespace)
	}
	return path.Join(root, resource.Resource)
}

const (
	// shortestPollPeriod is the time between two attempts if the API server names none.
	shortestPollPeriod = 2 * time.Second
	// longestPollPeriod bounds the time that the API server may ask for.
	longestPollPeriod = time.Minute
)

// pollPeriod returns the time to wait after an error: what the API server asks for,
// within bounds.
func pollPeriod(err error) time.Duration {
	seconds, _ := apierrors.SuggestsClientDelay(err)
	return min(max(time.Duration(seconds)*time.Second, shortestPollPeriod), longestPollPeriod)
}

// isWorthWaiting reports whether somebody may do something about an error while the
// program runs.
func isWorthWaiting(err error) bool {
	return apierrors.IsNotFound(err) || apierrors.IsForbidden(err) || isBusy(err)
}

// isBusy reports whether the API server, or a proxy in front of it, asks clients to retry
// later.
func isBusy(err error) bool {
	_, later := apierrors.SuggestsClientDelay(err)
	return later || apierrors.IsTooManyRequests(err)
}

// remedy describes what is missing, and what to do about it.
func (o obstacle) remedy(namespace string) string {
	resource := o.resource.GroupResource()
	switch {
	case isBusy(o.cause):
		return fmt.Sprintf("the API server is busy and asks clients to retry later (%v)", o.cause)
	case apierrors.IsForbidden(o.cause):
		scope, manifest := "all namespaces", "artifacts/deploy/permissions/controller.yaml"
		if namespace != metav1.NamespaceAll {
			scope, manifest = "the namespace "+namespace, "artifacts/deploy/namespaced"
		}
		return fmt.Sprintf("the permission to %s %s in %s is missing: grant it, as %s does, to the identity that the controller runs as (%v)",
			o.verb, resource, scope, manifest, o.cause)
	case resource.Group == samplev1alpha1.GroupName:
		return fmt.Sprintf("the CustomResourceDefinition %s is not installed: install it with 'kubectl apply -f artifacts/crd'", resource)
	}
	return fmt.Sprintf("the API server does not serve %s in version %s: install what provides it", resource, o.resource.Version)
}

// explainUnreachable returns an error that says in one line why the API server can't be
// used, and what to check.
func explainUnreachable(err error, host string) error {
	if apierrors.IsUnauthorized(err) {
		return fmt.Errorf("the API server at %s does not accept the credentials: renew those in the kubeconfig: %w", host, err)
	}
	return fmt.Errorf("the API server at %s can't be reached: check that it runs and that -kubeconfig or -master names it: %w", host, err)
}
