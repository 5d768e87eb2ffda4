// SPDX-License-Identifier: Apache-2.0

// The API server of a cluster, and the translation between it and the model.

package explore

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"

	"example.com/sample-controller/test/footest"
	"example.com/sample-controller/test/simulation/model"
)

// clusterServer is the API server of a cluster, in a namespace.
type clusterServer struct {
	client    dynamic.Interface
	namespace string
}

func typeOf(kind *footest.Kind) schema.GroupVersionKind {
	return kind.Resource.GroupVersion().WithKind(kind.Kind)
}

func (c *clusterServer) do(ctx context.Context, sent model.Request) (footest.Object, error) {
	client := c.client.Resource(sent.Kind.Resource).Namespace(c.namespace)
	var returned *unstructured.Unstructured
	var err error
	switch sent.Verb {
	case "get":
		returned, err = client.Get(ctx, sent.Name, metav1.GetOptions{})
	case "delete":
		return nil, client.Delete(ctx, sent.Name, sent.DeleteOptions())
	default:
		object, badObject := untyped(sent.Kind, sent.Sent)
		if badObject != nil {
			return nil, badObject
		}
		if sent.Verb == "create" {
			returned, err = client.Create(ctx, object, metav1.CreateOptions{})
			break
		}
		subresources := slices.DeleteFunc([]string{sent.Subresource}, func(name string) bool { return name == "" })
		returned, err = client.Update(ctx, object, metav1.UpdateOptions{}, subresources...)
	}
	if err != nil {
		return nil, err
	}
	return typed(sent.Kind, returned)
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

// translation is between the model and the server, for one path.
type translation struct {
	// namespace is that of the path on the server.
	namespace string
	// toServer are the server's UIDs and versions by the model's, and toModel the reverse.
	toServer, toModel map[string]string
	// newest is the server's newest version, and newestModel the model's.
	newest, newestModel string
}

func newTranslation(namespace string) *translation {
	return &translation{namespace: namespace, toServer: map[string]string{}, toModel: map[string]string{}}
}

// request returns a request of the model as it is sent to the server. A UID or a version that
// no object ever had is an error.
func (t *translation) request(r model.Request) (model.Request, error) {
	if r.Sent == nil {
		return r, nil
	}
	r.Sent = r.Sent.DeepCopyObject()
	if object, ok := r.Sent.(footest.Object); ok {
		object.SetNamespace(t.namespace)
		// The server keeps its own, of which only this client knows no value.
		object.SetDeletionTimestamp(nil)
	}
	unknown, err := translate(r.Sent, t.toServer)
	if err == nil && len(unknown) > 0 {
		err = fmt.Errorf("the model sends what no object ever had: %s", strings.Join(unknown, ", "))
	}
	return r, err
}

// object returns an object of the server in the model's terms. A UID and a version that are
// new on both sides become a pair; others stay as they are, and so differ.
func (t *translation) object(object, expected footest.Object) (footest.Object, error) {
	object = copyOf(object)
	if object.GetNamespace() == t.namespace {
		object.SetNamespace(footest.Namespace)
	}
	t.pair(string(object.GetUID()), string(expected.GetUID()))
	if err := t.learnVersion(object.GetResourceVersion(), expected.GetResourceVersion()); err != nil {
		return nil, fmt.Errorf("the resourceVersion of %s: %w", object.GetName(), err)
	}
	if _, err := translate(object, t.toModel); err != nil {
		return nil, err
	}
	if object.GetDeletionTimestamp() != nil {
		object.SetDeletionTimestamp(&metav1.Time{Time: epoch})
	}
	object.SetManagedFields(nil)
	object.SetCreationTimestamp(metav1.Time{})
	return object, nil
}

// pair pairs a UID or version of the server and one of the model, unless one of them is known.
func (t *translation) pair(server, model string) {
	if t.toServer[model] == "" && t.toModel[server] == "" {
		t.toServer[model], t.toModel[server] = server, model
	}
}

// learnVersion pairs versions that are newer than those known.
func (t *translation) learnVersion(server, model string) error {
	for _, versions := range [][2]string{{server, t.newest}, {model, t.newestModel}} {
		order, err := 1, error(nil)
		if versions[1] != "" {
			order, err = resourceversion.CompareResourceVersion(versions[0], versions[1])
		}
		if err != nil || order <= 0 {
			return err
		}
	}
	t.newest, t.newestModel = server, model
	t.pair(server, model)
	return nil
}

// translate replaces the UIDs and versions in an object, and returns those that are unknown.
func translate(object runtime.Object, by map[string]string) (unknown []string, err error) {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, err
	}
	unknown = replaceIDs(fields, by)
	return unknown, runtime.DefaultUnstructuredConverter.FromUnstructured(fields, object)
}

func replaceIDs(value any, by map[string]string) (unknown []string) {
	switch value := value.(type) {
	case []any:
		for _, item := range value {
			unknown = append(unknown, replaceIDs(item, by)...)
		}
	case map[string]any:
		for key, field := range value {
			id, isText := field.(string)
			switch other, known := by[id]; {
			case !isText || key != "uid" && key != "resourceVersion":
				unknown = append(unknown, replaceIDs(field, by)...)
			case known:
				value[key] = other
			default:
				unknown = append(unknown, fmt.Sprintf("the %s %q", key, id))
			}
		}
	}
	return unknown
}
