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
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"example.com/sample-controller/internal/footest"
)

// mirrorImages is an admission webhook that has all images come from a mirror.
func (f *fixture) mirrorImages() {
	f.kubeClient.PrependReactor("*", "deployments", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if write, ok := action.(clienttesting.CreateAction); ok { // an UpdateAction has the same methods
			write.GetObject().(*appsv1.Deployment).Spec.Template.Spec.Containers[0].Image = "mirror.example.com/nginx:latest"
		}
		return false, nil, nil
	})
}

func TestAWebhookThatChangesTheImageIsNotFought(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		f.mirrorImages()
		defer f.start(2)()
		f.createFoo(t, footest.Foo("a"))
		advance(time.Second)
		f.expectWrites(t, "create deployments", "update foos/status")

		resync := func() {
			cached := f.cachedFoo(t, "a")
			f.enqueueUpdatedFoo(cached, cached)
			advance(30 * time.Second)
		}
		resync()
		resync()
		f.expectWrites(t)

		scaled := f.cachedFoo(t, "a").DeepCopy()
		*scaled.Spec.Replicas, scaled.Generation = 5, 2
		f.updateFoo(t, scaled)
		advance(time.Second)
		f.expectWrites(t, "update deployments", "update foos/status")
		resync()
		f.expectWrites(t)

		drifted := f.deployment(t, "web").DeepCopy()
		*drifted.Spec.Replicas, drifted.Generation = 9, drifted.Generation+1
		f.updateDeployment(t, drifted)
		advance(time.Second)
		f.expectWrites(t, "update deployments")
		if replicas := *f.deployment(t, "web").Spec.Replicas; replicas != 5 {
			t.Errorf("the Deployment has %d replicas", replicas)
		}
		resync()
		f.expectWrites(t)

		f.deleteFoo(t, "a")
		advance(time.Second)
		if f.admissionMutations.Len() != 0 {
			t.Error("a Foo that is gone is remembered")
		}
	})
}

// A webhook that comes when the Deployment is there already is found out at the
// first repair.
func TestAWebhookThatUndoesARepairIsAskedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, footest.Foo("a", footest.WithStatus(footest.Settled("a"))), footest.Deployment("a", footest.WithImage("mirror.example.com/nginx:latest")))
		f.mirrorImages()
		defer f.start(2)()
		advance(time.Second)
		f.expectWrites(t, "update deployments", "update foos/status")
		for range 3 {
			cached := f.cachedFoo(t, "a")
			f.enqueueUpdatedFoo(cached, cached)
			advance(30 * time.Second)
		}
		f.expectWrites(t)
	})
}
