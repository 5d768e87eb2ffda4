/*
Copyright The Sample Controller Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

// The clientsets for the controller. They are client-go's own, for every resource, on an
// HTTP transport that is the simulated API server. What they send and receive are ids of
// objects, which are passed by reference: the simulation would spend most of its time on
// JSON otherwise.

package simulation

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
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"example.com/sample-controller/internal/footest"
	clientset "example.com/sample-controller/pkg/generated/clientset/versioned"
)

// newClients returns clientsets that send their requests through a connection.
func newClients(conn *connection) Clients {
	wire := &wire{}
	client, err := rest.NewRESTClient(&url.URL{Scheme: "http", Host: "simulation"}, "", rest.ClientContentConfig{
		ContentType: mediaType, GroupVersion: corev1.SchemeGroupVersion, Negotiator: wire,
	}, nil, &http.Client{Transport: transport{conn: conn, wire: wire}})
	if err != nil {
		panic(err)
	}
	return Clients{
		Kubernetes: kubeClient{Interface: kubernetes.New(client)},
		Custom:     fooClient{Interface: clientset.New(client)},
	}
}

type kubeClient struct{ kubernetes.Interface }

// IsWatchListSemanticsUnSupported makes informers list first, then watch.
func (c kubeClient) IsWatchListSemanticsUnSupported() bool { return true }

type fooClient struct{ clientset.Interface }

// IsWatchListSemanticsUnSupported makes informers list first, then watch.
func (c fooClient) IsWatchListSemanticsUnSupported() bool { return true }

// transport is the API server of the clientsets. It has none of the headers that make
// client-go repeat a call, so that each call reaches an injection point once.
type transport struct {
	conn *connection
	wire *wire
}

// RoundTrip answers a request. A call without an answer returns its error.
func (t transport) RoundTrip(request *http.Request) (*http.Response, error) {
	r, err := t.read(request)
	if err != nil {
		return nil, err
	}
	if footest.Served(r.id.resource) == nil {
		t.conn.cluster.violationf("%s", footest.UnknownResource(r.id.resource, t.conn.cluster.test))
		return t.answer(nil, apierrors.NewNotFound(corev1.Resource(r.id.resource), r.id.name))
	}
	switch {
	case request.Method == http.MethodPost && r.subresource == "":
		return t.answer(t.conn.create(r.ctx, r.object))
	case request.Method == http.MethodPut:
		return t.answer(t.conn.update(r.ctx, r.object, r.subresource))
	case request.Method == http.MethodDelete && r.id.name != "":
		return t.answer(&metav1.Status{Status: metav1.StatusSuccess}, t.conn.delete(r.ctx, r.id, r.deleteOptions()))
	case request.Method != http.MethodGet || r.subresource != "":
	case r.id.name != "":
		return t.answer(t.conn.get(r.ctx, r.id))
	case r.query.Has("watch"):
		w, err := t.conn.watch(r.ctx, r.id.resource, r.query.Get("resourceVersion"))
		if err != nil {
			return t.answer(nil, err)
		}
		return t.response(http.StatusOK, &eventReader{wire: t.wire, watch: w}), nil
	default:
		objects, version, err := t.conn.list(r.ctx, r.id.resource)
		return t.answer(&listed{objects: objects, version: version}, err)
	}
	t.conn.cluster.violationf("%s: the simulation has no %s of %s", t.conn.cluster.test, request.Method, request.URL.Path)
	return t.answer(nil, apierrors.NewMethodNotSupported(r.id.groupResource(), request.Method))
}

// answer makes the response to a call, unless it got none.
func (t transport) answer(object runtime.Object, err error) (*http.Response, error) {
	if err == nil {
		return t.response(http.StatusOK, io.NopCloser(bytes.NewReader(t.wire.send(object)))), nil
	}
	var refusal apierrors.APIStatus
	if !errors.As(err, &refusal) {
		return nil, err
	}
	status := refusal.Status()
	return t.response(int(status.Code), io.NopCloser(bytes.NewReader(t.wire.send(&status)))), nil
}

func (t transport) response(code int, body io.ReadCloser) *http.Response {
	return &http.Response{StatusCode: code, Header: http.Header{"Content-Type": {mediaType}}, Body: body}
}

// received is a request as the API server reads it.
type received struct {
	ctx         context.Context
	id          objectID
	subresource string
	query       url.Values
	object      runtime.Object
}

// read reads the path of a request, such as /namespaces/team-a/foos/a/status, and
// its object.
func (t transport) read(request *http.Request) (received, error) {
	r := received{ctx: request.Context(), query: request.URL.Query()}
	path := strings.Split(strings.Trim(request.URL.Path, "/"), "/")
	if len(path) > 2 && path[0] == "namespaces" {
		path = path[2:]
	}
	path = append(path, "", "")
	r.id, r.subresource = objectID{path[0], path[1]}, path[2]
	if request.Body == nil {
		return r, nil
	}
	defer request.Body.Close()
	body, err := io.ReadAll(request.Body)
	if err != nil {
		return r, fmt.Errorf("reading a request: %w", err)
	}
	if request.Method != http.MethodPatch { // patches are not simulated
		r.object = t.wire.receive(body)
	}
	return r, nil
}

func (r received) deleteOptions() metav1.DeleteOptions {
	if options, ok := r.object.(*metav1.DeleteOptions); ok {
		return *options
	}
	return metav1.DeleteOptions{}
}

// eventReader is the body of the response to a watch. Each Read returns one event.
type eventReader struct {
	wire  *wire
	watch watch.Interface
}

// Read waits for the next event.
func (r *eventReader) Read(into []byte) (int, error) {
	event, open := <-r.watch.ResultChan()
	if !open {
		return 0, io.EOF
	}
	return copy(into, string(event.Type)+" "+string(r.wire.send(event.Object))), nil
}

// Close ends the watch.
func (r *eventReader) Close() error {
	r.watch.Stop()
	return nil
}
