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

// Runs the controller under the faults of test/simulation.

package main

import (
	"context"
	"testing"

	kubeinformers "k8s.io/client-go/informers"
	"k8s.io/client-go/tools/record"
	"k8s.io/component-base/metrics"
	"k8s.io/utils/clock"

	fooinformers "example.com/sample-controller/pkg/generated/informers/externalversions"
	"example.com/sample-controller/test/simulation"
)

func TestSimulation(t *testing.T) { simulation.TestController(t, startSimulated) }

func TestSimulationRandom(t *testing.T) { simulation.TestRandomSequences(t, startSimulated) }

// startSimulated connects the parts of the controller as run does, on the
// simulation's clients.
func startSimulated(ctx context.Context, clients simulation.Clients, recorder record.EventRecorder) error {
	ctx, cancel := context.WithCancel(ctx)
	trimmer := newTrimmer(defaultImage)
	caches := &caches{
		kube: kubeinformers.NewSharedInformerFactoryWithOptions(clients.Kubernetes, simulation.ResyncPeriod, kubeinformers.WithTransform(trimmer.trim)),
		foos: fooinformers.NewSharedInformerFactoryWithOptions(clients.Foos, simulation.ResyncPeriod, fooinformers.WithTransform(trimmer.trim)),
	}
	defer caches.stop()
	defer cancel()
	controller, err := NewController(clients.Kubernetes, clients.Foos, caches.kube.Apps().V1().Deployments(), caches.foos.Samplecontroller().V1alpha1().Foos(),
		recorder, clock.RealClock{}, simulation.CallTimeout, newControllerMetrics(metrics.NewKubeRegistry()), defaultImage)
	if err != nil {
		return err
	}
	caches.fill(ctx)
	return controller.Run(ctx, ctx, 2)
}
