// SPDX-License-Identifier: Apache-2.0

// The steps of a sync.

package plan

import (
	"errors"
	"iter"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// World is what a sync knows of an owner and of its children. The caches fill it, and
// whoever takes a step corrects it.
type World struct {
	Owner Owner
	// Children are those about which was decided so far, in the order of the table.
	Children []*Child

	kind *OwnerKind
	read func(kind *ChildKind) (named Object, controlled []Object)
}

// NewWorld returns what the caches say. read returns the object of the name that the owner
// asks for, or nil, and all objects of a kind that it controls.
func (k *OwnerKind) NewWorld(owner Owner, read func(kind *ChildKind) (named Object, controlled []Object)) *World {
	return &World{Owner: owner, kind: k, read: read}
}

// Steps returns the steps of a sync: each is an action about a child. Whoever takes one
// records in the Child what came of it, because the next step depends on that.
//
// The children come in the order of the table, as long as none blocks the later ones, also
// those about which there is nothing to do. When the owner has all that it asks for, what
// it does not ask for any more is deleted, the last kind first.
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

// decide reads what the owner has of a kind, and decides about it.
func (w *World) decide(kind *ChildKind, seen Seen) *Child {
	named, controlled := w.read(kind)
	child := kind.Decide(w.Owner, named, controlled, seen)
	if named != nil && kind.OwnerKind.IsControlledBy(named, w.Owner) {
		child.Observe(named, child.Drift)
	}
	w.Children = append(w.Children, child)
	return child
}

// Err returns the errors of the steps that were taken.
func (w *World) Err() error {
	var errs []error
	for _, child := range w.Children {
		errs = append(errs, child.Failure)
	}
	return errors.Join(errs...)
}

// Status returns the owner with the status that it has after the steps.
func (w *World) Status(now metav1.Time) Owner {
	var verdicts []Verdict
	for _, child := range w.Children {
		verdicts = append(verdicts, child.Verdict())
	}
	return w.kind.WithStatus(w.Owner, verdicts, now)
}
