// SPDX-License-Identifier: Apache-2.0

// Whether an owner is ready, and if not, why, and what its user can do.

package plan

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/sample-controller/pkg/reconcile/failure"
)

// Parts of messages that tell apart the problems that share a reason.
const (
	serverRefused = "The API server refused: "
	afterEach     = " after each "
	ofEarlier     = " of this name, which is gone"
)

// Readiness says whether a part of a sync, such as a child, allows the owner to be ready.
type Readiness struct {
	// Status, Reason and Message become those of the condition Ready if this part keeps the owner
	// from being ready, or if none does.
	Status  metav1.ConditionStatus
	Reason  string
	Message string
	// Stalled is true if nothing will happen until someone acts.
	Stalled bool
	// At is when to come again, or zero: see ComeAgain. Until is when the readiness ends, or zero: see Expires.
	At, Until time.Time
	// AfterReady replaces the readiness if the owner was ready with this spec: what it had is lost.
	AfterReady *Readiness
}

// Ready returns a Readiness that allows the owner to be ready.
func Ready(format string, args ...any) Readiness {
	return Readiness{Status: metav1.ConditionTrue, Reason: ReasonAvailable, Message: fmt.Sprintf(format, args...)}
}

// NotReady returns a Readiness for a state that may pass by itself.
func NotReady(reason, format string, args ...any) Readiness {
	return Readiness{Status: metav1.ConditionFalse, Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// Stalled is like NotReady, for a state that lasts until someone acts.
func Stalled(reason, format string, args ...any) Readiness {
	readiness := NotReady(reason, format, args...)
	readiness.Stalled = true
	return readiness
}

// ComeAgain returns the readiness with a time at which to come again, because something is due then and no
// event will say so. A call is then made again, a reference read again, and a child judged again. A call or
// reference that stays due is repeated at most once a minute.
func (r Readiness) ComeAgain(at time.Time) Readiness {
	r.At = at
	return r
}

// Expires returns the readiness with a time at which it ends: what was ready is no longer, unless a new answer
// says so. It is also a time at which to come again.
func (r Readiness) Expires(at time.Time) Readiness {
	r.Until = at
	return r
}

// Due returns the earlier of the times at which to come again, or zero.
func (r Readiness) Due() time.Time { return earlier(r.At, r.Until) }

// earlier returns the earlier of two times, of which zero means none.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// asOf returns the readiness of a step at a time: that of something that has expired has ended.
func (r Readiness) asOf(now time.Time, of *Step) Readiness {
	if r.Status != metav1.ConditionTrue || r.Until.IsZero() || now.Before(r.Until) {
		return r
	}
	ended := NotReady(of.Kind+SuffixFailed, "%s has expired at %s", of.Kind, r.Until.UTC().Format(time.RFC3339))
	if r.Message != "" {
		ended.Message += ": " + r.Message
	}
	return ended
}

func (k *Kind) terminating() Readiness {
	return NotReady(ReasonTerminating, "The %s is being deleted", k.Name)
}

// readiness returns the first readiness that keeps the owner from being ready. If none does, it
// returns one that combines all of them. due is the earliest time to come again after now, or zero.
func (k *Kind) readiness(owner Owner, steps []*Step, outcomes []Outcome, now time.Time) (ready Readiness, due time.Time) {
	var messages []string
	for i, step := range steps {
		of := step.Readiness(&outcomes[i])
		for _, at := range []time.Time{of.At, of.Until} {
			if at.After(now) {
				due = earlier(due, at)
			}
		}
		switch of = of.asOf(now, step); {
		case ready.Status != "" && ready.Message != k.terminating().Message: // that of a later part says more
		case of.Status != metav1.ConditionTrue:
			ready = of
		case of.Message != "":
			messages = append(messages, of.Message)
		}
	}
	switch {
	case ready.Status != "":
	case IsTerminating(owner):
		ready = k.terminating()
	default:
		ready = Ready("%s", cmp.Or(strings.Join(messages, "; "), "Everything that the "+k.Name+" specifies exists"))
	}
	return ready, due
}

// Readiness returns whether a child allows the owner to be ready after a step.
func (s *Step) Readiness(outcome *Outcome) Readiness {
	readiness := s.judge(outcome)
	if len(s.InService) > 0 && readiness.Status == metav1.ConditionFalse {
		readiness.Message += fmt.Sprintf("; %s %q stays in service until then", s.Kind, Truncate(s.InService[0].GetName(), maxQuotedName))
	}
	return readiness
}

// judge returns the readiness by the first of the cases that applies. An owner becomes ready only in
// a sync in which nothing failed, and only if its children are in their desired state.
func (s *Step) judge(outcome *Outcome) Readiness {
	name := Truncate(s.Key.Name, maxQuotedName)
	switch {
	case IsTerminating(s.Owner):
		return s.judgeUndo(outcome.Answer)
	case outcome.Stale:
		return Readiness{Status: metav1.ConditionTrue}
	case s.Action == ActionLeave:
		return s.judgeConflict(outcome)
	case s.Action == ActionSuspend:
		return s.judgeSuspended(outcome)
	case s.Action == ActionWait && !s.IsReference():
		return s.judgeDeletion()
	case failure.IsRefusal(outcome.Err):
		refused := NotReady(s.Kind+SuffixFailed, "%s%s", serverRefused, Truncate(outcome.Err.Error(), MaxQuote))
		refused.Stalled = outcome.Lasts || s.saidStalled(s.Owner, s.Kind+SuffixFailed, serverRefused)
		return refused
	case outcome.Err != nil:
		return s.judgeOutage(outcome.Err)
	case s.IsReference():
		return s.judgeReference(outcome)
	case s.IsCall():
		return s.judgeCall(outcome.Answer)
	case outcome.Fight != nil:
		return Stalled(s.Kind+SuffixFailed, "%s", outcome.Fight.Describe(s.ChildKind))
	case s.Duplicate != "":
		return s.judgeDuplicate()
	case s.Unwanted:
		return Readiness{Status: metav1.ConditionTrue}
	case outcome.Child == nil:
		return NotReady(ReasonProgressing, "%s %q is being created", s.Kind, name)
	case outcome.Paced:
		return NotReady(ReasonProgressing, "%s %q will be updated once fewer others are rolling out (-max-rollouts): %s",
			s.Kind, name, Truncate(outcome.Drift, MaxQuote))
	case outcome.Drift != "":
		otherwise := NotReady(s.Kind+SuffixFailed, "The API server stored %s %q with different values than requested: %s", s.Kind, name, Truncate(outcome.Drift, MaxQuote))
		otherwise.Stalled = outcome.Recurs
		return otherwise
	}
	readiness := s.Judge(outcome.Child)
	if readiness.AfterReady != nil && wasReady(s.Owner) {
		return *readiness.AfterReady
	}
	return readiness
}

// IsReady reports whether a child in its desired state allows the owner to be ready.
func (c *ChildKind) IsReady(child Object) bool {
	return c.Judge(child).Status == metav1.ConditionTrue
}

// judgeOutage returns the readiness after a write or a live read that failed for a temporary
// reason. It says nothing about the child's earlier state. If the API server refused the same
// spec before, someone still has to act, so the condition continues to say that: alternating
// outages and refusals give one condition.
func (s *Step) judgeOutage(err error) Readiness {
	if ready := s.said(s.Owner, ConditionReady, metav1.ConditionFalse, s.Kind+SuffixFailed, serverRefused); ready != nil {
		return Readiness{Status: ready.Status, Reason: ready.Reason, Message: ready.Message, Stalled: s.saidStalled(s.Owner, s.Kind+SuffixFailed, serverRefused)}
	}
	name, done := s.Key.Name, participles[s.Action]
	if call := (*failure.CallError)(nil); errors.As(err, &call) {
		if call.Name != name {
			done = participles[ActionNone]
		}
		name, done = call.Name, cmp.Or(call.Done, done)
	}
	return NotReady(ReasonProgressing, "%s %q could not be %s yet: %s",
		s.Kind, Truncate(name, maxQuotedName), done, Truncate(failure.Describe(err), MaxQuote))
}

// participles name what a sync was about to do to a child when a live read failed.
var participles = map[Action]string{
	ActionCreate: "created", ActionUpdate: "updated", ActionAdopt: "adopted", ActionNone: "checked", ActionRead: "read",
	ActionCall: "requested", ActionHold: "added", ActionRelease: "removed",
}

// judgeSuspended reports which write a suspension prevents.
func (s *Step) judgeSuspended(outcome *Outcome) Readiness {
	what := fmt.Sprintf("%s %q is not %s", s.Kind, Truncate(s.Key.Name, maxQuotedName), participles[s.Pending])
	switch {
	case s.Pending == ActionNone:
		what = fmt.Sprintf("no %s with an earlier name is deleted", s.Kind)
	case outcome.Drift != "":
		what += ": " + Truncate(outcome.Drift, MaxQuote)
	}
	return Stalled(ReasonSuspended, "spec.suspend is true, so %s", what)
}
