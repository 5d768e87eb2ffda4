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

// Package timeline draws an audit log: a lane for each actor, a mark for each write, and
// an arrow to each write from its cause.
//
// A Log takes the writes of an audit log and leaves out those that tell nothing (noise.go). Log.Picture makes steps
// of them: names.go names the objects that the log does not, kin.go says which objects belong together, causes.go
// which write a write follows from, selection.go which are asked for. panels.go gives each act of a person a panel
// with the writes that follow from it, fold.go joins rows where there are too many. compose.go and its like place
// all of that, and svg.go and html.go write it down. All but the last two are pure.
package timeline

import (
	"cmp"
	"slices"
	"time"

	"example.com/sample-controller/internal/audit"
)

// key tells an object from others.
type key struct{ group, resource, namespace, name string }

// none is the index of a step that is not there.
const none = -1

// step is a write as the picture has it. Steps refer to one another by their index, which is the order in which the
// server took them up: what caused a step has a lower one.
type step struct {
	audit.Write

	actor audit.Actor
	// acts tells that the actor is a person, who does things for reasons that no log has.
	acts   bool
	object key
	// kind is the object's, singular and capital.
	kind string
	// cause is the index of the step that this one follows from, or none; guessed tells that nothing but the time
	// and the kinds of the objects speak for it.
	cause   int
	guessed bool
	// at is when it was done, and not later than what followed from it: the log has the time at which the answer
	// was complete, and others may have seen the change before.
	at time.Time
}

// stepsOf puts writes in order. People says who is one.
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

// deletes reports whether a step was to delete its object.
func (s step) deletes() bool {
	return s.Verb == "delete" || s.Verb == "deletecollection" || s.Subresource == "eviction"
}

// creates reports whether a step was to make its object.
func (s step) creates() bool { return s.Verb == "create" && s.Subresource == "" }

// reports reports whether a step was to say how its object stands.
func (s step) reports() bool { return s.Subresource == "status" }

// tighten moves causes to the time of what followed from them at the latest.
func tighten(steps []step) {
	for _, effect := range slices.Backward(steps) {
		if c := effect.cause; c != none && steps[c].at.After(effect.at) {
			steps[c].at = effect.at
		}
	}
}
