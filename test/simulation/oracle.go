// SPDX-License-Identifier: Apache-2.0

// The rules for each write of a controller, and the checks at the end of a run, when the
// cluster has come to rest. The rules judge a write by the state at its commit, not by
// what its sender could know.

package simulation

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/diff"
	"k8s.io/apimachinery/pkg/watch"

	"example.com/sample-controller/test/footest"
	"example.com/sample-controller/test/oracle"
)

const (
	// recoveryTime bounds the effects of faults, from the last one on. Late writes and the
	// back-off after failures end within it.
	recoveryTime = 30 * time.Second
	// idleTime contains several resyncs.
	idleTime = 3*ResyncPeriod + time.Second
)

// state holds all objects at one time.
type state struct {
	Foos     []footest.Object
	Children []footest.Object
}

func (c *cluster) state() state {
	s := state{Children: c.children()}
	for _, object := range c.api.list(c.owner.Resource.Resource, c.api.version()) {
		s.Foos = append(s.Foos, metaOf(object))
	}
	return s
}

// check lets the cluster come to rest after the last step and the last fault, checks the
// state and the history, and returns the state.
func (c *cluster) check(rest time.Duration) state {
	advance(rest)
	for c.sinceFault() < rest {
		advance(rest - c.sinceFault())
	}
	s := c.state()
	for _, wrong := range (oracle.World{Owner: c.owner, Objects: slices.Concat(s.Foos, s.Children)}).WrongAtRest() {
		c.violationf("at rest: %s", wrong)
	}
	c.checkNothingIsPending(s)
	c.checkIdle()
	c.checkEvents(s)
	c.checkReadiness()
	return s
}

// checkNothingIsPending checks that each Foo has come to its end: no workload leaves a Foo
// suspended, a child that goes, or one that does not become ready.
func (c *cluster) checkNothingIsPending(s state) {
	for _, foo := range s.Foos {
		if ready := footest.ConditionOf(foo); ready != nil && ready.Status != metav1.ConditionTrue && !strings.HasSuffix(ready.Reason, "Conflict") {
			c.violationf("at rest: %s %s still says %s: %s", c.owner, foo.GetName(), ready.Reason, ready.Message)
		}
	}
	for _, child := range s.Children {
		if controllerOf(child) != nil && child.GetDeletionTimestamp() != nil {
			c.violationf("at rest: %s is still being deleted", idOf(child))
		}
	}
}

func (c *cluster) sinceFault() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Since(c.lastFault)
}

// checkReadiness checks that no Foo ever reported Ready before it was ready.
func (c *cluster) checkReadiness() {
	var history oracle.History
	changes, _ := c.api.next(0)
	for _, change := range changes {
		history.Add(metaOf(change.object), change.kind == watch.Deleted)
	}
	for _, lie := range history.Lies() {
		c.violationf("%s", lie)
	}
	if err := history.KeepStatuses(); err != nil {
		c.violationf("%v", err)
	}
}

// checkEvents checks that each transition has an event, unless its controller crashed, or
// could not know that it was stored.
func (c *cluster) checkEvents(s state) {
	for _, conn := range c.connections {
		conn.mu.Lock()
		for _, foo := range s.Foos {
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
	after := c.points[before:]
	c.mu.Unlock()
	if len(after) > 0 {
		c.violationf("the calls do not end: %s", countPoints(after))
	}
}

// countPoints returns injection points with how often each was reached.
func countPoints(points []injectionPoint) string {
	counts := map[injectionPoint]int{}
	for _, point := range points {
		point.n = 0
		counts[point]++
	}
	var texts []string
	for point, times := range counts {
		point.n = times
		texts = append(texts, point.String()+" times")
	}
	slices.Sort(texts)
	return strings.Join(texts, ", ")
}

// checkAgainst checks that a state equals that of the run without faults.
func (c *cluster) checkAgainst(baseline, s state) {
	if want, got := withoutVersions(baseline), withoutVersions(s); !equality.Semantic.DeepEqual(want, got) {
		c.violationf("the final state differs from that of the run without faults (-want +got):\n%s", diff.Diff(want, got))
	}
}

// withoutVersions returns a state without the fields that may differ between runs:
// versions, times, and the number in a child's UID.
func withoutVersions(s state) state {
	var same state
	for _, foo := range s.Foos {
		foo = metaOf(foo.DeepCopyObject())
		foo.SetResourceVersion("")
		conditions := footest.ConditionsOf(foo)
		for i := range conditions {
			conditions[i].LastTransitionTime = metav1.Time{}
		}
		same.Foos = append(same.Foos, foo)
	}
	for _, child := range s.Children {
		child = metaOf(child.DeepCopyObject())
		child.SetUID("")
		child.SetResourceVersion("")
		child.SetGeneration(0)
		footest.ClearObservedGeneration(child)
		same.Children = append(same.Children, child)
	}
	return same
}

// inspect returns the inspector of a controller's writes. The API server is locked while
// it runs.
func (c *connection) inspect(verb string) inspector {
	return func(stored, next runtime.Object) {
		c.inspectLate(stored, next)
		if stored != nil && next != nil && !c.stale && !c.cluster.mutatesWrites() && equality.Semantic.DeepEqual(stored, next) {
			c.cluster.violationf("%s sent a write of %s that changes nothing", c.name, idOf(next))
		}
		switch id := idOf(cmp.Or(next, stored)); {
		case verb == "update-status":
		case id.kind() == c.cluster.owner.Kind && verb == "update": // inspectLate has checked its fields
		case id.kind() == c.cluster.owner.Kind:
			c.cluster.violationf("%s sent %s of %s, which belongs to users", c.name, verb, id)
		case verb == "create":
			c.inspectCreate(metaOf(next))
		case verb == "update":
			c.inspectUpdate(metaOf(stored), metaOf(next))
		case verb == "delete":
			c.inspectDelete(metaOf(stored))
		}
	}
}

// inspectLate checks the rule that holds even for a write that arrives after its sender
// gave up: it does not change fields of others.
func (c *connection) inspectLate(stored, next runtime.Object) {
	if stored == nil || next == nil {
		return
	}
	if footest.IsOwner(stored) && isTransition(metaOf(stored), metaOf(next)) {
		ready, _ := readinessOf(next)
		c.pendingEvents[ready.uid]++
		c.transitions[ready.uid] = ready
	}
	if taken := idOf(next).kind().DescribeTaken(metaOf(stored), metaOf(next), nil); taken != "" {
		c.cluster.violationf("%s changed fields of others in %s (-before +after):\n%s", c.name, idOf(next), taken)
	}
}

// inspectRefused checks that a write was not refused because the controller forgot what it
// last wrote for the same Foo: for some time, it waits until its cache has that.
func (c *connection) inspectRefused(r *request, err error) {
	own, ok := c.own[r.id]
	if !ok || c.lossy || time.Since(own.at) >= CallTimeout || r.sent == nil || !reflect.DeepEqual(metaOf(r.sent).GetOwnerReferences(), own.owners) {
		return
	}
	stored, getErr := c.cluster.api.get(r.id)
	if getErr != nil || metaOf(stored).GetUID() != own.uid {
		return
	}
	reason := apierrors.ReasonForError(err) // a webhook may deny with the code alone
	if reason == metav1.StatusReasonAlreadyExists || reason == metav1.StatusReasonConflict && metaOf(stored).GetResourceVersion() == own.version {
		c.cluster.violationf("%s sent %s of %s although its own write %s ago was not in its cache yet", c.name, r.verb, r.id, time.Since(own.at))
	}
}

func (c *connection) inspectCreate(next footest.Object) {
	ref := controllerOf(next)
	if ref == nil {
		c.cluster.violationf("%s created %s without a controller reference to a %s", c.name, idOf(next), c.cluster.owner)
		return
	}
	if c.stale {
		return
	}
	if foo := c.liveFoo(ref.Name); foo != nil && c.cluster.removed[idOf(next)] == generationOf(foo) {
		c.cluster.violationf("%s recreated %s, which a controller had deleted for the same generation of the %s", c.name, idOf(next), c.cluster.owner)
	}
}

func (c *connection) inspectUpdate(stored, next footest.Object) {
	switch ref, nextRef := controllerOf(stored), controllerOf(next); {
	case ref != nil && c.isLive(ref):
		if nextRef == nil || nextRef.UID != ref.UID {
			c.cluster.violationf("%s changed the owner of %s", c.name, idOf(next))
		}
	case metav1.GetControllerOf(stored) == nil && nextRef != nil && c.isLive(nextRef) &&
		stored.GetAnnotations()["samplecontroller.k8s.io/adopt-by"] == nextRef.Name:
		// An adoption to which the owner consented.
	default:
		c.cluster.violationf("%s wrote to %s, which no live %s controls (owners: %v)", c.name, idOf(next), c.cluster.owner, stored.GetOwnerReferences())
	}
}

func (c *connection) inspectDelete(stored footest.Object) {
	ref := controllerOf(stored)
	if ref == nil || !c.isLive(ref) {
		c.cluster.violationf("%s deleted %s, which no live %s controls (owners: %v)", c.name, idOf(stored), c.cluster.owner, stored.GetOwnerReferences())
		return
	}
	foo, kind := c.liveFoo(ref.Name), idOf(stored).kind()
	if kind.Wanted(foo) {
		name := kind.Name(foo)
		if name == stored.GetName() {
			c.cluster.violationf("%s deleted %s, which its %s asks for", c.name, idOf(stored), c.cluster.owner)
		}
		wanted := c.cluster.api.objects[idIn(kind, name)]
		if wanted == nil || controllerOf(metaOf(wanted)) == nil || controllerOf(metaOf(wanted)).UID != foo.GetUID() {
			c.cluster.violationf("%s deleted %s before the %s controlled %s", c.name, idOf(stored), c.cluster.owner, name)
		} else if lacks := cmp.Or(kind.Differs(metaOf(wanted), foo), kind.Unready(metaOf(wanted))); kind.Serves(stored) && lacks != "" {
			c.cluster.violationf("%s deleted %s, which served, although %s %s", c.name, idOf(stored), name, lacks)
		}
	}
	c.cluster.removed[idOf(stored)] = generationOf(foo)
}

// generationOf identifies a Foo and its generation.
func generationOf(foo footest.Object) string {
	return fmt.Sprintf("%s, generation %d", foo.GetUID(), foo.GetGeneration())
}

// liveFoo returns a Foo, or nil. Only inspectors may call it, because they hold the API
// server's lock.
func (c *connection) liveFoo(name string) footest.Object {
	if foo := c.cluster.api.objects[c.cluster.ownerID(name)]; foo != nil {
		return metaOf(foo)
	}
	return nil
}

func (c *connection) isLive(ref *metav1.OwnerReference) bool {
	foo := c.liveFoo(ref.Name)
	return foo != nil && foo.GetUID() == ref.UID
}
