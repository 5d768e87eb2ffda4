// SPDX-License-Identifier: Apache-2.0

// The steps of a sync.

package plan

import (
	"errors"
	"iter"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// World is what a sync knows about an owner and its children. The caches fill it, and each
// step updates it.
type World struct {
	Owner Owner
	// Children are the children decided on so far, in the order of the table.
	Children []*Child

	kind *OwnerKind
	read func(kind *ChildKind) Found
}

// Found is what the caches have of a kind for an owner.
type Found struct {
	// Named is the object with the name that the owner wants, or nil.
	Named Object
	// Controlled are all objects that the owner controls.
	Controlled []Object
	// Holder is the other owner that controls Named, and HolderNamed the object with the name
	// that it wants. Both are nil if they are unknown.
	Holder      Owner
	HolderNamed Object
}

// NewWorld returns the World according to the caches, which read returns.
func (k *OwnerKind) NewWorld(owner Owner, read func(kind *ChildKind) Found) *World {
	return &World{Owner: owner, kind: k, read: read}
}

// Steps returns the steps of a sync, each an action on a child. The caller records the result
// of a step in the Child, because the next step depends on it.
//
// The children come in the order of the table, including those that need no write, until one
// blocks the later ones. When the owner has everything that it wants, the objects that it no
// longer wants are deleted, the last kind first.
func (w *World) Steps() iter.Seq2[*Child, Action] {
	return func(yield func(*Child, Action) bool) {
		seen, blocked, complete := Seen{}, false, true
		for _, kind := range w.kind.Children {
			child := w.decide(kind, seen)
			if !blocked && !yield(child, child.Action) {
				return
			}
			blocked, complete = blocked || child.Blocks && !child.IsAsAsked(), complete && child.isThere()
		}
		if blocked || !complete {
			return
		}
		for _, child := range slices.Backward(w.Children) {
			if len(child.Obsolete) > 0 && !yield(child, ActionDelete) {
				return
			}
		}
	}
}

// decide reads the owner's objects of a kind, and decides what to do with them.
func (w *World) decide(kind *ChildKind, seen Seen) *Child {
	found := w.read(kind)
	named := found.Named
	child := kind.Decide(w.Owner, named, found.Controlled, seen)
	if found.Holder != nil && kind.IsReleasing(found.Holder, named, found.HolderNamed) {
		child.Releasing = found.Holder
	}
	if named != nil && kind.OwnerKind.IsControlledBy(named, w.Owner) {
		child.Observe(named, child.Drift)
	}
	w.Children = append(w.Children, child)
	return child
}

// Err returns the errors of the steps taken.
func (w *World) Err() error {
	var errs []error
	for _, child := range w.Children {
		errs = append(errs, child.Failure)
	}
	return errors.Join(errs...)
}

// Status returns the owner with its status after the steps.
func (w *World) Status(now metav1.Time) Owner {
	var verdicts []Verdict
	for _, child := range w.Children {
		verdicts = append(verdicts, child.Verdict())
	}
	return w.kind.WithStatus(w.Owner, verdicts, now)
}
