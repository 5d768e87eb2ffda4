// SPDX-License-Identifier: Apache-2.0

// The fixture of the tests: a Controller on fake clientsets, with running informers.

package main

import (
	"context"
	"fmt"
	"os"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"
	"k8s.io/utils/clock"

	"example.com/sample-controller/internal/kinds"
	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/pkg/reconcile/memory"
	"example.com/sample-controller/pkg/reconcile/plan"
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

// change changes a child, as another controller does.
func (f *fixture) change(name string, changes ...footest.ChildOption) {
	f.T.Helper()
	child := f.StoredChild(name)
	for _, change := range changes {
		change(child)
	}
	f.Put(child)
}

// settle acts on a child like the cluster's own controllers, until it is at rest.
func (f *fixture) settle(name string) {
	f.T.Helper()
	f.change(name, func(child footest.Object) {
		for footest.Primary.Advance(child) {
		}
	})
}

// scale sets a Foo's number of replicas, as a user does.
func (f *fixture) scale(name string, replicas int32) {
	f.T.Helper()
	foo := f.StoredFoo(name)
	foo.Spec.Replicas = &replicas
	foo.Generation++
	f.Put(foo)
}

// resync queues a Foo as the periodic resync does, and advances the clock by its period.
func (f *fixture) resync(name string) {
	f.T.Helper()
	cached := f.cachedFoo(name)
	f.updateOwner(cached, cached)
	advance(30 * time.Second)
}

// drainQueue removes the keys of the initial list from the queue.
func (f *fixture) drainQueue() {
	for f.queue.Len() > 0 {
		key, _ := f.queue.Get()
		f.queue.Done(key)
	}
}

// expectForgotten fails if anything about a Foo is remembered.
func (f *fixture) expectForgotten(name string) {
	f.T.Helper()
	if known := f.known.Of(footest.Foo(name)); !reflect.DeepEqual(known, new(memory.Map).Of(footest.Foo(name))) {
		f.T.Errorf("of the Foo %s, this is still remembered: %+v", name, known)
	}
}

// expectQueued checks how many Foos are queued, and empties the queue.
func (f *fixture) expectQueued(want int, why string) {
	f.T.Helper()
	if got := f.queue.Len(); got != want {
		f.T.Errorf("%s: %d Foos are queued, not %d", why, got, want)
	}
	f.drainQueue()
}

// wrote makes the controller remember a write for the Foo "a" that no cache has.
func (f *fixture) wrote(to func(known *memory.Owner) *memory.Written) {
	foo := footest.Foo("a")
	known := f.known.Of(foo)
	to(known).Observe(footest.Child("a", footest.AtVersion("9999")), f.clock.Now())
	f.known.Keep(footest.KeyOf(foo), known)
}

func toStatus(known *memory.Owner) *memory.Written { return &known.Written }

func toChild(known *memory.Owner) *memory.Written {
	return &known.Child(footest.Primary.Kind).Written
}

// In tests with these, the caches do not change, as with watches that deliver nothing.
func holdFoos(f *fixture) { f.Hold("foos") }

func holdChildren(f *fixture) { f.Hold(children) }

func holdAll(f *fixture) {
	holdFoos(f)
	holdChildren(f)
}

// askToSync sets the annotation that asks for a sync, as a user does.
func (f *fixture) askToSync(name, request string) {
	f.T.Helper()
	foo := f.StoredFoo(name)
	foo.Annotations = map[string]string{f.kind.SyncRequested(): request}
	f.Put(foo)
}

// admitChildren adds an admission webhook that changes each child in one operation, or in all.
func (f *fixture) admitChildren(in string, changes ...footest.ChildOption) {
	f.API.Admit = func(operation string, sent footest.Object) error {
		for _, change := range changes {
			if footest.Primary.Is(sent) && (operation == in || in == "") {
				change(sent)
			}
		}
		return nil
	}
}

// expectStalled checks the reason of the Foo's condition Stalled; "" means no condition.
func (f *fixture) expectStalled(want string) {
	f.T.Helper()
	got, stalled := "", meta.FindStatusCondition(f.cachedFoo("a").Status.Conditions, samplev1alpha1.ConditionStalled)
	if stalled != nil {
		got = strings.TrimPrefix(string(stalled.Status)+" "+stalled.Reason, "True ")
	}
	footest.ExpectEqual(f.T, "the reason of the condition Stalled", want, got)
}

// denial returns the response to a request that an admission webhook denies with a code of its
// choice. The API server passes it on (k8s.io/apiserver/pkg/admission/plugin/webhook/errors).
func denial(code int32, reason metav1.StatusReason) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: code, Reason: reason, Message: `admission webhook "names.example.com" denied the request: taken`,
	}}
}

// written returns the status that was written, or nil.
func (f *fixture) written() (status *samplev1alpha1.FooStatus) {
	for _, action := range f.Foos.Actions() {
		if action, ok := action.(clienttesting.UpdateAction); ok {
			status = &action.GetObject().(*samplev1alpha1.Foo).Status
		}
	}
	return status
}

// afterCreate returns the condition Ready of a Foo whose child has just been created.
func afterCreate() string {
	if footest.Primary.Unready(footest.Primary.Created(footest.Primary.New(footest.Foo("a")))) != "" {
		return "False Progressing of 1"
	}
	return "True Available of 1"
}

// callsTake makes each call of a verb on children in the namespace of footest take some time.
func (f *fixture) callsTake(verb string, took time.Duration) {
	f.On(verb, children, func(action clienttesting.Action) error {
		if action.GetNamespace() == footest.Namespace {
			<-time.After(took)
		}
		return nil
	})
}

// hang makes each creation of a child take until release is closed or the call is canceled,
// which fake clientsets don't notice.
func (f *fixture) hang() (release chan struct{}, cut *atomic.Int32) {
	release, cut = make(chan struct{}), &atomic.Int32{}
	f.primary.row.Create = func(ctx context.Context, _ plan.Object, _ metav1.CreateOptions) (plan.Object, error) {
		select {
		case <-release:
			return nil, serverFails
		case <-ctx.Done():
			cut.Add(1)
			return nil, ctx.Err()
		}
	}
	return release, cut
}

// countOf returns the metric that counts a write, such as createChild. A patch counts as an
// update.
func countOf(write string, count int) string {
	verb, resource, _ := strings.Cut(strings.Replace(write, "patch ", "update ", 1), " ")
	return fmt.Sprintf(`sample_controller_writes_total{resource=%q,verb=%q} %d`, resource, verb, count)
}

// rename changes the name of the child that a Foo wants, as a user does.
func (f *fixture) rename(name, child string) {
	f.T.Helper()
	foo := f.StoredFoo(name)
	foo.Spec.DeploymentName = child
	foo.Generation++
	f.Put(foo)
}
