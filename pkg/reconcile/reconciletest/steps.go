// SPDX-License-Identifier: Apache-2.0

// The steps of users, and random sequences of steps and faults.

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

// userTimeout is how long a user retries, for example while a child does not exist yet, or until a call outside the cluster
// is undone after a restart.
const userTimeout = 30*time.Second + spreadTime

// acts returns the acts of a step.
func (s step) acts(owner *rows.OwnerRow) []model.Act {
	var acts []model.Act
	for text := range strings.SplitSeq(string(s), "; ") {
		acts = append(acts, model.MustParse(owner, text))
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
			for size := range int32(4) {
				children.Insert(childPaths("a", owner, kind, name, size)...)
				children.Insert(childPaths("b", owner, kind, name, size)...)
			}
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
	addReferenceSteps(owner, add)
	return steps
}

func addReferenceSteps(owner *rows.OwnerRow, add func(what, format string, args ...any)) {
	for _, reference := range owner.References {
		for _, name := range reference.All {
			of := reference.Kind.Kind + "/" + name
			add("change what owners name", "offer %s", of)
			add("change what owners name", "remove %s", of)
			add("change what owners name", "edit %s", of)
			for change := range 3 {
				add("change what owners name", "amend %s %d", of, change)
			}
			if reference.Spoil != nil {
				add("change what owners name", "spoil %s", of)
			}
		}
	}
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
