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

// Tests of the wait at start.

package kubeclient

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	foofake "example.com/sample-controller/pkg/generated/clientset/versioned/fake"
)

var foosResource = samplev1alpha1.SchemeGroupVersion.WithResource("foos")

// fakeServer is an API server that can refuse to list Foos.
type fakeServer struct {
	ctx     context.Context
	foos    *foofake.Clientset
	clients *Clients
}

func newFakeServer(t *testing.T) *fakeServer {
	t.Helper()
	foos := foofake.NewSimpleClientset()
	return &fakeServer{ctx: t.Context(), foos: foos, clients: &Clients{Foos: foos, host: "https://cluster", requestTimeout: time.Second}}
}

// refuse makes the server answer each list with an error.
func (f *fakeServer) refuse(err error) { f.refuseUntilStopped(err) }

// refuseUntilStopped does what refuse does, until the function it returns is called.
func (f *fakeServer) refuseUntilStopped(err error) (stop func()) {
	var stopped atomic.Bool
	f.foos.PrependReactor("list", "foos", func(clienttesting.Action) (bool, runtime.Object, error) {
		return !stopped.Load(), nil, err
	})
	return func() { stopped.Store(true) }
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

func TestWaitsForAMissingDefinitionAndPermission(t *testing.T) {
	for name, answer := range map[string]error{
		"no CustomResourceDefinition": apierrors.NewNotFound(foosResource.GroupResource(), ""),
		"no permission":               apierrors.NewForbidden(foosResource.GroupResource(), "", errors.New("RBAC")),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFakeServer(t)
				installed := f.refuseUntilStopped(answer)
				done := make(chan error, 1)
				go func() { done <- f.clients.WaitForFoos(f.ctx, "team-a") }()
				advance(time.Hour)
				select {
				case err := <-done:
					t.Fatalf("did not wait, but returned %v", err)
				default:
				}
				installed()
				must(t, <-done)
			})
		})
	}
}

// An API server that is busy when the controller starts is no reason to exit.
func TestABusyServerIsWaitedForAsLongAsItAsks(t *testing.T) {
	proxied := func(code, seconds int) error {
		return apierrors.NewGenericServerResponse(code, "get", foosResource.GroupResource(), "", "", seconds, true)
	}
	for name, row := range map[string]struct {
		answer error
		calls  int // in the first 10 minutes
	}{
		"too many requests":                 {apierrors.NewTooManyRequests("slow down", 10), 60},
		"too many requests, without a time": {apierrors.NewTooManyRequestsError("slow down"), 300},
		"unavailable":                       {proxied(http.StatusServiceUnavailable, 30), 20},
		"a timeout of the server":           {apierrors.NewTimeoutError("slow storage", 10), 60},
		"a server timeout":                  {apierrors.NewServerTimeout(foosResource.GroupResource(), "list", 0), 300},
		"for a day":                         {apierrors.NewTooManyRequests("slow down", 86400), 10},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFakeServer(t)
				recovered := f.refuseUntilStopped(row.answer)
				ctx, log := logged(f.ctx)
				done := make(chan error, 1)
				go func() { done <- f.clients.WaitForFoos(ctx, "team-a") }()
				advance(10*time.Minute - time.Second)
				if calls := len(f.foos.Actions()); calls != row.calls {
					t.Errorf("the API server got %d requests in 10 minutes, not %d", calls, row.calls)
				}
				recovered()
				must(t, <-done)
				if said := log.String(); strings.Count(said, "Waiting until Foos can be listed") != 1 || !strings.Contains(said, "asks clients to retry later") {
					t.Errorf("the log does not say once what the controller waits for:\n%s", said)
				}
			})
		})
	}
}

func TestEachCauseOfWaitingIsLoggedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeServer(t)
		ctx, log := logged(f.ctx)
		ctx, stop := context.WithCancel(ctx)
		noDefinition := apierrors.NewNotFound(foosResource.GroupResource(), "")
		f.refuse(noDefinition)
		busy := f.refuseUntilStopped(apierrors.NewTooManyRequests("slow down", 10))
		time.AfterFunc(time.Minute, busy)
		time.AfterFunc(time.Hour, stop)
		must(t, f.clients.WaitForFoos(ctx, "team-a"))
		if said := log.String(); strings.Count(said, "asks clients to retry later") != 1 || strings.Count(said, "is not installed") != 1 {
			t.Errorf("the log does not say once for each cause what the controller waits for:\n%s", said)
		}
	})
}

// logged returns a context whose logger writes to the returned buffer.
func logged(ctx context.Context) (context.Context, ktesting.Buffer) {
	logger := ktesting.NewLogger(ktesting.NopTL{}, ktesting.NewConfig(ktesting.BufferLogs(true)))
	return klog.NewContext(ctx, logger), logger.GetSink().(ktesting.Underlier).GetBuffer()
}

func TestServerThatCannotBeUsedIsAnErrorAtOnce(t *testing.T) {
	for name, row := range map[string]struct {
		answer error
		want   string
	}{
		"unreachable":     {errors.New("dial tcp: connection refused"), "check that it runs"},
		"out of order":    {apierrors.NewInternalError(errors.New("etcd")), "check that it runs"},
		"bad credentials": {apierrors.NewUnauthorized("no"), "does not accept the credentials"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFakeServer(t)
				f.refuse(row.answer)
				err := f.clients.WaitForFoos(f.ctx, "team-a")
				if !errors.Is(err, row.answer) {
					t.Fatalf("returned %v", err)
				}
				said := err.Error()
				if !strings.Contains(said, row.want) || !strings.Contains(said, "https://cluster") {
					t.Errorf("the message %q does not say %q and the server", said, row.want)
				}
			})
		})
	}
}

func TestStopWhileWaitingIsNoError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeServer(t)
		f.refuse(apierrors.NewNotFound(foosResource.GroupResource(), ""))
		ctx, stop := context.WithCancel(f.ctx)
		time.AfterFunc(time.Minute, stop)
		must(t, f.clients.WaitForFoos(ctx, "team-a"))
	})
}
