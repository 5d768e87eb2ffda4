// SPDX-License-Identifier: Apache-2.0

// What must be true: of each write, of repairs that someone undoes, of each state, and of the
// states of rest: the terminal components of the graph of the system's own steps. When users and
// faults have come to an end, the world ends in one of them, if each step that stays possible is
// taken sooner or later.

package explore

import (
	"cmp"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	"example.com/sample-controller/pkg/reconcile/reconciletest/rows"
	"example.com/sample-controller/pkg/reconcile/reconciletest/rules"
)

// judgeSent checks a write when it is sent, by what its sender could know: the state at
// this moment, which is that of its last live read, and the answers that this sync got.
func (x explored) judgeSent(s *syncing) {
	sent, stored := s.pending, x.stored(s.pending.slot)
	var next rows.Object
	switch uid, version := sent.preconditions(); {
	case sent.Verb == "get" || sent.Subresource == "status":
		return
	case sent.Verb == "create":
		stored, next = nil, sent.Object()
		x.judgeInherited(sent)
	case sent.isOfChild(x) && (uid == "" || version == ""):
		x.breaks("%s is sent without preconditions", sent)
		return
	case stored == nil || sent.isOfChild(x) && (stored.GetUID() != uid || stored.GetResourceVersion() != version):
		return // it will be refused
	case sent.Verb == "update":
		next = sent.Object()
	}
	seen := func(name string) rows.Object { return lastSeen(s.answers, sent.Kind, name) }
	if wrong := cmp.Or(x.world().WrongWrite(stored, next, seen), x.wrongOrder(s, next)); wrong != "" {
		x.breaks("%s is sent, %s", sent, wrong)
	}
}

// wrongOrder says what is wrong with the time of a write of a child of a set, or "", by what there was in each state of
// the caches in which its sender may have decided on it, and in the answers since.
func (x explored) wrongOrder(s *syncing, next rows.Object) (wrong string) {
	kind, moments := s.pending.Kind, []moment{s.began}
	if !kind.IsSet() {
		return ""
	}
	for _, a := range s.answers {
		moments = append(moments, a.moment)
	}
	for _, at := range moments {
		w := rules.World{Owner: x.Owner, Undeletable: x.Undeletable}
		for i := range x.store {
			if cached := at.views[x.names[i].resource].objects[i]; cached != nil {
				w.Objects = append(w.Objects, cached.Object)
			}
		}
		stored := kind.Find(w.Objects, s.pending.Name)
		if stored == nil && next == nil {
			continue // it does not know yet what it deletes
		}
		text := w.WrongOrder(stored, next, func(name string) rows.Object {
			return cmp.Or(lastSeen(s.answers, kind, name), kind.Find(w.Objects, name))
		})
		if text == "" {
			return ""
		}
		wrong = cmp.Or(wrong, text)
	}
	return wrong
}

// preconditions are those of an update or a delete.
func (r *request) preconditions() (uid types.UID, version string) {
	if r.Verb == "update" {
		return r.Object().GetUID(), r.Object().GetResourceVersion()
	}
	if only := r.DeleteOptions().Preconditions; only != nil {
		return ptr.Deref(only.UID, ""), ptr.Deref(only.ResourceVersion, "")
	}
	return "", ""
}

// judgeInherited checks that a child which is created in the place of earlier ones begins as
// one of them is, in what its owner leaves to others.
func (x explored) judgeInherited(sent *request) {
	kind, child, lacks := sent.Kind, sent.Object(), ""
	for i, earlier := range x.store {
		if earlier == nil || x.kindOf(slot(i)) != kind || earlier.GetDeletionTimestamp() != nil {
			continue
		}
		foo := x.world().OwnerOf(earlier.Object)
		if foo == nil || !x.Owner.Controls(foo, child) {
			continue
		}
		text := kind.NotInherited(child, earlier.Object, foo)
		if text == "" {
			return
		}
		lacks = cmp.Or(lacks, text)
	}
	if lacks != "" {
		x.breaks("%s is sent, which %s", sent, lacks)
	}
}

// lastSeen returns an object as the last answer about it has it, or nil.
func lastSeen(answers []answer, kind *rows.Kind, name string) rows.Object {
	for _, a := range slices.Backward(answers) {
		if seen, ok := a.object.(rows.Object); ok && kind.Is(a.object) && seen.GetName() == name {
			return seen
		}
	}
	return nil
}

// judgeStored checks a write when it is stored. A Foo does not report that it is ready before it ever was.
func (x explored) judgeStored(sent *request, before *object) {
	after := x.store[sent.slot]
	switch {
	case sent.Verb != "update" || before == nil || after == nil:
	case sent.Subresource != "status":
		if taken := sent.Kind.DescribeTaken(before.Object, after.Object, nil); taken != "" {
			x.breaks("%s changes fields of others (-before +after):\n%s", sent, taken)
		}
	case rules.ClaimsReady(after.Object) && !x.wasReady[sent.slot]:
		x.breaks("%s reports Ready for generation %d, which has not been ready yet", x.describe(sent.slot), after.GetGeneration())
	case x.CollectorAway && rules.IsStalled(after.Object):
		x.judgeStalled(after)
	}
}

// collectorsTime is how long the garbage collector may take before someone has to act.
const collectorsTime = 30 * time.Second

// judgeStalled checks that a recreated owner does not say that someone has to act while the garbage
// collector may still delete its predecessor's child.
func (x explored) judgeStalled(foo *object) {
	age := epoch.Add(time.Duration(x.now)).Sub(foo.GetCreationTimestamp().Time)
	for _, kind := range x.Owner.Kinds {
		child := kind.Find(x.world().Objects, kind.Name(foo.Object))
		if child != nil && metav1.GetControllerOf(child) != nil && x.world().OwnerOf(child) == nil && age < collectorsTime {
			x.breaks("%s is Stalled after %s, although %s of its predecessor waits for the garbage collector", x.describe(foo.slot), age, child.GetName())
		}
	}
}

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
func (x explored) seriesOf(at slot) (none repairs, foo rows.Object) {
	child := x.store[at]
	if child == nil || child.GetDeletionTimestamp() != nil {
		return none, nil
	}
	foo = x.world().OwnerOf(child.Object)
	if foo == nil || foo.GetDeletionTimestamp() != nil || !slices.Contains(x.kindOf(at).Names(foo), child.GetName()) {
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
	if foo == nil || rows.ObservedGenerationOf(foo) != foo.GetGeneration() {
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
		if series.count == 0 {
			continue
		}
		if none, _ := x.seriesOf(slot(i)); !series.continues(none, x.now) {
			x.repairs[i] = repairs{}
		}
	}
}

// judgePause checks, before a controller waits for a second or more, that each owner says so
// whose child someone changes back after each repair.
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
		ready := rows.ConditionOf(foo)
		if ready == nil || ready.Status != metav1.ConditionFalse || ready.Reason != kind.Kind+"Failed" || !rules.IsStalled(foo) {
			x.breaks("%s waits, after %d repairs of %s in a row, and does not say that it fights: %v", x.describe(slot(at)), series.count, child.GetName(), ready)
		}
	}
}

// oldReferences says which children name their owner in an older version of the API than that of
// the newest release at work: the garbage collector ignores a version that is no longer served.
func (x explored) oldReferences() (wrong []string) {
	if len(x.Releases) == 1 {
		return nil
	}
	newest := ""
	for i := range x.controllers {
		newest = max(newest, x.kinds[0].Resource.Group+"/"+x.Releases[x.release(x.state, i)])
	}
	for at, child := range x.store {
		if _, foo := x.seriesOf(slot(at)); foo != nil && metav1.GetControllerOf(child).APIVersion < newest {
			wrong = append(wrong, x.describe(slot(at))+" names its owner in an old version of the API")
		}
	}
	return wrong
}

// component is a strongly connected component of the graph of the system's own steps.
type component struct {
	// terminal is true if no step leads out of it: it is a way to be at rest.
	terminal bool
	// calls is true if there is a call in it, or after it.
	calls bool
}

// components returns the component of each state, by Tarjan's algorithm.
func (s *search) components() []*component {
	of := make([]*component, len(s.nodes))
	index, low := make([]uint32, len(s.nodes)), make([]uint32, len(s.nodes)) // 0: not seen yet
	clock, stack := uint32(0), []uint32(nil)
	var visit func(v uint32)
	visit = func(v uint32) {
		clock++
		index[v], low[v] = clock, clock
		stack = append(stack, v)
		for _, to := range s.from(v) {
			to &^= noisy
			if index[to] == 0 {
				visit(to)
			}
			if of[to] == nil {
				low[v] = min(low[v], low[to])
			}
		}
		if low[v] == index[v] {
			first := slices.Index(stack, v)
			s.join(stack[first:], of)
			stack = stack[:first]
		}
	}
	for root := range of {
		if index[root] == 0 {
			visit(uint32(root))
		}
	}
	return of
}

// join makes states one component. All others to which they lead have theirs.
func (s *search) join(states []uint32, of []*component) {
	joined := &component{terminal: true}
	for _, v := range states {
		of[v] = joined
	}
	for _, v := range states {
		for _, to := range s.from(v) {
			after := of[to&^noisy]
			joined.terminal = joined.terminal && after == joined
			joined.calls = joined.calls || after.calls || to&noisy != 0
		}
	}
}

// checkRests checks the states of rest, and returns how many components of them there are,
// and a violation with the shortest sequence to it. A state of rest is as it must be, and
// nothing makes a call in it, nor after a resync.
func (s *search) checkRests() (count int, broken *Violation) {
	of := s.components()
	rests := sets.New[*component]()
	for _, c := range of {
		if c.terminal {
			rests.Insert(c)
		}
	}
	// In the order of their numbers, states are in that of their distance.
	for v, c := range of {
		isCall := func(to uint32) bool { return to&noisy != 0 }
		if c.terminal && slices.ContainsFunc(s.from(uint32(v)), isCall) {
			return len(rests), &Violation{Rules: []string{"the world comes to no rest: calls go on"}, path: s.pathTo(uint32(v))}
		}
	}
	for v, c := range of {
		if wrong := s.wrong[uint32(v)]; wrong != "" && c.terminal {
			return len(rests), &Violation{Rules: []string{"at rest: " + wrong}, path: s.pathTo(uint32(v))}
		}
	}
	for _, resync := range s.resyncs {
		if of[resync.from].terminal && of[resync.to].calls {
			return len(rests), &Violation{Rules: []string{"a resync at rest causes a call"}, path: append(s.pathTo(resync.from), step{op: opResync})}
		}
	}
	return len(rests), nil
}
