// SPDX-License-Identifier: Apache-2.0

// The steps of a sync.

package plan

import (
	"cmp"
	"errors"
	"iter"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"example.com/sample-controller/pkg/reconcile/failure"
)

const (
	// maxRefused is how many deletions of a kind a sync tries if the API server refuses each, and
	// deletionRetry the time after which another sync tries the others.
	maxRefused    = 8
	deletionRetry = time.Second
)

// World is what a sync knows about an owner and its children. The caches fill it, and each
// outcome adds to it.
type World struct {
	Owner Owner

	kind *Kind
	read func(kind *ChildKind) Found
	view *View
	// steps has the step of each row decided on so far, without deletions, and outcomes what came
	// of it and of the deletions.
	steps    []*Step
	outcomes []Outcome
	// reached is the number of rows that no earlier one blocks.
	reached int
	// last is the outcome of the last step.
	last Outcome
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

// Find returns what there is of a kind for an owner. named returns the object with the name of the child
// that an owner wants, and holder the owner with a key; either may return nil.
func (c *ChildKind) Find(owner Owner, controlled []Object, named func(owner Owner) Object, holder func(key cache.ObjectName) Owner) Found {
	found := Found{Named: named(owner), Controlled: controlled}
	if found.Holder = c.OwnerKind.HolderOf(found.Named, holder); found.Holder != nil {
		found.HolderNamed = named(found.Holder)
	}
	return found
}

// NewWorld returns the World according to the caches, which read returns.
func (k *Kind) NewWorld(owner Owner, read func(kind *ChildKind) Found) *World {
	return &World{Owner: owner, kind: k, read: read, view: &View{}}
}

// Steps returns the steps of a sync. Call Record with the outcome of each before the next, which
// depends on it.
//
// The children come in the order of the table, including those that need no write, until one
// blocks the later ones. When the owner has everything that it wants, one of the objects of each kind
// that it no longer wants is deleted, the last kind first: the event of the deletion leads to the
// next, behind other owners, because whoever creates objects chooses their owner references and an
// owner may control any number.
func (w *World) Steps() iter.Seq[*Step] {
	return func(yield func(*Step) bool) {
		blocked, complete := false, true
		for i, kind := range w.kind.Children {
			step := w.decide(kind)
			if !blocked {
				w.reached++
				if !yield(step) {
					return
				}
			}
			blocked, complete = blocked || step.Blocks && !w.isAsAsked(i), complete && w.isThere(i)
		}
		if blocked || !complete {
			return
		}
		for _, step := range slices.Backward(w.steps) {
			if !w.deleteOne(step, yield) {
				return
			}
		}
	}
}

// deleteOne yields the deletion of one of a step's obsolete objects. While the API server refuses
// one, it goes on to the next. It returns false if the caller wants no more steps.
func (w *World) deleteOne(step *Step, yield func(*Step) bool) bool {
	refused := 0
	for _, obsolete := range step.Obsolete {
		if !yield(step.deletes(obsolete)) {
			return false
		}
		isRefused := failure.IsRefusal(w.last.Err)
		if isRefused && !w.last.Held {
			refused++
		}
		switch {
		case refused >= maxRefused:
			w.comeAgain(step, deletionRetry)
			return true
		case !isRefused && !w.last.Paced:
			return true
		}
	}
	return true
}

// Record records the outcome of a step.
func (w *World) Record(step *Step, outcome Outcome) {
	w.last = outcome
	known := &w.outcomes[w.rowOf(step)]
	if step.Action != ActionDelete {
		*known = outcome
		w.see(step, outcome)
		return
	}
	if known.Err == nil {
		known.Err, known.Stale, known.Lasts = outcome.Err, outcome.Stale, outcome.Lasts
	}
	known.Fight = cmp.Or(known.Fight, outcome.Fight)
	w.comeAgain(step, outcome.Again)
}

func (w *World) rowOf(step *Step) int {
	return slices.IndexFunc(w.steps, func(known *Step) bool { return known.ChildKind == step.ChildKind })
}

func (w *World) comeAgain(step *Step, again time.Duration) {
	known := &w.outcomes[w.rowOf(step)]
	known.Again = Sooner(known.Again, again)
}

// see shows a child to the later rows, if there are any.
func (w *World) see(step *Step, outcome Outcome) {
	if outcome.Child != nil && len(w.steps) < len(w.kind.Children) {
		w.view.Observe(step.Kind, outcome.Child)
	}
}

// decide reads the owner's objects of a kind, and decides what to do with them.
func (w *World) decide(kind *ChildKind) *Step {
	found := w.read(kind)
	step := kind.Decide(w.Owner, found.Named, found.Controlled, w.view)
	if found.Holder != nil && kind.IsReleasing(found.Holder, found.Named, found.HolderNamed) {
		step.Releasing = found.Holder
	}
	w.steps, w.outcomes = append(w.steps, step), append(w.outcomes, step.AsFound())
	w.see(step, step.AsFound())
	return step
}

// isThere reports whether the owner has the child of a row that it wants, as far as the sync knows.
func (w *World) isThere(row int) bool {
	step, outcome := w.steps[row], &w.outcomes[row]
	if outcome.Err != nil || step.Action == ActionWait || step.Action == ActionLeave {
		return false
	}
	return !step.Wanted(w.Owner) || outcome.Child != nil
}

// isAsAsked reports whether the owner has the child of a row that it wants, in its desired state.
func (w *World) isAsAsked(row int) bool {
	return w.isThere(row) && (!w.steps[row].Wanted(w.Owner) || w.outcomes[row].Drift == "")
}

// Children returns the children decided on so far, in the order of the table, with what came of their
// steps and of the deletions.
func (w *World) Children() iter.Seq2[*Step, *Outcome] {
	return func(yield func(*Step, *Outcome) bool) {
		for i, step := range w.steps {
			if !yield(step, &w.outcomes[i]) {
				return
			}
		}
	}
}

// Blocked returns the steps that were not taken because an earlier child blocks them.
func (w *World) Blocked() []*Step { return w.steps[w.reached:] }

// Err returns the errors of the steps taken.
func (w *World) Err() error {
	var errs []error
	for _, outcome := range w.outcomes {
		errs = append(errs, outcome.Err)
	}
	return errors.Join(errs...)
}

// Status returns the owner with its status after the steps.
func (w *World) Status(now metav1.Time) Owner {
	return w.kind.WithStatus(w.Owner, w.steps, w.outcomes, now)
}

// Again returns the time after which the owner has to be synced again, even without an event; 0
// means that it need not be.
func (w *World) Again() (again time.Duration) {
	for _, outcome := range w.outcomes {
		again = Sooner(again, outcome.Again)
	}
	return again
}

// Sooner returns the shorter of two times to wait, of which 0 means none.
func Sooner(a, b time.Duration) time.Duration {
	if a == 0 || b > 0 && b < a {
		return b
	}
	return a
}
