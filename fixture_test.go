// SPDX-License-Identifier: Apache-2.0

// The fixture of the tests: a Controller on fake clientsets, with running informers.

package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	kubeinformers "k8s.io/client-go/informers"
	kubefake "k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"
	"k8s.io/utils/clock"

	"example.com/sample-controller/internal/metrics"
	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	foofake "example.com/sample-controller/pkg/generated/clientset/versioned/fake"
	fooinformers "example.com/sample-controller/pkg/generated/informers/externalversions"
	"example.com/sample-controller/test/footest"
)

// fixture is a Controller on fake clientsets. Running informers fill its caches, as in
// production.
type fixture struct {
	*Controller
	ctx context.Context
	// primary is the row of footest.Primary, and allKinds is the whole table.
	primary    *childAPI
	allKinds   []*childAPI
	kubeClient *kubefake.Clientset
	fooClient  *foofake.Clientset
	api        footest.FakeAPI
	events     chan string
	// handlersSynced are done when the handlers have got all objects of the first list.
	handlersSynced []cache.DoneChecker
	// panics is true in a test whose syncs may panic.
	panics bool
	// cached holds each object of the caches with a copy from before the test.
	cached map[runtime.Object]runtime.Object
}

// newFixture makes a Controller whose API server has the given Foos and children,
// starts its informers and waits until they are idle. It does not start workers. Call it
// in a testing/synctest bubble, where a test knows when all goroutines are idle.
func newFixture(t *testing.T, world ...runtime.Object) *fixture {
	t.Helper()
	return newFixtureWith(t, func(*fixture) {}, world...)
}

// newFixtureWith does the same as newFixture, and calls prepare before the informers use
// the clientsets.
func newFixtureWith(t *testing.T, prepare func(*fixture), world ...runtime.Object) *fixture {
	t.Helper()
	f := newFixtureInRealTime(t, prepare, world...)
	synctest.Wait() // the watches are open
	f.kubeClient.ClearActions()
	f.fooClient.ClearActions()
	return f
}

// fakeFooClient returns a clientset with some Foos. It adds them by their resource
// instead of passing them to NewClientset, which guesses the plural of a kind: boxs,
// keies.
func fakeFooClient(t *testing.T, foos ...runtime.Object) *foofake.Clientset {
	t.Helper()
	client := foofake.NewSimpleClientset()
	for _, foo := range foos {
		footest.Must(t, client.Tracker().Create(footest.OwnerOf(foo.(footest.Object)).Resource, foo, footest.Namespace))
	}
	return client
}

// newFixtureInRealTime does the same as newFixtureWith, for tests that use the network
// and so can't run in a bubble.
func newFixtureInRealTime(t *testing.T, prepare func(*fixture), world ...runtime.Object) *fixture {
	t.Helper()
	logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.Verbosity(4)))
	ctx, stop := context.WithCancel(klog.NewContext(t.Context(), logger))
	var foos, others []runtime.Object
	for _, object := range world {
		if footest.IsOwner(object) {
			foos = append(foos, object)
		} else {
			others = append(others, object)
		}
	}
	recorder := record.NewFakeRecorder(100)
	f := &fixture{
		ctx:        ctx,
		kubeClient: kubefake.NewClientset(others...),
		fooClient:  fakeFooClient(t, foos...),
		events:     recorder.Events,
		cached:     map[runtime.Object]runtime.Object{},
	}
	f.api.Serve(t, &f.kubeClient.Fake, f.kubeClient.Tracker())
	f.api.Serve(t, &f.fooClient.Fake, f.fooClient.Tracker())
	prepare(f)
	kubeInformers := kubeinformers.NewSharedInformerFactory(f.kubeClient, 0)
	fooInformers := fooinformers.NewSharedInformerFactory(f.fooClient, 0)
	owner := footest.FooOwner
	if len(foos) > 0 {
		owner = footest.OwnerOf(foos[0].(footest.Object))
	}
	controller, err := NewController(Config{
		KubeClient: f.kubeClient, FooClient: f.fooClient, KubeInformers: kubeInformers, FooInformers: fooInformers,
		Recorder: recorder, Clock: clock.RealClock{}, CallTimeout: 30 * time.Second, Metrics: metrics.New(),
	}, kindOf(owner))
	if err != nil {
		t.Fatal(err)
	}
	f.Controller = controller
	f.allKinds = controller.children
	f.primary = controller.onlyFirst()
	f.handlersSynced, err = controller.addEventHandlers(ctx)
	footest.Must(t, err)
	quiet := klog.NewContext(ctx, klog.Logger{}) // a failure shows the controller's log alone
	kubeInformers.StartWithContext(quiet)
	fooInformers.StartWithContext(quiet)
	t.Cleanup(func() {
		stop()
		kubeInformers.Shutdown()
		fooInformers.Shutdown()
		controller.queue.ShutDown()
		if !f.panics {
			for _, line := range scraped(t, controller.metrics) {
				if strings.Contains(line, "_sync_panics_total ") && !strings.HasSuffix(line, " 0") {
					t.Errorf("A sync panicked: %s", line)
				}
			}
		}
	})
	if !cache.WaitFor(ctx, "", f.handlersSynced...) {
		t.Fatal("the caches have not synced")
	}
	for _, object := range append(controller.cache.List(), f.primary.cache.List()...) {
		f.cached[object.(runtime.Object)] = object.(runtime.Object).DeepCopyObject()
	}
	return f
}

// scraped returns the lines with values of a scrape.
func scraped(t *testing.T, from *metrics.Metrics) []string {
	t.Helper()
	answer := httptest.NewRecorder()
	from.Handler().ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", http.NoBody))
	if answer.Code != http.StatusOK {
		t.Fatalf("The scrape was answered with %d: %s", answer.Code, answer.Body)
	}
	return slices.DeleteFunc(strings.Split(strings.TrimSpace(answer.Body.String()), "\n"), func(line string) bool {
		return strings.HasPrefix(line, "#")
	})
}

// TestMain makes the fake watches hold as many events as the largest test writes without
// waiting: they panic when they are full.
func TestMain(m *testing.M) {
	watch.DefaultChanSize = 20_000
	os.Exit(m.Run())
}

// refuse makes the API server answer each call of a verb on a resource with an error. A
// subresource counts as its resource.
func (f *fixture) refuse(verb, resource string, err error) {
	reaction := func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, err }
	f.kubeClient.PrependReactor(verb, resource, reaction)
	f.fooClient.PrependReactor(verb, resource, reaction)
}

// answerGets makes live reads return these objects, whatever the caches hold.
func (f *fixture) answerGets(objects ...metav1.Object) {
	reaction := func(action clienttesting.Action) (bool, runtime.Object, error) {
		for _, object := range objects {
			_, isFoo := object.(*samplev1alpha1.Foo)
			if object.GetName() == action.(clienttesting.GetAction).GetName() && isFoo == (action.GetResource() == footest.FoosResource) {
				return true, object.(runtime.Object), nil
			}
		}
		return false, nil, nil
	}
	f.kubeClient.PrependReactor("get", children, reaction)
	f.fooClient.PrependReactor("get", "foos", reaction)
}

// writes lists the writes, such as createChild or "update foos/status", in order
// for each client.
func (f *fixture) writes() (verbs []string, objects []runtime.Object) {
	for _, action := range append(f.kubeClient.Actions(), f.fooClient.Actions()...) {
		var object runtime.Object
		switch action := action.(type) {
		case clienttesting.CreateAction: // an UpdateAction has the same methods
			object = action.GetObject()
		case clienttesting.PatchAction:
			object = f.api.SentBy(action)
		case clienttesting.DeleteAction:
		default:
			continue
		}
		resource := action.GetResource().Resource
		if action.GetSubresource() != "" {
			resource += "/" + action.GetSubresource()
		}
		verbs = append(verbs, action.GetVerb()+" "+resource)
		objects = append(objects, object)
	}
	return verbs, objects
}

// written returns the child that was created or updated, and the status that was written.
// Either is nil if there was no such write.
func (f *fixture) written(t *testing.T) (child footest.Object, status *samplev1alpha1.FooStatus) {
	t.Helper()
	_, objects := f.writes()
	for _, object := range objects {
		switch object := object.(type) {
		case *samplev1alpha1.Foo:
			status = &object.Status
		case footest.Object:
			child = object
		}
	}
	return child, status
}

// recorded returns the Events so far, each as "type reason message".
func (f *fixture) recorded() []string {
	var events []string
	for {
		select {
		case event := <-f.events:
			events = append(events, event)
		default:
			return events
		}
	}
}

// checkCacheUntouched fails if an object in the caches was modified.
func (f *fixture) checkCacheUntouched(t *testing.T) {
	t.Helper()
	for object, before := range f.cached {
		footest.ExpectEqual(t, "an object in the cache", before, object)
	}
}

// start runs the controller. The function that it returns stops the controller and waits
// for its end.
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

// advance moves the clock of a test's bubble forward, then waits until every goroutine in
// the bubble is idle. No real time passes.
func advance(d time.Duration) {
	time.Sleep(d) //nolint:forbidigo // in a bubble this moves the clock forward
	synctest.Wait()
}

// expectWrites checks the writes since its last call.
func (f *fixture) expectWrites(t *testing.T, want ...string) {
	t.Helper()
	verbs, _ := f.writes()
	f.kubeClient.ClearActions()
	f.fooClient.ClearActions()
	footest.ExpectEqual(t, "the list of writes", want, verbs)
}

// expectChildWrites checks the writes of children since the last check.
func (f *fixture) expectChildWrites(t *testing.T, want ...string) {
	t.Helper()
	verbs, _ := f.writes()
	f.kubeClient.ClearActions()
	f.fooClient.ClearActions()
	verbs = slices.DeleteFunc(verbs, func(verb string) bool { return strings.HasSuffix(verb, "/status") })
	footest.ExpectEqual(t, "the list of writes of children", want, verbs)
}

// failTimes makes the API server answer the first calls of a verb on a resource with an
// error.
func (f *fixture) failTimes(times int32, verb, resource string, err error) {
	var calls atomic.Int32
	reaction := func(clienttesting.Action) (bool, runtime.Object, error) { return calls.Add(1) <= times, nil, err }
	f.kubeClient.PrependReactor(verb, resource, reaction)
	f.fooClient.PrependReactor(verb, resource, reaction)
}

// drainQueue removes the keys of the first list from the queue.
func (f *fixture) drainQueue() {
	for f.queue.Len() > 0 {
		key, _ := f.queue.Get()
		f.queue.Done(key)
	}
}

// storeAt is an informer's store at a resourceVersion.
type storeAt string

func (s storeAt) LastStoreSyncResourceVersion() string { return string(s) }

// neverDone is the DoneChecker of a cache that never syncs.
type neverDone struct{}

func (neverDone) Name() string          { return "never" }
func (neverDone) Done() <-chan struct{} { return nil }

// afterCreate returns the condition Ready of a Foo whose child has just been created.
func afterCreate() string {
	foo := footest.Foo("a")
	if footest.Primary.Unready(footest.Primary.Created(footest.Primary.New(foo))) != "" {
		return "False Progressing of 1"
	}
	return "True Available of 1"
}
