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

// Tests of the controller under the faults of test/simulation.

package main

import (
	"context"
	"testing"

	kubeinformers "k8s.io/client-go/informers"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"

	"example.com/sample-controller/internal/footest"
	"example.com/sample-controller/internal/metrics"
	fooinformers "example.com/sample-controller/pkg/generated/informers/externalversions"
	"example.com/sample-controller/test/simulation"
	"example.com/sample-controller/test/simulation/explore"
)

func TestSimulation(t *testing.T) { simulation.TestController(t, footest.FooOwner, startSimulated) }

func TestSimulationRandom(t *testing.T) {
	simulation.TestRandomSequences(t, footest.FooOwner, startSimulated)
}

func TestExplore(t *testing.T) { explore.Test(t, footest.FooOwner, newExplored) }

func TestExploreConformance(t *testing.T) { explore.TestConformance(t, footest.FooOwner, newExplored) }

// newExplored makes the controller for test/simulation/explore.
func newExplored(parts explore.Parts) (explore.Subject, error) {
	controller, err := NewController(Config{
		KubeClient: parts.Kubernetes, FooClient: parts.Custom,
		KubeInformers: parts.KubeInformers, Foos: parts.CustomInformers.Samplecontroller().V1alpha1().Foos(),
		Recorder: parts.Recorder, Clock: parts.Clock, CallTimeout: explore.CallTimeout, Metrics: simulatedMetrics, Image: footest.DefaultImage,
	})
	if err != nil {
		return explore.Subject{}, err
	}
	controller.queue.TypedDelayingInterface = parts.Queue
	_, err = controller.addEventHandlers(context.Background())
	return explore.Subject{Controller: controller, ProcessNextWorkItem: controller.processNextWorkItem}, err
}

// simulatedMetrics are shared by all controllers, because component-base keeps each registry
// for ever: those of 100,000 runs take gigabytes.
var simulatedMetrics = metrics.New()

// startSimulated runs the controller with the clients of a simulation, wired as in
// main.go.
func startSimulated(ctx context.Context, clients simulation.Clients, recorder record.EventRecorder) error {
	ctx, cancel := context.WithCancel(ctx)
	kubeInformers := kubeinformers.NewSharedInformerFactoryWithOptions(clients.Kubernetes, 0)
	fooInformers := fooinformers.NewSharedInformerFactoryWithOptions(clients.Custom, simulation.ResyncPeriod)
	defer func() {
		cancel()
		kubeInformers.Shutdown()
		fooInformers.Shutdown()
	}()
	controller, err := NewController(Config{
		KubeClient: clients.Kubernetes, FooClient: clients.Custom,
		KubeInformers: kubeInformers, Foos: fooInformers.Samplecontroller().V1alpha1().Foos(),
		Recorder: recorder, Clock: clock.RealClock{}, CallTimeout: simulation.CallTimeout, Metrics: simulatedMetrics, Image: footest.DefaultImage,
	})
	if err != nil {
		return err
	}
	kubeInformers.StartWithContext(ctx)
	fooInformers.StartWithContext(ctx)
	kubeInformers.WaitForCacheSyncWithContext(ctx)
	fooInformers.WaitForCacheSyncWithContext(ctx)
	return controller.Run(ctx, ctx, 2)
}
