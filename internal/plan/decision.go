// SPDX-License-Identifier: Apache-2.0

// Package plan decides what a Foo needs: which action for each of its children, which
// objects, which status, and what the caches have to keep for that. Its functions are
// pure: no client, no clock, no context; they change none of their arguments.
package plan

import (
	"slices"
	"strings"

	"k8s.io/utils/ptr"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// Action is what a sync does about a child.
type Action string

const (
	// ActionNone means that the child is as the Foo asks, or that the Foo asks for none.
	ActionNone Action = "none"
	// ActionCreate means that no object has the name.
	ActionCreate Action = "create"
	// ActionUpdate means that a field that the Foo owns has drifted.
	ActionUpdate Action = "update"
	// ActionAdopt means that the object of the name has no controller, and somebody who
	// may edit it asks the Foo to become its controller.
	ActionAdopt Action = "adopt"
	// ActionLeave means that the object of the name belongs to somebody else.
	ActionLeave Action = "leave"
	// ActionWait means that the Foo or its child is being deleted, and a write would work
	// against that.
	ActionWait Action = "wait"
	// ActionSuspend means that a write would be due, and that the Foo is suspended.
	ActionSuspend Action = "suspend"
)

// Decision is what a sync is going to do about a child.
type Decision[T Object] struct {
	Action Action
	// Named is the object of the name that the Foo asks for, whoever controls it, or nil.
	Named T
	// Drift says in which fields that the Foo owns Named differs from what the Foo asks
	// for. It is "" if there is nothing to compare.
	Drift string
	// Obsolete are the objects to delete that the Foo controls and does not ask for, as after
	// a change of their name. They are deleted once what it asks for exists.
	Obsolete []T
	// InService are those that stay until what the Foo asks for is ready.
	InService []T
	// Pending is the action that is due once the Foo is not suspended any more.
	Pending Action
}

// Earlier returns the object in whose place one is created, or nil.
func (d *Decision[T]) Earlier() (earlier T) {
	for _, child := range slices.Concat(d.InService, d.Obsolete) {
		return child
	}
	return earlier
}

// Decide decides what a Foo needs of a kind. named is the object of the name that it asks
// for, or nil, and controlled are all objects of the kind that it controls.
func (c *Child[T]) Decide(foo *samplev1alpha1.Foo, named T, controlled []T, seen Seen) Decision[T] {
	decided := Decision[T]{Named: named}
	switch {
	case IsTerminating(foo):
		decided.Action = ActionWait
	case !c.IsWanted(foo):
		decided.Action = ActionNone
	case IsNil(named):
		decided.Action = ActionCreate
	case mayAdopt(named, foo):
		decided.Action, decided.Drift = ActionAdopt, c.DescribeDrift(named, foo, seen)
	case !IsControlledBy(named, foo):
		decided.Action = ActionLeave
	case IsTerminating(named):
		decided.Action = ActionWait
	default:
		decided.Action, decided.Drift = ActionNone, c.DescribeDrift(named, foo, seen)
		if decided.Drift != "" {
			decided.Action = ActionUpdate
		}
	}
	if decided.Action != ActionWait && decided.Action != ActionLeave {
		decided.Obsolete, decided.InService = c.obsolete(foo, controlled, c.hasTakenOver(decided.Action, named))
	}
	if IsSuspended(foo) && decided.needsWrites() {
		decided.Action, decided.Pending, decided.Obsolete = ActionSuspend, decided.Action, nil
	}
	return decided
}

// needsWrites reports whether a decision is carried out by writes.
func (d *Decision[T]) needsWrites() bool {
	return d.Action == ActionCreate || d.Action == ActionUpdate || d.Action == ActionAdopt || len(d.Obsolete) > 0
}

// IsSuspended reports whether nothing may be written for a Foo but its status.
func IsSuspended(foo *samplev1alpha1.Foo) bool { return ptr.Deref(foo.Spec.Suspend, false) }

// DesiredUpdate returns the object that an update should store in place of the live one,
// or nil if the live one needs no update, so that the cache was stale.
func (c *Child[T]) DesiredUpdate(live T, foo *samplev1alpha1.Foo, seen Seen) T {
	switch c.Decide(foo, live, nil, seen).Action {
	case ActionUpdate:
		return c.withOwnedFields(live, foo, seen)
	case ActionAdopt:
		return c.adopted(live, foo, seen)
	default:
		return *new(T)
	}
}

// IsRestarting reports whether an update to what a Foo asks for interrupts what its child runs.
func (c *Child[T]) IsRestarting(child T, foo *samplev1alpha1.Foo, seen Seen) bool {
	return c.Restarts != nil && c.Restarts(child, c.withOwnedFields(child, foo, seen))
}

// obsolete returns the objects that a Foo does not ask for any more: those to delete, and
// those that stay in service for now. They are in the order of their names, since a cache
// has none.
func (c *Child[T]) obsolete(foo *samplev1alpha1.Foo, controlled []T, taken bool) (remove, inService []T) {
	for _, child := range controlled {
		switch {
		case !c.IsObsolete(child, foo):
		case c.MayDelete(child, foo, taken):
			remove = append(remove, child)
		default:
			inService = append(inService, child)
		}
	}
	byName := func(a, b T) int { return strings.Compare(a.GetName(), b.GetName()) }
	slices.SortFunc(remove, byName)
	slices.SortFunc(inService, byName)
	return remove, inService
}

// HasTakenOver reports whether the child that a Foo asks for is there, as it asks, and ready.
func (c *Child[T]) HasTakenOver(successor T, foo *samplev1alpha1.Foo, seen Seen) bool {
	return c.hasTakenOver(c.Decide(foo, successor, nil, seen).Action, successor)
}

// hasTakenOver is HasTakenOver for a child about which the action is decided.
func (c *Child[T]) hasTakenOver(act Action, successor T) bool {
	return act == ActionNone && !IsNil(successor) && c.IsReady(successor)
}

// MayDelete reports whether a child that its Foo does not ask for may be deleted: nobody
// would miss its work, or its successor has taken that over.
func (c *Child[T]) MayDelete(child T, foo *samplev1alpha1.Foo, taken bool) bool {
	switch {
	case !c.IsObsolete(child, foo):
		return false
	case !c.IsWanted(foo), c.Serves == nil, !c.Serves(child):
		return true
	}
	return taken
}

// IsObsolete reports whether a Foo controls a child that it does not ask for. One that is
// being deleted already is not obsolete.
func (c *Child[T]) IsObsolete(child T, foo *samplev1alpha1.Foo) bool {
	return IsControlledBy(child, foo) && (child.GetName() != c.Name(foo) || !c.IsWanted(foo)) && !IsTerminating(child)
}

// IsAsAsked reports whether a Foo has the child that it asks for, and nothing in it
// differs.
func (c *Child[T]) IsAsAsked(foo *samplev1alpha1.Foo, result Result[T]) bool {
	if result.Failure != nil || result.Action == ActionWait || result.Action == ActionLeave {
		return false
	}
	return !c.IsWanted(foo) || !IsNil(result.Child) && result.Drift == ""
}
