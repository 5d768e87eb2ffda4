// SPDX-License-Identifier: Apache-2.0

// Calls: things outside the cluster that an owner stands for, such as an entry in a registrar.

package plan

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
)

// Call declares something outside the cluster, of which each owner of the type F has one, and which answers
// with an R. Workers of its own make the calls, so that a sync never waits for one.
//
// An answer is one to the spec of the owner with which the call was made. Until there is one to the newest
// spec, the owner is not ready. One that is merely old, because the next call is due, in progress or failing,
// stands: the owner stays ready, and the row's own Condition is Unknown while calls fail. An answer whose
// Judge says Expires stands until then.
//
// A refusal that lasts until someone acts is an answer: return it as an R for which Judge says Stalled. An
// error is repeated after 2 s, and less and less often up to each 5 min.
type Call[F Owner, R any] struct {
	// Kind is the name of the thing in messages and reasons, such as "Certificate".
	Kind string
	// Do brings the thing into the state that the owner specifies, whatever its state was before, and
	// returns how it is. It is called for each new spec, at each poll, and again after a crash that lost its
	// answer. So identify the thing by the owner's UID or name, not by an earlier answer.
	Do func(ctx context.Context, owner F) (R, error)
	// Undo removes what Do made, before an owner is gone. It is no error if that does not exist. Its kind
	// needs a Finalizer. nil means that nothing has to be removed.
	Undo func(ctx context.Context, owner F) error
	// Poll is the time between two calls, a tenth more or less, and at least 1 s. 0 means that a call is made
	// for each spec and when an answer expires.
	Poll time.Duration
	// Timeout bounds each call. Do and Undo must return when their ctx is done. 0 means 30 s.
	Timeout time.Duration
	// Workers is how many calls may be made at the same time, and how many for the owners of one namespace;
	// of the first, those that take longer than 100 ms no longer count, up to a hundred. 0 means 10.
	Workers int
	// Judge returns whether an answer allows the owner to be ready. nil means that each does.
	Judge func(answer R) Readiness
	// Report adds an answer to the status of an owner, which is a copy. Recall is its reverse: it returns the
	// answer in a status, or the zero R if there is none. After a restart, the answer in the status stands. Only
	// what comes back from Recall is judged and reported, so that a restart changes nothing. Both may be nil: a
	// restart then repeats the call unless the status says that the owner is ready.
	Report func(owner F, answer R)
	Recall func(owner F) R
	// Condition is the type of a condition for the thing alone, such as "Issued", or "".
	Condition string
	// Blocks is true if the children have to wait for an answer that allows the owner to be ready.
	Blocks bool
}

// Answer is what is known of a call.
type Answer struct {
	// Known is true if there is an answer to the newest spec, and Value is that, or nil if there is no Recall and
	// an earlier process received it.
	Known bool
	Value any
	// Err is why the last call failed, or nil.
	Err error
	// Undone is true if the thing of an owner in deletion is gone.
	Undone bool
	// Pending is true if a call that the user asked for is not over.
	Pending bool
}

// Of returns the call without its types, as a row in the table of an owner's kind.
func (r Call[F, R]) Of(owner *Kind) *ChildKind {
	c := &ChildKind{OwnerKind: owner, flaws: r.flaws(owner)}
	c.Kind, c.Condition, c.Blocks = r.Kind, r.Condition, r.Blocks
	c.call = &Call[Owner, any]{
		Kind: r.Kind, Poll: r.Poll, Timeout: r.Timeout, Workers: r.Workers, Condition: r.Condition, Blocks: r.Blocks,
		Do: func(ctx context.Context, owner Owner) (any, error) {
			answer, err := r.Do(ctx, owner.(F))
			if err != nil {
				return nil, err
			}
			return r.asStored(owner.(F), answer)
		},
		Judge: func(answer any) Readiness {
			if is, ok := answer.(R); ok && r.Judge != nil {
				return r.Judge(is)
			}
			return Ready("")
		},
		Report: func(owner Owner, answer any) {
			if is, ok := answer.(R); ok && r.Report != nil {
				r.Report(owner.(F), is)
			}
		},
		Recall: func(owner Owner) any {
			if r.Recall == nil {
				return nil
			}
			return r.Recall(owner.(F))
		},
	}
	if r.Undo != nil {
		c.call.Undo = func(ctx context.Context, owner Owner) error { return r.Undo(ctx, owner.(F)) }
	}
	return c
}

// asStored returns an answer as it comes back from a status, where times are in whole seconds, for example.
func (r Call[F, R]) asStored(owner F, answer R) (stored R, err error) {
	if r.Recall == nil || r.Report == nil {
		return answer, nil
	}
	sent, received := CopyOf(owner), CopyOf(owner)
	ResetStatus(sent)
	ResetStatus(received)
	r.Report(sent, answer)
	text, err := json.Marshal(sent.GetStatus())
	if err == nil {
		err = json.Unmarshal(text, received.GetStatus())
	}
	if err != nil {
		return stored, fmt.Errorf("reporting the answer: %w", err)
	}
	return r.Recall(received), nil
}

// flaws returns what is wrong with the declaration of a call.
func (r Call[F, R]) flaws(owner *Kind) (flaws []string) {
	for _, flaw := range []struct {
		isOne bool
		text  string
	}{
		{r.Kind == "", "lacks Kind"},
		{r.Do == nil, "lacks Do"},
		{r.Undo != nil && owner.Finalizer == "", "has Undo, but the kind " + owner.Name + " has no Finalizer"},
		{r.Poll != 0 && r.Poll < time.Second, "has a Poll below 1s"},
		{r.Timeout < 0 || r.Workers < 0, "has a negative Timeout or Workers"},
		{r.Report != nil && r.Recall == nil, "has Report, but not Recall, so that a restart would call for each owner"},
		{r.Report == nil && r.Recall != nil, "has Recall, but not Report"},
	} {
		if flaw.isOne {
			flaws = append(flaws, flaw.text)
		}
	}
	return flaws
}

// Call returns the call of a row without its types, or nil if the row has none.
func (c *ChildKind) Call() *Call[Owner, any] { return c.call }

// IsCall reports whether the row is about something outside the cluster.
func (c *ChildKind) IsCall() bool { return c.call != nil }

// IsChild reports whether owners own objects of the kind, other than a reference or a call.
func (c *ChildKind) IsChild() bool { return !c.IsReference() && !c.IsCall() && !c.isFinalizer }

// Recall returns what a status tells a process that has just started: the answer that stands, and
// whether an earlier process has asked for this spec.
func (c *ChildKind) Recall(owner Owner) (answer Answer, wasAsked bool) {
	if owner.GetObservedGeneration() != owner.GetGeneration() {
		return answer, false
	}
	is := c.call.Recall(owner)
	if SaysReady(owner) || is != nil && !reflect.ValueOf(is).IsZero() { // a zero answer is one if it made the owner ready
		answer.Known, answer.Value = true, is
	}
	return answer, true
}

// HasSameSpec reports whether a call for one state of an owner is one for the other, too.
func (k *Kind) HasSameSpec(a, b Owner) bool {
	before, after := k.inputsOf(a), k.inputsOf(b)
	before.Request, after.Request = "", ""
	return sameInputs(before, after)
}

// decideCall decides whether the call of a row has to be made.
func (w *World) decideCall(kind *ChildKind) {
	step := &Step{ChildKind: kind, Owner: w.Owner, View: w.view, Part: "call " + kind.Kind, Action: ActionCall, Key: cache.MetaObjectToName(w.Owner)}
	switch {
	case IsTerminating(w.Owner) && kind.needsFinalizer() && w.kind.hasFinalizer(w.Owner):
		step.Action = ActionUndo
	case IsTerminating(w.Owner):
		step.Action = ActionWait
	case w.Owner.IsSuspended():
		step.Action, step.Pending = ActionSuspend, ActionCall
	}
	w.steps, w.outcomes = append(w.steps, step), append(w.outcomes, step.AsFound())
}

// isAnswered reports whether the answer to the last call decided on allows the owner to be ready.
func (w *World) isAnswered() bool {
	answer := w.outcomes[len(w.outcomes)-1].Answer
	return answer != nil && answer.Known && w.steps[len(w.steps)-1].call.Judge(answer.Value).Status == metav1.ConditionTrue
}

// judgeCall reports whether there is an answer to the newest spec, and whether it allows the owner to be ready.
func (s *Step) judgeCall(answer *Answer) Readiness {
	switch {
	case answer != nil && answer.Known:
		return s.call.Judge(answer.Value)
	case answer != nil && answer.Err != nil:
		return NotReady(s.Kind+SuffixFailed, "%s", s.lastFailed(answer))
	}
	return NotReady(ReasonProgressing, "%s: waiting for the answer to the newest spec", s.Kind)
}

func (s *Step) lastFailed(answer *Answer) string {
	return fmt.Sprintf("%s: the last call failed: %s", s.Kind, Truncate(answer.Err.Error(), MaxQuote))
}

// judgeUndo reports what keeps an owner in deletion.
func (s *Step) judgeUndo(answer *Answer) Readiness {
	readiness := s.OwnerKind.terminating()
	if s.Action == ActionUndo && (answer == nil || !answer.Undone) {
		readiness.Message += "; " + s.Kind + ": waiting until it is removed"
		if answer != nil && answer.Err != nil {
			readiness.Message += "; " + s.lastFailed(answer)
		}
	}
	return readiness
}

// unsure returns what the row's own condition says while calls fail and the last answer stands.
func (s *Step) unsure(answer *Answer) Readiness {
	return Readiness{Status: metav1.ConditionUnknown, Reason: s.Kind + SuffixFailed, Message: s.lastFailed(answer) + "; the answer before stands"}
}

// isPending reports whether a call that the user asked for is not over, so that the status does not answer the
// request yet.
func isPending(outcomes []Outcome) bool {
	return slices.ContainsFunc(outcomes, func(outcome Outcome) bool { return outcome.Answer != nil && outcome.Answer.Pending })
}
