// SPDX-License-Identifier: Apache-2.0

// Repairs of a child that somebody undoes each time: how many there may be, and what the
// owner says of them.

package explore

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"example.com/sample-controller/test/footest"
)

const (
	// repairsAtOnce is how many updates in a row a controller may make without a pause.
	// Before the next one are firstPause, and twice as much each time.
	repairsAtOnce = 3
	firstPause    = time.Second
	// quietTime ends a series.
	quietTime = time.Minute
)

// repairs are a series of updates of a child for one spec of its owner, which its status has
// reported before: the first update carries out a new spec.
type repairs struct {
	owner, child types.UID
	generation   int64
	count        uint8
	// last is when the last one was, in nanoseconds since the epoch.
	last int64
}

// seriesOf returns a series without repairs of a child for its owner's spec, or the zero
// value if it is not the one that a living owner asks for.
func (x explored) seriesOf(at slot) (none repairs, foo footest.Object) {
	child := x.store[at]
	if child == nil || child.GetDeletionTimestamp() != nil {
		return none, nil
	}
	foo = x.ownerOf(child.Object)
	if foo == nil || foo.GetDeletionTimestamp() != nil || x.kindOf(at).Name(foo) != child.GetName() {
		return none, nil
	}
	return repairs{owner: foo.GetUID(), child: child.GetUID(), generation: foo.GetGeneration()}, foo
}

// continues reports whether a series is that of a child now.
func (r repairs) continues(none repairs, now int64) bool {
	return r.owner == none.owner && r.child == none.child && r.generation == none.generation && now-r.last < quietTime.Nanoseconds()
}

// pauseAfter is how long a controller has to wait after a number of repairs before the next.
func pauseAfter(count int64) time.Duration {
	if count < repairsAtOnce {
		return 0
	}
	return firstPause << (count - repairsAtOnce)
}

// countRepair counts an update that a controller made, and checks that it has paused.
func (x explored) countRepair(at slot) {
	before := x.repairs[at]
	next, foo := x.seriesOf(at)
	if foo == nil || footest.ObservedGenerationOf(foo) != foo.GetGeneration() {
		return
	}
	if before.continues(next, x.now) {
		next.count = before.count
	}
	if pause, paused := pauseAfter(int64(next.count)), time.Duration(x.now-before.last); paused < pause {
		x.breaks("%s is updated for the %dth time in a row, %s after the last: it has to wait for %s", x.describe(at), next.count+1, paused, pause)
	}
	next.count, next.last = next.count+1, x.now
	x.repairs[at] = next
}

// forgetRepairs drops the series that have ended.
func (x explored) forgetRepairs() {
	for i, series := range x.repairs {
		if none, _ := x.seriesOf(slot(i)); series.count > 0 && !series.continues(none, x.now) {
			x.repairs[i] = repairs{}
		}
	}
}

// judgePause checks, before a controller waits for a second or more, that each owner says so
// whose child somebody changes back after each repair.
func (x explored) judgePause(i int) {
	until, _ := x.nextTime(uint8(i))
	if !x.atRest(uint8(i)) || until-x.now < firstPause.Nanoseconds() {
		return
	}
	for at, series := range x.repairs {
		none, foo := x.seriesOf(slot(at))
		if foo == nil || !series.continues(none, x.now) {
			continue
		}
		kind, child := x.kindOf(slot(at)), x.store[at].Object
		isUndone := kind.Differs(child, foo) != ""
		if series.count < repairsAtOnce || series.count == repairsAtOnce && !isUndone {
			continue
		}
		ready := footest.ConditionOf(foo)
		if ready == nil || ready.Status != metav1.ConditionFalse || ready.Reason != kind.Kind+"Failed" || !isStalled(foo) {
			x.breaks("%s waits, after %d repairs of %s in a row, and does not say that it fights: %v", x.describe(slot(at)), series.count, child.GetName(), ready)
		}
	}
}

// isStalled reports whether an owner says that nothing will happen without somebody else.
func isStalled(foo footest.Object) bool {
	for _, condition := range footest.ConditionsOf(foo) {
		if condition.Type == "Stalled" {
			return condition.Status == metav1.ConditionTrue && condition.ObservedGeneration == foo.GetGeneration()
		}
	}
	return false
}
