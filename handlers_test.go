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
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"example.com/sample-controller/internal/footest"
	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

func TestDeploymentResyncQueuesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, footest.Foo("a", footest.WithStatus(footest.Settled("a"))), footest.Deployment("a"))
		f.drainQueue()

		f.enqueueConcernedByUpdate(footest.Deployment("a"), footest.Deployment("a", footest.WithAvailable(1)))
		if f.queue.Len() != 0 {
			t.Error("an update without a new resourceVersion queued a Foo")
		}
		f.enqueueConcernedByUpdate(footest.Deployment("a"), footest.Deployment("a", footest.AtVersion("21")))
		if f.queue.Len() != 1 {
			t.Error("an update with a new resourceVersion did not queue its Foo")
		}
		f.drainQueue()

		// Under a name that no Foo asks for, only the owner reference leads to the Foo.
		f.enqueueConcernedByUpdate(footest.Deployment("a", footest.Named("old")), footest.Deployment("a", footest.Named("old"), footest.WithoutOwner, footest.AtVersion("21")))
		if f.queue.Len() != 1 {
			t.Error("a Foo that lost a Deployment was not queued")
		}
	})
}

func TestMissedDeletionsAreHandled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, footest.Foo("a", footest.WithStatus(footest.Settled("a"))), footest.Deployment("a"))
		f.drainQueue()

		f.enqueueConcernedByDelete(cache.DeletedObject[*appsv1.Deployment]{
			FinalStateUnknown: &cache.DeletedFinalStateUnknown{Key: footest.Namespace + "/web"},
		})
		if f.queue.Len() != 1 {
			t.Error("a Deployment that was missed being deleted, of which only the name is known, queued nothing")
		}
	})
}

func TestWritesOfAFooThatIsGoneHoldNothingUp(t *testing.T) {
	for name, goes := range map[string]func(f *fixture){
		"deleted": func(f *fixture) {
			f.enqueueDeletedFoo(cache.DeletedObject[*samplev1alpha1.Foo]{OptionalObj: footest.Foo("a")})
		},
		"deleted and made again": func(f *fixture) {
			f.enqueueUpdatedFoo(footest.Foo("a"), footest.Foo("a", footest.WithFooUID("uid-new")))
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFixture(t, footest.Foo("a"))
				f.Controller.consistency.WroteAt(footest.KeyOf(footest.Foo("a")), footest.Foo("a").UID, storeAt("7"), "9")
				goes(f)
				if f.Controller.consistency.EnsureReady(footest.KeyOf(footest.Foo("a"))) != nil {
					t.Error("a new Foo waits for the writes of one that is gone")
				}
			})
		})
	}
}

// An index keeps many objects under one value, of which it gives all.
func TestOthersOfTheSameBucketAreLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one := footest.Foo("a")
		f := newFixture(t, one, footest.Deployment("a"))
		uid := f.sharing(string(one.UID), func(i int) string { return fmt.Sprintf("uid-%d", i) })
		name := f.sharing(footest.Namespace+"/web", func(i int) string { return fmt.Sprintf("%s/web-%d", footest.Namespace, i) })
		other := footest.Foo("b", footest.WithFooUID(types.UID(uid)), footest.WithDeploymentName(strings.TrimPrefix(name, footest.Namespace+"/")))
		footest.Must(t, f.fooIndexer.Add(other))
		footest.Must(t, f.deploymentIndexer.Add(footest.Deployment("b", footest.Named(other.Spec.DeploymentName), footest.WithOwner(samplev1alpha1.SchemeGroupVersion.String(), "Foo", other.UID))))
		_, controlled, err := f.deploymentsOf(one)
		footest.Must(t, err)
		if len(controlled) != 1 || controlled[0].Name != "web" {
			t.Errorf("of two Deployments these are taken for the Foo's own: %v", footest.NamesOf(controlled))
		}
		if waiting := f.foosAskingFor(cache.ObjectName{Namespace: footest.Namespace, Name: "web"}); len(waiting) != 1 {
			t.Errorf("%v wait for the Deployment that one of them asks for", waiting)
		}
	})
}

// sharing returns the first of some values that shares the bucket of another.
func (f *fixture) sharing(value string, candidate func(int) string) string {
	for i := 0; ; i++ {
		if other := candidate(i); f.buckets.Of(other) == f.buckets.Of(value) {
			return other
		}
	}
}
