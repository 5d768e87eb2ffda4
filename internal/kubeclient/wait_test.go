// SPDX-License-Identifier: Apache-2.0

// Tests of the wait at start, and their API server.

package kubeclient

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// The log names the resource, the verb, the scope and the manifest.
func TestWaitsForAMissingDefinitionAndPermission(t *testing.T) {
	for name, row := range map[string]struct {
		request string
		answer  error
		says    []string
	}{
		"no CustomResourceDefinition": {
			"list " + foosPath, apierrors.NewNotFound(foosResource.GroupResource(), ""),
			[]string{`resource="foos.samplecontroller.k8s.io"`, "the CustomResourceDefinition foos.samplecontroller.k8s.io is not installed", "kubectl apply -f artifacts/crd"},
		},
		"a version that is not served": {
			"list " + replicaSetsPath, apierrors.NewNotFound(replicaSetsResource.GroupResource(), ""),
			[]string{"the API server does not serve replicasets.apps in version v1"},
		},
		"no permission to list Foos": {
			"list " + foosPath, forbidden("RBAC says no"),
			[]string{"the permission to list foos.samplecontroller.k8s.io in the namespace team-a is missing", "artifacts/deploy/namespaced", "RBAC says no"},
		},
		"no permission to watch Foos":        {"watch " + foosPath, forbidden("RBAC"), []string{"the permission to watch foos.samplecontroller.k8s.io"}},
		"no permission to list ReplicaSets":  {"list " + replicaSetsPath, forbidden("RBAC"), []string{"the permission to list replicasets.apps"}},
		"no permission to watch ReplicaSets": {"watch " + replicaSetsPath, forbidden("RBAC"), []string{"the permission to watch replicasets.apps"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFakeServer(t)
				f.refuse(row.request, row.answer)
				ctx, log := logged(f.ctx)
				done := make(chan error, 1)
				go func() { done <- f.wait(ctx) }()
				advance(time.Minute)
				select {
				case err := <-done:
					t.Fatalf("did not wait, but returned %v", err)
				default:
				}
				f.refuse(row.request, nil)
				must(t, <-done)
				said := log.String()
				for _, want := range row.says {
					if !strings.Contains(said, want) {
						t.Errorf("the log does not say %q:\n%s", want, said)
					}
				}
				if strings.Count(said, "Waiting until") != 1 {
					t.Errorf("the log does not say once what the controller waits for:\n%s", said)
				}
			})
		})
	}
}

// Whoever grants permissions sees all that are missing at once.
func TestAllMissingPermissionsAreLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeServer(t)
		all := []string{"list " + foosPath, "watch " + foosPath, "list " + replicaSetsPath, "watch " + replicaSetsPath}
		for _, request := range all {
			f.refuse(request, forbidden("RBAC"))
		}
		ctx, log := logged(f.ctx)
		ctx, stop := context.WithCancel(ctx)
		defer stop()
		go func() { _ = f.wait(ctx) }()
		advance(time.Second)
		if said := log.String(); strings.Count(said, "the permission to ") != len(all) {
			t.Errorf("the log does not have all %d permissions:\n%s", len(all), said)
		}
		stop()
		synctest.Wait()
	})
}

// Once nothing is missing, nothing is asked any more.
func TestWithoutAnObstacleEachResourceIsProbedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeServer(t)
		must(t, f.wait(f.ctx))
		advance(time.Hour)
		if want := []string{"list " + foosPath, "watch " + foosPath, "list " + replicaSetsPath, "watch " + replicaSetsPath}; !slices.Equal(f.requests, want) {
			t.Errorf("the requests are %v, not %v", f.requests, want)
		}
	})
}

func TestPathsOfCollections(t *testing.T) {
	for want, got := range map[string]string{
		foosPath: pathOf("team-a", foosResource),
		"/apis/samplecontroller.k8s.io/v1alpha1/foos": pathOf("", foosResource),
		"/api/v1/services":                            pathOf("", corev1.SchemeGroupVersion.WithResource("services")),
	} {
		if got != want {
			t.Errorf("the path is %s, not %s", got, want)
		}
	}
}

// A watch that ends, or fails in another way, shows that it is allowed, or that the
// informers have to try.
func TestOtherFailuresOfAWatchAreLeftToTheInformers(t *testing.T) {
	for name, answer := range map[string]error{
		"the version is gone": apierrors.NewResourceExpired("too old"),
		"a broken connection": errors.New("connection reset"),
		"an internal error":   apierrors.NewInternalError(errors.New("etcd")),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFakeServer(t)
				f.refuse("watch "+foosPath, answer)
				ctx, stop := context.WithTimeout(f.ctx, time.Minute)
				defer stop()
				must(t, f.wait(ctx))
				if ctx.Err() != nil {
					t.Error("it waits")
				}
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
				f.refuse("list "+foosPath, row.answer)
				ctx, log := logged(f.ctx)
				done := make(chan error, 1)
				go func() { done <- f.clients.WaitUntilReadable(ctx, "team-a", foosResource) }()
				advance(10*time.Minute - time.Second)
				if calls := len(f.requests); calls != row.calls {
					t.Errorf("the API server got %d requests in 10 minutes, not %d", calls, row.calls)
				}
				f.refuse("list "+foosPath, nil)
				must(t, <-done)
				if said := log.String(); strings.Count(said, "Waiting until") != 1 || !strings.Contains(said, "asks clients to retry later") {
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
		f.refuse("list "+foosPath, apierrors.NewTooManyRequests("slow down", 10))
		time.AfterFunc(time.Minute, func() {
			f.refuse("list "+foosPath, apierrors.NewNotFound(foosResource.GroupResource(), ""))
		})
		time.AfterFunc(2*time.Minute, stop)
		must(t, f.wait(ctx))
		if said := log.String(); strings.Count(said, "asks clients to retry later") != 1 || strings.Count(said, "is not installed") != 1 {
			t.Errorf("the log does not say once for each cause what the controller waits for:\n%s", said)
		}
	})
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
				f.refuse("list "+replicaSetsPath, row.answer)
				err := f.wait(f.ctx)
				if err == nil {
					t.Fatal("returned no error")
				}
				said := err.Error()
				if !strings.Contains(said, row.want) || !strings.Contains(said, "https://cluster") || !strings.Contains(said, row.answer.Error()) {
					t.Errorf("the message %q does not say %q, the server and the cause", said, row.want)
				}
			})
		})
	}
}

func TestStopWhileWaitingIsNoError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeServer(t)
		f.refuse("list "+foosPath, apierrors.NewNotFound(foosResource.GroupResource(), ""))
		ctx, stop := context.WithCancel(f.ctx)
		time.AfterFunc(time.Minute, stop)
		must(t, f.wait(ctx))
	})
}

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
