// SPDX-License-Identifier: Apache-2.0

// Random sequences of steps and faults.

package simulation

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"example.com/sample-controller/test/footest"
)

// The names that a random user chooses from. They are few, so that Foos conflict.
var (
	randomFoos  = []string{"a", "b"}
	randomNames = []string{"web", "api", "db"} // of children
)

// randomUser is a state machine that takes users' steps and injects faults, in any order.
type randomUser struct {
	*cluster

	notes   int
	pending []pendingFault
}

// pendingFault is a fault that happens at an injection point with one of the verbs, once
// it has let after such points pass.
type pendingFault struct {
	verbs []string
	after int
	fault fault
}

// TestRandomSequences runs random steps of users under random faults. rapid minimizes a
// sequence that fails, prints it, and stores it in testdata/rapid of the caller's
// package, so that the next run repeats it. -rapid.checks sets the number of sequences.
func TestRandomSequences(t *testing.T, owner *footest.OwnerRow, start Start) {
	t.Helper()
	traceErrors(t)
	if detectorsOn() {
		fewerChecks(t)
	}
	rapid.Check(t, func(t *rapid.T) {
		rapid.SyncTest(t, func(t *rapid.T) {
			u := &randomUser{}
			u.cluster = newCluster(t.Name(), owner, start, u.due)
			defer u.end()
			u.startController()
			t.Repeat(u.actions())
			u.stopFaults()
			u.check(2 * time.Minute)
			u.failOnViolations(t)
		})
	})
}

func (u *randomUser) actions() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"create a Foo":   u.createFoo,
		"scale a Foo":    u.scaleFoo,
		"rename":         u.rename,
		"delete a Foo":   u.deleteFoo,
		"recreate a Foo": u.recreateFoo,
		"create a child": u.createChild,
		"edit a child":   u.editChild,
		"delete a child": u.deleteChild,
		"inject a fault": u.injectLater,
		"": func(t *rapid.T) {
			// The wait is never 0, so that the effects of one step precede the next.
			advance(rapid.SampledFrom([]time.Duration{time.Millisecond, shortDelay, longDelay}).Draw(t, "wait"))
			u.failOnViolations(t)
		},
	}
}

// fewerChecks makes rapid try only a few sequences, unless the command line sets the
// number.
func fewerChecks(t *testing.T) {
	checks := flag.Lookup("rapid.checks")
	if checks.Value.String() != checks.DefValue {
		return
	}
	set := func(value string) {
		if err := checks.Value.Set(value); err != nil {
			t.Error(err)
		}
	}
	set("3")
	t.Cleanup(func() { set(checks.DefValue) })
}

func (u *randomUser) failOnViolations(t *rapid.T) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.violations) > 0 {
		t.Fatalf("%s\ntrace:\n%s", strings.Join(u.violations, "\n"), strings.Join(u.trace, "\n"))
	}
}

// step carries out a step without letting the cluster settle.
func (u *randomUser) step(s step) {
	u.tracef("user: %s", s.name)
	u.stepBegan.Store(int64(u.api.version()))
	s.do(u.cluster)
}

// pick chooses one of the names whose object exists, or of those whose object does not.
func (u *randomUser) pick(t *rapid.T, exists bool, names []string, id func(string) objectID) string {
	candidates := slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		object, err := u.api.get(id(name))
		return (err == nil) != exists || err == nil && isTerminating(metaOf(object))
	})
	if len(candidates) == 0 {
		t.Skip("no object to do that with")
	}
	return rapid.SampledFrom(candidates).Draw(t, "name")
}

func (u *randomUser) createFoo(t *rapid.T) {
	name := u.pick(t, false, randomFoos, u.ownerID)
	u.step(create(name, rapid.SampledFrom(randomNames).Draw(t, "child"), rapid.Int32Range(0, 3).Draw(t, "replicas")))
}

func (u *randomUser) scaleFoo(t *rapid.T) {
	u.step(scale(u.pick(t, true, randomFoos, u.ownerID), rapid.Int32Range(1, 3).Draw(t, "replicas")))
}

func (u *randomUser) rename(t *rapid.T) {
	u.step(rename(u.pick(t, true, randomFoos, u.ownerID), rapid.SampledFrom(randomNames).Draw(t, "child")))
}

func (u *randomUser) deleteFoo(t *rapid.T) {
	name := u.pick(t, true, randomFoos, u.ownerID)
	u.step(rapid.SampledFrom([]step{deleteFoo(name), deleteFooInForeground(name)}).Draw(t, "how"))
}

// recreateFoo deletes and recreates a Foo before the garbage collector acts.
func (u *randomUser) recreateFoo(t *rapid.T) {
	name := u.pick(t, true, randomFoos, u.ownerID)
	u.step(atOnce(deleteFoo(name),
		create(name, rapid.SampledFrom(randomNames).Draw(t, "child"), rapid.Int32Range(0, 3).Draw(t, "replicas"))))
}

// pickChild chooses a child that a Foo may ask for, and that exists or does not.
func (u *randomUser) pickChild(t *rapid.T, exists bool) child {
	kind := u.owner.Kinds[0]
	if len(u.owner.Kinds) > 1 {
		kind = rapid.SampledFrom(u.owner.Kinds).Draw(t, "kind")
	}
	var names []string
	for _, foo := range randomFoos {
		for _, name := range randomNames {
			names = append(names, kind.Name(u.owner.Asking(foo, name, 1)))
		}
	}
	slices.Sort(names)
	return child{kind, u.pick(t, exists, slices.Compact(names), func(name string) objectID { return idIn(kind, name) })}
}

func (u *randomUser) createChild(t *rapid.T) { u.step(createForeign(u.pickChild(t, false))) }

func (u *randomUser) editChild(t *rapid.T) {
	child := u.pickChild(t, true)
	u.notes++
	steps := []step{drift(child), edit(child, fmt.Sprint(u.notes)), handOver(child, "a"), handOver(child, "b")}
	if child.EditOptional != nil {
		steps = append(steps, editOptional(child))
	}
	u.step(rapid.SampledFrom(steps).Draw(t, "how"))
}

func (u *randomUser) deleteChild(t *rapid.T) { u.step(deleteChild(u.pickChild(t, true))) }

// injectLater adds a pending fault. It leaves out second controllers, because two with
// different caches write a Foo's status in turns until the caches agree.
func (u *randomUser) injectLater(t *rapid.T) {
	verbs := rapid.SampledFrom([][]string{
		{"get"}, {"create", "update", "update-status", "delete"}, {"list", "watch"}, {"event-added", "event-modified", "event-deleted"},
	}).Draw(t, "verbs")
	faults := slices.DeleteFunc(slices.Clone(faultsAt(u.owner, injectionPoint{verb: verbs[0]})), func(f fault) bool { return f.name == secondController || f.name == overtaken })
	next := pendingFault{verbs, rapid.IntRange(0, 3).Draw(t, "after"), rapid.SampledFrom(faults).Draw(t, "fault")}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.pending = append(u.pending, next)
}

func (u *randomUser) stopFaults() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.pending = nil
}

// due returns the first pending fault that is due at an injection point. The cluster
// never calls it concurrently.
func (u *randomUser) due(point injectionPoint) fault {
	for i := range u.pending {
		next := &u.pending[i]
		if !slices.Contains(next.verbs, point.verb) {
			continue
		}
		if next.after == 0 {
			f := next.fault
			u.pending = slices.Delete(u.pending, i, i+1)
			return f
		}
		next.after--
	}
	return fault{}
}
