// SPDX-License-Identifier: Apache-2.0

// Tests of stops, of calls that hang, and of metrics.

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	goruntime "runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"
	"sigs.k8s.io/yaml"

	"example.com/sample-controller/internal/election"
	"example.com/sample-controller/internal/failure"
	"example.com/sample-controller/internal/kubeclient"
	"example.com/sample-controller/internal/queue"
	"example.com/sample-controller/internal/serving"
	"example.com/sample-controller/test/footest"
)

// These tests need calls that can be cancelled, which those of fake clientsets can't: the
// controller's calls for children go to a real HTTP server.

// slowServer accepts calls, and answers each when the test allows it or when the client
// gives up.
type slowServer struct {
	called  chan struct{}
	release chan struct{}
	cut     chan struct{}
}

func newSlowServer(t *testing.T, f *fixture) *slowServer {
	t.Helper()
	s := &slowServer{called: make(chan struct{}, 10), release: make(chan struct{}), cut: make(chan struct{}, 10)}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// net/http notices that the client is gone only after the whole body was read.
		_, _ = io.Copy(io.Discard, r.Body)
		s.called <- struct{}{}
		select {
		case <-s.release:
			w.WriteHeader(http.StatusServiceUnavailable)
		case <-r.Context().Done():
			s.cut <- struct{}{}
		}
	}))
	t.Cleanup(server.Close)
	client, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL, QPS: -1})
	footest.Must(t, err)
	f.primary.api = childrenOf(f.primary.informer, client.AppsV1().Deployments)
	return s
}

func TestHangingCallTimesOut(t *testing.T) {
	f := newFixtureInRealTime(t, func(*fixture) {}, footest.Foo("a"))
	newSlowServer(t, f)
	f.callTimeout = 50 * time.Millisecond
	err := f.syncHandler(f.ctx, footest.KeyOf(footest.Foo("a")))
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the sync ended with %v, not with the call's deadline", err)
	}
}

func TestALostLeaseCancelsTheCallUnderWay(t *testing.T) {
	f := newFixtureInRealTime(t, func(*fixture) {}, footest.Foo("a"))
	server := newSlowServer(t, f)
	held, lose := context.WithCancel(f.ctx)
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		f.runWorkers(f.ctx, held, 1, f.handlersSynced)
	}()
	<-server.called
	lose()
	<-server.cut
	<-stopped
}

// A process that is killed at the end of its grace period keeps the Lease, and loses Events.
func TestAStopTakesLessThanTheGracePeriod(t *testing.T) {
	data, err := os.ReadFile("artifacts/deploy/workload/deployment.yaml")
	footest.Must(t, err)
	var manifest appsv1.Deployment
	footest.Must(t, yaml.Unmarshal(data, &manifest))
	grace := time.Duration(*manifest.Spec.Template.Spec.TerminationGracePeriodSeconds) * time.Second
	if all := drainTimeout + election.ReleaseTimeout + flushTimeout + serving.ShutdownTimeout; all >= grace {
		t.Errorf("a stop may take %v of %v", all, grace)
	}
}

func TestStopDoesNotInterruptAWrite(t *testing.T) {
	f := newFixtureInRealTime(t, func(*fixture) {}, footest.Foo("a"))
	server := newSlowServer(t, f)
	ctx, stop := context.WithCancel(f.ctx)
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		f.runWorkers(ctx, f.ctx, 1, f.handlersSynced)
	}()
	<-server.called
	stop()
	for !f.queue.ShuttingDown() { // until Run handles the stop
		goruntime.Gosched()
	}
	select {
	case <-server.cut:
		t.Fatal("the call under way was cancelled")
	case <-stopped:
		t.Fatal("Run returned during a call")
	default:
	}
	close(server.release)
	<-stopped
}

// After a Retry-After the key waits, not the worker.
func TestRetryAfterDelaysTheKeyNotTheWorker(t *testing.T) {
	var calls atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		calls.Add(1)
		w.Header().Set("Retry-After", "2")
		http.Error(w, "Too many requests, please try again later.", http.StatusTooManyRequests) // as Priority and Fairness does
	}))
	defer server.Close()
	for _, workers := range []int{2, 1000} {
		clients, err := kubeclient.New(&rest.Config{Host: server.URL, QPS: -1}, workers, 0)
		footest.Must(t, err)
		f := newFixtureInRealTime(t, func(*fixture) {}, footest.Foo("a"))
		f.primary.api = childrenOf(f.primary.informer, clients.Kube.AppsV1().Deployments)
		calls.Store(0)
		err = f.syncHandler(f.ctx, footest.KeyOf(footest.Foo("a")))
		if next := queue.NextAttempt(err); next.After != 2*time.Second || calls.Load() != 1 {
			t.Errorf("with %d workers: %d calls, the next attempt is %+v: %v", workers, calls.Load(), next, err)
		}
		if message := footest.ReadyOf(f.storedFoo(t, "a").Status).Message; !strings.HasPrefix(message, footest.Primary.Kind+` "web" could not be created yet: `) {
			t.Errorf("the Foo's message is %q", message)
		}
	}
}

// ours returns the lines of this controller's own metrics.
func ours(lines []string) []string {
	return slices.DeleteFunc(lines, func(line string) bool {
		return !strings.HasPrefix(line, "sample_controller_") || strings.Contains(line, "_bucket{")
	})
}

// expectMetrics checks that a scrape contains these lines.
func (f *fixture) expectMetrics(t *testing.T, what string, want ...string) {
	t.Helper()
	lines := scraped(t, f.metrics)
	for _, line := range want {
		if !slices.Contains(lines, line) {
			t.Errorf("The metrics of the %s lack\n%s\nand have\n%s", what, line, strings.Join(ours(lines), "\n"))
		}
	}
}

// countOf is the metric that counts a write, such as createChild. A patch counts as an
// update.
func countOf(write string, count int) string {
	verb, resource, _ := strings.Cut(strings.Replace(write, "patch ", "update ", 1), " ")
	return fmt.Sprintf(`sample_controller_writes_total{resource=%q,verb=%q} %d`, resource, verb, count)
}

func TestMetricsOfAController(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, footest.Foo("a"), footest.Foo("b", footest.WithChildName("taken")), footest.Child("c", footest.Named("taken")))
		f.expectMetrics(t, "writes before the first", countOf(createChild, 0))
		defer f.start(2)()
		advance(time.Second)
		f.expectMetrics(t, "writes",
			countOf(createChild, 1),
			countOf(updateChild, 0),
			countOf(deleteChild, 0),
			`sample_controller_writes_total{resource="foos/status",verb="update"} 2`)

		f.drift(t, "web")
		advance(time.Second)
		f.expectMetrics(t, "writes of a change", countOf(updateChild, 1))

		a := f.cachedFoo(t, "a").DeepCopy()
		footest.WithChildName("renamed")(a)
		f.updateFoo(t, a)
		advance(time.Second)
		f.expectMetrics(t, "writes of a rename",
			countOf(createChild, 2),
			countOf(deleteChild, 1))
	})
}

func TestRefusedWritesAreCountedByCause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, footest.Foo("a"))
		f.refuse("create", children, apierrors.NewForbidden(footest.ChildGR, "web", errors.New("exceeded quota: q")))
		f.refuse("update", "foos", apierrors.NewUnauthorized("no"))
		defer f.start(1)()
		advance(0)
		f.expectMetrics(t, "refused writes",
			countOf(createChild, 0),
			`sample_controller_writes_total{resource="foos/status",verb="update"} 0`,
			`sample_controller_refusals_total{cause="quota"} 1`,
			`sample_controller_refusals_total{cause="permission"} 1`,
			`sample_controller_refusals_total{cause="policy"} 0`,
			`sample_controller_sync_duration_seconds_count{result="error"} 1`,
			`sample_controller_sync_duration_seconds_count{result="success"} 0`)
	})
}

func TestTheTimeOfASyncIsMeasured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, footest.Foo("a"))
		f.kubeClient.PrependReactor("create", children, func(clienttesting.Action) (bool, runtime.Object, error) {
			<-time.After(3 * time.Second)
			return false, nil, nil
		})
		defer f.start(1)()
		advance(4 * time.Second)
		f.expectMetrics(t, "duration", `sample_controller_sync_duration_seconds_sum{result="success"} 3`)
	})
}

// The number of series does not depend on the number of Foos.
func TestSeriesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, footest.Foo("very-own-name", footest.WithChildName("its-child")), footest.Foo("other"))
		f.metrics.CountByReady("foos", f.CountByReady)
		defer f.start(2)()
		advance(time.Second)
		series := map[string]bool{}
		for _, line := range scraped(t, f.metrics) {
			for _, name := range []string{"very-own-name", "its-child", `"` + footest.Namespace + `"`} {
				if strings.Contains(line, name) {
					t.Errorf("A series contains the name of an object: %s", line)
				}
			}
			name, _, _ := strings.Cut(line, " ")
			if strings.HasPrefix(name, "sample_controller_") && !strings.Contains(name, "_bucket{") {
				series[name] = true
			}
		}
		want := map[string]bool{
			`sample_controller_foos{ready="False"}`:                                true,
			`sample_controller_foos{ready="True"}`:                                 true,
			`sample_controller_foos{ready="Unknown"}`:                              true,
			`sample_controller_stale_syncs_total`:                                  true,
			`sample_controller_sync_panics_total`:                                  true,
			`sample_controller_sync_duration_seconds_count{result="error"}`:        true,
			`sample_controller_sync_duration_seconds_count{result="panic"}`:        true,
			`sample_controller_sync_duration_seconds_count{result="retry"}`:        true,
			`sample_controller_sync_duration_seconds_count{result="success"}`:      true,
			`sample_controller_sync_duration_seconds_sum{result="error"}`:          true,
			`sample_controller_sync_duration_seconds_sum{result="panic"}`:          true,
			`sample_controller_sync_duration_seconds_sum{result="retry"}`:          true,
			`sample_controller_sync_duration_seconds_sum{result="success"}`:        true,
			`sample_controller_writes_total{resource="foos/status",verb="update"}`: true,
		}
		for _, kind := range footest.Kinds {
			for _, verb := range []string{"create", "update", "delete"} {
				want[fmt.Sprintf(`sample_controller_writes_total{resource=%q,verb=%q}`, kind.Resource.Resource, verb)] = true
			}
		}
		for _, cause := range failure.Causes {
			want[fmt.Sprintf(`sample_controller_refusals_total{cause=%q}`, cause)] = true
		}
		footest.ExpectEqual(t, "the set of our series", want, series)
	})
}
