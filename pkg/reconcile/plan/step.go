// SPDX-License-Identifier: Apache-2.0

// Package plan decides what an owner needs: the steps of a sync, the objects to write, the status,
// and the fields that the caches have to keep for these decisions. Its functions are pure: they use
// no client, clock or context.
package plan

import (
	"slices"
	"time"

	"k8s.io/client-go/tools/cache"
)

// Action is what a sync does with a child.
type Action string

const (
	// ActionNone means that the child is in its desired state, or that the owner wants none.
	ActionNone Action = "none"
	// ActionCreate means that no object has the child's name.
	ActionCreate Action = "create"
	// ActionUpdate means that a field that the owner owns has drifted.
	ActionUpdate Action = "update"
	// ActionAdopt means that the object with the name has no controller, and someone who
	// may edit it has consented to its adoption by the owner.
	ActionAdopt Action = "adopt"
	// ActionLeave means that the object with the name does not belong to the owner.
	ActionLeave Action = "leave"
	// ActionWait means that the owner or the object with the name is being deleted, and a write
	// would interfere.
	ActionWait Action = "wait"
	// ActionSuspend means that a write is due, but the owner is suspended.
	ActionSuspend Action = "suspend"
	// ActionRead means that an object that the owner names has to be read live.
	ActionRead Action = "read"
	// ActionCall means that the call of a row has to be made if it is due.
	ActionCall Action = "call"
	// ActionUndo means that what a call made has to be removed, because the owner is being deleted.
	ActionUndo Action = "undo"
	// ActionHold means that the owner needs the kind's finalizer.
	ActionHold Action = "hold"
	// ActionRelease means that nothing needs the kind's finalizer any more.
	ActionRelease Action = "release"
	// ActionDelete means that the owner controls an object that it does not want.
	ActionDelete Action = "delete"
)

// Step is one thing that a sync does, as decided from the caches: with the child of a kind that
// an owner wants, or with an object that it no longer wants. It does not change: what comes of it is
// its Outcome.
type Step struct {
	*ChildKind

	Owner Owner
	// View has the children of the earlier rows.
	View *View

	// Part identifies the step among those of an owner: the kind, followed by a name for a child of a
	// set and for a deletion.
	Part   string
	Action Action
	// Key is the key of the object. Unwanted is true if the owner does not want it.
	Key      cache.ObjectName
	Unwanted bool
	// Duplicate is a name that the owner wants twice, or "".
	Duplicate string
	// Found is the object with that key in the cache, whoever controls it, or nil.
	Found Object
	// Known is what an earlier read of a reference has learned.
	Known Outcome
	// Drift describes the owned fields in which Found differs from its desired state. It is ""
	// if there is nothing to compare.
	Drift string
	// Pending is the action that is due once the owner is no longer suspended.
	Pending Action
	// Obsolete are the objects to delete: the owner controls them but does not want them, as
	// after a change of their name. They are deleted once the wanted object exists.
	Obsolete []Object
	// InService are unwanted objects that stay until the wanted object is ready.
	InService []Object
	// Releasing is the owner that controls Found and is about to give it up by itself, or nil.
	Releasing Owner
}

// Outcome is what came of a step.
type Outcome struct {
	// Child is the owner's child as last read or written, or nil if it has none. Drift describes
	// the owned fields in which it differs from its desired state.
	Child Object
	Drift string
	// Err is the error that kept the sync from doing all that it had decided: the API server
	// refused a write, or did not respond. Held is true if the step was not tried because it is in
	// back-off, with the error of the last attempt.
	Err  error
	Held bool
	// Stale is true if the sync found its caches stale, so that it knows nothing about the
	// child. The other children then determine the status.
	Stale bool
	// Lasts is true if the problem has lasted for so long that it will not pass by itself: the
	// API server refuses the write, or the garbage collector is late.
	Lasts bool
	// Recurs is true if an update was stored with Drift, and would be again.
	Recurs bool
	// Paced is true if the write waits: until fewer owners are rolling out, or because of a fight.
	Paced bool
	// Fight describes another client that undoes each write, or is nil if there is none.
	Fight *Fight
	// Seen is what is known of a reference, or nil.
	Seen *Seen
	// Answer is what is known of a call, or nil.
	Answer *Answer
	// Again is the time after which the owner has to be synced again; 0 means that only an event
	// can change anything.
	Again time.Duration
}

// AsFound returns the outcome of a step that writes nothing: the child is as the cache has it.
func (s *Step) AsFound() Outcome {
	if s.IsReference() {
		return s.Known
	}
	if s.Action == ActionDelete || s.Found == nil || !s.OwnerKind.IsControlledBy(s.Found, s.Owner) {
		return Outcome{}
	}
	return Outcome{Child: s.Found, Drift: s.Drift}
}

// Earlier returns the object that a new one replaces, or nil.
func (s *Step) Earlier() Object {
	if earlier := slices.Concat(s.InService, s.Obsolete); len(earlier) > 0 {
		return earlier[0]
	}
	return nil
}

// NewChild returns the object that creates the child of a step, as the successor of an earlier one if that is
// not nil.
func (s *Step) NewChild(earlier Object) Object {
	return s.DesiredNamed(s.Owner, s.Key.Name, earlier, s.View)
}

// Decide decides what an owner needs of a kind of which it has at most one. named is the object with the
// name that the owner wants, or nil, and controlled are all objects of the kind that the owner controls.
func (c *ChildKind) Decide(owner Owner, named Object, controlled []Object, view *View) *Step {
	step := c.decide(owner, c.Name(owner), named, view)
	isWanted := func(child Object) bool { return c.Wants(owner, cache.MetaObjectToName(child)) }
	step.Obsolete, step.InService = c.notAskedFor(owner, controlled, isWanted, step.Unwanted || c.isInPlace(step.Action, named))
	if step.Action == ActionWait || step.Action == ActionLeave {
		step.Obsolete = nil
	}
	step.suspend()
	return step
}

// decide decides what to do with the object that has the name of a child.
func (c *ChildKind) decide(owner Owner, name string, named Object, view *View) *Step {
	step := &Step{ChildKind: c, Owner: owner, View: view, Part: c.Kind, Found: named, Unwanted: c.wantsNone(owner)}
	step.Key = c.KeyFor(owner, name)
	switch {
	case IsTerminating(owner) && !c.isElsewhere:
		step.Action = ActionWait
	case step.Unwanted:
		step.Action = ActionNone
	case named == nil:
		step.Action = ActionCreate
	case !c.isItself && c.OwnerKind.mayAdopt(named, owner):
		step.Action, step.Drift = ActionAdopt, c.DescribeDrift(named, owner, view)
	case IsTerminating(named):
		step.Action = ActionWait
	case !c.OwnerKind.IsControlledBy(named, owner):
		step.Action = ActionLeave
	default:
		step.Action, step.Drift = ActionNone, c.DescribeDrift(named, owner, view)
		if step.Drift != "" {
			step.Action = ActionUpdate
		}
	}
	return step
}

// suspend replaces the writes of a step if its owner is suspended.
func (s *Step) suspend() {
	if s.Owner.IsSuspended() && !IsTerminating(s.Owner) && s.needsWrites() {
		s.Action, s.Pending, s.Obsolete = ActionSuspend, s.Action, nil
	}
}

// deletes returns the step that deletes an object that the owner does not want. Each has a back-off
// of its own, so that one that the API server refuses to delete does not hold up the others.
func (s *Step) deletes(obsolete Object) *Step {
	return &Step{
		ChildKind: s.ChildKind, Owner: s.Owner, View: s.View, Part: s.part(obsolete.GetName()),
		Action: ActionDelete, Key: cache.MetaObjectToName(obsolete), Found: obsolete,
	}
}

// needsWrites reports whether carrying out the decision takes writes.
func (s *Step) needsWrites() bool {
	return s.Action == ActionCreate || s.Action == ActionUpdate || s.Action == ActionAdopt || len(s.Obsolete) > 0
}

// notAskedFor returns the objects that an owner no longer wants: those to delete, and those that
// stay in service for now. It sorts them by name, because a cache has no order. taken is true if what it
// wants has taken over, or if it wants none.
func (c *ChildKind) notAskedFor(owner Owner, controlled []Object, isWanted func(child Object) bool, taken bool) (remove, inService []Object) {
	if IsTerminating(owner) && !c.isElsewhere {
		return nil, nil // the garbage collector deletes them
	}
	for _, child := range controlled {
		switch {
		case isWanted(child) || !c.isLeft(child, owner):
		case c.isOutOfService(child, taken):
			remove = append(remove, child)
		default:
			inService = append(inService, child)
		}
	}
	slices.SortFunc(remove, byNumber)
	slices.SortFunc(inService, byNumber)
	return remove, inService
}

// HasTakenOver reports whether the child that an owner wants exists, is in its desired state, and
// is ready.
func (c *ChildKind) HasTakenOver(successor Object, owner Owner, view *View) bool {
	return c.isInPlace(c.decide(owner, successor.GetName(), successor, view).Action, successor)
}

// isInPlace is like HasTakenOver, for an action that is already decided.
func (c *ChildKind) isInPlace(act Action, successor Object) bool {
	return act == ActionNone && successor != nil && c.IsReady(successor)
}

// MayDelete reports whether a child that its owner does not want may be deleted: it serves
// no one, or what the owner wants has taken over. taken is also true if it wants none.
func (c *ChildKind) MayDelete(child Object, owner Owner, taken bool) bool {
	return c.IsObsolete(child, owner) && c.isOutOfService(child, taken)
}

func (c *ChildKind) isOutOfService(child Object, taken bool) bool { return taken || !c.Serves(child) }

// IsObsolete reports whether an owner controls a child that it does not want. A child that is
// already being deleted is not obsolete.
func (c *ChildKind) IsObsolete(child Object, owner Owner) bool {
	return c.isLeft(child, owner) && !c.Wants(owner, cache.MetaObjectToName(child))
}

// isLeft reports whether an owner controls a child that is not being deleted.
func (c *ChildKind) isLeft(child Object, owner Owner) bool {
	return c.OwnerKind.IsControlledBy(child, owner) && !IsTerminating(child)
}
