// SPDX-License-Identifier: Apache-2.0

// The workloads of TestController.

package simulation

import "example.com/sample-controller/test/footest"

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
	a := idIn(owner.Kind, "a")
	all := []workload{
		{name: "create", steps: []step{
			create("a", "web", 1),
		}},
		{name: "scale", steps: []step{
			create("a", "web", 2), scale("a", 3), scale("a", 1),
		}},
		{name: "rename", steps: []step{
			create("a", "web", 2), rename("a", "api"), rename("a", "web"),
		}},
		{name: "rename and scale", before: []step{create("a", "web", 1)}, steps: []step{
			atOnce(rename("a", "api"), scale("a", 2)), atOnce(rename("a", "db"), rename("a", "api")),
		}},
		{name: "recreate", steps: []step{
			create("a", "web", 1), deleteFoo("a"), create("a", "web", 1), atOnce(deleteFoo("a"), create("a", "web", 2)),
		}},
		{name: "foreground", steps: []step{
			create("a", "web", 1), deleteFooInForeground("a"), create("a", "web", 1),
		}},
		{name: "two owners", steps: []step{
			create("a", "web", 1), create("b", "web", 2), deleteFoo("a"),
		}},
		{name: "finalizer", steps: []step{
			create("a", "web", 1), hold(a), deleteFoo("a"), release(a),
		}},
	}
	for _, kind := range owner.Kinds {
		all = append(all, workloadsOf(owner, kind)...)
	}
	return all
}

// workloadsOf returns the workloads about one kind of children.
func workloadsOf(owner *footest.OwnerRow, kind *footest.Kind) []workload {
	web, api := kind.Name(owner.Asking("a", "web", 1)), child{kind, kind.Name(owner.Asking("a", "api", 1))}
	child := child{kind, web}
	of := " " + kind.Resource.Resource
	all := []workload{
		{name: "drift" + of, steps: []step{
			create("a", "web", 1), drift(child), atOnce(edit(child, "1"), scale("a", 2)), atOnce(edit(child, "2"), drift(child)), deleteChild(child),
		}},
		{name: "foreign" + of, before: []step{createForeign(child)}, steps: []step{
			create("a", "web", 1), deleteChild(child),
		}},
		{name: "adopt" + of, before: []step{createForeign(child)}, steps: []step{
			create("a", "web", 2), handOver(child, "a"), edit(child, "1"),
		}},
		{name: "held" + of, steps: []step{
			create("a", "web", 1), hold(child.id()), deleteChild(child), release(child.id()),
		}},
	}
	if api.name != web {
		all = append(all, workload{name: "taken" + of, before: []step{createForeign(api), create("a", "web", 1)}, steps: []step{
			rename("a", "api"), deleteChild(api),
		}})
	}
	if kind.EditOptional != nil {
		all = append(all, workload{name: "optional" + of, steps: []step{
			// What the new child begins with depends on whether the cache shows the earlier one.
			create("a", "web", 0), editOptional(child), rename("a", "api"), editOptional(api),
		}})
	}
	return all
}
