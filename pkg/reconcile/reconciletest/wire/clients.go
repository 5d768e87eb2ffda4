// SPDX-License-Identifier: Apache-2.0

// Package wire has clientsets for an API server in memory. They are client-go's own, for
// every resource, on an HTTP transport that is the server. What they send and receive are
// ids of objects, which are passed by reference: most of the time would be spent on JSON
// otherwise.
package wire

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"example.com/sample-controller/pkg/reconcile/reconciletest/model"
	"example.com/sample-controller/pkg/reconcile/reconciletest/rows"
)

// Server answers the requests of the clientsets. An error that is no answer of an API
// server counts as none: the connection failed.
type Server interface {
	// Do answers a request: a list with a List, a watch with Events, and any other with an
	// object or nil. It may keep the objects that it gets, but not change those that it returns.
	Do(request *Request) (any, error)
}

// Events are the answer to a watch.
type Events interface {
	// Next waits for the next event. It is not ok if the watch has ended.
	Next() (event watch.Event, ok bool)
	// Stop ends the watch.
	Stop()
}

// Request is a request as the API server reads it. Its verb may also be list, watch, patch, or
// deletecollection, and its kind is nil if the tests do not know the resource.
type Request struct {
	model.Request

	Ctx      context.Context
	Resource string
	// PatchType and Patch are what a patch sends.
	PatchType types.PatchType
	Patch     []byte
	// ResourceVersion is that from which a watch begins.
	ResourceVersion string
	// Selector is that of a list or a watch, or "".
	Selector string
}

// NewClient returns a client that sends its requests to a server. Clientsets are made of it, such as
// kubernetes.New(client). All of their groups and versions share it, so that a resource is known by its
// name alone.
func NewClient(owner *rows.OwnerRow, server Server) rest.Interface {
	encoding := &encoding{}
	client, err := rest.NewRESTClient(&url.URL{Scheme: "http", Host: "simulation"}, "", rest.ClientContentConfig{
		ContentType: mediaType, GroupVersion: corev1.SchemeGroupVersion, Negotiator: encoding,
	}, nil, &http.Client{Transport: transport{owner, server, encoding}})
	if err != nil {
		panic(err)
	}
	return client
}

// transport is the way of the clientsets to a server. It has none of the headers that make
// client-go repeat a call, so that each call reaches the server once.
type transport struct {
	owner    *rows.OwnerRow
	server   Server
	encoding *encoding
}

// RoundTrip answers a request. A call without an answer returns its error.
func (t transport) RoundTrip(sent *http.Request) (*http.Response, error) {
	request, err := t.read(sent)
	if err != nil {
		return nil, err
	}
	answer, err := t.answer(request, sent.URL.Query())
	status := metav1.Status{Status: metav1.StatusSuccess, Code: http.StatusOK}
	if err != nil {
		var refusal apierrors.APIStatus
		if !errors.As(err, &refusal) {
			return nil, err
		}
		status, answer = refusal.Status(), nil
	}
	response := &http.Response{StatusCode: int(status.Code), Header: http.Header{"Content-Type": {mediaType}}}
	switch answer := answer.(type) {
	case Events:
		response.Body = &eventReader{encoding: t.encoding, Events: answer}
	case runtime.Object:
		response.Body = io.NopCloser(bytes.NewReader(t.encoding.send(answer)))
	default:
		response.Body = io.NopCloser(bytes.NewReader(t.encoding.send(&status)))
	}
	return response, nil
}

// answer returns the answer of the server. Without it, it refuses to begin a watch with the objects that there
// are, as a server without the feature WatchList does, so that informers list first.
func (t transport) answer(request *Request, query url.Values) (any, error) {
	if query.Has("sendInitialEvents") {
		return nil, apierrors.NewInvalid(schema.GroupKind{Kind: "ListOptions"}, request.Resource, field.ErrorList{
			field.Forbidden(field.NewPath("sendInitialEvents"), "the simulation has no WatchList"),
		})
	}
	request.Selector = cmp.Or(query.Get("labelSelector"), query.Get("fieldSelector"))
	return t.server.Do(request)
}

// read reads the path of a request, such as /namespaces/team-a/foos/a/status, and its
// object.
func (t transport) read(sent *http.Request) (*Request, error) {
	query := sent.URL.Query()
	r := &Request{Ctx: sent.Context(), ResourceVersion: query.Get("resourceVersion")}
	path := strings.Split(strings.Trim(sent.URL.Path, "/"), "/")
	if len(path) > 2 && path[0] == "namespaces" {
		path = path[2:]
	}
	path = append(path, "", "")
	r.Resource, r.Name, r.Subresource = path[0], path[1], path[2]
	r.Kind, r.Verb = t.owner.Served(r.Resource), r.verb(sent.Method, query)
	if sent.Body == nil {
		return r, nil
	}
	defer sent.Body.Close()
	body, err := io.ReadAll(sent.Body)
	if err != nil {
		return r, fmt.Errorf("reading a request: %w", err)
	}
	if sent.Method == http.MethodPatch { // its body is none of encoding's
		r.PatchType, r.Patch = types.PatchType(sent.Header.Get("Content-Type")), body
		return r, nil
	}
	r.Sent = t.encoding.receive(body)
	if r.Verb == "create" && r.Kind != nil {
		r.Name = r.Object().GetName()
	}
	return r, nil
}

func (r *Request) verb(method string, query url.Values) string {
	switch {
	case method == http.MethodPost:
		return "create"
	case method == http.MethodPut:
		return "update"
	case method == http.MethodPatch:
		return "patch"
	case method == http.MethodDelete && r.Name != "":
		return "delete"
	case method == http.MethodDelete:
		return "deletecollection"
	case r.Name != "":
		return "get"
	case query.Has("watch"):
		return "watch"
	}
	return "list"
}

// eventReader is the body of the response to a watch. Each Read returns one event.
type eventReader struct {
	Events

	encoding *encoding
}

// Read waits for the next event.
func (r *eventReader) Read(into []byte) (int, error) {
	event, ok := r.Next()
	if !ok {
		return 0, io.EOF
	}
	return copy(into, fmt.Sprintf(`{"type":%q,"object":%s}`, event.Type, r.encoding.send(event.Object))), nil
}

// Close ends the watch.
func (r *eventReader) Close() error {
	r.Stop()
	return nil
}

// mediaType is the content type of ids.
const mediaType = "application/vnd.simulation"

// encoding holds the objects in transit, by their ids. It is the negotiator of a REST
// client, and all of its encoders and decoders.
type encoding struct {
	mu   sync.Mutex
	last int
	sent map[int]runtime.Object
}

// send keeps an object until it is received, and returns its id. No one changes the object
// from then on.
func (w *encoding) send(object runtime.Object) []byte {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.sent == nil {
		w.sent = map[int]runtime.Object{}
	}
	w.last++
	w.sent[w.last] = object
	return strconv.AppendInt(nil, int64(w.last), 10)
}

// receive returns the object of an id, which has one reader.
func (w *encoding) receive(id []byte) runtime.Object {
	i, err := strconv.Atoi(string(id))
	if err != nil {
		panic(err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	object, sent := w.sent[i]
	if !sent {
		panic(fmt.Sprintf("the object %d was not sent, or received before", i))
	}
	delete(w.sent, i)
	return object
}

// Encoder returns the encoder of each media type.
func (w *encoding) Encoder(string, map[string]string) (runtime.Encoder, error) { return w, nil }

// Decoder returns the decoder of each media type.
func (w *encoding) Decoder(string, map[string]string) (runtime.Decoder, error) { return w, nil }

// events reads and writes the events of watches, in which the objects are ids.
var events = json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme.Scheme, scheme.Scheme, json.SerializerOptions{})

// StreamDecoder returns the decoders for watches.
func (w *encoding) StreamDecoder(string, map[string]string) (runtime.Decoder, runtime.Serializer, runtime.Framer, error) {
	return w, events, json.Framer, nil
}

// Encode sends a copy of an object.
func (w *encoding) Encode(object runtime.Object, to io.Writer) error {
	_, err := to.Write(w.send(object.DeepCopyObject()))
	return err
}

// Identifier is that of the encoder.
func (w *encoding) Identifier() runtime.Identifier { return mediaType }

// Decode receives an object, or the objects of a list.
func (w *encoding) Decode(id []byte, _ *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	object := w.receive(id)
	list, isList := object.(*List)
	switch {
	case isList:
		accessor, err := meta.ListAccessor(into)
		if err != nil {
			return nil, nil, err
		}
		accessor.SetResourceVersion(list.ResourceVersion)
		return into, &schema.GroupVersionKind{}, meta.SetList(into, list.Items)
	case into == nil || reflect.TypeOf(into) != reflect.TypeOf(object):
		return object, &schema.GroupVersionKind{}, nil
	}
	reflect.ValueOf(into).Elem().Set(reflect.ValueOf(object).Elem())
	return into, &schema.GroupVersionKind{}, nil
}

// List is the answer to a list, whose type depends on the caller.
type List struct {
	metav1.TypeMeta

	Items           []runtime.Object
	ResourceVersion string
}

// DeepCopyObject returns the answer itself, which no one changes.
func (l *List) DeepCopyObject() runtime.Object { return l }
