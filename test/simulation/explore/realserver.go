// SPDX-License-Identifier: Apache-2.0

// The API server of a cluster, in the terms of the model.

package explore

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/watch"
	kubescheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	fooscheme "example.com/sample-controller/pkg/generated/clientset/versioned/scheme"
	"example.com/sample-controller/test/footest"
	"example.com/sample-controller/test/simulation/model"
	"example.com/sample-controller/test/testcluster"
)

// newObjectClient returns a client for objects of all types, which are sent and returned as Go has
// them. A field that a type does not have is an error.
func newObjectClient(kubeconfig string) (rest.Interface, error) {
	config, err := testcluster.LoadConfig(kubeconfig)
	if err != nil {
		return nil, err
	}
	types := runtime.NewScheme()
	if err := errors.Join(kubescheme.AddToScheme(types), fooscheme.AddToScheme(types)); err != nil {
		return nil, err
	}
	config.GroupVersion = &schema.GroupVersion{Version: "v1"} // that of the options of a delete
	config.NegotiatedSerializer = serializer.NewCodecFactory(types, serializer.EnableStrict).WithoutConversion()
	return rest.UnversionedRESTClientFor(config)
}

// clusterServer is the API server of a cluster, in a namespace.
type clusterServer struct {
	client    rest.Interface
	namespace string
}

// request begins a request about the objects of a kind.
func (c *clusterServer) request(verb string, kind *footest.Kind) *rest.Request {
	group := []string{"apis", kind.Resource.Group}
	if kind.Resource.Group == "" {
		group = []string{"api"}
	}
	return c.client.Verb(verb).AbsPath(append(group, kind.Resource.Version)...).Namespace(c.namespace).Resource(kind.Resource.Resource)
}

func (c *clusterServer) do(ctx context.Context, sent model.Request) (footest.Object, error) {
	method := map[string]string{"get": http.MethodGet, "create": http.MethodPost, "update": http.MethodPut, "delete": http.MethodDelete}[sent.Verb]
	request := c.request(method, sent.Kind)
	if sent.Verb != "create" {
		request.Name(sent.Name).SubResource(sent.Subresource)
	}
	if sent.Sent != nil {
		request.Body(c.toServer(sent.Sent))
	}
	answer := request.Do(ctx)
	if err := answer.Error(); err != nil || sent.Verb == "delete" {
		return nil, err
	}
	returned, err := answer.Get()
	if err != nil {
		return nil, fmt.Errorf("reading the answer to %s: %w", sent, err)
	}
	return toModel(metaOf(returned)), nil
}

// watch watches a kind. The namespace is new, so that the cache of the API server has no
// objects of it that are older than the watch.
func (c *clusterServer) watch(ctx context.Context, kind *footest.Kind) (watch.Interface, error) {
	options := metav1.ListOptions{ResourceVersion: "0", Watch: true}
	events, err := c.request(http.MethodGet, kind).VersionedParams(&options, kubescheme.ParameterCodec).Watch(ctx)
	if err != nil {
		return nil, err
	}
	return watch.Filter(events, func(e watch.Event) (watch.Event, bool) {
		if object, ok := e.Object.(footest.Object); ok {
			e.Object = toModel(object)
		}
		return e, true
	}), nil
}

// toServer returns what is sent as it is sent to the server.
func (c *clusterServer) toServer(sent runtime.Object) runtime.Object {
	sent = sent.DeepCopyObject()
	switch sent := sent.(type) {
	case footest.Object:
		sent.SetNamespace(c.namespace)
		// The server keeps its own, of which only this client knows no value.
		sent.SetDeletionTimestamp(nil)
		sent.SetResourceVersion(serverVersion(sent.GetResourceVersion()))
	case *metav1.DeleteOptions:
		if only := sent.Preconditions; only != nil && only.ResourceVersion != nil {
			only.ResourceVersion = new(serverVersion(*only.ResourceVersion))
		}
	}
	return sent
}

// serverVersion returns a version of the model as the server has it.
func serverVersion(text string) string {
	if version, ok := parseVersion(text); ok {
		return strconv.FormatInt(version, 10)
	}
	return text
}

// toModel changes an object of the server into one of the model: with versions of as many digits, and
// without what the model does not have. A version that is no number stays, and so differs.
func toModel(object footest.Object) footest.Object {
	if version, err := strconv.ParseInt(object.GetResourceVersion(), 10, 64); err == nil {
		object.SetResourceVersion(versionText(version))
	}
	object.SetNamespace(footest.Namespace)
	if object.GetDeletionTimestamp() != nil {
		object.SetDeletionTimestamp(&metav1.Time{Time: epoch})
	}
	object.SetManagedFields(nil)
	object.SetCreationTimestamp(metav1.Time{})
	return object
}
