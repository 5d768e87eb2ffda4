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
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kubeinformers "k8s.io/client-go/informers"
	kubefake "k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"

	"example.com/sample-controller/internal/footest"
	"example.com/sample-controller/internal/metrics"
	fooinformers "example.com/sample-controller/pkg/generated/informers/externalversions"
)

// standBy has the informers of a controller that is not running yet fill their caches, until ctx ends. What it returns
// last waits for their end.
func standBy(ctx context.Context, t *testing.T, foos ...runtime.Object) (*kubefake.Clientset, *Controller, func()) {
	t.Helper()
	kubeClient, fooClient := kubefake.NewClientset(), fakeFooClient(t, foos...)
	kubeInformers := kubeinformers.NewSharedInformerFactory(kubeClient, 0)
	fooInformers := fooinformers.NewSharedInformerFactory(fooClient, 0)
	controller, err := NewController(Config{
		KubeClient: kubeClient, FooClient: fooClient,
		Deployments: kubeInformers.Apps().V1().Deployments(), Foos: fooInformers.Samplecontroller().V1alpha1().Foos(),
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

// A standby holds no queue: what it had to do as the leader it is told when it
// becomes one.
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
		if _, err := kubeClient.AppsV1().Deployments(footest.Namespace).Get(ctx, "web", metav1.GetOptions{}); err != nil {
			t.Errorf("as the leader: %v", err)
		}
		stop()
		footest.Must(t, <-stopped)
		shutdown()
	})
}

// A stop may come when the caches have just been filled: the informers then take
// no handlers any more. That is a stop like any other, and nothing is left running.
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
