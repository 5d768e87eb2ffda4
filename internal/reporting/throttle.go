// SPDX-License-Identifier: Apache-2.0

// Package reporting remembers what the API server has been told about Foos: statuses that
// may wait, statuses that it does not store, and transitions that have no Event yet.
package reporting

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"example.com/sample-controller/internal/keyed"
	"example.com/sample-controller/internal/plan"
	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// ThrottleInterval is how long a status may wait that differs only in the number of a
// rollout's Pods. A child's status changes with each Pod; writing each time would
// be most of what a new Foo costs the API server.
const ThrottleInterval = 5 * time.Second

// MessageInterval is how long a status of a stalled Foo may wait that differs only in its
// words. Many Foos may wait for one name, and each change of who has it would be a write for
// each. Two controllers that fight about a child each say what the other changes.
const MessageInterval = 30 * time.Second

// Throttle delays statuses that report nothing but the progress of a rollout. What
// somebody may be waiting for is written at once.
type Throttle struct {
	Clock clock.PassiveClock
	// The Map holds when the oldest progress that is not written yet was seen.
	keyed.Map[time.Time]
}

// Wait returns how long a Foo's new status has to wait; 0 means that it is to be written
// now. After a sync that was not complete, only the number of Pods may wait.
func (p *Throttle) Wait(before, after plan.Owner, complete bool) time.Duration {
	key := cache.MetaObjectToName(before)
	interval := intervalOf(before, after, complete)
	if interval == 0 {
		p.Delete(key)
		return 0
	}
	since, known := p.Get(key)
	if !known {
		since = p.Clock.Now()
		p.Set(key, since)
	}
	left := interval - p.Clock.Since(since)
	if left <= 0 {
		p.Delete(key)
		return 0
	}
	return left
}

// MayWait reports whether a status may be written later than a sync calculates it.
func MayWait(before, after plan.Owner, complete bool) bool {
	return intervalOf(before, after, complete) > 0
}

// intervalOf returns how long a status may wait.
func intervalOf(before, after plan.Owner, complete bool) time.Duration {
	switch {
	case complete && isProgressAlone(before, after), isCountAlone(before, after):
		return ThrottleInterval
	case isMessageAlone(before, after):
		return MessageInterval
	}
	return 0
}

// isMessageAlone reports whether the statuses of a Foo that was stalled, and is, differ in
// nothing but words.
func isMessageAlone(before, after plan.Owner) bool {
	if !meta.IsStatusConditionTrue(*after.GetConditions(), samplev1alpha1.ConditionStalled) || sameStatus(before, after) {
		return false
	}
	before, after = withoutProgress(before), withoutProgress(after)
	for _, conditions := range [][]metav1.Condition{*before.GetConditions(), *after.GetConditions()} {
		for i := range conditions {
			conditions[i].Message = ""
		}
	}
	return sameStatus(before, after)
}

// isCountAlone reports whether two statuses differ in nothing but the number of Pods, as
// when those of a refused child come and go.
func isCountAlone(before, after plan.Owner) bool {
	return !sameStatus(before, after) && sameStatus(withoutProgress(before), withoutProgress(after))
}

// isProgressAlone reports whether two statuses differ in nothing but the progress of the
// same rollout: the number of Pods, and the condition that tells it.
func isProgressAlone(before, after plan.Owner) bool {
	was := meta.FindStatusCondition(*before.GetConditions(), samplev1alpha1.ConditionReady)
	is := meta.FindStatusCondition(*after.GetConditions(), samplev1alpha1.ConditionReady)
	if was == nil || is == nil || is.Reason != samplev1alpha1.ReasonProgressing || was.Reason != is.Reason {
		return false
	}
	before, after = withoutProgress(before), withoutProgress(after)
	*meta.FindStatusCondition(*before.GetConditions(), samplev1alpha1.ConditionReady) = *is
	return sameStatus(before, after)
}

func sameStatus(a, b plan.Owner) bool {
	return equality.Semantic.DeepEqual(a.GetStatus(), b.GetStatus())
}

// withoutProgress returns a copy without the numbers that change while a child makes progress.
func withoutProgress(owner plan.Owner) plan.Owner {
	owner = copyOf(owner)
	owner.ResetProgress()
	return owner
}

func copyOf(owner plan.Owner) plan.Owner {
	return owner.DeepCopyObject().(plan.Owner) //nolint:forcetypeassert // a copy of an owner is one
}

// Transitions remembers the last change of a Foo's readiness that was sent, until the
// cache shows whether it was stored. The answer to a status write can be lost. If the
// write was stored nevertheless, its Event is recorded then. Each transition has one
// Event, unless the controller dies between the two, or another one replaces the status
// before a sync has seen it.
type Transitions struct {
	keyed.Map[transition]
}

// transition are the status writes that change a Foo's readiness and were made from one
// version of the Foo. The API server stores at most one of them.
type transition struct {
	owner types.UID
	// from is that version, as a resourceVersion.
	from string
	// unanswered are the conditions that were sent and may have been stored. There are
	// none once the transition has its Event.
	unanswered []readiness
}

// readiness identifies a condition Ready. The time, in seconds as it is stored,
// distinguishes it from what another controller writes.
type readiness struct {
	status     metav1.ConditionStatus
	reason     string
	generation int64
	since      int64
}

func readinessOf(ready *metav1.Condition) readiness {
	return readiness{ready.Status, ready.Reason, ready.ObservedGeneration, ready.LastTransitionTime.Unix()}
}

// Stored records that a write was answered, so that its Event is recorded.
func (t *Transitions) Stored(owner plan.Owner) {
	t.Set(cache.MetaObjectToName(owner), transition{owner: owner.GetUID(), from: owner.GetResourceVersion()})
}

// Unknown records a write that may or may not have been stored.
func (t *Transitions) Unknown(owner plan.Owner, ready metav1.Condition) {
	key := cache.MetaObjectToName(owner)
	known, ok := t.Get(key)
	sent := readinessOf(&ready)
	switch {
	case !ok || known.from != owner.GetResourceVersion():
		t.Set(key, transition{owner.GetUID(), owner.GetResourceVersion(), []readiness{sent}})
	case len(known.unanswered) == 0:
		// Another from the same version was stored, so this one was not.
	case !slices.Contains(known.unanswered, sent):
		t.Set(key, transition{known.owner, known.from, append(slices.Clip(known.unanswered), sent)})
	}
}

// Missed returns the condition Ready of a cached Foo if it has no Event yet, else nil.
func (t *Transitions) Missed(owner plan.Owner) *metav1.Condition {
	key := cache.MetaObjectToName(owner)
	known, ok := t.Get(key)
	if !ok || known.from == owner.GetResourceVersion() {
		return nil // the cache does not show it yet
	}
	t.Delete(key)
	ready := meta.FindStatusCondition(*owner.GetConditions(), samplev1alpha1.ConditionReady)
	if ready == nil || known.owner != owner.GetUID() || !slices.Contains(known.unanswered, readinessOf(ready)) {
		return nil
	}
	return ready
}
