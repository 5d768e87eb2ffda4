// SPDX-License-Identifier: Apache-2.0

// The cause of each write.

package timeline

import (
	"slices"
	"time"

	"example.com/sample-controller/test/audit"
)

// patience is the longest time between a cause and its effect. The garbage collector takes as
// long as it takes.
const patience = time.Minute

// findCauses sets the cause of each entry.
func (o owners) findCauses(entries []*Entry) {
	deleted := map[key]*Entry{}
	for i, e := range entries {
		if !e.acts {
			e.Cause = o.causeOf(e, entries[:i])
			if of := deleted[o.owner(e)]; of != nil && e.Deletes() && (e.Cause == nil || of.Received.After(e.Cause.Received)) {
				e.Cause = of
			}
		}
		if e.OK() && e.Deletes() {
			deleted[e.object] = e
		}
	}
}

// causeOf returns the last write of another actor to an entry's object, to its owner, or to
// what it owns.
func (o owners) causeOf(e *Entry, earlier []*Entry) *Entry {
	for _, before := range slices.Backward(earlier) {
		if e.Received.Sub(before.Received) > patience {
			break
		}
		if before.OK() && before.actor != e.actor && o.leadTo(before, e) {
			return before
		}
	}
	return nil
}

// leadTo reports whether a write may be the reason for a later one.
func (o owners) leadTo(before, e *Entry) bool {
	owner := o.owner(e)
	switch {
	case before.object == e.object && e.Name != "":
		return true
	case reactsToItsObjectOnly(e.actor):
		return false
	case o[before.object] == e.object:
		return true
	case before.object == owner:
		return before.Subresource != "status"
	}
	// It may replace one that was deleted.
	sibling := o[before.object] == owner && before.object.GroupResource == e.object.GroupResource
	return sibling && before.Deletes() && e.Creates()
}

// reactsToItsObjectOnly reports whether an actor only reacts to changes of the object
// that it writes.
func reactsToItsObjectOnly(actor audit.Actor) bool {
	switch actor.Name {
	case "kube-scheduler", audit.Kubelet, audit.KwokKubelet:
		return true
	}
	return false
}
