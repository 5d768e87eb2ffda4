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
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// The names and numbers that a random user chooses from: few, so that Foos get
// in each other's way.
var (
	randomFoos        = []string{"a", "b"}
	randomDeployments = []string{"web", "api", "db"}
)

// randomUser is a state machine of users' steps and of faults, in any order.
type randomUser struct {
	*world
	notes int
	armed []armed
}

// armed is a fault that strikes when as many moments of its kind have passed.
type armed struct {
	verbs []string
	after int
	fault fault
}

// TestGauntletRandom has users do random things while random faults strike. A
// sequence that fails is made shorter, and printed: see docs/testing.md.
func TestGauntletRandom(t *testing.T) {
	if slowed() {
		fewerChecks(t)
	}
	rapid.Check(t, func(t *rapid.T) {
		rapid.SyncTest(t, func(t *rapid.T) {
			u := &randomUser{}
			u.world = newWorld(u.strike)
			defer u.end()
			u.startController(asEver)
			t.Repeat(map[string]func(*rapid.T){
				"create a Foo":        u.createFoo,
				"scale a Foo":         u.scaleFoo,
				"rename":              u.rename,
				"delete a Foo":        u.deleteFoo,
				"recreate a Foo":      u.recreateFoo,
				"create a Deployment": u.createDeployment,
				"edit a Deployment":   u.editDeployment,
				"delete a Deployment": u.deleteDeployment,
				"arm a fault":         u.arm,
				"": func(t *rapid.T) {
					// Longer than an instant: what a step sets off is done before the next.
					advance(rapid.SampledFrom([]time.Duration{time.Millisecond, shortly, past}).Draw(t, "wait"))
					u.check(t)
				},
			})
			u.disarm()
			u.judge(2 * time.Minute)
			u.check(t)
		})
	})
}

// fewerChecks has rapid try few sequences, unless the command line says how many.
func fewerChecks(t *testing.T) {
	checks := flag.Lookup("rapid.checks")
	if checks.Value.String() != checks.DefValue {
		return
	}
	must(t, checks.Value.Set("3"))
	t.Cleanup(func() { must(t, checks.Value.Set(checks.DefValue)) })
}

func (u *randomUser) check(t *rapid.T) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.complaints) > 0 {
		t.Fatalf("%s\nwhat happened:\n%s", strings.Join(u.complaints, "\n"), strings.Join(u.journal, "\n"))
	}
}

// step does a step at once, without settling.
func (u *randomUser) step(s step) {
	u.note("user: %s", s.name)
	u.stepBegan.Store(int64(u.api.version()))
	s.do(u.world)
}

// pick chooses one of the names whose object is there, or is not.
func (u *randomUser) pick(t *rapid.T, there bool, names []string, id func(string) objectID) string {
	candidates := slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		object, err := u.api.get(id(name))
		return (err == nil && !isTerminating(metaOf(object))) != there || err == nil && isTerminating(metaOf(object))
	})
	if len(candidates) == 0 {
		t.Skip("nothing to do that with")
	}
	return rapid.SampledFrom(candidates).Draw(t, "name")
}

func (u *randomUser) createFoo(t *rapid.T) {
	name := u.pick(t, false, randomFoos, fooID)
	u.step(create(name, rapid.SampledFrom(randomDeployments).Draw(t, "Deployment"), rapid.Int32Range(0, 3).Draw(t, "replicas")))
}

func (u *randomUser) scaleFoo(t *rapid.T) {
	u.step(scale(u.pick(t, true, randomFoos, fooID), rapid.Int32Range(1, 3).Draw(t, "replicas")))
}

func (u *randomUser) rename(t *rapid.T) {
	u.step(rename(u.pick(t, true, randomFoos, fooID), rapid.SampledFrom(randomDeployments).Draw(t, "Deployment")))
}

func (u *randomUser) deleteFoo(t *rapid.T) {
	name := u.pick(t, true, randomFoos, fooID)
	u.step(rapid.SampledFrom([]step{deleteFoo(name), deleteFooInForeground(name)}).Draw(t, "how"))
}

// recreateFoo is quicker than the garbage collector.
func (u *randomUser) recreateFoo(t *rapid.T) {
	name := u.pick(t, true, randomFoos, fooID)
	u.step(atOnce(deleteFoo(name),
		create(name, rapid.SampledFrom(randomDeployments).Draw(t, "Deployment"), rapid.Int32Range(0, 3).Draw(t, "replicas"))))
}

func (u *randomUser) createDeployment(t *rapid.T) {
	u.step(createForeign(u.pick(t, false, randomDeployments, deploymentID)))
}

func (u *randomUser) editDeployment(t *rapid.T) {
	name := u.pick(t, true, randomDeployments, deploymentID)
	u.notes++
	u.step(rapid.SampledFrom([]step{
		drift(name), edit(name, fmt.Sprint(u.notes)), scaleDeployment(name, 2), handOver(name, "a"), handOver(name, "b"),
	}).Draw(t, "how"))
}

func (u *randomUser) deleteDeployment(t *rapid.T) {
	u.step(deleteDeployment(u.pick(t, true, randomDeployments, deploymentID)))
}

// arm has a fault strike a little later. There is no second controller: two whose
// caches differ write a Foo's status in turns until the caches agree.
func (u *randomUser) arm(t *rapid.T) {
	verbs := rapid.SampledFrom([][]string{
		{"get"}, {"create", "update", "update-status", "delete"}, {"list", "watch"}, {"event-added", "event-modified", "event-deleted"},
	}).Draw(t, "verbs")
	faults := slices.DeleteFunc(slices.Clone(faultsAt(moment{verb: verbs[0]})), func(f fault) bool { return f.name == secondController || f.name == overtaken })
	next := armed{verbs, rapid.IntRange(0, 3).Draw(t, "after"), rapid.SampledFrom(faults).Draw(t, "fault")}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.armed = append(u.armed, next)
}

func (u *randomUser) disarm() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.armed = nil
}

// strike returns the first armed fault whose time has come. The world calls it,
// at one moment at a time.
func (u *randomUser) strike(m moment) fault {
	for i := range u.armed {
		next := &u.armed[i]
		if !slices.Contains(next.verbs, m.verb) {
			continue
		}
		if next.after == 0 {
			struck := next.fault
			u.armed = slices.Delete(u.armed, i, i+1)
			return struck
		}
		next.after--
	}
	return fault{}
}

// String is how a drawn step is printed.
func (s step) String() string { return s.name }

// String is how a drawn fault is printed.
func (f fault) String() string { return f.name }
