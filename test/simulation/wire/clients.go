// SPDX-License-Identifier: Apache-2.0

// Package wire has clientsets for an API server in memory. They are client-go's own, for
// every resource, on an HTTP transport that is the server. What they send and receive are
// ids of objects, which are passed by reference: most of the time would be spent on JSON
// otherwise.
package wire

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	clientset "example.com/sample-controller/pkg/generated/clientset/versioned"
	"example.com/sample-controller/test/footest"
	"example.com/sample-controller/test/simulation/model"
)

// Server answers the requests of the clientsets. An error that is no answer of an API
// server counts as none: the connection failed.
type Server interface {
	// Do answers a request that is not a watch, for a list with a List. It may keep the
	// objects that it gets, but not change those that it returns.
	Do(request *Request) (runtime.Object, error)
	// Watch answers a watch.
	Watch(ctx context.Context, resource, resourceVersion string) (watch.Interface, error)
}

// Request is a request as the API server reads it. Its verb may also be list, patch, or
// deletecollection, and its kind is nil if the tests do not know the resource.
type Request struct {
	model.Request

	Ctx      context.Context
	Resource string
	// PatchType and Patch are what a patch sends.
	PatchType types.PatchType
	Patch     []byte

	query url.Values
}

// Clients connect a controller to an API server in memory. They serve the calls of a controller and its
// informers; any other call panics.
type Clients struct {
	Kubernetes kubernetes.Interface
	Custom     clientset.Interface
}

// NewClients returns clientsets that send their requests to a server.
func NewClients(server Server) Clients {
	encoding := &encoding{}
	client, err := rest.NewRESTClient(&url.URL{Scheme: "http", Host: "simulation"}, "", rest.ClientContentConfig{
		ContentType: mediaType, GroupVersion: corev1.SchemeGroupVersion, Negotiator: encoding,
	}, nil, &http.Client{Transport: transport{server, encoding}})
	if err != nil {
		panic(err)
	}
	return Clients{kubeClient{Interface: kubernetes.New(client)}, fooClient{Interface: clientset.New(client)}}
}

type kubeClient struct{ kubernetes.Interface }

// IsWatchListSemanticsUnSupported makes informers list first, then watch.
func (c kubeClient) IsWatchListSemanticsUnSupported() bool { return true }

type fooClient struct{ clientset.Interface }

// IsWatchListSemanticsUnSupported makes informers list first, then watch.
func (c fooClient) IsWatchListSemanticsUnSupported() bool { return true }

// transport is the way of the clientsets to a server. It has none of the headers that make
// client-go repeat a call, so that each call reaches the server once.
type transport struct {
	server   Server
	encoding *encoding
}

// RoundTrip answers a request. A call without an answer returns its error.
func (t transport) RoundTrip(sent *http.Request) (*http.Response, error) {
	request, err := t.read(sent)
	if err != nil {
		return nil, err
	}
	if request.Verb == "watch" {
		w, err := t.server.Watch(request.Ctx, request.Resource, request.query.Get("resourceVersion"))
		if err != nil {
			return t.answer(nil, err)
		}
		return t.response(http.StatusOK, &eventReader{encoding: t.encoding, watch: w}), nil
	}
	object, err := t.server.Do(request)
	if err == nil && object == nil {
		object = &metav1.Status{Status: metav1.StatusSuccess}
	}
	return t.answer(object, err)
}

// answer makes the response to a call, unless it got none.
func (t transport) answer(object runtime.Object, err error) (*http.Response, error) {
	if err == nil {
		return t.response(http.StatusOK, io.NopCloser(bytes.NewReader(t.encoding.send(object)))), nil
	}
	var refusal apierrors.APIStatus
	if !errors.As(err, &refusal) {
		return nil, err
	}
	status := refusal.Status()
	return t.response(int(status.Code), io.NopCloser(bytes.NewReader(t.encoding.send(&status)))), nil
}

func (t transport) response(code int, body io.ReadCloser) *http.Response {
	return &http.Response{StatusCode: code, Header: http.Header{"Content-Type": {mediaType}}, Body: body}
}

// read reads the path of a request, such as /namespaces/team-a/foos/a/status, and its
// object.
func (t transport) read(sent *http.Request) (*Request, error) {
	r := &Request{Ctx: sent.Context(), query: sent.URL.Query()}
	path := strings.Split(strings.Trim(sent.URL.Path, "/"), "/")
	if len(path) > 2 && path[0] == "namespaces" {
		path = path[2:]
	}
	path = append(path, "", "")
	r.Resource, r.Name, r.Subresource = path[0], path[1], path[2]
	r.Kind, r.Verb = footest.Served(r.Resource), r.verb(sent.Method)
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

func (r *Request) verb(method string) string {
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
	case r.query.Has("watch"):
		return "watch"
	}
	return "list"
}

// eventReader is the body of the response to a watch. Each Read returns one event.
type eventReader struct {
	encoding *encoding
	watch    watch.Interface
}

// Read waits for the next event.
func (r *eventReader) Read(into []byte) (int, error) {
	event, open := <-r.watch.ResultChan()
	if !open {
		return 0, io.EOF
	}
	return copy(into, string(event.Type)+" "+string(r.encoding.send(event.Object))), nil
}

// Close ends the watch.
func (r *eventReader) Close() error {
	r.watch.Stop()
	return nil
}
