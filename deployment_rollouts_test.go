// SPDX-License-Identifier: Apache-2.0

// Tests of how many Foos at a time restart their Pods.

package main

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"example.com/sample-controller/internal/footest"
)

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
