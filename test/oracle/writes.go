// SPDX-License-Identifier: Apache-2.0

// What is wrong with a controller's write of a child.

package oracle

import (
	"cmp"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/sample-controller/test/footest"
)

// WrongWrite says what is wrong with a controller's write of an object by what there is, or "". stored is
// the object before it, nil for a create, and next the object after it, nil for a delete. known returns
// what the controller knows of a child of the same kind. That an update changes only what the controller
// owns, DescribeTaken checks.
func (w World) WrongWrite(stored, next footest.Object, known func(name string) footest.Object) string {
	switch isOwner := w.Owner.Is(cmp.Or(next, stored)); {
	case isOwner && (stored == nil || next == nil):
		return "which belongs to users"
	case isOwner:
		return ""
	case next == nil:
		return w.wrongDelete(stored, known)
	case stored == nil:
		if ref := metav1.GetControllerOf(next); ref == nil || !w.Owner.IsOwned(ref) {
			return "without a controller reference to a " + w.Owner.Kind.Kind
		}
		return ""
	}
	owner := w.OwnerOf(next)
	switch wrong := wrongOwner(stored, next); {
	case wrong != "":
		return wrong
	case owner == nil:
		return "although no living owner controls it"
	case footest.IsSuspended(owner):
		return "although its owner is suspended"
	}
	return ""
}

// wrongOwner says what is wrong with the owner that an update leaves to a child, or "".
func wrongOwner(before, after footest.Object) string {
	was, is := metav1.GetControllerOf(before), metav1.GetControllerOf(after)
	switch {
	case is == nil:
		return "which leaves it without an owner"
	case was == nil && before.GetAnnotations()["samplecontroller.k8s.io/adopt-by"] != is.Name:
		return "which adopts it, although nobody has handed it over to " + is.Name
	case was != nil && was.UID != is.UID:
		return "which takes it from " + was.Name
	}
	return ""
}

// wrongDelete says what is wrong with the deletion of a child, or "": it must be its owner's, and the owner
// must ask for another one and have that.
func (w World) wrongDelete(child footest.Object, known func(name string) footest.Object) string {
	kind, owner := footest.KindOf(child), w.OwnerOf(child)
	switch {
	case owner == nil:
		return "although no living owner controls it"
	case footest.IsSuspended(owner):
		return "although its owner is suspended"
	case !kind.Wanted(owner):
		return ""
	}
	name := kind.Name(owner)
	if name == child.GetName() {
		return fmt.Sprintf("although %s %s asks for it", w.Owner, owner.GetName())
	}
	successor := known(name)
	if successor == nil || !metav1.IsControlledBy(successor, owner) {
		return fmt.Sprintf("although %s %s is not seen to have %s", w.Owner, owner.GetName(), name)
	}
	if lacks := cmp.Or(kind.Differs(successor, owner), kind.Unready(successor)); kind.Serves(child) && lacks != "" {
		return fmt.Sprintf("while it serves, although %s, as it was seen, %s", name, lacks)
	}
	return ""
}
