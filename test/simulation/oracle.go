// SPDX-License-Identifier: Apache-2.0

// The checks at the end of a run, when the cluster has come to rest.

package simulation

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	for _, foo := range s.Foos {
		c.checkFoo(s, foo)
	}
	for _, child := range s.Children {
		ref := controllerOf(child)
		if ref != nil && !slices.ContainsFunc(s.Foos, func(foo footest.Object) bool { return foo.GetUID() == ref.UID }) {
			c.violationf("%s belongs to a deleted Foo (%s)", idOf(child), ref.UID)
		}
	}
	c.checkIdle()
	c.checkEvents(s)
	c.checkReadiness()
	return s
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

// checkFoo checks one Foo and its children.
func (c *cluster) checkFoo(s state, foo footest.Object) {
	conflict := ""
	for _, kind := range c.owner.Kinds {
		if !kind.Wanted(foo) || c.checkChildren(s, foo, kind) {
			continue
		}
		conflict = cmp.Or(conflict, kind.Kind+"Conflict")
		if kind.Blocks {
			break
		}
	}
	if conflict != "" {
		c.checkStatus(foo, metav1.ConditionFalse, conflict)
		return
	}
	c.checkStatus(foo, metav1.ConditionTrue, "Available")
	for _, kind := range c.owner.Kinds {
		if child := kind.Find(s.Children, kind.Name(foo)); child != nil && kind.Wanted(foo) {
			if misreported := kind.Misreported(foo, child); misreported != "" {
				c.violationf("%s %s %s", c.owner, foo.GetName(), misreported)
			}
		}
	}
}

// checkChildren checks a Foo's children of one kind. It returns false if the name that the
// Foo asks for is taken.
func (c *cluster) checkChildren(s state, foo footest.Object, kind *footest.Kind) bool {
	named := kind.Find(s.Children, kind.Name(foo))
	var controlled []string
	for _, child := range s.Children {
		if ref := controllerOf(child); kind.Is(child) && ref != nil && ref.UID == foo.GetUID() {
			controlled = append(controlled, child.GetName())
		}
	}
	switch {
	case named == nil:
		c.violationf("%s %s has no %s %s", c.owner, foo.GetName(), kind, kind.Name(foo))
	case !slices.Contains(controlled, named.GetName()):
		// The Foo keeps its children. There are two if a crash happened between the
		// creation of the second and the deletion of the first.
		if metav1.GetControllerOf(named) == nil && named.GetAnnotations()["samplecontroller.k8s.io/adopt-by"] == foo.GetName() {
			c.violationf("%s %s has not adopted %s %s", c.owner, foo.GetName(), kind, named.GetName())
		}
		return false
	case len(controlled) > 1:
		c.violationf("%s %s has %d %ss: %v", c.owner, foo.GetName(), len(controlled), kind, controlled)
	default:
		if differs := kind.Differs(named, foo); differs != "" {
			c.violationf("%s %s %s", kind, named.GetName(), differs)
		}
	}
	return true
}

func (c *cluster) checkStatus(foo footest.Object, status metav1.ConditionStatus, reason string) {
	ready := footest.ConditionOf(foo)
	if ready == nil {
		c.violationf("%s %s has no condition", c.owner, foo.GetName())
		return
	}
	if ready.Status != status || ready.Reason != reason {
		c.violationf("%s %s has Ready=%s, %s (%s), want %s, %s", c.owner, foo.GetName(), ready.Status, ready.Reason, ready.Message, status, reason)
	}
	if observed := footest.ObservedGenerationOf(foo); observed != foo.GetGeneration() || ready.ObservedGeneration != foo.GetGeneration() {
		c.violationf("%s %s has generation %d, but observedGeneration is %d in its status and %d in its condition", c.owner, foo.GetName(), foo.GetGeneration(), observed, ready.ObservedGeneration)
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
