// SPDX-License-Identifier: Apache-2.0

// Package timeline draws an audit log: a lane for each actor, a mark for each write, and
// an arrow from each cause to its effect.
//
// A Log collects the writes of an audit log, without noise (noise.go). Log.Picture turns
// the writes into steps: names.go finds the names of objects that the server named,
// kin.go the owners of objects, causes.go the cause of each write, and selection.go the
// selected writes. panels.go groups each act of a person with its effects in a panel, and
// fold.go joins rows if there are too many. compose.go, lanes.go, headers.go, rows.go,
// tracks.go and footer.go lay out the picture; svg.go and html.go write it.
package timeline

import (
	"cmp"
	"slices"
	"time"

	"example.com/sample-controller/test/audit"
)

// key identifies an object.
type key struct{ group, resource, namespace, name string }

// none is used for the index of a step that does not exist.
const none = -1

// step is a write in the picture. Steps refer to one another by index. They are in the
// order in which the server received them, so a cause has a lower index than its effect.
type step struct {
	audit.Write

	actor audit.Actor
	// acts is true if the actor is a person, whose writes have no cause in the log.
	acts   bool
	object key
	// kind is the object's kind.
	kind string
	// cause is the index of the step that caused this one, or none. guessed is true if
	// only the time and the kinds of the objects suggest the cause.
	cause   int
	guessed bool
	// at is the time of the step. It is not later than the step's effects: the log
	// contains the time at which the response was complete, and others may have seen the
	// change before that.
	at time.Time
}

// stepsOf turns writes into steps, in the order in which the server received them. people
// reports whether an actor is a person.
func stepsOf(writes []audit.Write, people func(audit.Actor) bool) []step {
	steps := make([]step, 0, len(writes))
	for _, write := range writes {
		actor := audit.ActorOf(write)
		steps = append(steps, step{
			Write: write, actor: actor, acts: people(actor), object: keyOf(write), kind: kindOf(write), cause: none, at: write.Done,
		})
	}
	slices.SortStableFunc(steps, func(a, b step) int {
		return cmp.Or(a.Received.Compare(b.Received), a.Done.Compare(b.Done))
	})
	return steps
}

func keyOf(w audit.Write) key {
	k := key{w.Group, w.Resource, w.Namespace, w.Name}
	if w.Resource == "namespaces" {
		k.namespace = "" // The log has a namespace's own name here.
	}
	return k
}

// deletes reports whether a step is a request to delete its object.
func (s step) deletes() bool {
	return s.Verb == "delete" || s.Verb == "deletecollection" || s.Subresource == "eviction"
}

// creates reports whether a step is a request to create its object.
func (s step) creates() bool { return s.Verb == "create" && s.Subresource == "" }

// reports reports whether a step writes its object's status.
func (s step) reports() bool { return s.Subresource == "status" }

// tighten moves a cause to the time of its first effect if it would be later.
func tighten(steps []step) {
	for _, effect := range slices.Backward(steps) {
		if c := effect.cause; c != none && steps[c].at.After(effect.at) {
			steps[c].at = effect.at
		}
	}
}
