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
	"testing"
	"testing/synctest"

	"k8s.io/client-go/tools/cache"

	"example.com/sample-controller/internal/footest"
)

func TestAFooOfAnotherNamespaceDoesNotWaitForAThousand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		for i := range 1000 {
			f.queue.Add(cache.ObjectName{Namespace: "many", Name: fmt.Sprint(i)})
		}
		f.queue.Add(cache.ObjectName{Namespace: "one", Name: "only"})
		f.queue.Get()
		second, _ := f.queue.Get()
		if second.Namespace != "one" {
			t.Errorf("%s is served before", second)
		}
	})
}

// next returns the name of the Foo that a worker gets next; "" if there is none.
func (f *fixture) next() string {
	if f.queue.Len() == 0 {
		return ""
	}
	key, _ := f.queue.Get()
	f.queue.Done(key)
	return key.Name
}

func TestANewFooDoesNotWaitForThoseOfTheFirstList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, footest.Foo("a"), footest.Foo("b"), footest.Deployment("a"), footest.Deployment("b", footest.Named("api")))
		f.createFoo(t, footest.Foo("new", footest.WithDeploymentName("db")))
		synctest.Wait()
		if first := f.next(); first != "new" {
			t.Errorf("%s is served before", first)
		}
	})
}

func TestWhatHappensDoesNotWaitForAResync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, footest.Foo("a"), footest.Foo("b", footest.WithDeploymentName("api")))
		f.drainQueue()
		resynced := f.cachedFoo(t, "a")
		f.enqueueUpdatedFoo(resynced, resynced)
		footest.Must(t, f.kubeClient.Tracker().Create(footest.DeploymentsResource, footest.Deployment("b", footest.Named("api")), footest.Namespace))
		synctest.Wait()
		if first := f.next(); first != "b" {
			t.Errorf("%s is served before", first)
		}
		if second := f.next(); second != "a" {
			t.Errorf("then it is the turn of %s", second)
		}
	})
}

func TestAFooThatWasSyncedWaitsAtTheNextResync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, footest.Foo("a"), footest.Foo("b", footest.WithDeploymentName("api")))
		for f.queue.Len() > 0 {
			f.processNextWorkItem(f.ctx)
			synctest.Wait()
		}
		resynced := f.cachedFoo(t, "a")
		f.enqueueUpdatedFoo(resynced, resynced)
		f.queue.Add(footest.KeyOf(footest.Foo("b")))
		if first := f.next(); first != "b" {
			t.Errorf("%s is served before", first)
		}
	})
}
