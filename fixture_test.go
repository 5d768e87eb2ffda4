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

package main

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kubeinformers "k8s.io/client-go/informers"
	kubefake "k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"
	"k8s.io/utils/clock"

	"example.com/sample-controller/internal/footest"
	"example.com/sample-controller/internal/metrics"
	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	foofake "example.com/sample-controller/pkg/generated/clientset/versioned/fake"
	fooinformers "example.com/sample-controller/pkg/generated/informers/externalversions"
)

// fixture is a Controller on fake clientsets, its caches filled by running
// informers, as in production.
type fixture struct {
	*Controller
	ctx        context.Context
	kubeClient *kubefake.Clientset
	fooClient  *foofake.Clientset
	api        fakeAPI
	events     chan string
	// handlersSynced are done when the handlers have been given the first list.
	handlersSynced []cache.DoneChecker
	// cached holds each object in the caches with a copy from before the test.
	cached map[runtime.Object]runtime.Object
}

// newFixture starts a controller's informers in a world of Foos and
// Deployments, and waits until they have nothing left to do. Its workers are
// not started. Call it in a testing/synctest bubble: there a test knows when
// nothing more will happen.
func newFixture(t *testing.T, world ...runtime.Object) *fixture {
	t.Helper()
	return newFixtureWith(t, func(*fixture) {}, world...)
}

// newFixtureWith is newFixture with a change to the clientsets before the
// informers use them.
func newFixtureWith(t *testing.T, prepare func(*fixture), world ...runtime.Object) *fixture {
	t.Helper()
	f := newFixtureInRealTime(t, prepare, world...)
	synctest.Wait() // the watches are open
	f.kubeClient.ClearActions()
	f.fooClient.ClearActions()
	return f
}

// fakeFooClient has some Foos. It is told what they are called in URLs, and not NewClientset, which takes kinds whose
// plural it guesses alone: boxs, keies.
func fakeFooClient(t *testing.T, foos ...runtime.Object) *foofake.Clientset {
	t.Helper()
	client := foofake.NewSimpleClientset()
	for _, foo := range foos {
		footest.Must(t, client.Tracker().Create(footest.FoosResource, foo, footest.Namespace))
	}
	return client
}

// newFixtureInRealTime is newFixture for a test that can't be in a bubble,
// because it talks to a network.
func newFixtureInRealTime(t *testing.T, prepare func(*fixture), world ...runtime.Object) *fixture {
	t.Helper()
	logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.Verbosity(4)))
	ctx, stop := context.WithCancel(klog.NewContext(t.Context(), logger))
	var foos, others []runtime.Object
	for _, object := range world {
		if _, ok := object.(*samplev1alpha1.Foo); ok {
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
	f.api.serve(&f.kubeClient.Fake, f.kubeClient.Tracker())
	f.api.serve(&f.fooClient.Fake, f.fooClient.Tracker())
	prepare(f)
	kubeInformers := kubeinformers.NewSharedInformerFactory(f.kubeClient, 0)
	fooInformers := fooinformers.NewSharedInformerFactory(f.fooClient, 0)
	controller, err := NewController(Config{
		KubeClient: f.kubeClient, FooClient: f.fooClient,
		Deployments: kubeInformers.Apps().V1().Deployments(), Foos: fooInformers.Samplecontroller().V1alpha1().Foos(),
		Recorder: recorder, Clock: clock.RealClock{}, CallTimeout: 30 * time.Second, Metrics: metrics.New(), Image: footest.DefaultImage,
	})
	if err != nil {
		t.Fatal(err)
	}
	f.Controller = controller
	f.handlersSynced, err = controller.addEventHandlers(ctx)
	footest.Must(t, err)
	kubeInformers.StartWithContext(ctx)
	fooInformers.StartWithContext(ctx)
	t.Cleanup(func() {
		stop()
		kubeInformers.Shutdown()
		fooInformers.Shutdown()
		controller.queue.ShutDown()
	})
	if !cache.WaitFor(ctx, "", f.handlersSynced...) {
		t.Fatal("the caches were not filled")
	}
	for _, object := range append(controller.fooIndexer.List(), controller.deploymentIndexer.List()...) {
		f.cached[object.(runtime.Object)] = object.(runtime.Object).DeepCopyObject()
	}
	return f
}

// refuse makes the API server answer each call of a verb on a resource with an
// error. A subresource goes by its resource's name.
func (f *fixture) refuse(verb, resource string, err error) {
	reaction := func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, err }
	f.kubeClient.PrependReactor(verb, resource, reaction)
	f.fooClient.PrependReactor(verb, resource, reaction)
}

// answerGets makes live reads of these objects find them as they are here,
// whatever the caches hold.
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
	f.kubeClient.PrependReactor("get", "deployments", reaction)
	f.fooClient.PrependReactor("get", "foos", reaction)
}

// writes lists what was written, in the order in which each client wrote:
// "create deployments", "update foos/status".
func (f *fixture) writes() (verbs []string, objects []runtime.Object) {
	for _, action := range append(f.kubeClient.Actions(), f.fooClient.Actions()...) {
		var object runtime.Object
		switch action := action.(type) {
		case clienttesting.CreateAction: // an UpdateAction has the same methods
			object = action.GetObject()
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

// written returns the Deployment that was created or updated and the status
// that was written; nil for what was not.
func (f *fixture) written(t *testing.T) (deployment *appsv1.Deployment, status *samplev1alpha1.FooStatus) {
	t.Helper()
	_, objects := f.writes()
	for _, object := range objects {
		switch object := object.(type) {
		case *appsv1.Deployment:
			deployment = object
		case *samplev1alpha1.Foo:
			status = &object.Status
		}
	}
	return deployment, status
}

// recorded returns the events so far, each as "type reason message".
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

// checkCacheUntouched fails if an object of the caches was changed in place.
func (f *fixture) checkCacheUntouched(t *testing.T) {
	t.Helper()
	for object, before := range f.cached {
		footest.ExpectEqual(t, "an object in the cache", before, object)
	}
}

// start runs the controller and returns a function that stops it and waits
// until it has.
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

// advance lets time pass in a test's bubble, then waits until every goroutine
// in it has nothing left to do. No real time passes.
func advance(d time.Duration) {
	time.Sleep(d) //nolint:forbidigo // in a bubble this sets the clock forward
	synctest.Wait()
}

// expectWrites checks what was written since the last look.
func (f *fixture) expectWrites(t *testing.T, want ...string) {
	t.Helper()
	verbs, _ := f.writes()
	f.kubeClient.ClearActions()
	f.fooClient.ClearActions()
	footest.ExpectEqual(t, "the list of writes", want, verbs)
}

// failTimes answers the first calls of a verb on a resource with an error.
func (f *fixture) failTimes(times int32, verb, resource string, err error) {
	var calls atomic.Int32
	reaction := func(clienttesting.Action) (bool, runtime.Object, error) { return calls.Add(1) <= times, nil, err }
	f.kubeClient.PrependReactor(verb, resource, reaction)
	f.fooClient.PrependReactor(verb, resource, reaction)
}

// drainQueue takes the keys of the first list out of the queue.
func (f *fixture) drainQueue() {
	for f.queue.Len() > 0 {
		key, _ := f.queue.Get()
		f.queue.Done(key)
	}
}

// storeAt is an informer's store that has seen this resourceVersion.
type storeAt string

func (s storeAt) LastStoreSyncResourceVersion() string { return string(s) }

// neverDone is a cache that does not fill.
type neverDone struct{}

func (neverDone) Name() string          { return "never" }
func (neverDone) Done() <-chan struct{} { return nil }
