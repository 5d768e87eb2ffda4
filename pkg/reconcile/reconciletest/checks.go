// SPDX-License-Identifier: Apache-2.0

// The rules for each write of a controller and for its events, and the checks at the end of a run,
// when the cluster has come to rest. The rules judge a write by the state at its commit, not by
// what its sender could know.

package reconciletest

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/diff"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/record"

	"example.com/sample-controller/pkg/reconcile/plan"
	"example.com/sample-controller/pkg/reconcile/reconciletest/rows"
	"example.com/sample-controller/pkg/reconcile/reconciletest/rules"
)

const (
	// recoveryTime bounds the effects of faults, from the last one on. Late writes and the
	// back-off after failures end within it.
	recoveryTime = 30 * time.Second
	// idleTime contains several resyncs.
	idleTime = 3*ResyncPeriod + time.Second
)

// check lets the cluster come to rest after the last step and the last fault, checks all
// objects and the history, and returns the objects.
func (c *cluster) check(rest time.Duration) []rows.Object {
	c.mu.Lock()
	resting, rest := len(c.points), c.longest(rest)
	c.mu.Unlock()
	advance(rest)
	for c.sinceFault() < rest {
		advance(rest - c.sinceFault())
	}
	// What is polled at rest is so in all runs alike.
	c.mu.Lock()
	c.points = append(c.points[:resting:resting], slices.DeleteFunc(slices.Clone(c.points[resting:]), c.isPoll)...)
	c.mu.Unlock()
	w := c.world()
	for _, wrong := range w.WrongAtRest() {
		c.violationf("at rest: %s", wrong)
	}
	c.checkOutside(w)
	for _, object := range w.Objects {
		c.checkNothingIsPending(object)
	}
	c.checkIdle()
	c.checkEvents(w)
	c.checkReadiness()
	return w.Objects
}

// checkNothingIsPending checks that an object has come to its end: no workload leaves an owner
// suspended, a child that goes, or one that does not become ready.
func (c *cluster) checkNothingIsPending(object rows.Object) {
	if c.owner.Is(object) {
		ready := rows.ConditionOf(object)
		if ready != nil && ready.Status != metav1.ConditionTrue && !strings.HasSuffix(ready.Reason, plan.SuffixConflict) && !c.world().LacksReferences(object) {
			c.violationf("at rest: %s %s still says %s: %s", c.owner, object.GetName(), ready.Reason, ready.Message)
		}
	} else if metav1.GetControllerOf(object) != nil && object.GetDeletionTimestamp() != nil {
		c.violationf("at rest: %s is still being deleted", c.idOf(object))
	}
}

func (c *cluster) sinceFault() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Since(c.lastFault)
}

// history returns the states of all objects.
func (c *cluster) history() *rules.History {
	history := &rules.History{Owner: c.owner}
	changes, _ := c.api.next(0)
	for _, change := range changes {
		history.Add(change.object, change.kind == watch.Deleted)
	}
	return history
}

// checkPromptness checks that an owner does not report Ready any more when a child is not. Only without faults is it known
// how soon it has to.
func (c *cluster) checkPromptness() {
	changes, _ := c.api.next(0)
	at := func(version uint64) time.Time { return changes[version-firstVersion-1].at }
	for _, delayed := range c.history().Delayed(at, controlPlaneInterval/2) {
		c.violationf("%s", delayed)
	}
}

// checkReadiness checks that no owner ever reported Ready before it was ready.
func (c *cluster) checkReadiness() {
	history := c.history()
	lies, err := history.Lies()
	if err != nil {
		c.violationf("keeping the recorded statuses: %v", err)
	}
	for _, lie := range lies {
		c.violationf("%s", lie)
	}
}

// checkEvents checks that each transition has an event, unless its controller crashed, or
// could not know that it was stored.
func (c *cluster) checkEvents(w rules.World) {
	if c.owner.NoEvents {
		return
	}
	for _, conn := range c.connections {
		conn.mu.Lock()
		for _, foo := range w.Objects {
			if pending := conn.pendingEvents[foo.GetUID()]; pending > conn.overtaken[foo.GetUID()] && !conn.dead {
				c.violationf("%s recorded no event for %d transitions of %s %s", conn.name, pending, c.owner, foo.GetName())
			}
		}
		conn.mu.Unlock()
	}
}

// checkIdle checks that the controller makes no calls during several resyncs.
func (c *cluster) checkIdle() {
	c.mu.Lock()
	before := len(c.points)
	c.mu.Unlock()
	c.tracef("no calls are expected from here on")
	advance(idleTime)
	c.mu.Lock()
	after := slices.DeleteFunc(slices.Clone(c.points[before:]), c.isPoll)
	c.points = c.points[:before]
	c.mu.Unlock()
	if len(after) > 0 {
		c.violationf("the calls do not end: %v", after)
	}
}

// checkAgainst checks that objects equal those of the run without faults.
func (c *cluster) checkAgainst(baseline, objects []rows.Object) {
	if want, got := c.withoutVersions(baseline), c.withoutVersions(objects); !equality.Semantic.DeepEqual(want, got) {
		c.violationf("the final state differs from that of the run without faults (-want +got):\n%s", diff.Diff(want, got))
	}
}

// withoutVersions returns objects without the fields that may differ between runs: versions,
// times, and the number in a child's UID. While an object that an owner names is missing, its children have
// what they had before, which depends on the faults.
func (c *cluster) withoutVersions(objects []rows.Object) []rows.Object {
	var same []rows.Object
	isWithout := slices.ContainsFunc(objects, func(object rows.Object) bool {
		return c.owner.Is(object) && rules.World{Owner: c.owner, Objects: objects}.LacksReferences(object)
	})
	for _, object := range objects {
		object = rows.CopyOf(object)
		object.SetResourceVersion("")
		if c.owner.Is(object) {
			conditions := rows.ConditionsOf(object)
			for i := range conditions {
				conditions[i].LastTransitionTime = metav1.Time{}
			}
		} else {
			if isWithout {
				object = c.owner.KindOf(object).OthersPart(object, nil)
			}
			object.SetUID("")
			object.SetGeneration(0)
			rows.ClearObservedGeneration(object)
		}
		same = append(same, object)
	}
	return same
}

// inspect returns the inspector of a controller's writes. The API server is locked while
// it runs.
func (c *connection) inspect(action string) inspector {
	return func(stored, next rows.Object) {
		c.inspectLate(stored, next)
		id := c.cluster.idOf(cmp.Or(next, stored))
		if stored != nil && next != nil && !c.stale && !c.cluster.mutatesWrites() && equality.Semantic.DeepEqual(stored, next) {
			c.cluster.violationf("%s sent a write of %s that changes nothing", c.name, id)
		}
		w := c.stored()
		if action == "update-status" {
			if wrong := cmp.Or(w.WrongStatus(stored, next), w.RevealedIn(next)); wrong != "" {
				c.cluster.violationf("%s sent %s of %s, %s", c.name, action, id, wrong)
			}
			return
		}
		known := func(name string) rows.Object { return c.cluster.api.objects[objectID{id.kind, name}] }
		wrong := cmp.Or(w.WrongWrite(stored, next, known), c.recreated(id, stored, next, w.OwnerOf(cmp.Or(next, stored))))
		seen := func(name string) rows.Object { return c.seen(objectID{id.kind, name}) }
		if wrong == "" && !c.stale && !w.Owner.Is(cmp.Or(next, stored)) && w.WrongOrder(stored, next, seen) != "" {
			wrong = w.WrongOrder(stored, next, known)
		}
		if wrong != "" {
			c.cluster.violationf("%s sent %s of %s, %s", c.name, action, id, wrong)
		}
	}
}

// inspectLate checks the rule that holds even for a write that arrives after its sender
// gave up: it does not change fields of others.
func (c *connection) inspectLate(stored, next rows.Object) {
	if stored == nil || next == nil {
		return
	}
	if c.cluster.owner.Is(stored) && isTransition(stored, next) {
		ready, _ := c.cluster.readinessOf(next)
		c.pendingEvents[ready.uid]++
		c.transitions[ready.uid] = ready
	}
	if taken := c.cluster.owner.KindOf(next).DescribeTaken(stored, next, nil); taken != "" {
		c.cluster.violationf("%s changed fields of others in %s (-before +after):\n%s", c.name, c.cluster.idOf(next), taken)
	}
}

// inspectRefused checks that a write was not refused because the controller forgot what it
// last wrote for the same owner: for some time, it waits until its cache has that.
func (c *connection) inspectRefused(r *request, err error) {
	own, ok := c.own[r.point.id]
	sent, isObject := r.Sent.(rows.Object)
	if !ok || c.lossy || time.Since(own.at) >= CallTimeout || !isObject || !reflect.DeepEqual(sent.GetOwnerReferences(), own.owners) {
		return
	}
	stored, getErr := c.cluster.api.get(r.point.id)
	if getErr != nil || stored.GetUID() != own.uid {
		return
	}
	reason := apierrors.ReasonForError(err) // a webhook may deny with the code alone
	if reason == metav1.StatusReasonAlreadyExists || reason == metav1.StatusReasonConflict && stored.GetResourceVersion() == own.version {
		c.cluster.violationf("%s sent %s of %s although its own write %s ago was not in its cache yet", c.name, r.Action(), r.point.id, time.Since(own.at))
	}
}

// recreated says of a create if a controller had deleted the child for the same generation of its owner,
// foo, or nil.
func (c *connection) recreated(id objectID, stored, next, foo rows.Object) string {
	removed := c.cluster.removed
	switch {
	case foo == nil:
	case next == nil:
		removed[id] = generationOf(foo)
	case stored == nil && !c.stale && removed[id] == generationOf(foo):
		return "which a controller had deleted for the same generation of the owner"
	}
	return ""
}

// generationOf identifies an owner and its generation.
func generationOf(foo rows.Object) string {
	return fmt.Sprintf("%s, generation %d", foo.GetUID(), foo.GetGeneration())
}

// stored returns all objects. Only inspectors may call it, because they hold the API server's
// lock.
func (c *connection) stored() rules.World {
	return rules.World{Owner: c.cluster.owner, Objects: slices.Collect(maps.Values(c.cluster.api.objects))}
}

// recorder is an event recorder that matches events with transitions.
type recorder struct {
	record.EventRecorder // of which the controller calls only Event

	conn *connection
}

// Event reports a violation if the event belongs to no transition.
func (r recorder) Event(object runtime.Object, _, reason, message string) {
	name, uid := object.(rows.Object).GetName(), object.(rows.Object).GetUID()
	c := r.conn
	c.cluster.tracef("%s: event %s on %s %s", c.name, reason, c.cluster.owner, name)
	if len(c.cluster.owner.References) > 0 {
		if wrong := c.cluster.world().Revealed(message); wrong != "" {
			c.cluster.violationf("%s sent the event %s on %s %s, %s", c.name, reason, c.cluster.owner, name, wrong)
		}
	}
	if reason == plan.ReasonRepairsUndone {
		return // about an opponent, and no transition
	}
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

func (c *cluster) readinessOf(foo rows.Object) (r readiness, ok bool) {
	if foo == nil || !c.owner.Is(foo) {
		return readiness{}, false
	}
	ready := rows.ConditionOf(foo)
	if ready == nil {
		return readiness{}, false
	}
	return readiness{foo.GetUID(), string(ready.Status), ready.Reason, ready.ObservedGeneration, ready.LastTransitionTime.Unix()}, true
}

// isTransition reports whether a write changes the status or the reason of Ready.
func isTransition(before, after rows.Object) bool {
	was, is := rows.ConditionOf(before), rows.ConditionOf(after)
	if was == nil {
		was = &metav1.Condition{}
	}
	return is != nil && (was.Status != is.Status || was.Reason != is.Reason)
}

// noteUnanswered remembers a status write if its answer leaves open whether it was
// stored.
func (c *connection) noteUnanswered(sent rows.Object, err error) {
	ready, ok := c.cluster.readinessOf(sent)
	var answer apierrors.APIStatus
	if !ok || err == nil || errors.As(err, &answer) && answer.Status().Code < http.StatusInternalServerError {
		return
	}
	now, getErr := c.cluster.api.get(c.cluster.idOf(sent))
	c.mu.Lock()
	defer c.mu.Unlock()
	c.unanswered = append(c.unanswered, ready)
	if current, _ := c.cluster.readinessOf(now); getErr == nil && c.transitions[ready.uid] == ready && current != ready {
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
		if ready, ok := c.cluster.readinessOf(change.object); ok {
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
