// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
)

// NewMetadataClient returns a client that lists and watches the metadata of objects, by a client of NewClient.
func NewMetadataClient(client rest.Interface) metadata.Interface { return metadataClient{client} }

type metadataClient struct{ client rest.Interface }

// Resource returns the client of a resource in all namespaces.
func (c metadataClient) Resource(of schema.GroupVersionResource) metadata.Getter {
	return resourceMetadata{client: c.client, resource: of.Resource}
}

// resourceMetadata lacks what no informer calls.
type resourceMetadata struct {
	metadata.ResourceInterface

	client              rest.Interface
	resource, namespace string
}

// Namespace returns the client of the resource in a namespace.
func (m resourceMetadata) Namespace(namespace string) metadata.ResourceInterface {
	m.namespace = namespace
	return m
}

func (m resourceMetadata) read(options metav1.ListOptions) *rest.Request {
	return m.client.Get().NamespaceIfScoped(m.namespace, m.namespace != "").Resource(m.resource).VersionedParams(&options, scheme.ParameterCodec)
}

// List returns the metadata of all objects.
func (m resourceMetadata) List(ctx context.Context, options metav1.ListOptions) (*metav1.PartialObjectMetadataList, error) {
	var whole metainternalversion.List
	if err := m.read(options).Do(ctx).Into(&whole); err != nil {
		return nil, err
	}
	list := &metav1.PartialObjectMetadataList{ListMeta: whole.ListMeta}
	for _, object := range whole.Items {
		list.Items = append(list.Items, *metadataOf(object))
	}
	return list, nil
}

// Watch returns the events, with metadata alone.
func (m resourceMetadata) Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	options.Watch = true
	events, err := m.read(options).Watch(ctx)
	if err != nil {
		return nil, err
	}
	return watch.Filter(events, func(event watch.Event) (watch.Event, bool) {
		if _, isStatus := event.Object.(*metav1.Status); !isStatus {
			event.Object = metadataOf(event.Object)
		}
		return event, true
	}), nil
}

func metadataOf(object runtime.Object) *metav1.PartialObjectMetadata {
	of, err := meta.Accessor(object)
	if err != nil {
		panic(err) // all objects here have metadata
	}
	return meta.AsPartialObjectMetadata(of)
}
