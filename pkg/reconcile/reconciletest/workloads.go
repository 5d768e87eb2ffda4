// SPDX-License-Identifier: Apache-2.0

// The workloads, made of steps of users.

package reconciletest

import (
	"fmt"
	"slices"

	"example.com/sample-controller/pkg/reconcile/reconciletest/rows"
)

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
		all = append(all, workloadsOfSet(owner, kind)...)
	}
	for _, reference := range owner.References {
		all = append(all, workloadsOfReference(owner, reference)...)
	}
	return all
}

// workloadsOf returns the workloads about one kind of children, and of a set, about its first and its last.
func workloadsOf(owner *rows.OwnerRow, kind *rows.Kind) []workload {
	webs, apis, of := childPaths("a", owner, kind, "web", 1), childPaths("a", owner, kind, "api", 1), " "+kind.Resource.Resource
	if len(apis) == 0 {
		apis = webs
	}
	all := workloadsAbout(kind, of, webs[0], apis[0])
	if last := len(webs) - 1; last > 0 {
		all = append(all, workloadsAbout(kind, of+", last", webs[last], apis[len(apis)-1])...)
	}
	return all
}

// workloadsAbout returns the workloads about one child, which has another name after a renaming.
func workloadsAbout(kind *rows.Kind, of, web, api string) []workload {
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

// workloadsOfSet returns the workloads about the size of a set.
func workloadsOfSet(owner *rows.OwnerRow, kind *rows.Kind) []workload {
	few, of := childPaths("a", owner, kind, "web", 1), " "+kind.Resource.Resource
	for size := int32(2); kind.IsSet() && size < 5; size++ {
		many := childPaths("a", owner, kind, "web", size)
		if len(many) <= len(few) || !slices.Contains(many, few[0]) {
			continue
		}
		grow, last := step(fmt.Sprintf("scale a %d", size)), many[len(many)-1]
		create := step(fmt.Sprintf("create a web %d", size))
		return []workload{
			{name: "shrink" + of, steps: []step{create, "scale a 1; " + grow, "scale a 1"}},
			{name: "shrink while one is not ready" + of, steps: []step{create + "; scale a 1", grow + "; scale a 1; " + grow}},
			{name: "shrink while the last is held" + of, steps: []step{create, step("keep " + last), "scale a 1", step("release " + last)}},
			{name: "the new one is taken" + of, before: []step{step("take " + last)}, steps: []step{
				"create a web", grow, "scale a 1", grow, step("remove " + last),
			}},
		}
	}
	return nil
}

// workloadsOfReference returns the workloads about an object that an owner names.
func workloadsOfReference(owner *rows.OwnerRow, reference *rows.Reference) []workload {
	kind := reference.Kind
	name, of := kind.Kind+"/"+reference.Names(owner.Asking("a", "web", 1))[0], " "+kind.Resource.Resource+" that are named"
	on := func(verb string) step { return step(verb + " " + name) }
	all := []workload{
		{name: "late" + of, before: []step{on("remove")}, steps: []step{"create a web", on("offer")}},
		{name: "changed" + of, steps: []step{"create a web", on("amend"), on("edit"), on("amend") + " 0; " + on("amend")}},
		{name: "changed during a rollout" + of, steps: []step{
			"create a web; " + on("amend"), "scale a 2; " + on("amend") + " 0", on("amend") + "; scale a 1; rename a api", on("amend") + " 0",
		}},
		{name: "recreated" + of, steps: []step{
			"create a web", on("remove"), on("offer"), on("remove") + "; " + on("offer") + "; " + on("amend"),
		}},
		{name: "missing" + of, steps: []step{"create a web", on("remove"), "scale a 2"}},
	}
	if reference.Spoil != nil {
		all = append(all, workload{name: "unfit" + of, steps: []step{
			"create a web", on("spoil"), "scale a 2", on("amend"), on("remove") + "; " + on("offer") + "; " + on("spoil"),
		}})
	}
	return all
}

// childPaths names, in the steps of users, the children of a kind that an owner has when it asks for children of a
// name and a size.
func childPaths(foo string, owner *rows.OwnerRow, kind *rows.Kind, name string, size int32) (children []string) {
	asking := owner.Asking(foo, name, size)
	names := kind.Names(asking)
	if !kind.IsSet() {
		names = []string{kind.Name(asking)}
	}
	for _, name := range names {
		children = append(children, kind.Kind+"/"+name)
	}
	return children
}
