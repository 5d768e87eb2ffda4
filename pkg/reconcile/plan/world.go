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
	// steps has the steps of each row decided on so far, without deletions, and outcomes what came of
	// them and, at the last step of each row, of the deletions.
	steps    []*Step
	outcomes []Outcome
	// blocked has the steps that an earlier child holds back. isBlocked is true while one holds back the later
	// rows, and lacks if the owner lacks a child that it wants.
	blocked          []*Step
	isBlocked, lacks bool
	// last is the outcome of the last step, and isOver is true if it wrote the finalizer.
	last   Outcome
	isOver bool
	// hasElsewhere is true if the caches have children with marks.
	hasElsewhere bool
	// due is when the readiness of a part says to come again, or zero.
	due time.Duration
}

// Found is what the caches have of a kind for an owner.
type Found struct {
	// Named returns the object with a key, or nil.
	Named func(key cache.ObjectName) Object
	// Controlled are all objects that the owner controls.
	Controlled []Object
	// Owner returns the owner with a key, or nil if it is unknown.
	Owner func(key cache.ObjectName) Owner
	// Known returns what an earlier read of a reference has learned, if that still counts. nil means that
	// Named returns whole objects.
	Known func(key cache.ObjectName) (Outcome, bool)
}

// NewWorld returns the World according to the caches, which read returns.
func (k *Kind) NewWorld(owner Owner, read func(kind *ChildKind) Found) *World {
	return &World{Owner: owner, kind: k, read: read, view: k.NewView()}
}

// Steps returns the steps of a sync. Call Record with the outcome of each before the next, which
// depends on it.
//
// A finalizer that is due comes first, and then nothing else. References and calls come next.
// The children come in the order of the table, including those that need no write, until one
// blocks the later ones. When the owner has everything that it wants, one of the objects of each kind
// that it no longer wants is deleted, the last kind first: the event of the deletion leads to the
// next, behind other owners, because whoever creates objects chooses their owner references and an
// owner may control any number.
func (w *World) Steps() iter.Seq[*Step] {
	return func(yield func(*Step) bool) {
		_ = w.hold(yield) && w.takeReferences(yield) && w.takeCalls(yield) && w.takeChildren(yield) && w.takeDeletions(yield)
	}
}

// The following yield the steps of their part of the table. They return false if the caller wants no more steps.

func (w *World) takeReferences(yield func(*Step) bool) bool {
	for _, kind := range w.kind.References {
		first := len(w.steps)
		w.decideReference(kind)
		if !w.takeRow(first, false, yield) {
			return false
		}
		w.isBlocked = !w.seeReferences(kind, first) && kind.Blocks || w.isBlocked
	}
	return true
}

func (w *World) takeCalls(yield func(*Step) bool) bool {
	for _, kind := range w.kind.Calls {
		first := len(w.steps)
		w.decideCall(kind)
		if !w.takeRow(first, w.isHeldBack(kind), yield) {
			return false
		}
		w.isBlocked = kind.Blocks && !w.isAnswered() || w.isBlocked
	}
	return true
}

func (w *World) takeChildren(yield func(*Step) bool) bool {
	for _, kind := range w.kind.Children {
		first := len(w.steps)
		w.decide(kind)
		if !w.takeRow(first, w.isBlocked || w.isHeldBack(kind), yield) {
			return false
		}
		for i := first; i < len(w.steps); i++ {
			w.isBlocked, w.lacks = w.isBlocked || kind.Blocks && !w.isAsAsked(i), w.lacks || !w.isThere(i)
		}
	}
	return true
}

func (w *World) takeDeletions(yield func(*Step) bool) bool {
	if !IsTerminating(w.Owner) && (w.isBlocked || w.lacks) {
		return true
	}
	for _, step := range slices.Backward(w.steps) {
		if !w.deleteOne(step, yield) {
			return false
		}
	}
	if IsTerminating(w.Owner) {
		w.release(yield)
	}
	return true
}

// takeRow yields the steps of the last row, of which first is the first, until one holds back the others.
func (w *World) takeRow(first int, blocked bool, yield func(*Step) bool) bool {
	for i := first; i < len(w.steps); i++ {
		step := w.steps[i]
		if blocked {
			w.blocked = append(w.blocked, step)
		} else if !yield(step) {
			return false
		}
		blocked = blocked || step.OneAtATime && !w.isInPlace(i)
	}
	return true
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
	known := w.outcomeOf(step)
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

// outcomeOf returns what is known of a step, or of the last of its row for a deletion.
func (w *World) outcomeOf(step *Step) *Outcome {
	for i, known := range slices.Backward(w.steps) {
		if known == step || step.Action == ActionDelete && known.ChildKind == step.ChildKind {
			return &w.outcomes[i]
		}
	}
	panic("plan: a step of another World")
}

func (w *World) comeAgain(step *Step, again time.Duration) {
	known := w.outcomeOf(step)
	known.Again = Sooner(known.Again, again)
}

// see shows a child to the later rows, if there are any.
func (w *World) see(step *Step, outcome Outcome) {
	if outcome.Child != nil && !step.IsReference() && step.ChildKind != w.kind.Children[len(w.kind.Children)-1] {
		w.view.Observe(step.Kind, outcome.Child)
	}
}

// decide reads the owner's objects of a kind, and decides what to do with them.
func (w *World) decide(kind *ChildKind) {
	found := w.read(kind)
	w.hasElsewhere = w.hasElsewhere || kind.isElsewhere && len(found.Controlled) > 0
	named := func(name string) Object { return found.Named(kind.KeyFor(w.Owner, name)) }
	first := len(w.steps)
	if of, ok := w.Owner.(*Others); ok && kind.isItself {
		w.steps = append(w.steps, kind.Decide(w.Owner, of.Object, nil, w.view))
	} else if kind.IsSet() {
		w.steps = append(w.steps, kind.DecideSet(w.Owner, named, found.Controlled, w.view)...)
	} else {
		w.steps = append(w.steps, kind.Decide(w.Owner, named(kind.Name(w.Owner)), found.Controlled, w.view))
	}
	for _, step := range w.steps[first:] {
		if step.Action == ActionLeave {
			step.Releasing = kind.releasing(step.Found, found)
		}
		w.outcomes = append(w.outcomes, step.AsFound())
		w.see(step, step.AsFound())
	}
}

// releasing returns the other owner that controls an object and is about to give it up by itself, or nil.
func (c *ChildKind) releasing(object Object, found Found) Owner {
	holder := c.OwnerKind.HolderOf(object, found.Owner)
	if holder == nil {
		return nil
	}
	var its []Object
	for _, name := range c.NamesFor(holder) {
		if named := found.Named(c.KeyFor(holder, name)); named != nil {
			its = append(its, named)
		}
	}
	if !c.IsReleasing(holder, object, its...) {
		return nil
	}
	return holder
}

// isThere reports whether the owner has the child of a step that it wants, as far as the sync knows.
func (w *World) isThere(i int) bool {
	step, outcome := w.steps[i], &w.outcomes[i]
	if outcome.Err != nil || step.Action == ActionWait || step.Action == ActionLeave {
		return false
	}
	return step.Unwanted || outcome.Child != nil
}

// isAsAsked reports whether the owner has the child of a step that it wants, in its desired state.
func (w *World) isAsAsked(i int) bool {
	return w.isThere(i) && (w.steps[i].Unwanted || w.outcomes[i].Drift == "")
}

// isInPlace reports whether the child of a step is, in addition, ready.
func (w *World) isInPlace(i int) bool {
	return w.isAsAsked(i) && (w.steps[i].Unwanted || w.steps[i].IsReady(w.outcomes[i].Child))
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
func (w *World) Blocked() []*Step { return w.blocked }

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
	after, due := w.kind.withStatus(w.Owner, w.steps, w.outcomes, now)
	if !due.IsZero() {
		w.due = due.Sub(now.Time)
	}
	return after
}

// Again returns the time after which the owner has to be synced again, even without an event; 0
// means that it need not be. The times of Readiness.ComeAgain count only after Status.
func (w *World) Again() (again time.Duration) {
	again = w.due
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
