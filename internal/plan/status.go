// SPDX-License-Identifier: Apache-2.0

// The status that a Foo has after a sync.

package plan

import (
	"fmt"
	"strings"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// maxServerWords bounds, in bytes, how much of an error a condition's message quotes: a
// refusal can list every field of an object.
const maxServerWords = 512

// maxQuotedName bounds, in bytes, how much of a kind or a name a message quotes. The API
// server bounds neither in an owner reference.
const maxQuotedName = 253

// Outcome is what a Foo's status says of one child, of whatever kind, or of another part
// of a sync.
type Outcome struct {
	Ready Verdict
	// Report adds to the status what the child reports. It may be nil.
	Report func(*samplev1alpha1.FooStatus)
}

// Result is what a sync did about a child.
type Result[T Object] struct {
	// Action is what was decided.
	Action Action
	// Pending is the action that the Foo's suspension holds back.
	Pending Action
	// Named is the object of the name that the Foo asks for as it was found, whoever
	// controls it, or nil.
	Named T
	// Child is the Foo's child as it was last read or written, or nil if the Foo has none.
	Child T
	// Drift says in which fields that the Foo owns Child differs from what the Foo asks for.
	Drift string
	// Failure is the error because of which the sync did not do all that it had decided:
	// the API server refused a write, or did not answer. It is nil if the sync did.
	Failure error
	// Refused is true if the API server has refused the write for so long that it is not
	// going to pass by itself, and Recurs if an update was stored with that Drift.
	Refused, Recurs bool
	// Fight is what somebody changes back each time, or nil.
	Fight *Fight
	// Paced is true if the update waits until fewer Foos roll out.
	Paced bool
	// InService are the children of earlier names that stay until Child is ready.
	InService []T
	// Stale is true if the sync has seen that its caches are stale, so that it knows nothing
	// of the child. The other children decide.
	Stale bool
}

// Fight is a drift that comes back after each repair.
type Fight struct {
	// By is the field manager that last changed the fields, or "" if that is unknown.
	By string
	// Drift says in which fields the child differed from what the Foo asks for.
	Drift string
}

// Outcome returns what a Foo's status says of a child after a sync.
func (c *Child[T]) Outcome(foo *samplev1alpha1.Foo, result Result[T]) Outcome {
	outcome := Outcome{Ready: c.judge(foo, result)}
	if len(result.InService) > 0 && outcome.Ready.Status == metav1.ConditionFalse {
		outcome.Ready.Message += fmt.Sprintf("; %s %q stays in service until then", c.Kind, truncate(result.InService[0].GetName(), maxQuotedName))
	}
	if c.Report != nil && !IsNil(result.Child) && IsControlledBy(result.Child, foo) {
		outcome.Report = func(status *samplev1alpha1.FooStatus) { c.Report(status, result.Child) }
	}
	return outcome
}

// CalculateStatus returns the status of a Foo after a sync. now becomes the time of the
// condition's transition if there is one.
func CalculateStatus(foo *samplev1alpha1.Foo, outcomes []Outcome, now metav1.Time) samplev1alpha1.FooStatus {
	status := samplev1alpha1.FooStatus{ObservedGeneration: foo.Generation, Conditions: foo.Status.DeepCopy().Conditions}
	ready := firstObstacle(foo, outcomes)
	meta.SetStatusCondition(&status.Conditions, metav1.Condition{
		Type:               samplev1alpha1.ConditionReady,
		Status:             ready.Status,
		ObservedGeneration: foo.Generation,
		LastTransitionTime: now,
		Reason:             ready.Reason,
		Message:            ready.Message,
	})
	setWhile(ready.Stalled, &status, metav1.Condition{Type: samplev1alpha1.ConditionStalled, LastTransitionTime: now, Reason: ready.Reason, Message: ready.Message})
	setWhile(IsSuspended(foo), &status, metav1.Condition{
		Type: samplev1alpha1.ConditionSuspended, LastTransitionTime: now, Reason: samplev1alpha1.ReasonSuspended, Message: "spec.suspend is true",
	})
	for _, outcome := range outcomes { // after Ready, which stays the first of the conditions
		if outcome.Report != nil {
			outcome.Report(&status)
		}
	}
	for i := range status.Conditions {
		// The API server wants a time, and one that can't be read is none.
		if since := &status.Conditions[i].LastTransitionTime; since.IsZero() {
			*since = now
		}
	}
	return status
}

// setWhile sets a condition that is True while something holds, and absent otherwise.
func setWhile(holds bool, status *samplev1alpha1.FooStatus, condition metav1.Condition) {
	if !holds {
		meta.RemoveStatusCondition(&status.Conditions, condition.Type)
		return
	}
	condition.Status, condition.ObservedGeneration = metav1.ConditionTrue, status.ObservedGeneration
	meta.SetStatusCondition(&status.Conditions, condition)
}

// IsAtRest reports whether a status says that its Foo is ready, or that it will not become so
// before somebody else does something: tools that wait for a Foo go by Stalled, too.
func IsAtRest(status samplev1alpha1.FooStatus) bool {
	return meta.IsStatusConditionTrue(status.Conditions, samplev1alpha1.ConditionReady) ||
		meta.IsStatusConditionTrue(status.Conditions, samplev1alpha1.ConditionStalled)
}

// WasStalled reports whether a Foo's status says that its newest spec is stalled by this
// child, which is refused, stored otherwise, or changed back after each repair.
func (c *Child[T]) WasStalled(foo *samplev1alpha1.Foo) bool {
	was := meta.FindStatusCondition(foo.Status.Conditions, samplev1alpha1.ConditionStalled)
	return was != nil && was.Status == metav1.ConditionTrue && was.Reason == c.Kind+failed && was.ObservedGeneration == foo.Generation
}

// SaysReady reports whether a Foo's status says that it is ready for its newest spec.
func SaysReady(foo *samplev1alpha1.Foo) bool {
	ready := meta.FindStatusCondition(foo.Status.Conditions, samplev1alpha1.ConditionReady)
	return ready != nil && ready.Status == metav1.ConditionTrue && ready.ObservedGeneration == foo.Generation &&
		foo.Status.ObservedGeneration == foo.Generation
}

// CountByReady counts Foos by the status of their condition Ready. A condition of an
// older generation counts as Unknown: a changed Foo must not count as ready while its
// status can't be written.
func CountByReady(foos []*samplev1alpha1.Foo) map[metav1.ConditionStatus]int {
	counts := map[metav1.ConditionStatus]int{metav1.ConditionTrue: 0, metav1.ConditionFalse: 0, metav1.ConditionUnknown: 0}
	for _, foo := range foos {
		status := metav1.ConditionUnknown
		ready := meta.FindStatusCondition(foo.Status.Conditions, samplev1alpha1.ConditionReady)
		if ready != nil && ready.ObservedGeneration >= foo.Generation {
			status = ready.Status
		}
		if _, known := counts[status]; !known {
			status = metav1.ConditionUnknown
		}
		counts[status]++
	}
	return counts
}

// ReadyChanged returns the condition Ready of a new status if its status or reason differ
// from the old one's, else nil. A change of the message alone, such as one more available
// Pod, is no transition.
func ReadyChanged(before, after samplev1alpha1.FooStatus) *metav1.Condition {
	was := meta.FindStatusCondition(before.Conditions, samplev1alpha1.ConditionReady)
	is := meta.FindStatusCondition(after.Conditions, samplev1alpha1.ConditionReady)
	if is == nil || was != nil && was.Status == is.Status && was.Reason == is.Reason {
		return nil
	}
	return is
}

// truncate cuts a text to at most limit bytes, at the boundary of a character. It replaces
// what is not UTF-8, as in the answer of a proxy: the API server would store it otherwise
// than it was sent.
func truncate(text string, limit int) string {
	const mark = "..."
	text = strings.ToValidUTF8(text, string(utf8.RuneError))
	if len(text) <= limit {
		return text
	}
	cut := limit - len(mark)
	for cut > 0 && !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + mark
}

// EventType returns the type of the Event for a reason: Warning if the user has to do
// something about it.
func EventType(reason string) string {
	if strings.HasSuffix(reason, conflict) || strings.HasSuffix(reason, failed) {
		return corev1.EventTypeWarning
	}
	return corev1.EventTypeNormal
}
