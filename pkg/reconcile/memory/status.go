// SPDX-License-Identifier: Apache-2.0

// The statuses of owners: those that may wait, those that the API server can't store, and
// transitions without an Event.

package memory

import (
	"fmt"
	"reflect"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"

	"example.com/sample-controller/pkg/reconcile/failure"
	"example.com/sample-controller/pkg/reconcile/plan"
)

// ThrottleInterval is how long a status may wait if it differs only in the number of a
// rollout's Pods. A child's status changes with each Pod; writing each time would account for
// most of a new owner's load on the API server.
const ThrottleInterval = 5 * time.Second

// MessageInterval is how long a stalled owner's status may wait if it differs only in its
// messages. Many owners may wait for one name, and each change of its holder would cause a write
// for each owner. Two controllers that fight over a child each report the other's changes.
const MessageInterval = 30 * time.Second

// Postpone records that a status waits because it reports nothing but progress, and returns how much
// longer; 0 means that it must be written now. interval is how long it may wait, as of MayWait.
func (o *Owner) Postpone(interval time.Duration, now time.Time) time.Duration {
	if interval > 0 && o.postponed.IsZero() {
		o.postponed = now
	}
	left := interval - now.Sub(o.postponed)
	if interval == 0 || left <= 0 {
		o.postponed = time.Time{}
		return 0
	}
	return left
}

// longestFlap bounds how long an improvement must last before the status says so.
const longestFlap = 30 * time.Second

// health orders statuses: ready, not ready, and nothing that serves.
func health(owner plan.Owner) int {
	ready := meta.FindStatusCondition(owner.GetConditions(), plan.ConditionReady)
	switch {
	case plan.SaysReady(owner):
		return 2
	case ready != nil && ready.Reason == plan.ReasonUnavailable:
		return 0
	}
	return 1
}

// RecoveryWait returns how much longer an improvement of the status has to last before it is written.
//
// The readiness may be lost again and again with one spec, for example because the Pods' probe fails now
// and then. Each time would cause two writes and two Events. After some, an improvement is written
// only once it has lasted, so that the status never promises more than there is.
func (o *Owner) RecoveryWait(before, after plan.Owner, now time.Time) time.Duration {
	if o.losses.count == 0 || health(after) <= health(before) {
		return 0
	}
	return max(0, min(o.losses.pause(), longestFlap)-now.Sub(o.losses.last))
}

// ObserveHealth records in each sync that the owner is still not ready, if there is a series of
// losses.
func (o *Owner) ObserveHealth(before, after plan.Owner, now time.Time) {
	if o.losses.count > 0 && health(after) <= health(before) && !plan.SaysReady(after) {
		o.losses.last = now
	}
}

// WroteStatus records a status that has replaced another.
func (o *Owner) WroteStatus(before, after plan.Owner, now time.Time) {
	if before.GetObservedGeneration() == after.GetGeneration() && health(after) < health(before) {
		o.losses.generation, o.losses.count, o.losses.last = after.GetGeneration(), o.losses.count+1, now
	}
}

// MayWait returns how long a status may be written after a sync calculates it: 0 if a user may be
// waiting for it. The number of Pods also changes when those of a refused child come and go. The
// progress of a rollout may change conditions, too, unless the sync was not complete.
func MayWait(before, after plan.Owner, complete bool) time.Duration {
	if sameStatus(before, after) {
		return 0
	}
	before, after = withoutProgress(before), withoutProgress(after)
	switch {
	case sameStatus(before, after), complete && isProgress(before, after):
		return ThrottleInterval
	case meta.IsStatusConditionTrue(after.GetConditions(), plan.ConditionStalled) && differInWords(before, after):
		return MessageInterval
	}
	return 0
}

// differInWords reports whether statuses differ only in messages. It modifies both.
func differInWords(before, after plan.Owner) bool {
	for _, conditions := range [][]metav1.Condition{before.GetConditions(), after.GetConditions()} {
		for i := range conditions {
			conditions[i].Message = ""
		}
	}
	return sameStatus(before, after)
}

// isProgress reports whether statuses differ only in conditions that report the progress of the
// same rollout: Ready, and the conditions for single children.
func isProgress(before, after plan.Owner) bool {
	before = plan.CopyOf(before)
	for _, is := range after.GetConditions() {
		was := meta.FindStatusCondition(before.GetConditions(), is.Type)
		if was != nil && is.Reason == plan.ReasonProgressing && was.Reason == is.Reason {
			*was = is
		}
	}
	return sameStatus(before, after)
}

func sameStatus(a, b plan.Owner) bool {
	return equality.Semantic.DeepEqual(a.GetStatus(), b.GetStatus())
}

// withoutProgress returns a copy without the numbers that change while a child makes progress.
func withoutProgress(owner plan.Owner) plan.Owner {
	owner = plan.CopyOf(owner)
	owner.ResetProgress()
	return owner
}

// Transition is the last change of an owner's readiness that was sent, until the cache shows
// whether it was stored. The response to a status write can be lost. If the write was stored
// anyway, its Event is recorded as soon as the cache shows it. Each transition has one Event,
// unless the controller dies between the two, or another controller replaces the status
// before a sync has seen it.
//
// It holds the status writes that change the readiness and are based on one version of the
// owner. The API server stores at most one of them.
type Transition struct {
	// from is that version, as a resourceVersion.
	from string
	// unanswered are the conditions that were sent and may have been stored. There are
	// none after the transition has its Event.
	unanswered []metav1.Condition
}

// IsZero reports whether there is no transition.
func (t *Transition) IsZero() bool { return t.from == "" }

// readinessOf returns what identifies a condition Ready. The time, in seconds as stored, distinguishes
// it from one that another controller writes.
func readinessOf(ready *metav1.Condition) metav1.Condition {
	return metav1.Condition{
		Status: ready.Status, Reason: ready.Reason, ObservedGeneration: ready.ObservedGeneration,
		LastTransitionTime: metav1.Unix(ready.LastTransitionTime.Unix(), 0),
	}
}

// Stored records that a write succeeded, so the caller records its Event.
func (t *Transition) Stored(owner plan.Owner) { *t = Transition{from: owner.GetResourceVersion()} }

// Unknown records a write that may or may not have been stored.
func (t *Transition) Unknown(owner plan.Owner, ready metav1.Condition) {
	sent := readinessOf(&ready)
	switch {
	case t.from != owner.GetResourceVersion():
		*t = Transition{owner.GetResourceVersion(), []metav1.Condition{sent}}
	case len(t.unanswered) == 0:
		// Another write from the same version was stored, so this one was not.
	case !slices.Contains(t.unanswered, sent):
		t.unanswered = append(slices.Clip(t.unanswered), sent)
	}
}

// Missed returns the condition Ready of a cached owner if it has no Event yet, else nil.
func (t *Transition) Missed(owner plan.Owner) *metav1.Condition {
	if t.IsZero() || t.from == owner.GetResourceVersion() {
		return nil // the cache does not show it yet
	}
	ready := meta.FindStatusCondition(owner.GetConditions(), plan.ConditionReady)
	if ready == nil || !slices.Contains(t.unanswered, readinessOf(ready)) {
		return nil
	}
	return ready
}

// Observe forgets the transition if a cached owner shows it.
func (t *Transition) Observe(owner plan.Owner) {
	if t.from != owner.GetResourceVersion() {
		*t = Transition{}
	}
}

// crdMismatchRetry is how often a status is sent anyway.
const crdMismatchRetry = 5 * time.Minute

// CRDMismatch records that the installed CustomResourceDefinition does not store statuses: it
// prunes fields that it does not know, or has no status subresource. Sending the same again
// would have the same result, at each resync and forever. From time to time one is sent
// anyway, because the definition may have been replaced. It is safe for concurrent use.
type CRDMismatch struct {
	Clock clock.PassiveClock
	// Resource is the owners' resource.
	Resource schema.GroupResource

	mu sync.Mutex
	// retry is when the next status that can't be stored may be sent; zero if all were
	// stored.
	retry time.Time
	// none is true if there is no status subresource, and pruned has the fields of the status
	// that were last not stored as sent.
	none   bool
	pruned map[string]bool
}

// WouldRecur reports whether an owner's status would again not be stored. pruned is the last
// one that was not stored, or nil.
func (m *CRDMismatch) WouldRecur(pruned, after plan.Owner) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.Clock.Now().Before(m.retry) {
		return false
	}
	return m.none || pruned != nil && sameButTimes(pruned, after)
}

// Left returns how long a status that would not be stored has to wait.
func (m *CRDMismatch) Left() time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	return max(0, m.retry.Sub(m.Clock.Now()))
}

// NoSubresource records that there is no status subresource, and returns an error that
// says so.
func (m *CRDMismatch) NoSubresource() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.none = true
	m.retry = m.Clock.Now().Add(crdMismatchRetry)
	return fmt.Errorf("%s has no status subresource: %w", m.Resource, failure.ErrCRDMismatch)
}

// HasNoSubresource reports whether no status can be stored, as far as is known.
func (m *CRDMismatch) HasNoSubresource() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.none
}

// Observe compares the status that the API server stored for an owner with the one that was
// sent. Others may add to it. If something is missing, it returns the owner with the sent
// status and, the first time for any owner since all were stored, an error.
func (m *CRDMismatch) Observe(sent, stored plan.Owner) (pruned plan.Owner, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.none && m.retry.IsZero() && sameButTimes(sent, stored) {
		return nil, nil // almost always, and without the cost of JSON
	}
	of, in := fieldsOf(sent), fieldsOf(stored)
	missing, isMended := map[string]bool{}, m.none
	for name, value := range of {
		if !contains(in[name], value) {
			missing[name] = true
		}
		isMended = isMended || m.pruned[name] && !missing[name] && !reflect.ValueOf(value).IsZero()
	}
	m.none = false
	if isMended {
		m.retry, m.pruned = time.Time{}, nil
	}
	if len(missing) == 0 {
		return nil, nil
	}
	pruned = plan.CopyOf(sent)
	pruned.SetResourceVersion("") // only its status matters
	told := !m.retry.IsZero()
	m.retry, m.pruned = m.Clock.Now().Add(crdMismatchRetry), missing
	if told {
		return pruned, nil
	}
	return pruned, fmt.Errorf("%s prunes fields of the status: %w", m.Resource, failure.ErrCRDMismatch)
}

// fieldsOf returns an owner's status as JSON, without times.
func fieldsOf(owner plan.Owner) map[string]any {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(withoutTimes(owner).GetStatus())
	if err != nil {
		panic(err) // a status is always JSON
	}
	return fields
}

// contains reports whether a stored JSON value has all of what was sent. A list may have
// another order and further elements, as conditions do if a webhook adds one.
func contains(stored, sent any) bool {
	switch sent := sent.(type) {
	case nil:
		return true
	case map[string]any:
		fields, _ := stored.(map[string]any)
		for name, value := range sent {
			if !contains(fields[name], value) {
				return false
			}
		}
		return true
	case []any:
		elements, _ := stored.([]any)
		return !slices.ContainsFunc(sent, func(value any) bool {
			return !slices.ContainsFunc(elements, func(element any) bool { return contains(element, value) })
		})
	}
	return stored == sent
}

// sameButTimes compares statuses without the times of their conditions: these are stored
// in whole seconds, and a condition that was not stored has a new time in each sync.
func sameButTimes(a, b plan.Owner) bool {
	return sameStatus(withoutTimes(a), withoutTimes(b))
}

func withoutTimes(owner plan.Owner) plan.Owner {
	owner = plan.CopyOf(owner)
	for i := range owner.GetConditions() {
		(owner.GetConditions())[i].LastTransitionTime = metav1.Time{}
	}
	return owner
}
