// SPDX-License-Identifier: Apache-2.0

// Tests of the controller under the faults of test/simulation.

package main

import (
	"context"
	"testing"

	kubeinformers "k8s.io/client-go/informers"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"

	"example.com/sample-controller/internal/kinds"
	fooinformers "example.com/sample-controller/pkg/generated/informers/externalversions"
	"example.com/sample-controller/pkg/process/metrics"
	"example.com/sample-controller/test/footest"
	"example.com/sample-controller/test/simulation"
)

func TestSimulation(t *testing.T) {
	for _, owner := range footest.Owners {
		simulation.TestController(t, owner, startSimulated(owner))
	}
}

func TestSimulationRandom(t *testing.T) {
	for _, owner := range footest.Owners {
		simulation.TestRandomSequences(t, owner, startSimulated(owner))
	}
}

// All controllers share simulatedMetrics, because component-base keeps each registry forever:
// the registries of 100,000 runs take gigabytes.
var simulatedMetrics = metrics.New("sample-controller", "Foo")

// startSimulated returns the function that runs the controller of a kind with the clients of a
// simulation, wired as in main.go.
func startSimulated(owner *footest.OwnerRow) simulation.Start {
	return func(ctx context.Context, clients simulation.Clients, recorder record.EventRecorder) error {
		ctx, cancel := context.WithCancel(ctx)
		kubeInformers := kubeinformers.NewSharedInformerFactoryWithOptions(clients.Kubernetes, 0)
		fooInformers := fooinformers.NewSharedInformerFactoryWithOptions(clients.Custom, simulation.ResyncPeriod)
		defer func() {
			cancel()
			kubeInformers.Shutdown()
			fooInformers.Shutdown()
		}()
		controller, err := NewController(Config{
			Recorder: recorder, Clock: clock.RealClock{}, CallTimeout: simulation.CallTimeout, Metrics: simulatedMetrics,
		}, kindOf(owner, kinds.Clients{Kube: clients.Kubernetes, Custom: clients.Custom, KubeInformers: kubeInformers, CustomInformers: fooInformers}))
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
