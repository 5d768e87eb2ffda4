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
		f := newFixture(t, foo("a"), foo("b"), deployment("a"), deployment("b", named("api")))
		f.createFoo(t, foo("new", withDeploymentName("db")))
		synctest.Wait()
		if first := f.next(); first != "new" {
			t.Errorf("%s is served before", first)
		}
	})
}

func TestWhatHappensDoesNotWaitForAResync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, foo("a"), foo("b", withDeploymentName("api")))
		f.drainQueue()
		resynced := f.cachedFoo(t, "a")
		f.enqueueUpdatedFoo(resynced, resynced)
		must(t, f.kubeClient.Tracker().Create(deploymentsResource, deployment("b", named("api")), namespace))
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
		f := newFixture(t, foo("a"), foo("b", withDeploymentName("api")))
		for f.queue.Len() > 0 {
			f.processNextKey(f.ctx)
			synctest.Wait()
		}
		resynced := f.cachedFoo(t, "a")
		f.enqueueUpdatedFoo(resynced, resynced)
		f.queue.Add(keyOf(foo("b")))
		if first := f.next(); first != "b" {
			t.Errorf("%s is served before", first)
		}
	})
}
