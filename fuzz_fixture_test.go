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
	"strconv"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	kubeinformers "k8s.io/client-go/informers"
	kubefake "k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"
	clocktesting "k8s.io/utils/clock/testing"

	"example.com/sample-controller/internal/footest"
	"example.com/sample-controller/internal/metrics"
	"example.com/sample-controller/internal/plan"
	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	foofake "example.com/sample-controller/pkg/generated/clientset/versioned/fake"
	fooscheme "example.com/sample-controller/pkg/generated/clientset/versioned/scheme"
	fooinformers "example.com/sample-controller/pkg/generated/informers/externalversions"
)

// fuzzFixture is a Controller whose caches are filled by hand, through
// a trimmer: thousands of them a second, where running informers make tens.
type fuzzFixture struct {
	*Controller
	ctx  context.Context
	api  fakeAPI
	kube clienttesting.ObjectTracker
	foos clienttesting.ObjectTracker

	kubeCalls, fooCalls *clienttesting.Fake
	events              chan string
}

func newFuzzFixture(t *testing.T) *fuzzFixture {
	t.Helper()
	f := &fuzzFixture{
		ctx:  klog.NewContext(t.Context(), klog.Logger{}), // logs nothing
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
		Deployments: kubeinformers.NewSharedInformerFactory(kubeClient, 0).Apps().V1().Deployments(),
		Foos:        fooinformers.NewSharedInformerFactory(fooClient, 0).Samplecontroller().V1alpha1().Foos(),
		Recorder:    recorder, Clock: clocktesting.NewFakeClock(footest.Now.Time), CallTimeout: 30 * time.Second, Metrics: metrics.New(), Image: footest.DefaultImage,
	})
	footest.Must(t, err)
	f.Controller = controller
	t.Cleanup(controller.queue.ShutDown)
	return f
}

// cacheSees makes the caches hold these objects and nothing else.
func (f *fuzzFixture) cacheSees(t *testing.T, foos []*samplev1alpha1.Foo, deployments []*appsv1.Deployment) {
	t.Helper()
	version := strconv.FormatInt(1000+f.api.version.Load(), 10) // as fakeAPI counts
	var trimmedFoos, trimmedDeployments []any
	trimmer := plan.NewTransformer(footest.DefaultImage)
	for _, foo := range foos {
		trimmed, err := trimmer.Transform(foo.DeepCopy())
		footest.Must(t, err)
		trimmedFoos = append(trimmedFoos, trimmed)
	}
	for _, deployment := range deployments {
		trimmed, err := trimmer.Transform(deployment.DeepCopy())
		footest.Must(t, err)
		trimmedDeployments = append(trimmedDeployments, trimmed)
	}
	footest.Must(t, f.fooIndexer.Replace(trimmedFoos, version))
	footest.Must(t, f.deploymentIndexer.Replace(trimmedDeployments, version))
}

// stored returns copies of what the API server has.
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

// takeWrites returns what was sent to the API server since the last look,
// whether it was accepted or not, and the events that were recorded.
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

// refuseBadSpecs makes the API server refuse what it always refuses.
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

// store puts a world into the API server.
func (f *fuzzFixture) store(t *testing.T, w *footest.World, foos ...*samplev1alpha1.Foo) {
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
