// SPDX-License-Identifier: Apache-2.0

// Whether a Foo is ready, and if not, why, and what its user can do.

package plan

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/pkg/reconcile/failure"
)

// CallError is the error of a write to a child, or of a live read.
type CallError struct {
	// Doing and Done name the call, such as "creating" and "created". A read has no Done: what
	// could not be done is the write that it prepares.
	Doing, Done string
	// Kind and Name identify the child.
	Kind, Name string
	Err        error
}

func (e *CallError) Error() string {
	return fmt.Sprintf("%s %s %q: %v", e.Doing, e.Kind, e.Name, e.Err)
}

// Unwrap returns the error of the API server or of the connection to it.
func (e *CallError) Unwrap() error { return e.Err }

// The suffixes of the reasons that require a user to act; the kind of the child comes first.
// Conflict means that the object with the name does not belong to the Foo. Failed means that
// the API server refused the child, or that the child can't do its work.
const (
	conflict = "Conflict"
	failed   = "Failed"
)

// Parts of messages that tell apart the problems that share a reason.
const (
	serverRefused = "The API server refused: "
	afterEach     = " after each "
	ofEarlier     = " of this name, which is gone"
)

// terminating is the verdict on an object that is being deleted.
func (k *OwnerKind) terminating() Verdict {
	return notReady(samplev1alpha1.ReasonTerminating, "The %s is being deleted", k.Kind)
}

// firstObstacle returns the first verdict that keeps a Foo from being ready. If none does, it
// returns a verdict that combines all of them.
func (k *OwnerKind) firstObstacle(owner Owner, verdicts []Verdict) Verdict {
	var messages []string
	for _, verdict := range verdicts {
		if verdict.Status != metav1.ConditionTrue {
			return verdict
		}
		if verdict.Message != "" {
			messages = append(messages, verdict.Message)
		}
	}
	if IsTerminating(owner) {
		return k.terminating()
	}
	return Verdict{Status: metav1.ConditionTrue, Reason: samplev1alpha1.ReasonAvailable, Message: cmp.Or(strings.Join(messages, "; "), "Everything that the "+k.Kind+" specifies exists")}
}

// readiness returns whether a child allows the Foo to be ready after a sync. The first
// obstacle decides. A Foo becomes ready only in a sync in which nothing failed, and only if
// its children are in their desired state.
func (c *Child) readiness() Verdict {
	owner := c.Owner
	name := truncate(c.Name(owner), maxQuotedName)
	switch {
	case IsTerminating(owner):
		return c.OwnerKind.terminating()
	case c.Stale:
		return Verdict{Status: metav1.ConditionTrue}
	case c.Action == ActionLeave:
		return c.judgeConflict()
	case c.Action == ActionSuspend:
		return c.judgeSuspended()
	case c.Action == ActionWait:
		return c.judgeDeletion()
	case failure.IsRefusal(c.Failure):
		refused := notReady(c.Kind+failed, "%s%s", serverRefused, truncate(c.Failure.Error(), maxServerWords))
		refused.Stalled = c.Lasts || c.saidStalled(owner, c.Kind+failed, serverRefused)
		return refused
	case c.Failure != nil:
		return c.judgeOutage(owner, c.Action, c.Failure)
	case c.Fight != nil:
		return c.judgeFight()
	case !c.Wanted(owner):
		return Verdict{Status: metav1.ConditionTrue}
	case c.Current == nil:
		return notReady(samplev1alpha1.ReasonProgressing, "%s %q is being created", c.Kind, name)
	case c.Paced:
		return notReady(samplev1alpha1.ReasonProgressing, "%s %q will be updated once fewer others are rolling out (-max-rollouts): %s",
			c.Kind, name, truncate(c.CurrentDrift, maxServerWords))
	case c.CurrentDrift != "":
		otherwise := notReady(c.Kind+failed, "The API server stored %s %q with different values than requested: %s", c.Kind, name, truncate(c.CurrentDrift, maxServerWords))
		otherwise.Stalled = c.Recurs
		return otherwise
	}
	verdict := c.Judge(c.Current)
	if verdict.AfterReady != nil && wasReady(owner) {
		return *verdict.AfterReady
	}
	verdict.AfterReady = nil
	return verdict
}

// IsReady reports whether a child in its desired state allows the Foo to be ready.
func (c *ChildKind) IsReady(child Object) bool {
	return c.Judge(child).Status == metav1.ConditionTrue
}

// judgeOutage returns the verdict after a write or a live read that failed for a temporary
// reason. It says nothing about the child's earlier state. If the API server refused the same
// spec before, someone still has to act, so the condition continues to say that: alternating
// outages and refusals give one condition.
func (c *ChildKind) judgeOutage(owner Owner, act Action, err error) Verdict {
	if ready := c.said(owner, samplev1alpha1.ConditionReady, metav1.ConditionFalse, c.Kind+failed, serverRefused); ready != nil {
		return Verdict{Status: ready.Status, Reason: ready.Reason, Message: ready.Message, Stalled: c.saidStalled(owner, c.Kind+failed, serverRefused)}
	}
	name, done := c.Name(owner), participles[act]
	if call := (*CallError)(nil); errors.As(err, &call) {
		if call.Name != name {
			done = participles[ActionNone]
		}
		name, done = call.Name, cmp.Or(call.Done, done)
	}
	return notReady(samplev1alpha1.ReasonProgressing, "%s %q could not be %s yet: %s",
		c.Kind, truncate(name, maxQuotedName), done, truncate(failure.Describe(err), maxServerWords))
}

// participles name what a sync was about to do to a child when a live read failed.
var participles = map[Action]string{
	ActionCreate: "created", ActionUpdate: "updated", ActionAdopt: "adopted", ActionNone: "checked",
}

// judgeSuspended reports which write a Foo's suspension prevents.
func (c *Child) judgeSuspended() Verdict {
	what := fmt.Sprintf("%s %q is not %s", c.Kind, truncate(c.Name(c.Owner), maxQuotedName), participles[c.Pending])
	switch {
	case c.Pending == ActionNone:
		what = fmt.Sprintf("no %s with an earlier name is deleted", c.Kind)
	case c.CurrentDrift != "":
		what += ": " + truncate(c.CurrentDrift, maxServerWords)
	}
	return stalled(samplev1alpha1.ReasonSuspended, "spec.suspend is true, so %s", what)
}

func notReady(reason, format string, args ...any) Verdict {
	return Verdict{Status: metav1.ConditionFalse, Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// stalled is like notReady, for a state that lasts until someone acts.
func stalled(reason, format string, args ...any) Verdict {
	verdict := notReady(reason, format, args...)
	verdict.Stalled = true
	return verdict
}
