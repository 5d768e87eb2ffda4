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

// FuzzSync: single syncs of arbitrary objects, with stale caches.

package main

import (
	"context"
	"slices"
	"strconv"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	kubeinformers "k8s.io/client-go/informers"
	kubefake "k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"
	clocktesting "k8s.io/utils/clock/testing"

	"example.com/sample-controller/internal/failure"
	"example.com/sample-controller/internal/footest"
	"example.com/sample-controller/internal/metrics"
	"example.com/sample-controller/internal/plan"
	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	foofake "example.com/sample-controller/pkg/generated/clientset/versioned/fake"
	fooscheme "example.com/sample-controller/pkg/generated/clientset/versioned/scheme"
	fooinformers "example.com/sample-controller/pkg/generated/informers/externalversions"
)

// FuzzSync syncs the Foo "a" with arbitrary objects and caches that may be stale. However
// stale they are, the sync changes nothing of others, and the second sync after they have
// caught up (the first, if they were not stale) writes nothing.
func FuzzSync(f *testing.F) {
	footest.AddSeeds(f, slices.Concat(footest.FuzzSeeds, footest.StaleSeeds))
	f.Fuzz(func(t *testing.T, script, noise []byte, words string) {
		w := footest.NewFuzzWorld(t, script, noise, words)
		f := newFuzzFixture(t)
		bystander := footest.Foo("b", footest.WithDeploymentName("old"))
		live := w.Live()
		f.store(t, live, bystander)
		f.cacheSees(t, []*samplev1alpha1.Foo{w.Foo, bystander}, w.Seen())

		stale := w.Stale()
		f.pass(t, w.Foo, live.Foo, !stale)
		for range 2 {
			foos, deployments := f.stored(t)
			f.cacheSees(t, foos, deployments)
			// By now the caches know of a Foo that was deleted or recreated.
			now := fooNamed(foos, "a")
			known := now
			if known == nil {
				known = w.Foo
			}
			if wrote := f.pass(t, known, now, true); len(wrote) > 0 && !stale && !w.Refused() {
				t.Errorf("a sync without a change before it wrote: %v", wrote)
			}
			stale = false
		}
	})
}

// pass syncs once, checks what that changed, and returns what was sent to the API server.
// known is the Foo in the caches, live the Foo at the API server, or nil.
func (f *fuzzFixture) pass(t *testing.T, known, live *samplev1alpha1.Foo, fresh bool) []string {
	t.Helper()
	foosBefore, before := f.stored(t)
	err := f.syncHandler(f.ctx, footest.KeyOf(known))
	foosAfter, after := f.stored(t)

	if fresh && err != nil && !failure.IsRefusal(err) {
		t.Errorf("the sync failed with fresh caches: %v", err)
	}
	mayWrite := live != nil && live.UID == known.UID && live.Generation == known.Generation &&
		(live.DeletionTimestamp == nil) == (known.DeletionTimestamp == nil)
	for _, deployment := range before {
		checkChange(t, deployment, deploymentNamed(after, deployment.Name), deploymentNamed(after, known.Spec.DeploymentName), known, mayWrite)
	}
	for _, deployment := range after {
		if deploymentNamed(before, deployment.Name) == nil {
			if known.DeletionTimestamp != nil {
				t.Errorf("Deployment %s was created for a Foo that is being deleted", deployment.Name)
			}
			footest.CheckWanted(t, deployment, known)
		}
	}
	if len(foosBefore) != len(foosAfter) {
		t.Fatalf("the number of Foos changed from %d to %d", len(foosBefore), len(foosAfter))
	}
	for i, foo := range foosAfter {
		checkFooChange(t, foosBefore[i], foo, known)
	}
	return f.takeWrites()
}

// checkChange fails if the sync changed or deleted a Deployment that the Foo does not
// control, or changed more than it may. wanted is the Deployment that the Foo asks for.
func checkChange(t *testing.T, before, after, wanted *appsv1.Deployment, known *samplev1alpha1.Foo, mayWrite bool) {
	t.Helper()
	if after != nil && equality.Semantic.DeepEqual(before, after) {
		return
	}
	if !mayWrite {
		t.Errorf("Deployment %s was written, although the live Foo asks for something else or is deleted", before.Name)
	}
	if before.DeletionTimestamp != nil || !footest.BelongsTo(before, known) && !footest.HandedOverTo(before, known) {
		t.Errorf("Deployment %s was written, although the Foo does not control it: %v", before.Name, before.OwnerReferences)
	}
	if after == nil {
		if before.Name == known.Spec.DeploymentName || wanted == nil || !footest.BelongsTo(wanted, known) {
			t.Errorf("Deployment %s was deleted while the Foo has no other", before.Name)
		}
		return
	}
	footest.CheckWanted(t, after, known)
	sent := after.DeepCopy()
	sent.ResourceVersion, sent.Generation, sent.ManagedFields = before.ResourceVersion, before.Generation, before.ManagedFields
	footest.CheckOthersKept(t, before, sent, known)
}

// checkFooChange fails if anything but the status of the synced Foo changed, or if the
// API server would refuse the status.
func checkFooChange(t *testing.T, before, after, known *samplev1alpha1.Foo) {
	t.Helper()
	if equality.Semantic.DeepEqual(before, after) {
		return
	}
	if before.Name != known.Name || before.UID != known.UID || before.ResourceVersion != known.ResourceVersion {
		t.Errorf("Foo %s of UID %s at version %s was written", before.Name, before.UID, before.ResourceVersion)
	}
	footest.CheckStatus(t, after, after.Status)
	rest := after.DeepCopy()
	rest.Status, rest.ResourceVersion = before.Status, before.ResourceVersion
	footest.ExpectEqual(t, "all of the Foo but its status", before, rest)
}

func fooNamed(foos []*samplev1alpha1.Foo, name string) *samplev1alpha1.Foo {
	for _, foo := range foos {
		if foo.Name == name {
			return foo
		}
	}
	return nil
}

func deploymentNamed(deployments []*appsv1.Deployment, name string) *appsv1.Deployment {
	return (&footest.FuzzWorld{Deployments: deployments}).Find(name)
}

// fuzzFixture is a Controller whose caches the test fills through the transformer. This
// allows thousands of runs a second; running informers allow tens.
type fuzzFixture struct {
	*Controller
	// deployments is the row of the Deployments.
	deployments *kind[*appsv1.Deployment]
	ctx         context.Context
	api         fakeAPI
	kube        clienttesting.ObjectTracker
	foos        clienttesting.ObjectTracker

	kubeCalls, fooCalls *clienttesting.Fake
	events              chan string
}

func newFuzzFixture(t *testing.T) *fuzzFixture {
	t.Helper()
	f := &fuzzFixture{
		ctx:  klog.NewContext(t.Context(), klog.Logger{}), // no log
		kube: clienttesting.NewObjectTracker(scheme.Scheme, scheme.Codecs.UniversalDecoder()),
		foos: clienttesting.NewObjectTracker(fooscheme.Scheme, fooscheme.Codecs.UniversalDecoder()),
	}
	kubeClient, fooClient := &kubefake.Clientset{}, &foofake.Clientset{}
	f.kubeCalls, f.fooCalls = &kubeClient.Fake, &fooClient.Fake
	for calls, tracker := range map[*clienttesting.Fake]clienttesting.ObjectTracker{f.kubeCalls: f.kube, f.fooCalls: f.foos} {
		calls.AddReactor("*", "*", clienttesting.ObjectReaction(tracker))
		f.api.serve(calls, tracker)
	}
	f.refuseBadSpecs()
	recorder := record.NewFakeRecorder(100)
	f.events = recorder.Events
	controller, err := NewController(Config{
		KubeClient: kubeClient, FooClient: fooClient,
		KubeInformers: kubeinformers.NewSharedInformerFactory(kubeClient, 0),
		Foos:          fooinformers.NewSharedInformerFactory(fooClient, 0).Samplecontroller().V1alpha1().Foos(),
		Recorder:      recorder, Clock: clocktesting.NewFakeClock(footest.Now.Time), CallTimeout: 30 * time.Second, Metrics: metrics.New(), Image: footest.DefaultImage,
	})
	footest.Must(t, err)
	f.Controller, f.deployments = controller, controller.children[0].(*kind[*appsv1.Deployment])
	t.Cleanup(controller.queue.ShutDown)
	return f
}

// cacheSees replaces the contents of the caches.
func (f *fuzzFixture) cacheSees(t *testing.T, foos []*samplev1alpha1.Foo, deployments []*appsv1.Deployment) {
	t.Helper()
	version := strconv.FormatInt(1000+f.api.version.Load(), 10) // as those of fakeAPI
	var trimmedFoos, trimmedDeployments []any
	row := plan.Deployment(footest.DefaultImage)
	for _, foo := range foos {
		trimmed, err := plan.TransformFoo(foo.DeepCopy())
		footest.Must(t, err)
		trimmedFoos = append(trimmedFoos, trimmed)
	}
	for _, deployment := range deployments {
		trimmed, err := row.Transform(deployment.DeepCopy())
		footest.Must(t, err)
		trimmedDeployments = append(trimmedDeployments, trimmed)
	}
	footest.Must(t, f.fooIndexer.Replace(trimmedFoos, version))
	footest.Must(t, f.deployments.indexer.Replace(trimmedDeployments, version))
}

// stored returns copies of the API server's objects.
func (f *fuzzFixture) stored(t *testing.T) (foos []*samplev1alpha1.Foo, deployments []*appsv1.Deployment) {
	t.Helper()
	list, err := f.foos.List(footest.FoosResource, samplev1alpha1.SchemeGroupVersion.WithKind("Foo"), footest.Namespace)
	footest.Must(t, err)
	for _, foo := range list.(*samplev1alpha1.FooList).Items {
		foos = append(foos, foo.DeepCopy())
	}
	list, err = f.kube.List(footest.DeploymentsResource, appsv1.SchemeGroupVersion.WithKind("Deployment"), footest.Namespace)
	footest.Must(t, err)
	for _, deployment := range list.(*appsv1.DeploymentList).Items {
		deployments = append(deployments, deployment.DeepCopy())
	}
	return foos, deployments
}

// takeWrites returns the writes sent to the API server since its last call, accepted or
// not, and the recorded Events.
func (f *fuzzFixture) takeWrites() []string {
	var writes []string
	for _, calls := range []*clienttesting.Fake{f.kubeCalls, f.fooCalls} {
		for _, action := range calls.Actions() {
			if verb := action.GetVerb(); verb != "get" {
				writes = append(writes, verb+" "+action.GetResource().Resource)
			}
		}
		calls.ClearActions()
	}
	for len(f.events) > 0 {
		writes = append(writes, "event "+<-f.events)
	}
	return writes
}

// refuseBadSpecs makes the API server refuse invalid specs, as a real one does.
func (f *fuzzFixture) refuseBadSpecs() {
	f.kubeCalls.PrependReactor("*", "deployments", func(action clienttesting.Action) (bool, runtime.Object, error) {
		write, ok := action.(clienttesting.CreateAction) // an UpdateAction has the same methods
		if !ok {
			return false, nil, nil
		}
		deployment := write.GetObject().(*appsv1.Deployment)
		if deployment.Name == "" || deployment.Spec.Replicas != nil && *deployment.Spec.Replicas < 0 {
			return true, nil, apierrors.NewInvalid(appsv1.SchemeGroupVersion.WithKind("Deployment").GroupKind(), deployment.Name, nil)
		}
		return false, nil, nil
	})
}

// store adds the objects of a FuzzWorld to the API server.
func (f *fuzzFixture) store(t *testing.T, w *footest.FuzzWorld, foos ...*samplev1alpha1.Foo) {
	t.Helper()
	if w.Foo != nil {
		foos = append(foos, w.Foo)
	}
	for _, foo := range foos {
		footest.Must(t, f.foos.Create(footest.FoosResource, foo, footest.Namespace))
	}
	for _, deployment := range w.Deployments {
		footest.Must(t, f.kube.Add(deployment))
	}
}
