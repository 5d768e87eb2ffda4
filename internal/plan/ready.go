// SPDX-License-Identifier: Apache-2.0

// Whether a Foo is ready, and if not, why, and what its user can do.

package plan

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/sample-controller/internal/failure"
	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// WriteError is the error of a write to a child.
type WriteError struct {
	// Doing and Done name the write, such as "creating" and "created".
	Doing, Done string
	// Kind and Name identify the child.
	Kind, Name string
	Err        error
}

func (e *WriteError) Error() string {
	return fmt.Sprintf("%s %s %q: %v", e.Doing, e.Kind, e.Name, e.Err)
}

// Unwrap returns the error of the API server or of the connection to it.
func (e *WriteError) Unwrap() error { return e.Err }

// The suffixes of the reasons that require a user to act; the kind of the child comes first.
// Conflict means that the object with the name does not belong to the Foo. Failed means that
// the API server refused the child, or that the child can't do its work.
const (
	conflict = "Conflict"
	failed   = "Failed"
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
		return c.judgeConflict(owner, c.Named)
	case c.Action == ActionSuspend:
		return c.judgeSuspended()
	case c.Action == ActionWait:
		return notReady(samplev1alpha1.ReasonTerminating, "%s %q is being deleted; it will be recreated once it is gone", c.Kind, name)
	case failure.IsRefusal(c.Failure):
		refused := notReady(c.Kind+failed, "The API server refused: %s", truncate(c.Failure.Error(), maxServerWords))
		refused.Stalled = c.Refused || c.WasStalled(owner)
		return refused
	case c.Failure != nil:
		return c.judgeOutage(owner, c.Action, c.Failure)
	case !c.Wanted(owner):
		return Verdict{Status: metav1.ConditionTrue}
	case c.Current == nil:
		return notReady(samplev1alpha1.ReasonProgressing, "%s %q is being created", c.Kind, name)
	case c.Paced:
		return notReady(samplev1alpha1.ReasonProgressing, "%s %q will be updated once fewer others are rolling out (-max-rollouts): %s",
			c.Kind, name, truncate(c.CurrentDrift, maxServerWords))
	case c.ChangedBack != "":
		return stalled(c.Kind+failed, "%s %q is changed back after each repair, most recently by %q: %s. Stop that client, or change the %s to match",
			c.Kind, name, truncate(cmp.Or(c.Opponent, "an unknown manager"), maxQuotedName), truncate(c.ChangedBack, maxServerWords), c.OwnerKind.Kind)
	case c.CurrentDrift != "":
		otherwise := notReady(c.Kind+failed, "The API server stored %s %q with different values than requested: %s", c.Kind, name, truncate(c.CurrentDrift, maxServerWords))
		otherwise.Stalled = c.Recurs
		return otherwise
	}
	return c.Judge(c.Current)
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
	ready := meta.FindStatusCondition(*owner.GetConditions(), samplev1alpha1.ConditionReady)
	if ready != nil && ready.Reason == c.Kind+failed && ready.Status == metav1.ConditionFalse && ready.ObservedGeneration == owner.GetGeneration() {
		return Verdict{Status: ready.Status, Reason: ready.Reason, Message: ready.Message, Stalled: c.WasStalled(owner)}
	}
	name, done := c.Name(owner), participles[act]
	if write := (*WriteError)(nil); errors.As(err, &write) {
		name, done = write.Name, write.Done
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

// judgeConflict reports who owns the object that a Foo wants.
func (c *ChildKind) judgeConflict(owner Owner, taken metav1.Object) Verdict {
	var otherName []string
	if c.NamedBy != "" {
		otherName = []string{"choose another " + c.NamedBy}
	}
	if ref := metav1.GetControllerOfNoCopy(taken); ref != nil {
		return stalled(c.Kind+conflict, "%s %q belongs to %q %q: %s",
			c.Kind, taken.GetName(), truncate(ref.Kind, maxQuotedName), truncate(ref.Name, maxQuotedName),
			strings.Join(append(otherName, "delete the owner"), ", or "))
	}
	handOver := fmt.Sprintf("or hand it over with 'kubectl annotate -n %s %s %s %s=%s'",
		taken.GetNamespace(), strings.ToLower(c.Kind), taken.GetName(), samplev1alpha1.AnnotationAdoptBy, owner.GetName())
	return stalled(c.Kind+conflict, "%s %q exists and has no controller: %s",
		c.Kind, taken.GetName(), strings.Join(append(otherName, "delete the "+c.Kind, handOver), ", "))
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
