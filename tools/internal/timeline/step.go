// SPDX-License-Identifier: Apache-2.0

// Package timeline draws an audit log: a lane for each actor, a mark for each write, and
// an arrow from each cause to its effect.
//
// A Log collects the writes of an audit log, without noise. Log.Picture turns the writes
// into steps, finds the names of objects that the server named, the owners of objects and
// the cause of each write, and selects writes. Each act of a person with its effects is a
// panel (lanes.go). compose.go and rows.go lay out the picture; svg.go and text.go write
// it.
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

// maxRows is the number of rows of a panel above which similar writes share a row.
const maxRows = 40

// row is a line of a panel: one write, or several similar ones that are close in time.
type row struct {
	// steps are the indices of steps, ordered by time.
	steps []int
	// cause is the row that contains the cause, or none.
	cause   int
	guessed bool
}

// sort holds the attributes that all writes of a row share.
type sort struct {
	window                      time.Duration
	actor                       audit.Actor
	verb, resource, subresource string
	code                        int
}

// rowsOf assigns each step of a panel to a row. If there are too many rows, it joins
// similar steps: first adjacent ones, then those within a time window that grows until
// there are few enough rows or no more can be joined.
func rowsOf(steps []step, p panel) []row {
	rows := make([]row, 0, len(p.steps))
	for _, i := range p.steps {
		rows = append(rows, row{steps: []int{i}})
	}
	if len(rows) > maxRows {
		rows = neighbours(steps, p)
	}
	span := steps[p.steps[len(p.steps)-1]].at.Sub(p.start)
	for window := time.Millisecond; len(rows) > maxRows && window <= 2*span; window *= 2 {
		rows = windows(steps, p, window)
	}
	link(steps, rows)
	return rows
}

func sortOf(s step) sort {
	return sort{actor: s.actor, verb: s.Verb, resource: s.Resource, subresource: s.Subresource, code: s.Code}
}

// neighbours joins similar steps that are adjacent.
func neighbours(steps []step, p panel) []row {
	var rows []row
	for n, i := range p.steps {
		if n > 0 && sortOf(steps[i]) == sortOf(steps[p.steps[n-1]]) {
			last := &rows[len(rows)-1]
			last.steps = append(last.steps, i)
			continue
		}
		rows = append(rows, row{steps: []int{i}})
	}
	return rows
}

// windows joins similar steps that are in the same time window.
func windows(steps []step, p panel, window time.Duration) []row {
	var rows []row
	at := map[sort]int{}
	for _, i := range p.steps {
		like := sortOf(steps[i])
		like.window = steps[i].at.Sub(p.start) / window
		if n, ok := at[like]; ok {
			rows[n].steps = append(rows[n].steps, i)
			continue
		}
		at[like] = len(rows)
		rows = append(rows, row{steps: []int{i}})
	}
	return rows
}

// link sets the cause of each row: the row that contains the cause of its first step.
func link(steps []step, rows []row) {
	where := map[int]int{}
	for n, r := range rows {
		for _, i := range r.steps {
			where[i] = n
		}
	}
	for n := range rows {
		first := steps[rows[n].steps[0]]
		cause, ok := where[first.cause]
		if !ok || cause >= n {
			cause = none
		}
		rows[n].cause, rows[n].guessed = cause, first.guessed
	}
}
