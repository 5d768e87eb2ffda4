// SPDX-License-Identifier: Apache-2.0

// The status that an owner has after a sync.

package plan

import (
	"cmp"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// WithStatus returns a copy of an owner with its status after a sync: each step, other than deletions,
// and its outcome. Conditions that change get the transition time now.
func (k *Kind) WithStatus(owner Owner, steps []*Step, outcomes []Outcome, now metav1.Time) Owner {
	after, _ := k.withStatus(owner, steps, outcomes, now)
	return after
}

// withStatus also returns the earliest time at which a part says to come again, or zero.
func (k *Kind) withStatus(owner Owner, steps []*Step, outcomes []Outcome, now metav1.Time) (Owner, time.Time) {
	// A copy, because the objects of a cache are shared.
	after := CopyOf(owner)
	conditions := after.GetConditions()
	ResetStatus(after)
	after.SetConditions(conditions)
	after.SetObservedGeneration(owner.GetGeneration())
	if request := k.requestOf(owner); request != "" && !isPending(outcomes) {
		after.SetLastHandledSync(request)
	} else {
		after.SetLastHandledSync(owner.GetLastHandledSync())
	}
	set := func(condition metav1.Condition) { setCondition(after, now, condition) }
	ready, due := k.readiness(owner, steps, outcomes, now.Time)
	set(metav1.Condition{Type: ConditionReady, Status: ready.Status, Reason: ready.Reason, Message: ready.Message})
	set(metav1.Condition{Type: ConditionStalled, Status: trueIf(ready.Stalled), Reason: ready.Reason, Message: ready.Message})
	set(metav1.Condition{
		Type: ConditionSuspended, Status: trueIf(owner.IsSuspended()), Reason: ReasonSuspended, Message: "spec.suspend is true",
	})
	for i, step := range steps { // after Ready, which stays the first of the conditions
		if own, isKnown := ownCondition(steps, outcomes, i, now.Time); isKnown {
			set(own)
		}
		step.report(after, &outcomes[i])
	}
	conditions = after.GetConditions()
	for i := range conditions {
		// The API server requires a time, and decoding drops an unreadable one.
		if since := &conditions[i].LastTransitionTime; since.IsZero() {
			*since = now
		}
	}
	after.SetConditions(conditions)
	return after, due
}

// ResetStatus clears the status of an owner.
func ResetStatus(owner Owner) { reflect.ValueOf(owner.GetStatus()).Elem().SetZero() }

// has reports whether the owner has the child of a step.
func (s *Step) has(outcome *Outcome) bool {
	return outcome.Child != nil && s.OwnerKind.IsControlledBy(outcome.Child, s.Owner)
}

// ownCondition returns the condition for the children of a row alone, at the first of its steps. It has no
// status if there is no child. Of a set, the first child that is not ready determines it.
func ownCondition(steps []*Step, outcomes []Outcome, first int, now time.Time) (own metav1.Condition, isKnown bool) {
	row := steps[first].ChildKind
	own.Type = row.Condition
	if row.Condition == "" || first > 0 && steps[first-1].ChildKind == row {
		return own, false
	}
	for i := first; i < len(steps) && steps[i].ChildKind == row; i++ {
		step, outcome := steps[i], &outcomes[i]
		switch {
		case outcome.Stale:
			return own, false
		case own.Status == metav1.ConditionFalse:
		case step.has(outcome) || row.IsSet() && !step.Unwanted || row.IsCall(): // a reference, too
			readiness := step.Readiness(outcome).asOf(now, step)
			if answer := outcome.Answer; answer != nil && answer.Err != nil && readiness.Status == metav1.ConditionTrue {
				readiness = step.unsure(answer)
			}
			own.Status, own.Message, own.Reason = readiness.Status, readiness.Message, cmp.Or(readiness.Reason, ReasonAvailable)
		}
	}
	return own, true
}

// report adds what the child reports, or the one with an earlier name that serves.
func (s *Step) report(after Owner, outcome *Outcome) {
	switch {
	case outcome.Answer != nil:
		s.call.Report(after, outcome.Answer.Value)
	case s.has(outcome):
		s.Report(after, outcome.Child)
	case len(s.InService) > 0:
		s.Report(after, s.InService[0])
	}
}

// setCondition sets a condition for the newest spec, or removes it if it has no status.
func setCondition(owner Owner, now metav1.Time, condition metav1.Condition) {
	conditions := owner.GetConditions()
	if condition.Status == "" {
		meta.RemoveStatusCondition(&conditions, condition.Type)
	} else {
		condition.ObservedGeneration, condition.LastTransitionTime = owner.GetGeneration(), now
		meta.SetStatusCondition(&conditions, condition)
	}
	owner.SetConditions(conditions)
}

// trueIf returns the status of a condition that is either True or absent.
func trueIf(holds bool) metav1.ConditionStatus {
	if holds {
		return metav1.ConditionTrue
	}
	return ""
}

// IsAtRest reports whether an owner's status says that it is ready, or that it will not become
// ready until someone acts. Tools that wait for an owner also stop at Stalled.
func IsAtRest(owner Owner) bool {
	return meta.IsStatusConditionTrue(owner.GetConditions(), ConditionReady) ||
		meta.IsStatusConditionTrue(owner.GetConditions(), ConditionStalled)
}

// said returns a condition of an owner's status if it is about this child and the newest spec, and
// has this status and reason, else nil. about is a part of the message that tells what it is
// about: several problems share a reason.
func (c *ChildKind) said(owner Owner, condition string, status metav1.ConditionStatus, reason, about string) *metav1.Condition {
	was := meta.FindStatusCondition(owner.GetConditions(), condition)
	if was == nil || was.Status != status || was.Reason != reason || was.ObservedGeneration != owner.GetGeneration() || !strings.Contains(was.Message, about) {
		return nil
	}
	return was
}

// saidStalled reports whether an owner's status says that a problem of this child stalls the newest
// spec.
func (c *ChildKind) saidStalled(owner Owner, reason, about string) bool {
	return c.said(owner, ConditionStalled, metav1.ConditionTrue, reason, about) != nil
}

// SaidFight reports whether an owner's status says that another client changes this child back
// after each repair.
func (c *ChildKind) SaidFight(owner Owner) bool {
	return c.saidStalled(owner, c.Kind+SuffixFailed, afterEach)
}

// wasReady reports whether an owner was ready with its newest spec, and has only lost Pods since.
func wasReady(owner Owner) bool {
	ready := ReadyOf(owner)
	if ready == nil || ready.ObservedGeneration != owner.GetGeneration() {
		return false
	}
	return ready.Status == metav1.ConditionTrue || ready.Reason == ReasonDegraded || ready.Reason == ReasonUnavailable
}

// SaysReady reports whether an owner's status says that the owner is ready for its newest spec.
func SaysReady(owner Owner) bool {
	ready := ReadyOf(owner)
	return ready != nil && ready.Status == metav1.ConditionTrue && ready.ObservedGeneration == owner.GetGeneration() &&
		owner.GetObservedGeneration() == owner.GetGeneration()
}

// ReadyOf returns the condition Ready of an owner's status, or nil.
func ReadyOf(owner Owner) *metav1.Condition {
	return meta.FindStatusCondition(owner.GetConditions(), ConditionReady)
}

// CountByReady counts owners by the status of their condition Ready. A condition for an older
// generation counts as Unknown: a changed owner must not count as ready while its status
// can't be written.
func CountByReady(owners []any) map[metav1.ConditionStatus]int {
	counts := map[metav1.ConditionStatus]int{metav1.ConditionTrue: 0, metav1.ConditionFalse: 0, metav1.ConditionUnknown: 0}
	for _, object := range owners {
		owner, status := object.(Owner), metav1.ConditionUnknown //nolint:forcetypeassert // objects of the kind
		ready := ReadyOf(owner)
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

// ReadyChanged returns the condition Ready of an owner's new status if its status or reason
// changed, else nil. A change of the message alone, such as one more available Pod, is not a
// transition.
func ReadyChanged(before, after Owner) *metav1.Condition {
	return changed(before, after, ConditionReady)
}

// OwnChanged returns the conditions for single children in an owner's new status that are new,
// or whose status or reason changed.
func (k *Kind) OwnChanged(before, after Owner) (all []metav1.Condition) {
	for _, kind := range slices.Concat(k.References, k.Calls, k.Children) {
		if own := changed(before, after, kind.Condition); own != nil {
			all = append(all, *own)
		}
	}
	return all
}

func changed(before, after Owner, condition string) *metav1.Condition {
	was := meta.FindStatusCondition(before.GetConditions(), condition)
	is := meta.FindStatusCondition(after.GetConditions(), condition)
	if is != nil && was != nil && was.Status == is.Status && was.Reason == is.Reason {
		return nil
	}
	return is
}

// Truncate cuts a text to at most limit bytes, at the boundary of a character. It replaces
// invalid UTF-8, for example in a proxy's response, because the API server would not store it
// as sent.
func Truncate(text string, limit int) string {
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
	if strings.HasSuffix(reason, SuffixConflict) || strings.HasSuffix(reason, SuffixFailed) || strings.HasSuffix(reason, SuffixMissing) || reason == ReasonUnavailable {
		return corev1.EventTypeWarning
	}
	return corev1.EventTypeNormal
}
