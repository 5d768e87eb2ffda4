// SPDX-License-Identifier: Apache-2.0

// Package reconciletest tests a controller under faults, with an API server in memory and the clock of
// testing/synctest, so that a minute takes no time and runs are repeatable.
//
// Test needs the declaration of a kind, an example of it, a few edits of its spec, and a function that starts
// the controller. It creates, edits, renames, deletes and recreates owners; and for each kind of children
// it lets others change, delete, hold or hand over a child, or take its name. Each such workload runs
// first without faults, then again for each call of the controller and each event that reaches it, with each
// fault that can happen there: the controller crashes, before or after a call; the call is refused, hangs, is
// lost or takes effect late; a webhook refuses or changes what is written; a cache is stale; a second
// controller is active; an event is late, lost or repeated. Then pairs of faults follow. See Controller for an
// example, and Golden for tests of what a child looks like.
//
// What must hold, for a kind of which nothing is known but its declaration (package plan):
//
//   - Each run ends with the same objects as that without faults, and then nothing is called for several resyncs.
//     Each owner has the children that it wants, in their desired state and ready, and none else.
//   - No write changes an object of others, or a field that SetOwned does not set. An update has the
//     resourceVersion and a deletion the UID of the object that the controller read.
//   - A child that serves is not deleted before its successor is ready. No write is repeated because a cache does
//     not show it yet.
//   - Ready is True for a generation only if the children were as it asks, and ready, at some time since it
//     began. It never goes back to an older generation. Conditions are valid.
//   - Each change of Ready has one event, unless NoEvents is set.
//
// Of a set, others do the same to its first and its last child, and it grows and shrinks. Of objects that an owner names and
// does not own, each appears late, changes, also during a rollout, is deleted and recreated, or is unfit: see Named. For them:
//
//   - Children of a set that are not wanted are deleted the last first, and those that serve only when all
//     that are wanted are ready. With OneAtATime, none is created or changed while an earlier one is not ready.
//   - At rest, the children are as the newest version of what their owner names asks. If that is missing or unfit, Ready is False
//     for that reason. An owner does not report Ready during a rollout that follows a change.
//   - Nothing that an owner names is written, or told in a status or an event.
//
// Calls outside the cluster need Outside in the Controller: it checks what they have made.
//
// A failure prints the trace of its run, with each call and event, and the command that repeats it. With -short
// one case in ten is run. -simulation.pairs sets the number of pairs of faults.
//
// The API server knows no server-side apply, no selectors, and no objects but those of the kind, of its children,
// and those that it names, all in one namespace. It lists and watches metadata alone for wire.NewMetadataClient. Whoever
// needs to say more about a kind than its declaration does, writes a rows.OwnerRow of it and calls TestController and
// TestRandomSequences.
package reconciletest

import (
	"fmt"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"example.com/sample-controller/pkg/reconcile/plan"
	"example.com/sample-controller/pkg/reconcile/reconciletest/rows"
	"example.com/sample-controller/pkg/reconcile/reconciletest/rules"
)

// Controller is a controller of the kind F, and what Test needs to know of it. Kind, Example, Edits and Start
// are required.
type Controller[F plan.Owner] struct {
	// Kind is the declaration of the kind and of its children.
	Kind *plan.Kind
	// Example is an owner that wants a child of each kind, and gets it.
	Example F
	// Edits are changes of the spec that users make, of an owner like Example or of one that was edited. All
	// must be possible: each ends with a ready owner.
	Edits []func(owner F)
	// Start runs the controller.
	Start Start

	// Default sets what the CustomResourceDefinition defaults.
	Default func(owner F)
	// ClearOwned removes what the controller itself writes to an owner, besides the status: its
	// finalizer, for example. nil means that it writes only the status.
	ClearOwned func(owner F)
	// Cluster has, by the kind of children, what the cluster does to them. Deployments have one; for any
	// other kind nothing is done by default, so that a child that Judge never calls ready stays so.
	Cluster map[string]Cluster
	// Named has, by the name of the kind in the declaration, the objects that owners name and do not own.
	Named map[string]Named
	// NoObjects are further resources that the controller's informers list. There is no object of them.
	NoObjects []schema.GroupVersionResource
	// NoEvents is true if the controller records no event when its condition Ready changes.
	NoEvents bool
	// Every is n to run one case in n. 0 means all, and with -short one in ten. With a detector of races or cache
	// mutations, one workload in five is run, with one case in 2n of it, or one in twenty.
	Every int
	// Outside says what is wrong at rest with what calls have made outside the cluster, which they find by Outside. It is
	// nil if there are none.
	Outside func(there *sync.Map, objects []rows.Object) []string
	// AtRest has rules of the author's own: it says what is wrong with a world that does not change
	// any more.
	AtRest func(w rules.World) []string
}

// Rows returns the rows of a kind. They know nothing but its declaration.
func Rows[F plan.Owner](c Controller[F]) (*rows.OwnerRow, error) { return derive(c) }

// Test runs a controller of a kind under each fault, and fails for each rule that it breaks.
func Test[F plan.Owner](t *testing.T, c Controller[F]) {
	t.Helper()
	owner, err := derive(c)
	if err != nil {
		t.Fatal(err)
	}
	all := workloads(owner)
	for i := range c.Edits {
		all = append(all, workload{name: fmt.Sprintf("edit %d", i+1), steps: []step{
			"create a web", step(fmt.Sprintf("scale a %d", i+2)), step(fmt.Sprintf("scale a 1; scale a %d", i+2)), "scale a 1",
		}})
	}
	testWorkloads(t, owner, c.Start, all, sampling(c.Every))
}

// TestRandom runs random steps of users under random faults. rapid minimizes a sequence that fails, prints it,
// and stores it in testdata/rapid, so that the next run repeats it. -rapid.checks sets the number of sequences.
func TestRandom[F plan.Owner](t *testing.T, c Controller[F]) {
	t.Helper()
	owner, err := derive(c)
	if err != nil {
		t.Fatal(err)
	}
	TestRandomSequences(t, owner, c.Start)
}
