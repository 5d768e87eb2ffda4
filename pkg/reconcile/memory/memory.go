// SPDX-License-Identifier: Apache-2.0

// Package memory holds what a controller remembers about an owner, such as a Foo, from one
// sync to the next.
package memory

import (
	"cmp"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"example.com/sample-controller/pkg/reconcile/plan"
)

// Owner is the memory of an owner. Nothing in it survives a restart.
//
//	field       what it remembers                       so that                             until
//	Written     the newest write of the status          no sync acts on a cache without it  the cache has it
//	Stale       a version that is not the newest        a sync first reads the owner live   the cache has another
//	Progress    since when a status has waited          it does not wait forever            it is written
//	Flapping    how often it stopped being ready        not each loss is written            it stays ready
//	Pruned      a status that could not be stored       it is not sent in each sync         a status is stored
//	Transition  the last change of the condition Ready  it has exactly one Event            the cache shows it
//	children    one Child for each kind of children
//
// Only one worker at a time has a key, so only the Map needs a lock.
type Owner struct {
	uid types.UID

	Written    Written
	Stale      StaleVersion
	Progress   Progress
	Flapping   Flapping
	Pruned     plan.Owner
	Transition Transition
	children   []*Child
}

// Child is the memory of an owner's children of one kind.
//
//	field      what it remembers                       so that                                   until
//	Written    the newest write to one                 no sync acts on a cache without it        the cache has it
//	Confirmed  its version for the newest spec         no older version makes the owner ready    the status says ready
//	Mutation   how admission changed an update         the same update is not sent again         the owner or child changes
//	NewSpec    a generation not carried out yet        a second attempt does not pass as repair  it is carried out
//	Problem    since when something is in the way      what passes by itself stalls no owner     it is gone
//	repairs    how often in a row each was undone      the opponent does not set the pace        a repair lasts
type Child struct {
	kind string

	Written   Written
	Confirmed Confirmation
	Mutation  Mutation
	NewSpec   int64
	Problem   Problem
	repairs   []*Repairs
}

// maxRepaired bounds the number of series of repairs of a kind that are remembered.
const maxRepaired = 16

// Repairs returns a series of repairs: what names an object and how it is repaired. If there are too
// many, it replaces the oldest of the shortest ones.
func (c *Child) Repairs(what string) *Repairs {
	for _, repairs := range c.repairs {
		if repairs.what == what {
			return repairs
		}
	}
	added := &Repairs{what: what}
	if len(c.repairs) < maxRepaired {
		c.repairs = append(c.repairs, added)
		return added
	}
	least := slices.MinFunc(c.repairs, func(a, b *Repairs) int { return cmp.Or(cmp.Compare(a.count, b.count), a.last.Compare(b.last)) })
	*least = *added
	return least
}

// AllRepairs returns the repairs of all objects that are remembered.
func (c *Child) AllRepairs() []*Repairs { return c.repairs }

// isEmpty reports whether nothing is remembered.
func (c *Child) isEmpty() bool {
	c.repairs = slices.DeleteFunc(c.repairs, func(repairs *Repairs) bool { return repairs.count == 0 })
	return len(c.repairs) == 0 && c.Written == Written{} && c.Confirmed == Confirmation{} && c.Mutation == Mutation{} &&
		c.NewSpec == 0 && c.Problem == Problem{}
}

// Problem is what keeps a child from being as its owner wants it, and since when. Some problems
// pass by themselves.
type Problem struct {
	what  string
	since time.Time
}

// Observe returns how long there has been this problem.
func (p *Problem) Observe(what string, now time.Time) time.Duration {
	if p.what != what {
		*p = Problem{what, now}
	}
	return now.Sub(p.since)
}

// Child returns the memory of the child of a kind.
func (o *Owner) Child(kind string) *Child {
	for _, child := range o.children {
		if child.kind == kind {
			return child
		}
	}
	child := &Child{kind: kind}
	o.children = append(o.children, child)
	return child
}

// isEmpty reports whether nothing is remembered. It drops empty children.
func (o *Owner) isEmpty() bool {
	o.children = slices.DeleteFunc(o.children, func(child *Child) bool { return child.isEmpty() })
	return len(o.children) == 0 && o.Written == Written{} && o.Stale == "" && o.Progress.IsZero() && o.Flapping.IsZero() && o.Pruned == nil && o.Transition.IsZero()
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
