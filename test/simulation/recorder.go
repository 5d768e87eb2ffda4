// SPDX-License-Identifier: Apache-2.0

// The recorder of a controller's events, and the rule that each transition of a Foo's
// condition Ready has one event.

package simulation

import (
	"errors"
	"net/http"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"

	"example.com/sample-controller/test/footest"
)

// recorder is an event recorder that matches events with transitions.
type recorder struct {
	record.EventRecorder // of which the controller calls only Event

	conn *connection
}

// Event reports a violation if the event belongs to no transition.
func (r recorder) Event(object runtime.Object, _, reason, _ string) {
	name, uid := object.(footest.Object).GetName(), object.(footest.Object).GetUID()
	c := r.conn
	c.cluster.tracef("%s: event %s on %s %s", c.name, reason, c.cluster.owner, name)
	c.mu.Lock()
	c.pendingEvents[uid]--
	tooMany := c.pendingEvents[uid] < 0
	c.mu.Unlock()
	if tooMany && !c.recordsForCrashed(uid) && !c.storedUnanswered(uid, reason) {
		c.cluster.violationf("%s sent the event %s on %s %s without a transition", c.name, reason, c.cluster.owner, name)
	}
}

// recordsForCrashed reports whether an event belongs to a transition that another
// controller wrote before it crashed. A controller that got no answer to the same write
// regards that transition as its own.
func (c *connection) recordsForCrashed(uid types.UID) bool {
	c.cluster.mu.Lock()
	others := slices.Clone(c.cluster.connections)
	c.cluster.mu.Unlock()
	if !slices.ContainsFunc(others, func(other *connection) bool { return other != c && other.crashedBeforeEvent(uid) }) {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pendingEvents[uid]++
	return true
}

// crashedBeforeEvent reports whether a controller crashed between a transition and its
// event. If so, it takes the transition off that controller's account.
func (c *connection) crashedBeforeEvent(uid types.UID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.dead || c.pendingEvents[uid] == 0 {
		return false
	}
	c.pendingEvents[uid]--
	return true
}

// readiness holds the contents of a condition Ready. Times are in whole seconds, as in a
// stored status.
type readiness struct {
	uid            types.UID
	status, reason string
	generation     int64
	since          int64
}

func readinessOf(foo footest.Object) (r readiness, ok bool) {
	if foo == nil || !footest.IsOwner(foo) {
		return readiness{}, false
	}
	ready := footest.ConditionOf(foo)
	if ready == nil {
		return readiness{}, false
	}
	return readiness{foo.GetUID(), string(ready.Status), ready.Reason, ready.ObservedGeneration, ready.LastTransitionTime.Unix()}, true
}

// isTransition reports whether a write changes the status or the reason of Ready.
func isTransition(before, after footest.Object) bool {
	was, is := footest.ConditionOf(before), footest.ConditionOf(after)
	if was == nil {
		was = &metav1.Condition{}
	}
	return is != nil && (was.Status != is.Status || was.Reason != is.Reason)
}

// noteUnanswered remembers a status write if its answer leaves open whether it was
// stored.
func (c *connection) noteUnanswered(sent footest.Object, err error) {
	ready, ok := readinessOf(sent)
	var answer apierrors.APIStatus
	if !ok || err == nil || errors.As(err, &answer) && answer.Status().Code < http.StatusInternalServerError {
		return
	}
	now, getErr := c.cluster.api.get(idOf(sent))
	c.mu.Lock()
	defer c.mu.Unlock()
	c.unanswered = append(c.unanswered, ready)
	if current, _ := readinessOf(now); getErr == nil && c.transitions[ready.uid] == ready && current != ready {
		c.overtaken[ready.uid]++
	}
}

// storedUnanswered reports whether a status that this controller wrote without getting an
// answer is stored, whichever controller stored it. If two controllers write the same
// within one second, their writes can't be distinguished, and each may send the event.
func (c *connection) storedUnanswered(uid types.UID, reason string) bool {
	stored := map[readiness]bool{}
	changes, _ := c.cluster.api.next(0)
	for _, change := range changes {
		if ready, ok := readinessOf(change.object); ok {
			stored[ready] = true
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	i := slices.IndexFunc(c.unanswered, func(r readiness) bool { return r.uid == uid && r.reason == reason && stored[r] })
	if i < 0 {
		return false
	}
	c.unanswered = slices.Delete(c.unanswered, i, i+1)
	c.pendingEvents[uid]++
	return true
}
