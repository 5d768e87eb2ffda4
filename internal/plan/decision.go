// SPDX-License-Identifier: Apache-2.0

// Package plan decides what a Foo needs: which action for each of its children, which
// objects, which status, and what the caches have to keep for that. Its functions are
// pure: no client, no clock, no context; they change none of their arguments.
package plan

import (
	"slices"
	"strings"
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
	// ActionDelete means that objects are to be deleted that the Foo does not ask for.
	ActionDelete Action = "delete"
)

// Child is what a sync knows of the child of a kind that an owner asks for: as it was read,
// what is to be done about it, and what came of that.
type Child struct {
	*ChildKind

	Owner Owner
	// Seen has the children of the earlier rows.
	Seen Seen

	Action Action
	// Named is the object of the name that the Foo asks for, whoever controls it, or nil.
	Named Object
	// Drift says in which fields that the Foo owns Named differs from what the Foo asks
	// for. It is "" if there is nothing to compare.
	Drift string
	// Obsolete are the objects to delete that the Foo controls and does not ask for, as after
	// a change of their name. They are deleted once what it asks for exists.
	Obsolete []Object
	// InService are those that stay until what the Foo asks for is ready.
	InService []Object
	// Pending is the action that is due once the Foo is not suspended any more.
	Pending Action

	// Current is the Foo's child as it was last read or written, or nil if the Foo has none,
	// and CurrentDrift says in which fields that the Foo owns it differs from what the Foo
	// asks for.
	Current      Object
	CurrentDrift string
	// Failure is the error because of which the sync did not do all that it had decided:
	// the API server refused a write, or did not answer. It is nil if the sync did.
	Failure error
	// Refused is true if the API server has refused the write for so long that it is not
	// going to pass by itself, and Recurs if an update was stored with that drift.
	Refused, Recurs bool
	// ChangedBack says what somebody changes back after each repair, and Opponent who that
	// is, by the field manager. They are "" if nobody does.
	ChangedBack, Opponent string
	// Paced is true if the update waits until fewer Foos roll out.
	Paced bool
	// Stale is true if the sync has seen that its caches are stale, so that it knows nothing
	// of the child. The other children decide.
	Stale bool
}

// Observe records the Foo's child as it was read or written.
func (c *Child) Observe(child Object, drift string) {
	c.Current, c.CurrentDrift = child, drift
	c.Seen[c.Kind] = child
}

// Earlier returns the object in whose place one is created, or nil.
func (c *Child) Earlier() Object {
	if earlier := slices.Concat(c.InService, c.Obsolete); len(earlier) > 0 {
		return earlier[0]
	}
	return nil
}

// Decide decides what a Foo needs of a kind. named is the object of the name that it asks
// for, or nil, and controlled are all objects of the kind that it controls.
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
	case !c.OwnerKind.IsControlledBy(named, owner):
		decided.Action = ActionLeave
	case IsTerminating(named):
		decided.Action = ActionWait
	default:
		decided.Action, decided.Drift = ActionNone, c.DescribeDrift(named, owner, seen)
		if decided.Drift != "" {
			decided.Action = ActionUpdate
		}
	}
	if decided.Action != ActionWait && decided.Action != ActionLeave {
		decided.Obsolete, decided.InService = c.notAskedFor(owner, controlled, c.isInPlace(decided.Action, named))
	}
	if owner.IsSuspended() && decided.needsWrites() {
		decided.Action, decided.Pending, decided.Obsolete = ActionSuspend, decided.Action, nil
	}
	return decided
}

// needsWrites reports whether a decision is carried out by writes.
func (c *Child) needsWrites() bool {
	return c.Action == ActionCreate || c.Action == ActionUpdate || c.Action == ActionAdopt || len(c.Obsolete) > 0
}

// notAskedFor returns the objects that a Foo does not ask for any more: those to delete, and
// those that stay in service for now. They are in the order of their names, since a cache
// has none.
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

// HasTakenOver reports whether the child that a Foo asks for is there, as it asks, and ready.
func (c *ChildKind) HasTakenOver(successor Object, owner Owner, seen Seen) bool {
	return c.isInPlace(c.Decide(owner, successor, nil, seen).Action, successor)
}

// isInPlace is HasTakenOver for a child about which the action is decided.
func (c *ChildKind) isInPlace(act Action, successor Object) bool {
	return act == ActionNone && successor != nil && c.IsReady(successor)
}

// MayDelete reports whether a child that its Foo does not ask for may be deleted: nobody
// would miss its work, or its successor has taken that over.
func (c *ChildKind) MayDelete(child Object, owner Owner, taken bool) bool {
	return c.IsObsolete(child, owner) && (taken || !c.Wanted(owner) || !c.Serves(child))
}

// IsObsolete reports whether a Foo controls a child that it does not ask for. One that is
// being deleted already is not obsolete.
func (c *ChildKind) IsObsolete(child Object, owner Owner) bool {
	return c.OwnerKind.IsControlledBy(child, owner) && (child.GetName() != c.Name(owner) || !c.Wanted(owner)) && !IsTerminating(child)
}

// isThere reports whether a Foo has the child that it asks for, as far as the sync knows.
func (c *Child) isThere() bool {
	if c.Failure != nil || c.Action == ActionWait || c.Action == ActionLeave {
		return false
	}
	return !c.Wanted(c.Owner) || c.Current != nil
}

// IsAsAsked reports whether a Foo has the child that it asks for, and nothing in it
// differs.
func (c *Child) IsAsAsked() bool {
	return c.isThere() && (!c.Wanted(c.Owner) || c.CurrentDrift == "")
}
