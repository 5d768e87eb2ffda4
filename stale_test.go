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
	"sync"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	clienttesting "k8s.io/client-go/testing"

	"example.com/sample-controller/internal/footest"
)

// These tests stand between the API server and the caches: events that come
// late, twice, or not at all.

// holdWatch makes the watch on Deployments deliver nothing but what the test
// sends to the watcher that it returns.
func holdWatch(f *fixture) *watch.RaceFreeFakeWatcher {
	watcher := watch.NewRaceFreeFake()
	f.kubeClient.PrependWatchReactor("deployments", func(clienttesting.Action) (bool, watch.Interface, error) {
		return true, watcher, nil
	})
	return watcher
}

func TestLateDeploymentEventLeadsToOneCreate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var watcher *watch.RaceFreeFakeWatcher
		f := newFixtureWith(t, func(f *fixture) { watcher = holdWatch(f) }, footest.Foo("a"))
		defer f.start(2)()
		advance(0)
		f.expectWrites(t, "create deployments", "update foos/status")

		// The Foo's own event has come, the Deployment's has not.
		cached := f.cachedFoo(t, "a")
		for range 10 {
			f.enqueueUpdatedFoo(cached, cached)
			advance(time.Second)
		}
		f.expectWrites(t)

		watcher.Add(f.deployment(t, "web"))
		advance(time.Minute)
		f.expectWrites(t)
	})
}

func TestDoubledAndEmptyEventsAreNoWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var watcher *watch.RaceFreeFakeWatcher
		f := newFixtureWith(t, func(f *fixture) { watcher = holdWatch(f) }, footest.Foo("a", footest.WithStatus(footest.Settled("a"))), footest.Deployment("a"))
		defer f.start(2)()
		for range 3 {
			watcher.Modify(footest.Deployment("a"))
			watcher.Add(footest.Deployment("a"))
			watcher.Action(watch.Bookmark, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "21"}})
		}
		advance(time.Minute)
		f.expectWrites(t)
	})
}

func TestWatchThatIsTooOldIsBegunAgainWithAList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var watcher *watch.RaceFreeFakeWatcher
		f := newFixtureWith(t, func(f *fixture) {
			held := watch.NewRaceFreeFake()
			watcher = held
			f.kubeClient.PrependWatchReactor("deployments", func(clienttesting.Action) (bool, watch.Interface, error) {
				first := held != nil
				answer := held
				held = nil
				return first, answer, nil
			})
		}, footest.Foo("a", footest.WithStatus(footest.Settled("a"))), footest.Deployment("a"))
		defer f.start(2)()

		// The Deployment goes while the watch is silent; then the watch ends with 410 Gone.
		f.deleteDeployment(t, "web")
		advance(time.Minute)
		f.expectWrites(t)
		expired := apierrors.NewResourceExpired("too old resource version").Status()
		watcher.Action(watch.Error, &expired)
		advance(time.Minute)
		f.expectWrites(t, "create deployments", "update foos/status")
	})
}

func TestFooMadeAgainSeenAsOneUpdateWaitsForTheOldDeploymentToGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, footest.Foo("a", footest.WithStatus(footest.Settled("a"))), footest.Deployment("a"))
		defer f.start(2)()

		f.updateFoo(t, footest.Foo("a", footest.WithFooUID("uid-new")))
		advance(time.Hour)
		f.expectWrites(t, "update foos/status") // the conflict, once

		f.deleteDeployment(t, "web") // the garbage collector's work
		advance(0)
		f.expectWrites(t, "create deployments", "update foos/status")
		if owner := f.deployment(t, "web").OwnerReferences[0].UID; owner != "uid-new" {
			t.Errorf("the Deployment belongs to %s", owner)
		}
	})
}

func TestSecondFooOfANameTakesOverAtOnceWhenTheFirstGoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, footest.Foo("a"))
		defer f.start(2)()
		advance(0)
		f.expectWrites(t, "create deployments", "update foos/status")
		f.createFoo(t, footest.Foo("b"))
		advance(time.Hour)
		f.expectWrites(t, "update foos/status") // the conflict, once

		f.deleteFoo(t, "a")
		advance(0)
		f.deleteDeployment(t, "web") // the garbage collector's work
		advance(0)
		f.expectWrites(t, "create deployments", "update foos/status")
		if owner := f.deployment(t, "web").OwnerReferences[0].Name; owner != "b" {
			t.Errorf("the Deployment belongs to %s", owner)
		}
	})
}

func TestDeploymentThatAUserMadeAgainIsTheUsers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, footest.Foo("a", footest.WithStatus(footest.Settled("a"))), footest.Deployment("a"))
		// The user is quicker than the controller's create.
		theirs := footest.Deployment("a", footest.WithoutOwner, footest.ScaledTo(7))
		var made sync.Once
		f.kubeClient.PrependReactor("create", "deployments", func(clienttesting.Action) (bool, runtime.Object, error) {
			made.Do(func() {
				f.api.stamp(theirs)
				footest.Must(t, f.kubeClient.Tracker().Add(theirs))
			})
			return false, nil, nil
		})
		defer f.start(2)()
		f.deleteDeployment(t, "web")
		advance(time.Hour)
		footest.ExpectEqual(t, "the user's Deployment", theirs, f.deployment(t, "web"))
		footest.ExpectEqual(t, "the list of events", []string{"Warning DeploymentConflict " + footest.ConflictWithNobody}, f.recorded())
	})
}
