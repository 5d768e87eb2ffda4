// SPDX-License-Identifier: Apache-2.0

// The fixture of the tests: a Controller on fake clientsets, with running informers.

package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	kubeinformers "k8s.io/client-go/informers"
	kubefake "k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"
	"k8s.io/utils/clock"

	"example.com/sample-controller/internal/kinds"
	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	foofake "example.com/sample-controller/pkg/generated/clientset/versioned/fake"
	fooinformers "example.com/sample-controller/pkg/generated/informers/externalversions"
	"example.com/sample-controller/pkg/process/metrics"
	"example.com/sample-controller/pkg/reconcile/table"
	"example.com/sample-controller/test/footest"
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
	t   *testing.T
	ctx context.Context
	// primary is the row of footest.Primary, the only row that most tests use.
	primary    childHandlers
	kubeClient *kubefake.Clientset
	fooClient  *foofake.Clientset
	api        footest.FakeAPI
	events     chan string
	// handlersSynced are done when the handlers have received all objects of the initial list.
	handlersSynced []cache.DoneChecker
	stopInformers  func()
	// declare replaces the program's kind in a test of other rows.
	declare func(clients kinds.Clients) *table.Kind
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
	f := &fixture{t: t, ctx: ctx, kubeClient: kubefake.NewClientset(), fooClient: foofake.NewSimpleClientset()}
	for _, object := range world {
		object := object.(footest.Object)
		tracker, resource := f.placeOf(object)
		footest.Must(t, tracker.Create(resource, object, object.GetNamespace()))
	}
	f.api.Serve(t, &f.kubeClient.Fake, f.kubeClient.Tracker())
	f.api.Serve(t, &f.fooClient.Fake, f.fooClient.Tracker())
	prepare(f)
	if f.declare != nil {
		f.api.Others = otherKinds
	}
	kubeInformers, fooInformers := f.control(footest.FooOwner, clock.RealClock{})
	f.primary = childHandlers{f.Controller, f.kind.Rows[0]}
	if f.declare == nil {
		f.kind.Rows, f.kind.Children = f.kind.Rows[:1], f.kind.Children[:1]
	}
	if !f.standBy {
		var err error
		f.handlersSynced, err = f.addEventHandlers(ctx)
		footest.Must(t, err)
	}
	quiet := klog.NewContext(ctx, klog.Logger{}) // a failure shows only the controller's log
	kubeInformers.StartWithContext(quiet)
	fooInformers.StartWithContext(quiet)
	f.stopInformers = func() {
		stop()
		kubeInformers.Shutdown()
		fooInformers.Shutdown()
	}
	t.Cleanup(func() {
		f.stopInformers()
		if !f.panics {
			f.expectMetrics("panics", `sample_controller_sync_panics_total 0`)
		}
	})
	if !cache.WaitFor(ctx, "", f.handlersSynced...) {
		t.Fatal("the caches have not synced")
	}
	synctest.Wait() // the watches are open
	f.takeWrites()
	return f
}

// control makes the Controller of a kind, and returns its informers.
func (f *fixture) control(owner *footest.OwnerRow, now clock.WithTicker) (kubeinformers.SharedInformerFactory, fooinformers.SharedInformerFactory) {
	f.t.Helper()
	kubeInformers := kubeinformers.NewSharedInformerFactory(f.kubeClient, 0)
	fooInformers := fooinformers.NewSharedInformerFactory(f.fooClient, 0)
	recorder := record.NewFakeRecorder(1000)
	clients := kinds.Clients{Kube: f.kubeClient, Custom: f.fooClient, KubeInformers: kubeInformers, CustomInformers: fooInformers}
	declare := f.declare
	if declare == nil {
		declare = func(clients kinds.Clients) *table.Kind { return kindOf(owner, clients) }
	}
	kind := declare(clients)
	footest.Must(f.t, table.Prepare(kind))
	config := Config{Recorder: recorder, Clock: now, CallTimeout: 30 * time.Second, Metrics: metrics.New("sample-controller", "Foo")}
	f.Controller, f.events = NewController(config, kind), recorder.Events
	f.t.Cleanup(f.queue.ShutDown)
	return kubeInformers, fooInformers
}

// kindOf returns a kind of the program.
func kindOf(owner *footest.OwnerRow, clients kinds.Clients) *table.Kind {
	all := kinds.All(clients, kinds.Options{Image: footest.DefaultImage})
	return all[slices.IndexFunc(all, func(kind *table.Kind) bool { return kind.Resource == owner.Resource })]
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

// on calls react for each call of a verb on a resource, before the API server receives it. If
// react returns an error, that is the response. A subresource counts as its resource.
func (f *fixture) on(verb, resource string, react func(action clienttesting.Action) error) {
	reaction := func(action clienttesting.Action) (bool, runtime.Object, error) {
		err := react(action)
		return err != nil, nil, err
	}
	f.kubeClient.PrependReactor(verb, resource, reaction)
	f.fooClient.PrependReactor(verb, resource, reaction)
}

// refusal counts calls, and refuses them until it is over.
type refusal struct {
	calls atomic.Int32
	over  atomic.Bool
}

// refuse makes the API server respond to each call of a verb on a resource with an error.
func (f *fixture) refuse(verb, resource string, err error) *refusal {
	r := &refusal{}
	f.on(verb, resource, func(clienttesting.Action) error {
		if r.calls.Add(1); r.over.Load() {
			return nil
		}
		return err
	})
	return r
}

// failTimes makes the API server respond to the first calls of a verb on a resource with an
// error.
func (f *fixture) failTimes(times int32, verb, resource string, err error) {
	f.onFirst(times, verb, resource, func(clienttesting.Action) error { return err })
}

// onFirst does the same as on, for the first calls.
func (f *fixture) onFirst(times int32, verb, resource string, react func(action clienttesting.Action) error) {
	var calls atomic.Int32
	f.on(verb, resource, func(action clienttesting.Action) error {
		if calls.Add(1) > times {
			return nil
		}
		return react(action)
	})
}

// placeOf returns where the API server stores an object.
func (f *fixture) placeOf(object footest.Object) (clienttesting.ObjectTracker, schema.GroupVersionResource) {
	if footest.IsOwner(object) {
		return f.fooClient.Tracker(), footest.OwnerOf(object).Resource
	}
	return f.kubeClient.Tracker(), footest.KindOf(object).Resource
}

// put creates or replaces an object, as a user or another controller does.
func (f *fixture) put(object footest.Object) {
	f.t.Helper()
	f.api.Stamp(object)
	tracker, resource := f.placeOf(object)
	err := tracker.Update(resource, object, object.GetNamespace())
	if apierrors.IsNotFound(err) {
		err = tracker.Create(resource, object, object.GetNamespace())
	}
	footest.Must(f.t, err)
}

func (f *fixture) deleteFoo(name string) {
	f.t.Helper()
	footest.Must(f.t, f.api.Delete(f.fooClient.Tracker(), footest.FoosResource, footest.Namespace, name))
}

// deleteChild deletes a child, as a user or the garbage collector does.
func (f *fixture) deleteChild(name string) {
	f.t.Helper()
	footest.Must(f.t, f.api.Delete(f.kubeClient.Tracker(), footest.Primary.Resource, footest.Namespace, name))
}

// storedChild returns a copy of a child from the API server.
func (f *fixture) storedChild(name string) footest.Object {
	f.t.Helper()
	object, err := f.kubeClient.Tracker().Get(footest.Primary.Resource, footest.Namespace, name)
	footest.Must(f.t, err)
	return object.(footest.Object)
}

// storedFoo returns a copy of a Foo from the API server.
func (f *fixture) storedFoo(name string) *samplev1alpha1.Foo {
	f.t.Helper()
	object, err := f.fooClient.Tracker().Get(footest.FoosResource, footest.Namespace, name)
	footest.Must(f.t, err)
	return object.(*samplev1alpha1.Foo)
}

func (f *fixture) cachedFoo(name string) *samplev1alpha1.Foo {
	f.t.Helper()
	foo := f.kind.Owner(cache.NewObjectName(footest.Namespace, name))
	if foo == nil {
		f.t.Fatalf("the cache has no Foo %s", name)
	}
	return foo.(*samplev1alpha1.Foo)
}

// actions returns the calls of the controller, in order for each client.
func (f *fixture) actions() []clienttesting.Action {
	return append(f.kubeClient.Actions(), f.fooClient.Actions()...)
}

// nameOf returns the name of a call, such as createChild or writeStatus.
func nameOf(action clienttesting.Action) string {
	resource := action.GetResource().Resource
	if action.GetSubresource() != "" {
		resource += "/" + action.GetSubresource()
	}
	return action.GetVerb() + " " + resource
}

// count counts the calls with a name since the last takeWrites.
func (f *fixture) count(call string) (count int) {
	for _, action := range f.actions() {
		if nameOf(action) == call {
			count++
		}
	}
	return count
}

// takeWrites lists the writes since its last call.
func (f *fixture) takeWrites() (writes []string) {
	for _, action := range f.actions() {
		if !slices.Contains([]string{"get", "list", "watch"}, action.GetVerb()) {
			writes = append(writes, nameOf(action))
		}
	}
	f.kubeClient.ClearActions()
	f.fooClient.ClearActions()
	return writes
}

// recorded returns the Events so far, each as "type reason message".
func (f *fixture) recorded() (events []string) {
	for len(f.events) > 0 {
		events = append(events, <-f.events)
	}
	return events
}

// expectWrites checks the writes since its last call.
func (f *fixture) expectWrites(want ...string) {
	f.t.Helper()
	footest.ExpectEqual(f.t, "the list of writes", want, f.takeWrites())
}

// expectEvents checks the Events since its last call.
func (f *fixture) expectEvents(want ...string) {
	f.t.Helper()
	footest.ExpectEqual(f.t, "the list of events", want, f.recorded())
}

// expectReady checks a Foo's condition Ready, as "status reason of generation", and returns it.
func (f *fixture) expectReady(name, want string) metav1.Condition {
	f.t.Helper()
	foo := f.cachedFoo(name)
	ready := footest.ReadyOf(foo.Status)
	got := fmt.Sprintf("%s %s of %d", ready.Status, ready.Reason, ready.ObservedGeneration)
	if got != want || foo.Status.ObservedGeneration != ready.ObservedGeneration {
		f.t.Errorf("Foo %s is %s (observedGeneration %d, %s), not %s", name, got, foo.Status.ObservedGeneration, ready.Message, want)
	}
	return ready
}

// expectWanted checks that the Foo "a" has the child that it wants.
func (f *fixture) expectWanted() {
	f.t.Helper()
	footest.CheckWanted(f.t, f.storedChild("web"), f.storedFoo("a"))
}
