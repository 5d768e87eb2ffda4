// SPDX-License-Identifier: Apache-2.0

// The API server of the tests of the wait at start.

package kubeclient

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

var (
	foosResource        = samplev1alpha1.SchemeGroupVersion.WithResource("foos")
	replicaSetsResource = appsv1.SchemeGroupVersion.WithResource("replicasets")
)

const (
	foosPath        = "/apis/samplecontroller.k8s.io/v1alpha1/namespaces/team-a/foos"
	replicaSetsPath = "/apis/apps/v1/namespaces/team-a/replicasets"
)

// fakeServer is an API server that can refuse requests. It is a transport, because a
// bubble of testing/synctest has no network.
type fakeServer struct {
	t       *testing.T
	ctx     context.Context
	clients *Clients

	mu       sync.Mutex
	answers  map[string]error // by verb and path, such as "list /apis/..."
	requests []string
}

func newFakeServer(t *testing.T) *fakeServer {
	t.Helper()
	f := &fakeServer{t: t, ctx: t.Context(), answers: map[string]error{}}
	var err error
	f.clients, err = New(&rest.Config{Host: "https://cluster", QPS: -1, Transport: f}, 2, time.Second)
	must(t, err)
	return f
}

// RoundTrip answers a list with an empty one, and a watch with its end.
func (f *fakeServer) RoundTrip(r *http.Request) (*http.Response, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	request := "list " + r.URL.Path
	if r.URL.Query().Get("watch") != "" {
		request = "watch " + r.URL.Path
	}
	f.requests = append(f.requests, request)
	answer := func(code int, body any) (*http.Response, error) {
		text, err := json.Marshal(body)
		must(f.t, err)
		header := http.Header{"Content-Type": {"application/json"}}
		return &http.Response{StatusCode: code, Header: header, Body: io.NopCloser(strings.NewReader(string(text))), Request: r}, nil
	}
	err := f.answers[request]
	var status apierrors.APIStatus
	switch {
	case errors.As(err, &status):
		body := status.Status()
		body.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
		return answer(int(body.Code), body)
	case err != nil:
		return nil, err
	}
	return answer(http.StatusOK, metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{Kind: "List", APIVersion: "v1"}})
}

// refuse makes the server answer a request with an error, or with success if that is nil.
func (f *fakeServer) refuse(request string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.answers[request] = err
}

// wait waits for Foos and ReplicaSets.
func (f *fakeServer) wait(ctx context.Context) error {
	return f.clients.WaitUntilReadable(ctx, "team-a", foosResource, replicaSetsResource)
}

// forbidden returns the API server's answer if a permission is missing.
func forbidden(why string) error {
	return apierrors.NewForbidden(foosResource.GroupResource(), "", errors.New(why))
}

// advance moves the clock of a test's bubble forward, then waits until every goroutine in
// the bubble is idle. No real time passes.
func advance(d time.Duration) {
	time.Sleep(d) //nolint:forbidigo // in a bubble this moves the clock forward
	synctest.Wait()
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// logged returns a context whose logger writes to the returned buffer.
func logged(ctx context.Context) (context.Context, ktesting.Buffer) {
	logger := ktesting.NewLogger(ktesting.NopTL{}, ktesting.NewConfig(ktesting.BufferLogs(true)))
	return klog.NewContext(ctx, logger), logger.GetSink().(ktesting.Underlier).GetBuffer()
}
