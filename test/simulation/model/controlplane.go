// SPDX-License-Identifier: Apache-2.0

// The control plane: the garbage collector, and the controllers of children, which only write
// the status.

package model

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/sample-controller/test/footest"
	"example.com/sample-controller/test/oracle"
)

// Duty is a kind of write that the control plane has to make.
type Duty uint8

const (
	// Collect is the deletion of a child whose owner is gone or in foreground deletion.
	Collect Duty = iota
	// Orphan removes the owner from a child.
	Orphan
	// Finish removes the finalizer of an owner without children.
	Finish
	// Advance is a write of a child's status by its own controller.
	Advance
)

// String says what is done.
func (d Duty) String() string {
	return [...]string{Collect: "deletes", Orphan: "orphans", Finish: "lets go of", Advance: "reports the status of"}[d]
}

// Duties calls yield with each object of a world about which the control plane has something to
// do. It reads the objects and does not change them.
func Duties(w oracle.World, yield func(Duty, footest.Object)) {
	for _, object := range w.Objects {
		if w.Owner.Is(object) {
			isChild := func(child footest.Object) bool { return metav1.IsControlledBy(child, object) }
			if isCollected(object) && !slices.ContainsFunc(w.Objects, isChild) {
				yield(Finish, object)
			}
			continue
		}
		owner, isOwned := w.OwnerOf(object), metav1.GetControllerOf(object) != nil
		switch isGoing := object.GetDeletionTimestamp() != nil; {
		case isOwned && !isGoing && (owner == nil || isHeld(owner, metav1.FinalizerDeleteDependents)):
			yield(Collect, object)
		case owner != nil && isHeld(owner, metav1.FinalizerOrphanDependents):
			yield(Orphan, object)
		}
		if footest.KindOf(object).Advance(copyOf(object)) {
			yield(Advance, object)
		}
	}
}

// isCollected reports whether an owner stays in deletion until the garbage collector has seen to
// its children.
func isCollected(owner footest.Object) bool {
	return isHeld(owner, metav1.FinalizerDeleteDependents) || isHeld(owner, metav1.FinalizerOrphanDependents)
}

func isHeld(object footest.Object, finalizer string) bool {
	return object.GetDeletionTimestamp() != nil && slices.Contains(object.GetFinalizers(), finalizer)
}

// Request returns the write that carries out a duty.
func (d Duty) Request(object footest.Object) Request {
	r := Request{Verb: "update", Kind: footest.KindOf(object), Name: object.GetName()}
	changed := copyOf(object)
	switch d {
	case Collect:
		r.Verb = "delete"
		r.Sent = &metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(object.GetUID()))}
		return r
	case Orphan:
		changed.SetOwnerReferences(nil)
	case Finish:
		changed.SetFinalizers(slices.DeleteFunc(changed.GetFinalizers(), func(name string) bool {
			return name == metav1.FinalizerDeleteDependents || name == metav1.FinalizerOrphanDependents
		}))
	case Advance:
		r.Kind.Advance(changed)
		r.Subresource = "status"
	}
	r.Sent = changed
	return r
}
