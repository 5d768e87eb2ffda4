// SPDX-License-Identifier: Apache-2.0

// The finalizer of a kind keeps an owner until everything is gone that Kubernetes does not delete with
// it. It is written before the first of that is made, and removed after the last of it is gone. An owner that
// never got it has nothing of the kind.

package plan

import (
	"slices"

	"k8s.io/client-go/tools/cache"
)

// PartFinalizer is the part of a sync that writes the finalizer.
const PartFinalizer = "finalizer"

// needsFinalizer reports whether the row makes what has to be removed before its owner is gone.
func (c *ChildKind) needsFinalizer() bool {
	return c.isElsewhere || c.call != nil && c.call.Undo != nil
}

// needsFinalizer reports whether any row of the kind does.
func (k *Kind) needsFinalizer() bool {
	return slices.ContainsFunc(k.Calls, (*ChildKind).needsFinalizer) || slices.ContainsFunc(k.Children, (*ChildKind).needsFinalizer)
}

// hasFinalizer reports whether an owner has the finalizer of its kind.
func (k *Kind) hasFinalizer(owner Owner) bool {
	return k.Finalizer != "" && slices.Contains(owner.GetFinalizers(), k.Finalizer)
}

// IsOver reports whether the sync has written the finalizer. The owner has changed, so the sync ends without a
// status, and the event of the write begins the next.
func (w *World) IsOver() bool { return w.isOver }

// hold yields the step that adds the finalizer before anything needs it, or that removes it if no row of the
// kind needs it any more: nobody would do it later, and each owner would hang in its deletion. It returns
// false if the sync is over.
func (w *World) hold(yield func(*Step) bool) bool {
	needs, has := w.kind.needsFinalizer(), w.kind.hasFinalizer(w.Owner)
	switch {
	case IsTerminating(w.Owner) || w.Owner.IsSuspended() || needs == has:
		return true
	case needs:
		return w.setFinalizer(ActionHold, yield)
	}
	return w.setFinalizer(ActionRelease, yield)
}

// isHeldBack reports whether a row has to wait for the finalizer, which could not be written.
func (w *World) isHeldBack(kind *ChildKind) bool {
	return kind.needsFinalizer() && !w.kind.hasFinalizer(w.Owner) && !IsTerminating(w.Owner) && !w.Owner.IsSuspended()
}

// release yields the step that lets an owner in deletion go, once everything is gone that needs the finalizer.
func (w *World) release(yield func(*Step) bool) {
	if !w.kind.hasFinalizer(w.Owner) || w.hasElsewhere {
		return
	}
	for i, step := range w.steps {
		if step.needsFinalizer() && !step.isGone(&w.outcomes[i]) {
			return
		}
	}
	w.setFinalizer(ActionRelease, yield)
}

// isGone reports whether nothing is left of what a call has made. Children elsewhere are counted: see hasElsewhere.
func (s *Step) isGone(outcome *Outcome) bool {
	return !s.IsCall() || outcome.Answer != nil && outcome.Answer.Undone
}

// setFinalizer yields a step that writes the finalizer. It returns false if the sync is over; if the step failed,
// the rows that need no finalizer go on.
func (w *World) setFinalizer(action Action, yield func(*Step) bool) bool {
	step := &Step{
		ChildKind: &ChildKind{Row: Row[Owner, Object]{Kind: "Finalizer"}, OwnerKind: w.kind, isFinalizer: true},
		Owner:     w.Owner, View: w.view, Part: PartFinalizer, Action: action, Unwanted: true,
		Key: cache.ObjectName{Namespace: w.Owner.GetNamespace(), Name: w.kind.Finalizer},
	}
	w.steps, w.outcomes = append(w.steps, step), append(w.outcomes, Outcome{})
	if !yield(step) {
		return false
	}
	w.isOver = w.last.Err == nil
	return !w.isOver
}
