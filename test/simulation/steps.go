// SPDX-License-Identifier: Apache-2.0

// The steps of users, and the workloads made of them.

package simulation

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"example.com/sample-controller/test/footest"
	"example.com/sample-controller/test/simulation/model"
)

// step is what users do: acts that model.Parse reads. If there are several, with semicolons
// between them, they come in quick succession, with just enough time between them for a
// controller to see each.
type step string

// userTimeout is how long a user retries, for example while a child does not exist yet.
const userTimeout = 30 * time.Second

// acts returns the acts of a step.
func (s step) acts(owner *footest.OwnerRow) []model.Act {
	var acts []model.Act
	for text := range strings.SplitSeq(string(s), "; ") {
		a, ok := model.Parse(owner, text, func(*footest.Kind, string) bool { return true })
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
func workloads(owner *footest.OwnerRow) []workload {
	hold, release := step("keep "+owner.Kind.Kind+"/a"), step("release "+owner.Kind.Kind+"/a")
	all := []workload{
		{name: "create", steps: []step{"create a web"}},
		{name: "scale", steps: []step{"create a web 2", "scale a 3", "scale a 1"}},
		{name: "rename", steps: []step{"create a web 2", "rename a api", "rename a web"}},
		{name: "rename and scale", before: []step{"create a web"}, steps: []step{
			"rename a api; scale a 2", "rename a db; rename a api",
		}},
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
func workloadsOf(owner *footest.OwnerRow, kind *footest.Kind) []workload {
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
func childOf(foo string, owner *footest.OwnerRow, kind *footest.Kind, name string) string {
	return kind.Kind + "/" + kind.Name(owner.Asking(foo, name, 1))
}
