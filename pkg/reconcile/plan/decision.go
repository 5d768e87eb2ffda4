// SPDX-License-Identifier: Apache-2.0

// Package plan decides what a Foo needs: the action for each of its children, the objects
// to write, the status, and the fields that the caches have to keep for these decisions. Its
// functions are pure, except NewBuckets: they use no client, clock or context.
package plan

import (
	"slices"
	"strings"
)

// Action is what a sync does with a child.
type Action string

const (
	// ActionNone means that the child is in its desired state, or that the Foo wants none.
	ActionNone Action = "none"
	// ActionCreate means that no object has the child's name.
	ActionCreate Action = "create"
	// ActionUpdate means that a field that the Foo owns has drifted.
	ActionUpdate Action = "update"
	// ActionAdopt means that the object with the name has no controller, and someone who
	// may edit it has consented to its adoption by the Foo.
	ActionAdopt Action = "adopt"
	// ActionLeave means that the object with the name does not belong to the Foo.
	ActionLeave Action = "leave"
	// ActionWait means that the Foo or the object with the name is being deleted, and a write
	// would interfere.
	ActionWait Action = "wait"
	// ActionSuspend means that a write is due, but the Foo is suspended.
	ActionSuspend Action = "suspend"
	// ActionDelete means that the Foo controls objects that it does not want.
	ActionDelete Action = "delete"
)

// Child is what a sync knows about the child of one kind that an owner wants: the child as
// read, the action decided on, and the result.
type Child struct {
	*ChildKind

	Owner Owner
	// Seen has the children of the earlier rows.
	Seen Seen

	Action Action
	// Named is the object with the name that the Foo wants, whoever controls it, or nil.
	Named Object
	// Drift describes the owned fields in which Named differs from its desired state. It is ""
	// if there is nothing to compare.
	Drift string
	// Obsolete are the objects to delete: the Foo controls them but does not want them, as
	// after a change of their name. They are deleted once the wanted object exists.
	Obsolete []Object
	// InService are unwanted objects that stay until the wanted object is ready.
	InService []Object
	// Pending is the action that is due once the Foo is no longer suspended.
	Pending Action

	// Current is the Foo's child as last read or written, or nil if the Foo has none.
	// CurrentDrift describes the owned fields in which it differs from its desired state.
	Current      Object
	CurrentDrift string
	// Failure is the error that kept the sync from doing all that it had decided: the API
	// server refused a write, or did not respond. It is nil if the sync succeeded.
	Failure error
	// Lasts is true if the problem has lasted for so long that it will not pass by itself: the
	// API server refuses the write, or the garbage collector is late.
	// Recurs is true if an update was stored with that drift.
	Lasts, Recurs bool
	// Releasing is the owner that controls Named and is about to give it up by itself, or nil.
	Releasing Owner
	// Fight describes another client that undoes each write, or is nil if there is none.
	Fight *Fight
	// Paced is true if the update waits until fewer Foos are rolling out.
	Paced bool
	// Stale is true if the sync found its caches stale, so that it knows nothing about the
	// child. The other children then determine the status.
	Stale bool
}

// Observe records the Foo's child as read or written.
func (c *Child) Observe(child Object, drift string) {
	c.Current, c.CurrentDrift = child, drift
	c.Seen[c.Kind] = child
}

// Earlier returns the object that a new one replaces, or nil.
func (c *Child) Earlier() Object {
	if earlier := slices.Concat(c.InService, c.Obsolete); len(earlier) > 0 {
		return earlier[0]
	}
	return nil
}

// Decide decides what a Foo needs of a kind. named is the object with the name that the Foo
// wants, or nil, and controlled are all objects of the kind that the Foo controls.
func (c *ChildKind) Decide(owner Owner, named Object, controlled []Object, seen Seen) *Child {
	decided := &Child{ChildKind: c, Owner: owner, Seen: seen, Named: named}
	switch {
	case IsTerminating(owner):
		decided.Action = ActionWait
	case !c.Wanted(owner):
		decided.Action = ActionNone
	case named == nil:
		decided.Action = ActionCreate
	case mayAdopt(named, owner):
		decided.Action, decided.Drift = ActionAdopt, c.DescribeDrift(named, owner, seen)
	case IsTerminating(named):
		decided.Action = ActionWait
	case !c.OwnerKind.IsControlledBy(named, owner):
		decided.Action = ActionLeave
	default:
		decided.Action, decided.Drift = ActionNone, c.DescribeDrift(named, owner, seen)
		if decided.Drift != "" {
			decided.Action = ActionUpdate
		}
	}
	if !IsTerminating(owner) {
		decided.Obsolete, decided.InService = c.notAskedFor(owner, controlled, c.isInPlace(decided.Action, named))
	}
	if decided.Action == ActionWait || decided.Action == ActionLeave {
		decided.Obsolete = nil
	}
	if owner.IsSuspended() && decided.needsWrites() {
		decided.Action, decided.Pending, decided.Obsolete = ActionSuspend, decided.Action, nil
	}
	return decided
}

// needsWrites reports whether carrying out the decision takes writes.
func (c *Child) needsWrites() bool {
	return c.Action == ActionCreate || c.Action == ActionUpdate || c.Action == ActionAdopt || len(c.Obsolete) > 0
}

// notAskedFor returns the objects that a Foo no longer wants: those to delete, and those that
// stay in service for now. It sorts them by name, because a cache has no order.
func (c *ChildKind) notAskedFor(owner Owner, controlled []Object, taken bool) (remove, inService []Object) {
	for _, child := range controlled {
		switch {
		case !c.IsObsolete(child, owner):
		case c.MayDelete(child, owner, taken):
			remove = append(remove, child)
		default:
			inService = append(inService, child)
		}
	}
	byName := func(a, b Object) int { return strings.Compare(a.GetName(), b.GetName()) }
	slices.SortFunc(remove, byName)
	slices.SortFunc(inService, byName)
	return remove, inService
}

// HasTakenOver reports whether the child that a Foo wants exists, is in its desired state, and
// is ready.
func (c *ChildKind) HasTakenOver(successor Object, owner Owner, seen Seen) bool {
	return c.isInPlace(c.Decide(owner, successor, nil, seen).Action, successor)
}

// isInPlace is like HasTakenOver, for an action that is already decided.
func (c *ChildKind) isInPlace(act Action, successor Object) bool {
	return act == ActionNone && successor != nil && c.IsReady(successor)
}

// MayDelete reports whether a child that its Foo does not want may be deleted: it serves
// no one, or its successor has taken over.
func (c *ChildKind) MayDelete(child Object, owner Owner, taken bool) bool {
	return c.IsObsolete(child, owner) && (taken || !c.Wanted(owner) || !c.Serves(child))
}

// IsObsolete reports whether a Foo controls a child that it does not want. A child that is
// already being deleted is not obsolete.
func (c *ChildKind) IsObsolete(child Object, owner Owner) bool {
	return c.OwnerKind.IsControlledBy(child, owner) && (child.GetName() != c.Name(owner) || !c.Wanted(owner)) && !IsTerminating(child)
}

// isThere reports whether a Foo has the child that it wants, as far as the sync knows.
func (c *Child) isThere() bool {
	if c.Failure != nil || c.Action == ActionWait || c.Action == ActionLeave {
		return false
	}
	return !c.Wanted(c.Owner) || c.Current != nil
}

// IsAsAsked reports whether a Foo has the child that it wants, in its desired state.
func (c *Child) IsAsAsked() bool {
	return c.isThere() && (!c.Wanted(c.Owner) || c.CurrentDrift == "")
}
