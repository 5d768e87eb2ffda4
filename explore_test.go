// SPDX-License-Identifier: Apache-2.0

// Tests of the controller in every order of test/simulation/explore.

package main

import (
	"context"
	"testing"

	"example.com/sample-controller/internal/plan"
	"example.com/sample-controller/test/footest"
	"example.com/sample-controller/test/simulation/explore"
)

func TestExplore(t *testing.T) { explore.Test(t, footest.FooOwner, newExplored) }

func TestExploreConformance(t *testing.T) { explore.TestConformance(t, footest.FooOwner, newExplored) }

// newExplored makes the controller for test/simulation/explore.
func newExplored(parts explore.Parts) (explore.Subject, error) {
	controller, err := NewController(Config{
		KubeClient: parts.Kubernetes, FooClient: parts.Custom, KubeInformers: parts.KubeInformers, FooInformers: parts.CustomInformers,
		Recorder: parts.Recorder, Clock: parts.Clock, CallTimeout: explore.CallTimeout, Metrics: simulatedMetrics,
	}, plan.Foos(footest.DefaultImage))
	if err != nil {
		return explore.Subject{}, err
	}
	controller.queue.TypedDelayingInterface = parts.Queue
	_, err = controller.addEventHandlers(context.Background())
	return explore.Subject{Controller: controller, ProcessNextWorkItem: controller.processNextWorkItem}, err
}
