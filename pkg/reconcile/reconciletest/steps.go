// SPDX-License-Identifier: Apache-2.0

// The steps of users: the workloads made of them, and random sequences of steps and faults.

package reconciletest

import (
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
	"pgregory.net/rapid"

	"example.com/sample-controller/pkg/reconcile/reconciletest/model"
	"example.com/sample-controller/pkg/reconcile/reconciletest/rows"
)

// step is what users do: acts that model.Parse reads. If there are several, with semicolons
// between them, they come in quick succession, with just enough time between them for a
// controller to see each.
type step string

// userTimeout is how long a user retries, for example while a child does not exist yet.
const userTimeout = 30 * time.Second

// acts returns the acts of a step.
func (s step) acts(owner *rows.OwnerRow) []model.Act {
	var acts []model.Act
	for text := range strings.SplitSeq(string(s), "; ") {
		a, ok := model.Parse(owner, text, func(*rows.Kind, string) bool { return true })
		if !ok {
			panic(fmt.Sprintf("no user can %q", text))
		}
		acts = append(acts, a)
	}
	return acts
}

// take carries out a step.
func (c *cluster) take(s step) {
	c.tracef("user: %s", s)
	c.stepBegan.Store(int64(c.api.version()))
	acts := s.acts(c.owner)
	for _, a := range acts {
		c.carryOut(a)
		if len(acts) > 1 {
			advance(time.Millisecond)
		}
	}
}

var errTooEarly = errors.New("the object is not there, or still there")

// carryOut repeats a user's write until it succeeds, at most for userTimeout. It may have to
// wait for an object that does not exist yet, or until one in deletion is gone.
func (c *cluster) carryOut(a model.Act) {
	for began := time.Now(); ; advance(time.Second) {
		stored, _ := c.api.get(objectID{a.Kind, a.Name})
		err := errTooEarly
		if r, ok := a.Request(stored); ok {
			_, err = c.api.write(r, noInspection)
		}
		if err == nil {
			return
		}
		if time.Since(began) >= userTimeout {
			c.tracef("user: gave up on %s: %v", a.Text, err)
			return
		}
	}
}

// workload holds the steps of users in one run.
type workload struct {
	name string
	// before holds the steps before the controller starts.
	before []step
	steps  []step
}

// workloads returns the workloads about owners of a kind, and those about each kind of
// their children.
func workloads(owner *rows.OwnerRow) []workload {
	hold, release := step("keep "+owner.Kind.Kind+"/a"), step("release "+owner.Kind.Kind+"/a")
	all := []workload{
		{name: "create", steps: []step{"create a web"}},
		{name: "scale", steps: []step{"create a web 2", "scale a 3", "scale a 1"}},
		{name: "rename", steps: []step{"create a web 2", "rename a api", "rename a web"}},
		{name: "rename and scale", before: []step{"create a web"}, steps: []step{
			"rename a api; scale a 2", "rename a db; rename a api",
		}},
		{name: "sync now", steps: []step{"create a web", "sync a 1", "sync a 2; scale a 2"}},
		{name: "recreate", steps: []step{"create a web", "delete a", "create a web", "delete a; create a web 2"}},
		{name: "foreground", steps: []step{"create a web", "delete a foreground", "create a web"}},
		{name: "two owners", steps: []step{"create a web", "create b web 2", "delete a"}},
		{name: "finalizer", steps: []step{"create a web", hold, "delete a", release}},
	}
	for _, kind := range owner.Kinds {
		all = append(all, workloadsOf(owner, kind)...)
	}
	return all
}

// workloadsOf returns the workloads about one kind of children.
func workloadsOf(owner *rows.OwnerRow, kind *rows.Kind) []workload {
	web, api, of := childOf("a", owner, kind, "web"), childOf("a", owner, kind, "api"), " "+kind.Resource.Resource
	on := func(verb, child string) step { return step(verb + " " + child) }
	all := []workload{
		{name: "drift" + of, steps: []step{
			"create a web", on("drift", web), on("edit", web) + "; scale a 2", on("edit", web) + " 2; " + on("drift", web),
			on("remove", web),
		}},
		{name: "foreign" + of, before: []step{on("take", web)}, steps: []step{"create a web", on("remove", web)}},
		{name: "adopt" + of, before: []step{on("take", web)}, steps: []step{
			"create a web 2", on("hand", web) + " a", on("edit", web),
		}},
		{name: "held" + of, steps: []step{"create a web", on("keep", web), on("remove", web), on("release", web)}},
	}
	if api != web {
		all = append(all, workload{name: "taken" + of, before: []step{on("take", api), "create a web"}, steps: []step{
			"rename a api", on("remove", api),
		}})
	}
	if kind.IsOptional() {
		unset, ask := step("unset a "+kind.Kind), step("ask a "+kind.Kind)
		all = append(all, workload{name: "unset" + of, before: []step{on("take", api)}, steps: []step{
			"create a web", unset, ask, unset + "; rename a api", ask, on("remove", api), unset,
		}})
	}
	if kind.EditOptional != nil {
		all = append(all, workload{name: "optional" + of, steps: []step{
			// What the new child begins with depends on whether the cache shows the earlier one.
			"create a web 0", on("tune", web), "rename a api", on("tune", api),
		}})
	}
	return all
}

// childOf names, in the steps of users, the child of a kind that an owner has when it asks for
// children of a name.
func childOf(foo string, owner *rows.OwnerRow, kind *rows.Kind, name string) string {
	return kind.Kind + "/" + kind.Name(owner.Asking(foo, name, 1))
}

// randomUser is a state machine that takes users' steps and injects faults, in any order.
type randomUser struct {
	*cluster

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
func TestRandomSequences(t *testing.T, owner *rows.OwnerRow, start Start) {
	t.Helper()
	traceErrors(t)
	if checks := flag.Lookup("rapid.checks").Value; detectorsOn() && checks.String() == flag.Lookup("rapid.checks").DefValue {
		if err := checks.Set("3"); err != nil {
			t.Fatal(err)
		}
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
	actions := map[string]func(*rapid.T){
		"inject a fault": u.injectLater,
		"": func(t *rapid.T) {
			// The wait is never 0, so that the effects of one step precede the next.
			advance(rapid.SampledFrom([]time.Duration{time.Millisecond, shortDelay, longDelay}).Draw(t, "wait"))
			u.failOnViolations(t)
		},
	}
	for what, steps := range randomSteps(u.owner) {
		actions[what] = func(t *rapid.T) {
			possible := slices.DeleteFunc(slices.Clone(steps), func(s step) bool { return !u.isPossible(s) })
			if len(possible) == 0 {
				t.Skip("no object to do that with")
			}
			u.take(rapid.SampledFrom(possible).Draw(t, "step"))
		}
	}
	return actions
}

// isPossible reports whether a step makes sense now. Nothing is done with objects in deletion.
func (u *randomUser) isPossible(s step) bool {
	first := s.acts(u.owner)[0]
	stored, err := u.api.get(objectID{first.Kind, first.Name})
	_, ok := first.Request(stored)
	return ok && (err != nil || stored.GetDeletionTimestamp() == nil)
}

// randomSteps returns the steps that a random user may take, by what they are about. The names
// are few, so that owners conflict.
func randomSteps(owner *rows.OwnerRow) map[string][]step {
	steps := map[string][]step{}
	add := func(what, format string, args ...any) {
		steps[what] = append(steps[what], step(fmt.Sprintf(format, args...)))
	}
	names := []string{"web", "api", "db"}
	for _, foo := range []string{"a", "b"} {
		for size := range 4 {
			add("scale an owner", "scale %s %d", foo, max(size, 1))
			for _, name := range names {
				add("create an owner", "create %s %s %d", foo, name, size)
				// Before the garbage collector acts:
				add("recreate an owner", "delete %[1]s; create %[1]s %[2]s %[3]d", foo, name, size)
			}
		}
		for _, name := range names {
			add("rename", "rename %s %s", foo, name)
		}
		add("delete an owner", "delete %s", foo)
		add("delete an owner", "delete %s foreground", foo)
	}
	for _, kind := range owner.Kinds {
		children := sets.New[string]()
		for _, name := range names {
			children.Insert(childOf("a", owner, kind, name), childOf("b", owner, kind, name))
		}
		for _, child := range sets.List(children) {
			add("create a child", "take %s", child)
			add("delete a child", "remove %s", child)
			add("edit a child", "drift %s", child)
			add("edit a child", "edit %s 1", child)
			add("edit a child", "edit %s 2", child)
			add("edit a child", "hand %s a", child)
			add("edit a child", "hand %s b", child)
			if kind.EditOptional != nil {
				add("edit a child", "tune %s", child)
			}
		}
	}
	return steps
}

func (u *randomUser) failOnViolations(t *rapid.T) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.violations) > 0 {
		t.Fatalf("%s\ntrace:\n%s", strings.Join(u.violations, "\n"), strings.Join(u.trace, "\n"))
	}
}

// injectLater adds a pending fault. It leaves out second controllers, because two with
// different caches write an owner's status alternately until the caches agree.
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
