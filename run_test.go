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

// Tests of start, stop and standby, and of calls that hang.

package main

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	goruntime "runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	kubeinformers "k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	kubefake "k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"

	"example.com/sample-controller/internal/footest"
	"example.com/sample-controller/internal/kubeclient"
	"example.com/sample-controller/internal/metrics"
	"example.com/sample-controller/internal/queue"
	fooinformers "example.com/sample-controller/pkg/generated/informers/externalversions"
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
	f.Controller.kubeClient = client
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
		f.Controller.kubeClient = clients.Kube
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

// standBy makes a controller that does not run yet, and runs its informers until ctx
// ends. The function that it returns waits for their end.
func standBy(ctx context.Context, t *testing.T, foos ...runtime.Object) (*kubefake.Clientset, *Controller, func()) {
	t.Helper()
	kubeClient, fooClient := kubefake.NewClientset(), fakeFooClient(t, foos...)
	kubeInformers := kubeinformers.NewSharedInformerFactory(kubeClient, 0)
	fooInformers := fooinformers.NewSharedInformerFactory(fooClient, 0)
	controller, err := NewController(Config{
		KubeClient: kubeClient, FooClient: fooClient,
		KubeInformers: kubeInformers, Foos: fooInformers.Samplecontroller().V1alpha1().Foos(),
		Recorder: record.NewFakeRecorder(100), Clock: clock.RealClock{}, CallTimeout: time.Minute, Metrics: metrics.New(), Image: footest.DefaultImage,
	})
	footest.Must(t, err)
	kubeInformers.StartWithContext(ctx)
	fooInformers.StartWithContext(ctx)
	return kubeClient, controller, func() {
		kubeInformers.Shutdown()
		fooInformers.Shutdown()
	}
}

// The queue of a standby is empty. The handlers fill it when the standby becomes the
// leader.
func TestBeforeItRunsNothingIsQueued(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		kubeClient, controller, shutdown := standBy(ctx, t, footest.Foo("a"))
		advance(time.Hour)
		if queued := controller.queue.Len(); queued != 0 {
			t.Errorf("%d Foos are queued", queued)
		}

		stopped := make(chan error)
		go func() { stopped <- controller.Run(ctx, context.Background(), 2) }()
		advance(time.Second)
		if _, err := kubeClient.Tracker().Get(footest.Primary.Resource, footest.Namespace, "web"); err != nil {
			t.Errorf("running as the leader: %v", err)
		}
		stop()
		footest.Must(t, <-stopped)
		shutdown()
	})
}

// A stop may come just after the caches have synced. Informers that have stopped accept
// no handlers. That is no error, and nothing keeps running.
func TestAStopBeforeTheHandlersIsNoError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		_, controller, shutdown := standBy(ctx, t)
		advance(time.Second)
		stop()
		shutdown()
		footest.Must(t, controller.Run(ctx, context.Background(), 2))
	})
}
