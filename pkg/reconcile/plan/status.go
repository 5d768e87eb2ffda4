// SPDX-License-Identifier: Apache-2.0

// The status that a Foo has after a sync.

package plan

import (
	"cmp"
	"fmt"
	"strings"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// maxServerWords bounds, in bytes, how much of an error a condition's message quotes. A
// refusal can list every field of an object.
const maxServerWords = 512

// maxQuotedName bounds, in bytes, how much of a kind or a name a message quotes. The API
// server bounds neither in an owner reference.
const maxQuotedName = 253

// Verdict is what a child, or another part of a sync, contributes to a Foo's status.
type Verdict struct {
	// Status, Reason and Message become those of the condition Ready if this verdict keeps
	// the Foo from being ready, or if none does.
	Status  metav1.ConditionStatus
	Reason  string
	Message string
	// Stalled is true if nothing will happen until someone acts.
	Stalled bool
	// AfterReady replaces the verdict if the Foo was ready with this spec: what it had is lost.
	AfterReady *Verdict
	// Own is the condition for this child alone. If it has no type, there is none. If it has
	// no status, the Foo loses the condition.
	Own metav1.Condition
	// Report adds what the child reports to a Foo's status. It may be nil.
	Report func(owner Owner)
}

// Verdict returns what the child contributes to the Foo's status after a sync.
func (c *Child) Verdict() Verdict {
	verdict := c.readiness()
	if len(c.InService) > 0 && verdict.Status == metav1.ConditionFalse {
		verdict.Message += fmt.Sprintf("; %s %q stays in service until then", c.Kind, truncate(c.InService[0].GetName(), maxQuotedName))
	}
	has := c.Current != nil && c.OwnerKind.IsControlledBy(c.Current, c.Owner)
	switch {
	case has:
		verdict.Report = func(owner Owner) { c.Report(owner, c.Current) }
	case len(c.InService) > 0:
		verdict.Report = func(owner Owner) { c.Report(owner, c.InService[0]) }
	}
	if c.Condition != "" && !c.Stale {
		verdict.Own.Type = c.Condition
		if has {
			verdict.Own.Status, verdict.Own.Message = verdict.Status, verdict.Message
			verdict.Own.Reason = cmp.Or(verdict.Reason, samplev1alpha1.ReasonAvailable)
		}
	}
	return verdict
}

// WithStatus returns a copy of a Foo with its status after a sync. Conditions that change get
// the transition time now.
func (k *OwnerKind) WithStatus(owner Owner, verdicts []Verdict, now metav1.Time) Owner {
	// A copy, because the objects of a cache are shared.
	after := CopyOf(owner)
	conditions := *after.GetConditions()
	after.ResetStatus()
	*after.GetConditions(), *after.GetObservedGeneration() = conditions, owner.GetGeneration()
	ready := k.firstObstacle(owner, verdicts)
	setCondition(after, now, metav1.Condition{
		Type: samplev1alpha1.ConditionReady, Status: ready.Status, Reason: ready.Reason, Message: ready.Message,
	})
	setCondition(after, now, metav1.Condition{
		Type: samplev1alpha1.ConditionStalled, Status: trueIf(ready.Stalled), Reason: ready.Reason, Message: ready.Message,
	})
	setCondition(after, now, metav1.Condition{
		Type: samplev1alpha1.ConditionSuspended, Status: trueIf(owner.IsSuspended()), Reason: samplev1alpha1.ReasonSuspended,
		Message: "spec.suspend is true",
	})
	for _, verdict := range verdicts { // after Ready, which stays the first of the conditions
		setCondition(after, now, verdict.Own)
		if verdict.Report != nil {
			verdict.Report(after)
		}
	}
	for i := range *after.GetConditions() {
		// The API server requires a time, and decoding drops an unreadable one.
		if since := &(*after.GetConditions())[i].LastTransitionTime; since.IsZero() {
			*since = now
		}
	}
	return after
}

// setCondition sets a condition for the newest spec, or removes it if it has no status.
func setCondition(owner Owner, now metav1.Time, condition metav1.Condition) {
	if condition.Status == "" {
		meta.RemoveStatusCondition(owner.GetConditions(), condition.Type)
		return
	}
	condition.ObservedGeneration, condition.LastTransitionTime = owner.GetGeneration(), now
	meta.SetStatusCondition(owner.GetConditions(), condition)
}

// trueIf returns the status of a condition that is either True or absent.
func trueIf(holds bool) metav1.ConditionStatus {
	if holds {
		return metav1.ConditionTrue
	}
	return ""
}

// IsAtRest reports whether a Foo's status says that it is ready, or that it will not become
// ready until someone acts. Tools that wait for a Foo also stop at Stalled.
func IsAtRest(owner Owner) bool {
	return meta.IsStatusConditionTrue(*owner.GetConditions(), samplev1alpha1.ConditionReady) ||
		meta.IsStatusConditionTrue(*owner.GetConditions(), samplev1alpha1.ConditionStalled)
}

// said returns a condition of a Foo's status if it is about this child and the newest spec, and
// has this status and reason, else nil. about is a part of the message that tells what it is
// about: several problems share a reason.
func (c *ChildKind) said(owner Owner, condition string, status metav1.ConditionStatus, reason, about string) *metav1.Condition {
	was := meta.FindStatusCondition(*owner.GetConditions(), condition)
	if was == nil || was.Status != status || was.Reason != reason || was.ObservedGeneration != owner.GetGeneration() || !strings.Contains(was.Message, about) {
		return nil
	}
	return was
}

// saidStalled reports whether a Foo's status says that a problem of this child stalls the newest
// spec.
func (c *ChildKind) saidStalled(owner Owner, reason, about string) bool {
	return c.said(owner, samplev1alpha1.ConditionStalled, metav1.ConditionTrue, reason, about) != nil
}

// SaidFight reports whether a Foo's status says that another client changes this child back
// after each repair.
func (c *ChildKind) SaidFight(owner Owner) bool {
	return c.saidStalled(owner, c.Kind+failed, afterEach)
}

// wasReady reports whether a Foo was ready with its newest spec, and has only lost Pods since.
func wasReady(owner Owner) bool {
	ready := meta.FindStatusCondition(*owner.GetConditions(), samplev1alpha1.ConditionReady)
	if ready == nil || ready.ObservedGeneration != owner.GetGeneration() {
		return false
	}
	return ready.Status == metav1.ConditionTrue || ready.Reason == samplev1alpha1.ReasonDegraded || ready.Reason == samplev1alpha1.ReasonUnavailable
}

// SaysReady reports whether a Foo's status says that the Foo is ready for its newest spec.
func SaysReady(owner Owner) bool {
	ready := meta.FindStatusCondition(*owner.GetConditions(), samplev1alpha1.ConditionReady)
	return ready != nil && ready.Status == metav1.ConditionTrue && ready.ObservedGeneration == owner.GetGeneration() &&
		*owner.GetObservedGeneration() == owner.GetGeneration()
}

// CountByReady counts Foos by the status of their condition Ready. A condition for an older
// generation counts as Unknown: a changed Foo must not count as ready while its status
// can't be written.
func CountByReady(foos []any) map[metav1.ConditionStatus]int {
	counts := map[metav1.ConditionStatus]int{metav1.ConditionTrue: 0, metav1.ConditionFalse: 0, metav1.ConditionUnknown: 0}
	for _, object := range foos {
		owner, status := object.(Owner), metav1.ConditionUnknown //nolint:forcetypeassert // objects of the kind
		ready := meta.FindStatusCondition(*owner.GetConditions(), samplev1alpha1.ConditionReady)
		if ready != nil && ready.ObservedGeneration >= owner.GetGeneration() {
			status = ready.Status
		}
		if _, known := counts[status]; !known {
			status = metav1.ConditionUnknown
		}
		counts[status]++
	}
	return counts
}

// ReadyChanged returns the condition Ready of a Foo's new status if its status or reason
// changed, else nil. A change of the message alone, such as one more available Pod, is not a
// transition.
func ReadyChanged(before, after Owner) *metav1.Condition {
	return changed(before, after, samplev1alpha1.ConditionReady)
}

// OwnChanged returns the conditions for single children in an owner's new status that are new,
// or whose status or reason changed.
func (k *OwnerKind) OwnChanged(before, after Owner) (all []metav1.Condition) {
	for _, kind := range k.Children {
		if own := changed(before, after, kind.Condition); own != nil {
			all = append(all, *own)
		}
	}
	return all
}

func changed(before, after Owner, condition string) *metav1.Condition {
	was := meta.FindStatusCondition(*before.GetConditions(), condition)
	is := meta.FindStatusCondition(*after.GetConditions(), condition)
	if is != nil && was != nil && was.Status == is.Status && was.Reason == is.Reason {
		return nil
	}
	return is
}

// truncate cuts a text to at most limit bytes, at the boundary of a character. It replaces
// invalid UTF-8, for example in a proxy's response, because the API server would not store it
// as sent.
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

// EventType returns the type of the Event for a reason: Warning if the user has to act, or if
// nothing serves any more.
func EventType(reason string) string {
	if strings.HasSuffix(reason, conflict) || strings.HasSuffix(reason, failed) || reason == samplev1alpha1.ReasonUnavailable {
		return corev1.EventTypeWarning
	}
	return corev1.EventTypeNormal
}
