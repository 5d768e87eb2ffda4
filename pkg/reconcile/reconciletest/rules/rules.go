// SPDX-License-Identifier: Apache-2.0

// The rules: what is wrong with a controller's write of a child, and with the world at rest.

package rules

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"example.com/sample-controller/pkg/reconcile/plan"
	"example.com/sample-controller/pkg/reconcile/reconciletest/rows"
)

// WrongWrite says what is wrong with a controller's write of an object by what there is, or "". stored is
// the object before it, nil for a create, and next the object after it, nil for a delete. known returns
// what the controller knows of a child of the same kind. That an update changes only what the controller
// owns, DescribeTaken checks.
func (w World) WrongWrite(stored, next rows.Object, known func(name string) rows.Object) string {
	switch isOwner := w.Owner.Is(cmp.Or(next, stored)); {
	case isOwner && (stored == nil || next == nil):
		return "which belongs to users"
	case isOwner:
		return ""
	case w.Owner.IsReferenced(cmp.Or(next, stored)):
		return "which the " + w.Owner.Kind.Kind + " only names"
	case next == nil:
		return w.wrongDelete(stored, known)
	case stored == nil:
		if w.Owner.OwnerOf(next) == "" {
			return "without a controller reference to a " + w.Owner.Kind.Kind
		}
		return ""
	}
	owner := w.OwnerOf(next)
	switch wrong := w.wrongOwner(stored, next); {
	case wrong != "":
		return wrong
	case owner == nil:
		return "although no living owner controls it"
	case rows.IsSuspended(owner):
		return "although its owner is suspended"
	}
	return ""
}

// WrongRequest says which precondition a controller's request lacks, or "": without one it could hit
// another object than the one that the controller read.
func WrongRequest(verb string, sent any, patch []byte) string {
	var names struct {
		Metadata struct {
			UID             *string
			ResourceVersion *string
		}
	}
	switch sent := sent.(type) {
	case *metav1.DeleteOptions:
		if verb == "delete" && (sent.Preconditions == nil || sent.Preconditions.UID == nil) {
			return "without the UID of what it deletes"
		}
		return ""
	case rows.Object:
		version := sent.GetResourceVersion()
		names.Metadata.ResourceVersion = &version
	}
	if patch != nil {
		names.Metadata.ResourceVersion = nil
		if err := json.Unmarshal(patch, &names); err != nil {
			return "of which the patch can't be read: " + err.Error()
		}
	}
	if version := names.Metadata.ResourceVersion; verb == "update" && (version == nil || *version == "") {
		return "without the resourceVersion that it was made from"
	}
	return ""
}

// WrongStatus says what is wrong with the conditions that a controller writes, or "". stored is the owner
// before the write.
func (w World) WrongStatus(stored, next rows.Object) string {
	seen := sets.New[string]()
	for _, condition := range rows.ConditionsOf(next) {
		switch {
		case seen.Has(condition.Type):
			return "with two conditions " + condition.Type
		case condition.Reason == "" || condition.LastTransitionTime.IsZero():
			return fmt.Sprintf("with the condition %s without a reason or a time", condition.Type)
		case utf8.RuneCountInString(condition.Message) > 32768 || !utf8.ValidString(condition.Message):
			return fmt.Sprintf("with a message of the condition %s that no API server stores", condition.Type)
		case condition.ObservedGeneration > stored.GetGeneration():
			return fmt.Sprintf("with the condition %s of generation %d, of %d", condition.Type, condition.ObservedGeneration, stored.GetGeneration())
		}
		seen.Insert(condition.Type)
	}
	was, is := rows.ConditionOf(stored), rows.ConditionOf(next)
	if was != nil && is != nil && is.ObservedGeneration < was.ObservedGeneration {
		return fmt.Sprintf("with Ready of generation %d, after that of %d", is.ObservedGeneration, was.ObservedGeneration)
	}
	return ""
}

// wrongOwner says what is wrong with the owner that an update leaves to a child, or "".
func (w World) wrongOwner(before, after rows.Object) string {
	was, is, name := w.Owner.OwnerOf(before), w.Owner.OwnerOf(after), ""
	if ref := metav1.GetControllerOf(after); ref != nil {
		name = ref.Name
	}
	switch {
	case is == "":
		return "which leaves it without an owner"
	case metav1.GetControllerOf(before) == nil && was == "" && before.GetAnnotations()[w.Owner.AdoptBy()] != name:
		return "which adopts it, although nobody has handed it over to " + name
	case was != is && metav1.GetControllerOf(before) != nil:
		return "which takes it from " + metav1.GetControllerOf(before).Name
	case was != "" && was != is:
		return "which takes it from " + string(was)
	}
	return ""
}

// wrongDelete says what is wrong with the deletion of a child, or "": it must be its owner's, and the owner
// must ask for another one and have that.
func (w World) wrongDelete(child rows.Object, known func(name string) rows.Object) string {
	kind, owner := w.Owner.KindOf(child), w.OwnerOf(child)
	switch {
	case owner == nil:
		return "although no living owner controls it"
	case rows.IsSuspended(owner):
		return "although its owner is suspended"
	}
	names := kind.Names(owner)
	if slices.Contains(names, child.GetName()) {
		return fmt.Sprintf("although %s %s asks for it", w.Owner, owner.GetName())
	}
	if kind.IsSet() && !kind.Serves(child) {
		return "" // it may go whatever its siblings do
	}
	for _, name := range names {
		successor := known(name)
		if successor == nil || !w.Owner.Controls(owner, successor) {
			return fmt.Sprintf("although %s %s is not seen to have %s", w.Owner, owner.GetName(), name)
		}
		if lacks := cmp.Or(w.differsAsSeen(kind, successor, owner), kind.Unready(successor)); kind.Serves(child) && lacks != "" {
			return fmt.Sprintf("while it serves, although %s, as it was seen, %s", name, lacks)
		}
	}
	return ""
}

// World is all that there is, at one time.
type World struct {
	Owner *rows.OwnerRow
	// Objects are the owners and all objects of the kinds of their children.
	Objects []rows.Object
	// Refused is true if someone refuses each write of a child.
	Refused bool
	// Undeletable are the names of children whose deletion someone refuses.
	Undeletable []string
	// CollectorAway is true if no one deletes the children of deleted owners.
	CollectorAway bool
}

// WrongAtRest says what is not right in a world that does not change any more: an owner that
// is neither as its spec asks, nor says in its status why not, and a child of no one.
func (w World) WrongAtRest() []string {
	var wrong []string
	for _, object := range w.Objects {
		if w.Owner.Is(object) {
			if text := w.wrongWith(object); text != "" {
				wrong = append(wrong, fmt.Sprintf("%s %s %s", w.Owner, object.GetName(), text))
			}
		} else if !w.CollectorAway && object.GetDeletionTimestamp() == nil && w.Owner.OwnerOf(object) != "" && w.OwnerOf(object) == nil {
			wrong = append(wrong, fmt.Sprintf("%s %s belongs to a deleted owner", w.Owner.KindOf(object), object.GetName()))
		}
	}
	if w.Owner.AtRest != nil {
		wrong = append(wrong, w.Owner.AtRest(w.Objects)...)
	}
	return wrong
}

// differs says in which owned fields a child differs from what its owner asks for, or "".
func (w World) differs(kind *rows.Kind, child, foo rows.Object) string {
	if kind.DiffersIn == nil {
		return kind.Differs(child, foo)
	}
	return kind.DiffersIn(child, foo, func(kind *rows.Kind, name string) rows.Object { return kind.Find(w.Objects, name) })
}

// OwnerOf returns the living owner that controls a child, or nil.
func (w World) OwnerOf(child rows.Object) rows.Object {
	for _, object := range w.Objects {
		if w.Owner.Is(object) && w.Owner.Controls(object, child) {
			return object
		}
	}
	return nil
}

func (w World) wrongWith(foo rows.Object) string {
	obstacle, isStalled, misreported, wrong := w.Due(foo)
	if wrong != "" {
		return wrong
	}
	if asked := foo.GetAnnotations()[w.Owner.SyncRequested()]; asked != "" && rows.LastHandledSyncOf(foo) != asked {
		return fmt.Sprintf("has not answered the request %q for a sync, but %q", asked, rows.LastHandledSyncOf(foo))
	}
	if obstacle != "" {
		return wrongStatus(foo, metav1.ConditionFalse, obstacle, isStalled || isFinal(obstacle))
	}
	return cmp.Or(wrongStatus(foo, metav1.ConditionTrue, plan.ReasonAvailable, false), misreported)
}

// Due returns the reason that the status of an owner at rest must give for not being ready, or "" if it must say
// that it is, whether only someone else can end that, and what the status reports falsely of the children; or what is wrong
// with the children, for which there is no reason.
func (w World) Due(foo rows.Object) (obstacle string, isStalled bool, misreported, wrong string) {
	obstacle, isStalled, isBlocked := w.wrongReference(foo)
	for _, kind := range w.Owner.Kinds {
		if isBlocked {
			break
		}
		if !kind.Wanted(foo) {
			if left := w.unset(kind, foo); left != nil && !w.lacks(foo) && !w.Refused && !rows.IsSuspended(foo) {
				return "", false, "", fmt.Sprintf("still has %s %s, which it does not ask for", kind, left.GetName())
			}
			continue
		}
		reason, falsely, wrong := w.wrongChildren(kind, foo)
		if wrong != "" {
			return "", false, "", wrong
		}
		obstacle, misreported = cmp.Or(obstacle, reason), cmp.Or(misreported, falsely)
		isBlocked = reason != "" && kind.Blocks
	}
	return obstacle, isStalled, misreported, ""
}

// wrongChildren is like wrongChild for all children of a kind. It also returns what the status reports falsely of them.
func (w World) wrongChildren(kind *rows.Kind, foo rows.Object) (reason, misreported, wrong string) {
	for _, name := range kind.Names(foo) {
		obstacle, wrong := w.wrongChild(kind, foo, name)
		if wrong != "" {
			return "", "", wrong
		}
		reason = cmp.Or(reason, obstacle)
		if child := kind.Find(w.Objects, name); child != nil && w.Owner.Controls(foo, child) {
			misreported = cmp.Or(misreported, kind.Misreported(foo, child))
		}
		if reason != "" && kind.OneAtATime {
			break
		}
	}
	return reason, misreported, ""
}

// unset returns a child of a kind that an owner controls, and that is not being deleted, or nil.
func (w World) unset(kind *rows.Kind, foo rows.Object) rows.Object {
	for _, child := range w.Objects {
		if kind.Is(child) && w.Owner.Controls(foo, child) && child.GetDeletionTimestamp() == nil {
			return child
		}
	}
	return nil
}

// lacks reports whether an owner has not all children that it asks for. Until it has, none of the
// others is deleted.
func (w World) lacks(foo rows.Object) bool {
	return slices.ContainsFunc(w.Owner.Kinds, func(kind *rows.Kind) bool {
		return slices.ContainsFunc(kind.Names(foo), func(name string) bool {
			child := kind.Find(w.Objects, name)
			return child == nil || !w.Owner.Controls(foo, child) || child.GetDeletionTimestamp() != nil
		})
	})
}

func wrongStatus(foo rows.Object, status metav1.ConditionStatus, reason string, isStalled bool) string {
	switch ready := rows.ConditionOf(foo); {
	case ready == nil:
		return "has no condition Ready"
	case ready.Status != status || ready.Reason != reason:
		return fmt.Sprintf("has Ready=%s, %s (%s), want %s, %s", ready.Status, ready.Reason, ready.Message, status, reason)
	case ready.ObservedGeneration != foo.GetGeneration() || rows.ObservedGenerationOf(foo) != foo.GetGeneration():
		return fmt.Sprintf("has generation %d, but reports on %d", foo.GetGeneration(), rows.ObservedGenerationOf(foo))
	case IsStalled(foo) != isStalled:
		return fmt.Sprintf("has Ready=%s, %s (%s), and Stalled is %t", ready.Status, ready.Reason, ready.Message, IsStalled(foo))
	}
	return ""
}

// IsStalled reports whether an owner says that nothing will happen without someone else.
func IsStalled(foo rows.Object) bool {
	for _, condition := range rows.ConditionsOf(foo) {
		if condition.Type == plan.ConditionStalled {
			return condition.Status == metav1.ConditionTrue && condition.ObservedGeneration == foo.GetGeneration()
		}
	}
	return false
}

// isFinal reports whether a reason at rest is one that only someone else can end.
func isFinal(reason string) bool {
	return strings.HasSuffix(reason, plan.SuffixConflict) || strings.HasSuffix(reason, plan.SuffixFailed) || reason == plan.ReasonSuspended
}

// wrongChild returns the reason that an owner's status must give for a child that is not as
// asked, or what is wrong if there is no reason for it.
func (w World) wrongChild(kind *rows.Kind, foo rows.Object, name string) (reason, wrong string) {
	named, names := kind.Find(w.Objects, name), kind.Names(foo)
	has := w.countOf(kind, foo, names)
	isIts := named != nil && w.Owner.Controls(foo, named)
	isAsAsked := isIts && w.differs(kind, named, foo) == ""
	switch {
	case named != nil && !isIts && (metav1.GetControllerOf(named) != nil || named.GetAnnotations()[w.Owner.AdoptBy()] != foo.GetName()):
		return kind.Kind + plan.SuffixConflict, ""
	case named != nil && named.GetDeletionTimestamp() != nil:
		return plan.ReasonTerminating, ""
	case isAsAsked && kind.Unready(named) != "" && (has.others == has.serving || w.lacks(foo)):
		return plan.ReasonProgressing, ""
	case isAsAsked && has.others == 0 && has.undeletable > 0 && name == names[len(names)-1]:
		return kind.Kind + plan.SuffixFailed, ""
	case isAsAsked && (has.others == 0 || w.lacks(foo) || has.others == has.serving && !w.areInPlace(kind, foo, names)):
		return "", ""
	case rows.IsSuspended(foo):
		return plan.ReasonSuspended, ""
	case w.Refused:
		return kind.Kind + plan.SuffixFailed, ""
	case named == nil:
		return "", fmt.Sprintf("has no %s %s", kind, name)
	case !isIts:
		return "", fmt.Sprintf("has not adopted %s %s", kind, name)
	case has.others > 0:
		return "", fmt.Sprintf("has %d %ss", has.asked+has.others, kind)
	}
	return "", fmt.Sprintf("has a %s that %s", kind, w.differs(kind, named, foo))
}

// count counts the children of a kind that an owner controls: those that it asks for, and others, of which some
// serve. Those whose deletion someone refuses are counted apart.
type count struct{ asked, others, serving, undeletable int }

func (w World) countOf(kind *rows.Kind, foo rows.Object, names []string) (n count) {
	for _, child := range w.Objects {
		switch isIts := kind.Is(child) && w.Owner.Controls(foo, child); {
		case !isIts:
		case slices.Contains(names, child.GetName()):
			n.asked++
		case slices.Contains(w.Undeletable, child.GetName()):
			n.undeletable++
		default:
			n.others++
			if kind.Serves(child) {
				n.serving++
			}
		}
	}
	return n
}

// IsInPlace reports whether an owner has all children that it asks for, as it asks, and ready, and whether the
// objects that it names are there and fit.
func (w World) IsInPlace(foo rows.Object) bool {
	return !w.LacksReferences(foo) && !slices.ContainsFunc(w.Owner.Kinds, func(kind *rows.Kind) bool { return !w.areInPlace(kind, foo, kind.Names(foo)) })
}

// areInPlace reports whether all children of a kind that an owner asks for are as it asks, and ready.
func (w World) areInPlace(kind *rows.Kind, foo rows.Object, names []string) bool {
	return !slices.ContainsFunc(names, func(name string) bool {
		child := kind.Find(w.Objects, name)
		return child == nil || !w.Owner.Controls(foo, child) || w.differs(kind, child, foo) != "" || kind.Unready(child) != ""
	})
}
