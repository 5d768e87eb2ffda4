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

// Tests of admission that changes the Deployment of a Foo.

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

// A policy caps the replicas: the Foo is not ready and says why, and the controller does
// not fight the policy.
func TestADeploymentStoredOtherwiseIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, footest.Foo("a", footest.WithStatus(footest.Settled("a"))), footest.Deployment("a"))
		f.kubeClient.PrependReactor("update", children, func(action clienttesting.Action) (bool, runtime.Object, error) {
			two := int32(2)
			action.(clienttesting.UpdateAction).GetObject().(*appsv1.Deployment).Spec.Replicas = &two
			return false, nil, nil
		})
		defer f.start(2)()
		f.scale(t, "a", 5)
		advance(time.Minute)
		f.expectReady(t, "a", "False DeploymentFailed of 2")
		const want = `The API server stored Deployment "web" otherwise than asked: spec.replicas is 2, not 5`
		if message := footest.ReadyOf(f.cachedFoo(t, "a").Status).Message; message != want {
			t.Errorf("the message is %q", message)
		}
		f.expectWrites(t, updateChild, "update foos/status")
		f.resync(t, "a")
		f.expectWrites(t)
		f.scale(t, "a", 2)
		advance(time.Minute)
		f.expectReady(t, "a", "True Available of 3")
	})
}

// mirrorImages adds an admission webhook that replaces all images by those of a mirror.
func (f *fixture) mirrorImages() {
	f.kubeClient.PrependReactor("*", children, func(action clienttesting.Action) (bool, runtime.Object, error) {
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
		f.expectWrites(t, createChild, "update foos/status")

		resync := func() {
			cached := f.cachedFoo(t, "a")
			f.Controller.updateFoo(cached, cached)
			advance(30 * time.Second)
		}
		resync()
		resync()
		f.expectWrites(t)

		scaled := f.cachedFoo(t, "a").DeepCopy()
		*scaled.Spec.Replicas, scaled.Generation = 5, 2
		f.updateFoo(t, scaled)
		advance(time.Second)
		f.expectWrites(t, updateChild, "update foos/status")
		resync()
		f.expectWrites(t)

		drifted := f.deployment(t, "web").DeepCopy()
		*drifted.Spec.Replicas, drifted.Generation = 9, drifted.Generation+1
		f.updateChild(t, drifted)
		advance(time.Second)
		f.expectWrites(t, updateChild)
		if replicas := *f.deployment(t, "web").Spec.Replicas; replicas != 5 {
			t.Errorf("the Deployment has %d replicas", replicas)
		}
		resync()
		f.expectWrites(t)

		f.deleteFoo(t, "a")
		advance(time.Second)
		if !f.primary.remembersNothing() {
			t.Error("a deleted Foo is still remembered")
		}
	})
}

// A webhook that is installed after the Deployment was created is detected at the first
// repair.
func TestAWebhookThatUndoesARepairIsAskedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, footest.Foo("a", footest.WithStatus(footest.Settled("a"))), footest.Deployment("a", footest.WithImage("mirror.example.com/nginx:latest")))
		f.mirrorImages()
		defer f.start(2)()
		advance(time.Second)
		f.expectWrites(t, updateChild, "update foos/status")
		for range 3 {
			cached := f.cachedFoo(t, "a")
			f.Controller.updateFoo(cached, cached)
			advance(30 * time.Second)
		}
		f.expectWrites(t)
	})
}
