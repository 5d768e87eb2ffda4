// SPDX-License-Identifier: Apache-2.0

// Tests of rollouts: how many at a time, what they report, and of admission that changes the
// Deployment of a Foo.

package main

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"example.com/sample-controller/internal/memory"
	"example.com/sample-controller/internal/queue"
	"example.com/sample-controller/test/footest"
)

// deployment returns a Deployment from the API server.
func (f *fixture) deployment(t *testing.T, name string) *appsv1.Deployment {
	t.Helper()
	return f.storedChild(t, name).(*appsv1.Deployment)
}

func TestFooBecomesDeploymentAndDeploymentBecomesStatus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		defer f.start(2)()

		f.createFoo(t, footest.Foo("a"))
		advance(0)
		f.expectWrites(t, createChild, "update foos/status")

		made := f.deployment(t, "web")
		made.Status = appsv1.DeploymentStatus{ObservedGeneration: 1, Replicas: 2, UpdatedReplicas: 2, ReadyReplicas: 2, AvailableReplicas: 2}
		f.updateChild(t, made)
		advance(0)
		f.expectWrites(t, "update foos/status")
		footest.ExpectEqual(t, "the list of events", []string{
			`Normal Progressing Deployment "web" is rolling out: 0 available of 2 wanted Pods`,
			`Normal Available Deployment "web" has 2 of 2 Pods available`,
		}, f.recorded())

		advance(time.Hour)
		f.expectWrites(t)
	})
}

// rollOut sets the Deployment's status: the numbers of Pods and of available ones, of the
// wanted two.
func (f *fixture) rollOut(t *testing.T, replicas, available int32) {
	t.Helper()
	made := f.deployment(t, "web").DeepCopy()
	made.Status = appsv1.DeploymentStatus{ObservedGeneration: 1, Replicas: replicas, UpdatedReplicas: replicas, AvailableReplicas: available}
	f.updateChild(t, made)
	advance(0)
}

func TestProgressOfARolloutIsWrittenPeriodically(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		defer f.start(2)()
		f.createFoo(t, footest.Foo("a"))
		advance(0)
		f.expectWrites(t, createChild, "update foos/status")

		f.rollOut(t, 1, 0)
		advance(time.Second)
		f.rollOut(t, 2, 0)
		advance(time.Second)
		f.rollOut(t, 2, 1)
		f.expectWrites(t)
		advance(memory.ThrottleInterval - 2*time.Second - 1)
		f.expectWrites(t)
		advance(1)
		_, status := f.written(t)
		if status == nil || status.Replicas != 2 || status.AvailableReplicas != 1 {
			t.Errorf("the status is %+v", status)
		}
		f.expectWrites(t, "update foos/status")

		f.rollOut(t, 2, 0)
		f.expectWrites(t)
		advance(memory.ThrottleInterval)
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
		f.expectWrites(t, createChild, "update foos/status")

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
		f.expectWrites(t, updateChild, "update foos/status")
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
		if progress := f.memory.Of(footest.Foo("a")).Progress; !progress.IsZero() {
			t.Error("a deferred status is still remembered although it was reverted")
		}
		f.rollOut(t, 1, 0)
		f.deleteFoo(t, "a")
		advance(0)
		if f.remembers("a") {
			t.Error("the deferred status of a deleted Foo is still remembered")
		}
	})
}

// flap changes a Deployment's status n times, once a second.
func (f *fixture) flap(t *testing.T, n int) {
	t.Helper()
	for i := range n {
		flapping := f.deployment(t, "web").DeepCopy()
		flapping.Status.AvailableReplicas = int32(i % 2)
		f.updateChild(t, flapping)
		advance(time.Second)
	}
}

// Changes of the Deployment's status must not repeat a refused write, and the Foo must
// still count its Pods.
func TestARefusedWriteIsNotRepeatedWithEachStatusOfTheDeployment(t *testing.T) {
	for name, refusal := range map[string]error{
		"a policy":    apierrors.NewForbidden(footest.ChildGR, "web", errors.New("a policy")),
		"Retry-After": apierrors.NewTooManyRequests("slow down", 10),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t, footest.Foo("a", footest.WithStatus(footest.Settled("a"))), footest.Deployment("a", footest.WithImage("nginx:1")))
				calls, refused := f.countCalls("patch", children, refusal)
				defer f.start(2)()
				f.flap(t, 61) // refused after 0, 1, 3, 7, 15 and 31 s, or every 10 s
				if n := calls.Load(); n > 7 {
					t.Errorf("the write was sent %d times in a minute", n)
				}
				advance(memory.ThrottleInterval)
				if available := f.cachedFoo(t, "a").Status.AvailableReplicas; available != 0 {
					t.Errorf("the status counts %d available Pods, not 0", available)
				}
				if statuses := countWrites(f, "update foos/status"); statuses > 15 {
					t.Errorf("the status was written %d times in a minute", statuses)
				}
				refused.Store(false)
				advance(queue.LastRetry)
				if image := f.deployment(t, "web").Spec.Template.Spec.Containers[0].Image; image != "nginx:latest" {
					t.Errorf("the update was not sent once it was allowed: the image is %s", image)
				}
			})
		})
	}
}

func TestARefusedStatusIsNotRepeatedWithEachStatusOfTheDeployment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, footest.Foo("a", footest.WithStatus(footest.Settled("a"))), footest.Deployment("a"))
		calls, refused := f.countCalls("update", "foos", apierrors.NewForbidden(footest.FoosResource.GroupResource(), "a", errors.New("no right")))
		defer f.start(2)()
		f.flap(t, 60)
		if n := calls.Load(); n > 6 {
			t.Errorf("the write was sent %d times in a minute", n)
		}
		refused.Store(false)
		advance(queue.LastRetry)
		if available := f.cachedFoo(t, "a").Status.AvailableReplicas; available != 1 {
			t.Errorf("the status was not sent once it was allowed: %d available", available)
		}
	})
}

// A policy caps the replicas: the Foo is not ready and says why, and the controller does
// not fight the policy.
func TestADeploymentStoredOtherwiseIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, footest.Foo("a", footest.WithStatus(footest.Settled("a"))), footest.Deployment("a"))
		f.api.Admit = func(_ string, sent footest.Object) error {
			if deployment, ok := sent.(*appsv1.Deployment); ok {
				deployment.Spec.Replicas = new(int32(2))
			}
			return nil
		}
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
	f.api.Admit = func(_ string, sent footest.Object) error {
		if deployment, ok := sent.(*appsv1.Deployment); ok {
			deployment.Spec.Template.Spec.Containers[0].Image = "mirror.example.com/nginx:latest"
		}
		return nil
	}
}

func TestAWebhookThatChangesTheImageIsNotFought(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		f.mirrorImages()
		defer f.start(2)()
		f.createFoo(t, footest.Foo("a"))
		advance(time.Second)
		// A webhook may be for creations alone: only an update shows that another would not help.
		f.expectWrites(t, createChild, updateChild, "update foos/status", "update foos/status")

		resync := func() {
			cached := f.cachedFoo(t, "a")
			f.updateOwner(cached, cached)
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
		if f.remembers("a") {
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
			f.updateOwner(cached, cached)
			advance(30 * time.Second)
		}
		f.expectWrites(t)
	})
}

func TestAnotherImageRestartsAFewFoosAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var world []runtime.Object
		var names []string
		for i := range 7 {
			foo, name := fmt.Sprintf("foo-%d", i), fmt.Sprintf("web-%d", i)
			names = append(names, name)
			world = append(world, footest.Foo(foo, footest.WithChildName(name), footest.WithStatus(footest.Settled(foo))),
				footest.Deployment(foo, footest.Named(name), footest.WithImage("nginx:1"), footest.Changed(func(d *appsv1.Deployment) { d.UID = types.UID(name) })))
		}
		f := newFixture(t, world...)
		f.rollouts.Limit = 4 // of a namespace 2
		defer f.start(2)()
		restarted := map[string]bool{}
		rolling := func() (now []string) {
			for _, name := range names {
				if f.deployment(t, name).Spec.Template.Spec.Containers[0].Image == footest.DefaultImage && !restarted[name] {
					now = append(now, name)
				}
			}
			return now
		}

		advance(5 * time.Minute)
		if now := rolling(); len(now) != 2 {
			t.Fatalf("%v are restarted at once", now)
		}
		last := "foo-6"
		if f.deployment(t, "web-6").Spec.Template.Spec.Containers[0].Image == footest.DefaultImage {
			last = "foo-0"
		}
		f.expectReady(t, last, "False Progressing of 1")
		f.scale(t, last, 3)
		advance(0)
		scaled := "web-" + last[len("foo-"):]
		if replicas := f.deployment(t, scaled).Spec.Replicas; *replicas != 3 {
			t.Errorf("what a user asks for waits: %d replicas", *replicas)
		}
		restarted[scaled] = true
		f.settle(t, scaled)

		for len(restarted) < len(names) {
			advance(2 * time.Second)
			now := rolling()
			if len(now) == 0 || len(now) > 2 {
				t.Fatalf("after %v, %v are restarted", restarted, now)
			}
			restarted[now[0]] = true
			f.settle(t, now[0])
		}
		advance(time.Minute)
		for i := range names {
			foo := fmt.Sprintf("foo-%d", i)
			f.expectReady(t, foo, fmt.Sprintf("True Available of %d", f.cachedFoo(t, foo).Generation))
		}
	})
}

// One whose Pods never become available does not stop the others for ever.
func TestARolloutThatHangsGivesWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t,
			footest.Foo("a", footest.WithStatus(footest.Settled("a"))), footest.Deployment("a", footest.WithImage("nginx:1")),
			footest.Foo("b", footest.WithChildName("api"), footest.WithStatus(footest.Settled("b"))), footest.Deployment("b", footest.Named("api"), footest.WithImage("nginx:1")))
		f.rollouts.Limit = 1
		defer f.start(2)()
		advance(9 * time.Minute)
		f.expectChildWrites(t, updateChild)
		advance(2 * time.Minute)
		f.expectChildWrites(t, updateChild)
	})
}
