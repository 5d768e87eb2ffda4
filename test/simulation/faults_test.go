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

// Tests of faults that meet: their effects add up.

package simulation

import (
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"example.com/sample-controller/internal/footest"
)

func TestALaterHoldDoesNotEndAnEarlierOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &connection{heldUntil: map[string]time.Time{}}
		c.hold("foos", longDelay)
		c.hold("foos", shortDelay)
		if held := c.held("foos"); held != longDelay {
			t.Errorf("the watch is held for %s, want %s", held, longDelay)
		}
	})
}

func TestAdmissionsAreInForceTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t.Name(), footest.FooOwner, once(nil), noFault)
		defer c.end()
		refuse := func() error { return apierrors.NewTooManyRequests("", 1) }
		now := time.Now()
		c.admissions = []admission{{until: now.Add(2 * time.Second)}, {until: now.Add(time.Second), refuse: refuse}}
		for _, want := range []struct{ refuses, mutates bool }{{true, true}, {false, true}, {false, false}} {
			if _, err := c.admit(web.ForeignNamed("web")); (err != nil) != want.refuses || c.mutatesWrites() != want.mutates {
				t.Errorf("after %s the error is %v, and whether writes are mutated is %v", time.Since(now), err, c.mutatesWrites())
			}
			advance(time.Second)
		}
	})
}
