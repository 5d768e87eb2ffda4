// SPDX-License-Identifier: Apache-2.0

// The fixture of the tests: a Controller on fake clientsets, with running informers.

package main

import (
	"context"
	"os"
	"testing"
	"testing/synctest"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"
	"k8s.io/utils/clock"

	"example.com/sample-controller/internal/kinds"
	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/pkg/reconcile/table"
	"example.com/sample-controller/test/footest"
	"example.com/sample-controller/test/looptest"
)

// children is the resource of the children, and these are the writes.
var (
	children    = footest.Primary.Resource.Resource
	createChild = "create " + children
	updateChild = "patch " + children
	deleteChild = "delete " + children
	writeStatus = "update foos/status"
	// conflict and failed are the reasons that require a user to act.
	conflict = footest.Primary.Kind + "Conflict"
	failed   = footest.Primary.Kind + "Failed"
)

// TestMain makes the fake watches hold as many events as the largest test writes without
// waiting: they panic when they are full.
func TestMain(m *testing.M) {
	watch.DefaultChanSize = 20_000
	os.Exit(m.Run())
}

// fixture is a Controller on fake clientsets. Running informers fill its caches, as in
// production.
type fixture struct {
	*Controller
	*looptest.Cluster

	ctx context.Context
	// primary is the row of footest.Primary, the only row that most tests use.
	primary childHandlers
	// handlersSynced are done when the handlers have received all objects of the initial list.
	handlersSynced []cache.DoneChecker
	stopInformers  func()
	// standBy is true in a test that calls Run itself, and panics in one whose syncs may panic.
	standBy, panics bool
}

// test runs a test in a testing/synctest bubble, where time passes only while all goroutines
// are idle. The controller's API server has the objects of the world, its informers are idle,
// and its workers do not run.
func test(t *testing.T, world []runtime.Object, body func(f *fixture)) {
	t.Helper()
	testWith(t, func(*fixture) {}, world, body)
}

// testWith does the same as test, and calls prepare before the informers use the clientsets.
func testWith(t *testing.T, prepare func(*fixture), world []runtime.Object, body func(f *fixture)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { body(newFixture(t, prepare, world...)) })
}

// testRunning does the same as test, with two workers, which stop when the test ends.
func testRunning(t *testing.T, world []runtime.Object, body func(f *fixture)) {
	t.Helper()
	test(t, world, func(f *fixture) {
		defer f.start(2)()
		body(f)
	})
}

func world(objects ...runtime.Object) []runtime.Object { return objects }

// settledFoo returns the Foo "a", whose status says that its child is at rest.
func settledFoo(options ...footest.FooOption) *samplev1alpha1.Foo {
	return footest.Foo("a", append([]footest.FooOption{footest.WithStatus(footest.Settled("a"))}, options...)...)
}

// atRest is the world of the Foo "a" and its child, and of others.
func atRest(others ...runtime.Object) []runtime.Object {
	return append(others, settledFoo(), footest.Child("a"))
}

// oldChild returns a child of the Foo "a" with the name "old".
func oldChild(options ...footest.ChildOption) footest.Object {
	return footest.Child("a", append([]footest.ChildOption{footest.Named("old")}, options...)...)
}

// newFixture creates a Controller whose API server has the given Foos and children, calls prepare, starts
// the informers and waits until they are idle. It does not start workers. Call it in a testing/synctest
// bubble, where a test knows when all goroutines are idle.
func newFixture(t *testing.T, prepare func(*fixture), world ...runtime.Object) *fixture {
	t.Helper()
	logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.Verbosity(4)))
	ctx, stop := context.WithCancel(klog.NewContext(t.Context(), logger))
	f := &fixture{Cluster: looptest.NewCluster(t, world...), ctx: ctx}
	prepare(f)
	clients := f.control(footest.FooOwner, clock.RealClock{})
	f.primary = childHandlers{f.Controller, f.kind.Rows[0]}
	f.kind.Rows, f.kind.Children = f.kind.Rows[:1], f.kind.Children[:1]
	if !f.standBy {
		var err error
		f.handlersSynced, err = f.addEventHandlers(ctx)
		footest.Must(t, err)
	}
	quiet := klog.NewContext(ctx, klog.Logger{}) // a failure shows only the controller's log
	clients.KubeInformers.StartWithContext(quiet)
	clients.CustomInformers.StartWithContext(quiet)
	f.stopInformers = func() {
		stop()
		clients.KubeInformers.Shutdown()
		clients.CustomInformers.Shutdown()
	}
	t.Cleanup(func() {
		f.stopInformers()
		if !f.panics {
			f.ExpectMetrics("panics", `sample_controller_sync_panics_total 0`)
		}
	})
	if !cache.WaitFor(ctx, "", f.handlersSynced...) {
		t.Fatal("the caches have not synced")
	}
	synctest.Wait() // the watches are open
	f.TakeWrites()
	return f
}

// control makes the Controller of a kind, and returns its clients.
func (f *fixture) control(owner *footest.OwnerRow, now clock.WithTicker) kinds.Clients {
	f.T.Helper()
	clients := f.Clients()
	kind := looptest.KindOf(owner, clients)
	footest.Must(f.T, table.Prepare(kind))
	f.Controller = NewController(Config{Recorder: f.Recorder, Clock: now, CallTimeout: looptest.CallTimeout, Metrics: f.Metrics}, kind)
	f.T.Cleanup(f.queue.ShutDown)
	return clients
}

// start runs the controller. The function that it returns stops the controller and waits for
// its end.
func (f *fixture) start(workers int) (stop func()) {
	ctx, cancel := context.WithCancel(f.ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		f.runWorkers(ctx, f.ctx, workers, f.handlersSynced)
	}()
	return func() {
		cancel()
		<-done
	}
}

// sync syncs the Foo "a" once.
func (f *fixture) sync() error {
	_, err := f.syncHandler(f.ctx, footest.KeyOf(footest.Foo("a")))
	return err
}

// advance moves the clock of a test's bubble forward.
var advance = footest.Advance

func (f *fixture) cachedFoo(name string) *samplev1alpha1.Foo {
	f.T.Helper()
	foo := f.kind.Owner(cache.NewObjectName(footest.Namespace, name))
	if foo == nil {
		f.T.Fatalf("the cache has no Foo %s", name)
	}
	return foo.(*samplev1alpha1.Foo)
}

// expectWanted checks that the Foo "a" has the child that it wants.
func (f *fixture) expectWanted() {
	f.T.Helper()
	footest.CheckWanted(f.T, f.StoredChild("web"), f.StoredFoo("a"))
}
