// SPDX-License-Identifier: Apache-2.0

// Package memory holds what a controller remembers about an owner, such as a Foo, from one sync to the
// next: so that it does not act on a stale cache, does not fight another client at full speed, and
// does not write statuses that say nothing new. Nothing of it survives a restart, and at rest there
// is nothing.
//
// Each part is usable alone. A controller that only wants to know whether its caches include its own
// writes needs a Written for each of its objects and kinds: Observe after a write, EnsureReady before
// the next sync reads the caches.
//
// Functions whose names are verbs record something. The others only answer.
package memory

import (
	"cmp"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/cache"

	"example.com/sample-controller/pkg/reconcile/plan"
)

// Owner is the memory of an owner.
//
//	field       what it remembers                       so that                             until
//	Written     the newest write of the status          no sync acts on a cache without it  the cache has it
//	stale       a version that is not the newest        a sync first reads the owner live   the cache has another
//	postponed   since when a status has waited          it does not wait forever            it is written
//	losses      how often it stopped being ready        not each loss is written            it stays ready
//	Pruned      a status that could not be stored       it is not sent in each sync         a status is stored
//	Transition  the last change of the condition Ready  it has exactly one Event            the cache shows it
//	requested   the last request for a sync             it ends the pauses once             the status answers it
//	ReadFor     a spec for which references were read   no stale cache makes it ready           the status says ready
//	Synced      what others' object asked for           a change of that is no repair           it is gone
//	Told        why others' object is not ready         it has one Event                        it is ready
//	children    one Child for each kind of children
//
// Only one worker at a time has a key, so only the Map needs a lock.
type Owner struct {
	uid types.UID

	Written    Written
	stale      string
	postponed  time.Time
	losses     Series
	Pruned     plan.Owner
	Transition Transition
	requested  string
	ReadFor    int64
	Synced     int64
	Told       string
	children   []*Child
}

// Child is the memory of an owner's children of one kind. Of a set, each child has its own, and what
// concerns the kind, the newest write and the deletions, has one more.
//
//	field      what it remembers                       so that                                   until
//	Written    the newest write to one                 no sync acts on a cache without it        the cache has it
//	Confirmed  what was stored for the newest spec     no older version makes the owner ready    the status says ready
//	newSpec    a generation not carried out yet        a second attempt does not pass as repair  it is carried out
//	problem    since when something is in the way      what passes by itself stalls no owner     it is gone
//	repairs    how often in a row each was undone      the opponent does not set the pace        a repair lasts
type Child struct {
	part string

	Written   Written
	Confirmed Confirmation
	newSpec   int64
	problem   Problem
	repairs   []*Series
}

// maxRepaired bounds the number of series of repairs of a kind that are remembered.
const maxRepaired = 16

// Repairs returns a series of repairs: what names an object and how it is repaired. If there are too
// many, it replaces the oldest of the shortest ones.
func (c *Child) Repairs(what string) *Series {
	for _, repairs := range c.repairs {
		if repairs.what == what {
			return repairs
		}
	}
	added := &Series{what: what}
	if len(c.repairs) < maxRepaired {
		c.repairs = append(c.repairs, added)
		return added
	}
	least := slices.MinFunc(c.repairs, func(a, b *Series) int { return cmp.Or(cmp.Compare(a.count, b.count), a.last.Compare(b.last)) })
	*least = *added
	return least
}

func (c *Child) isEmpty() bool {
	return len(c.repairs) == 0 && c.Written == Written{} && c.Confirmed == Confirmation{} && c.newSpec == 0 && c.problem == Problem{}
}

// Child returns the memory of a part of an owner: the children of a kind, or one of a set.
func (o *Owner) Child(part string) *Child {
	for _, child := range o.children {
		if child.part == part {
			return child
		}
	}
	child := &Child{part: part}
	o.children = append(o.children, child)
	return child
}

// Step returns the memory of a step. The deletions of a kind share one.
func (o *Owner) Step(step *plan.Step) *Child {
	if step.Action == plan.ActionDelete {
		return o.Child(step.Kind)
	}
	return o.Child(step.Part)
}

// ForgetOthers forgets what an owner no longer wants or names.
func (o *Owner) ForgetOthers(owner plan.Owner, kind *plan.Kind) {
	if len(o.children) <= len(kind.Children) && len(kind.References) == 0 {
		return // without a set, always
	}
	wanted := sets.New(plan.PartFinalizer)
	for _, row := range slices.Concat(kind.References, kind.Children) {
		wanted.Insert(row.Kind).Insert(row.PartsOf(owner)...)
	}
	o.children = slices.DeleteFunc(o.children, func(child *Child) bool { return !wanted.Has(child.part) })
}

// ForgetWritten forgets the writes that the caches have reached.
func (o *Owner) ForgetWritten() {
	o.Written = Written{}
	for _, child := range o.children {
		child.Written = Written{}
	}
}

// Expire forgets the series that have ended: those for another spec of the owner, repairs that have
// lasted for period, and losses of readiness without another for DefaultFightPeriod.
func (o *Owner) Expire(owner metav1.Object, period time.Duration, now time.Time) {
	if o.losses.hasEnded(owner, DefaultFightPeriod, now) {
		o.losses = Series{}
	}
	for _, child := range o.children {
		child.repairs = slices.DeleteFunc(child.repairs, func(repairs *Series) bool { return repairs.hasEnded(owner, period, now) })
	}
}

// ObserveSyncRequest ends each pause of an owner whose user asks for a sync, and reports whether it does: once
// for each request. The writes of the kinds of children then count as those for a new spec, not as repairs.
func (o *Owner) ObserveSyncRequest(owner plan.Owner, request string, kinds []*plan.ChildKind) bool {
	if request == o.requested {
		return false
	}
	o.requested = request
	if request == "" {
		return false
	}
	o.losses = Series{} // the answer makes the status another one, so nothing else holds it back
	for _, kind := range kinds {
		o.Child(kind.Kind).repairs = nil
		for _, part := range kind.PartsOf(owner) {
			known := o.Child(part)
			known.Confirmed, known.repairs, known.newSpec = Confirmation{}, nil, owner.GetGeneration()
		}
	}
	return true
}

// compact drops what is empty.
func (o *Owner) compact() {
	for _, child := range o.children {
		child.repairs = slices.DeleteFunc(child.repairs, func(repairs *Series) bool { return repairs.count == 0 })
	}
	o.children = slices.DeleteFunc(o.children, (*Child).isEmpty)
}

func (o *Owner) isEmpty() bool {
	return len(o.children) == 0 && o.Written == Written{} && o.stale == "" && o.postponed.IsZero() && o.losses.count == 0 && o.Pruned == nil && o.Transition.IsZero() && o.requested+o.Told == "" && o.Synced == 0 && o.ReadFor == 0
}

// Map maps keys to the memory of owners. It is safe for concurrent use.
type Map struct {
	mu    sync.Mutex
	byKey map[cache.ObjectName]*Owner
}

// Of returns the memory of an owner. It ignores an earlier owner with the same name.
func (m *Map) Of(owner metav1.Object) *Owner {
	m.mu.Lock()
	defer m.mu.Unlock()
	if known := m.byKey[cache.MetaObjectToName(owner)]; known != nil && known.uid == owner.GetUID() {
		return known
	}
	return &Owner{uid: owner.GetUID()}
}

// Keep stores the memory of an owner after a sync. At rest there is none.
func (m *Map) Keep(key cache.ObjectName, known *Owner) {
	known.compact()
	m.mu.Lock()
	defer m.mu.Unlock()
	if known.isEmpty() {
		delete(m.byKey, key)
		return
	}
	if m.byKey == nil {
		m.byKey = map[cache.ObjectName]*Owner{}
	}
	m.byKey[key] = known
}

// Forget forgets a deleted owner.
func (m *Map) Forget(key cache.ObjectName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.byKey, key)
}
