// SPDX-License-Identifier: Apache-2.0

// Tests of the controller under the faults of pkg/reconcile/reconciletest.

package main

import (
	"context"
	"testing"

	kubeinformers "k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"

	"example.com/sample-controller/internal/kinds"
	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	clientset "example.com/sample-controller/pkg/generated/clientset/versioned"
	fooinformers "example.com/sample-controller/pkg/generated/informers/externalversions"
	"example.com/sample-controller/pkg/process/metrics"
	"example.com/sample-controller/pkg/reconcile/reconciletest"
	"example.com/sample-controller/test/footest"
)

func TestSimulation(t *testing.T) {
	for _, owner := range footest.Owners {
		reconciletest.TestController(t, owner, startSimulated(owner))
	}
}

func TestSimulationRandom(t *testing.T) {
	for _, owner := range footest.Owners {
		reconciletest.TestRandomSequences(t, owner, startSimulated(owner))
	}
}

// All controllers share simulatedMetrics, because component-base keeps each registry forever:
// the registries of 100,000 runs take gigabytes.
var simulatedMetrics = metrics.New("sample-controller", "Foo")

// startSimulated returns the function that runs the controller of a kind with the clients of a
// simulation, wired as in main.go.
func startSimulated(owner *footest.OwnerRow) reconciletest.Start {
	return func(ctx context.Context, client rest.Interface, recorder record.EventRecorder) error {
		kube, foos := kubernetes.New(client), clientset.New(client)
		ctx, cancel := context.WithCancel(ctx)
		kubeInformers := kubeinformers.NewSharedInformerFactoryWithOptions(kube, 0)
		fooInformers := fooinformers.NewSharedInformerFactoryWithOptions(foos, reconciletest.ResyncPeriod)
		defer func() {
			cancel()
			kubeInformers.Shutdown()
			fooInformers.Shutdown()
		}()
		controller, err := NewController(Config{
			Recorder: recorder, Clock: clock.RealClock{}, CallTimeout: reconciletest.CallTimeout, Metrics: simulatedMetrics,
		}, kindOf(owner, kinds.Clients{Kube: kube, Custom: foos, KubeInformers: kubeInformers, CustomInformers: fooInformers}))
		if err != nil {
			return err
		}
		kubeInformers.StartWithContext(ctx)
		fooInformers.StartWithContext(ctx)
		kubeInformers.WaitForCacheSyncWithContext(ctx)
		fooInformers.WaitForCacheSyncWithContext(ctx)
		return controller.Run(ctx, ctx, 2)
	}
}

// TestReconcile is what a project's own test looks like: it knows no rows of tests.
func TestReconcile(t *testing.T) {
	reconciletest.Test(t, reconciletest.Controller[*samplev1alpha1.Foo]{
		Kind:    kinds.Declared(kinds.Options{Image: footest.DefaultImage})[0],
		Example: &samplev1alpha1.Foo{Spec: samplev1alpha1.FooSpec{DeploymentName: "web", Replicas: new(int32(1))}},
		Edits: []func(*samplev1alpha1.Foo){
			func(foo *samplev1alpha1.Foo) { foo.Spec.Replicas = new(int32(2)) },
			func(foo *samplev1alpha1.Foo) { foo.Spec.DeploymentName = "api" },
		},
		Start: startSimulated(footest.FooOwner),
		Every: 10, // TestSimulation runs all of the like
	})
}
