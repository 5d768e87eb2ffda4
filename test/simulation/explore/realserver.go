// SPDX-License-Identifier: Apache-2.0

// A real API server, for the comparison.

package explore

import (
	"context"
	"fmt"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"

	"example.com/sample-controller/test/footest"
)

// clusterServer is the API server of a cluster, in a namespace.
type clusterServer struct {
	client    dynamic.Interface
	namespace string
}

func typeOf(kind *footest.Kind) schema.GroupVersionKind {
	return kind.Resource.GroupVersion().WithKind(kind.Kind)
}

func (c *clusterServer) do(ctx context.Context, kind *footest.Kind, name string, sent *request) (footest.Object, error) {
	client := c.client.Resource(kind.Resource).Namespace(c.namespace)
	var returned *unstructured.Unstructured
	var err error
	switch sent.verb {
	case "get":
		returned, err = client.Get(ctx, name, metav1.GetOptions{})
	case "delete":
		options, _ := sent.sent.(*metav1.DeleteOptions)
		return nil, client.Delete(ctx, name, *options)
	default:
		object, badObject := untyped(kind, sent.sent)
		if badObject != nil {
			return nil, badObject
		}
		if sent.verb == "create" {
			returned, err = client.Create(ctx, object, metav1.CreateOptions{})
			break
		}
		var subresources []string
		if sent.subresource != "" {
			subresources = append(subresources, sent.subresource)
		}
		returned, err = client.Update(ctx, object, metav1.UpdateOptions{}, subresources...)
	}
	if err != nil {
		return nil, err
	}
	return typed(kind, returned)
}

func untyped(kind *footest.Kind, object runtime.Object) (*unstructured.Unstructured, error) {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, fmt.Errorf("writing a %s: %w", kind, err)
	}
	converted := &unstructured.Unstructured{Object: fields}
	converted.SetGroupVersionKind(typeOf(kind))
	return converted, nil
}

// typed returns an object as one of its Go type, as clients do: without the kind. A field
// that the type does not have is an error.
func typed(kind *footest.Kind, object *unstructured.Unstructured) (footest.Object, error) {
	if got := object.GroupVersionKind(); got != typeOf(kind) {
		return nil, fmt.Errorf("%s %s is a %s", kind, object.GetName(), got)
	}
	example := runtime.Object(kind.Owner().Asking("a", "a", 1))
	if !kind.Is(example) {
		example = kind.ForeignNamed("a")
	}
	converted := reflect.New(reflect.TypeOf(example).Elem()).Interface().(footest.Object) //nolint:forcetypeassert // as the example
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, converted, true); err != nil {
		return nil, fmt.Errorf("reading %s %s: %w", kind, object.GetName(), err)
	}
	converted.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	return converted, nil
}

// watch watches a kind. The namespace is new, so that the cache of the API server has no
// objects of it that are older than the watch.
func (c *clusterServer) watch(ctx context.Context, kind *footest.Kind) (watch.Interface, error) {
	events, err := c.client.Resource(kind.Resource).Namespace(c.namespace).Watch(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return nil, err
	}
	return watch.Filter(events, func(e watch.Event) (watch.Event, bool) {
		object, ok := e.Object.(*unstructured.Unstructured)
		if !ok || e.Type == watch.Error {
			return e, true
		}
		converted, err := typed(kind, object)
		if err != nil {
			return watch.Event{Type: watch.Error, Object: &metav1.Status{Message: err.Error()}}, true
		}
		return watch.Event{Type: e.Type, Object: converted}, true
	}), nil
}
