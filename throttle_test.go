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

// Tests of the statuses that only report the progress of a rollout.

package main

import (
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"

	"example.com/sample-controller/internal/footest"
	"example.com/sample-controller/internal/reporting"
)

// rollOut sets the Deployment's status: the numbers of Pods and of available ones, of the
// wanted two.
func (f *fixture) rollOut(t *testing.T, replicas, available int32) {
	t.Helper()
	made := f.deployment(t, "web").DeepCopy()
	made.Status = appsv1.DeploymentStatus{ObservedGeneration: 1, Replicas: replicas, UpdatedReplicas: replicas, AvailableReplicas: available}
	f.updateDeployment(t, made)
	advance(0)
}

func TestProgressOfARolloutIsWrittenPeriodically(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		defer f.start(2)()
		f.createFoo(t, footest.Foo("a"))
		advance(0)
		f.expectWrites(t, "create deployments", "update foos/status")

		f.rollOut(t, 1, 0)
		advance(time.Second)
		f.rollOut(t, 2, 0)
		advance(time.Second)
		f.rollOut(t, 2, 1)
		f.expectWrites(t)
		advance(reporting.ThrottleInterval - 2*time.Second - 1)
		f.expectWrites(t)
		advance(1)
		_, status := f.written(t)
		if status == nil || status.Replicas != 2 || status.AvailableReplicas != 1 {
			t.Errorf("the status is %+v", status)
		}
		f.expectWrites(t, "update foos/status")

		f.rollOut(t, 2, 0)
		f.expectWrites(t)
		advance(reporting.ThrottleInterval)
		f.expectWrites(t, "update foos/status")
		advance(time.Hour)
		f.expectWrites(t)
	})
}

func TestReadinessAndANewSpecAreWrittenAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		defer f.start(2)()
		f.createFoo(t, footest.Foo("a"))
		advance(0)
		f.expectWrites(t, "create deployments", "update foos/status")

		f.rollOut(t, 2, 1)
		advance(time.Second)
		f.rollOut(t, 2, 2)
		f.expectWrites(t, "update foos/status")
		// The status that was deferred before then is no longer needed.
		advance(time.Hour)
		f.expectWrites(t)

		scaled := f.cachedFoo(t, "a").DeepCopy()
		scaled.Generation, scaled.Spec.Replicas = 2, new(int32(3))
		f.updateFoo(t, scaled)
		advance(0)
		f.expectWrites(t, "update deployments", "update foos/status")
	})
}

func TestProgressThatWasRevertedIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		defer f.start(2)()
		f.createFoo(t, footest.Foo("a"))
		advance(0)
		f.rollOut(t, 1, 0)
		f.rollOut(t, 0, 0)
		if f.statusThrottle.Len() > 0 {
			t.Error("a deferred status is still remembered although it was reverted")
		}
		f.rollOut(t, 1, 0)
		f.deleteFoo(t, "a")
		advance(0)
		if f.statusThrottle.Len() > 0 {
			t.Error("the deferred status of a deleted Foo is still remembered")
		}
	})
}
