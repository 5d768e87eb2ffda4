// SPDX-License-Identifier: Apache-2.0

// What is wrong with a controller's write of a child.

package oracle

import (
	"cmp"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/sample-controller/test/footest"
)

// WrongOwner says what is wrong with the owner that an update leaves to a child, or "".
func WrongOwner(before, after footest.Object) string {
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

// WrongDelete says what is wrong with the deletion of a child, or "": it must be its owner's, and the owner
// must ask for another one and have that. known returns what the controller knows of a child of
// the same kind.
func (w World) WrongDelete(child footest.Object, known func(name string) footest.Object) string {
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
