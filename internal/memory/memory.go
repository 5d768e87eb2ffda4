// SPDX-License-Identifier: Apache-2.0

// Package memory holds what a controller remembers of an owner, such as a Foo, from one sync
// to the next.
package memory

import (
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"example.com/sample-controller/internal/plan"
)

// Owner is what is remembered of an owner. Nothing of it survives a restart.
//
//	field       what it remembers                       so that                                     until
//	Written     the newest write of the status          no sync acts on a cache that has not it     the cache has it
//	Stale       a version that is not the newest        a sync first reads the owner live           the cache has another
//	Progress    since when a status waits               it does not wait for ever                   it is written
//	Pruned      a status that could not be stored       it is not sent at each sync                 one can be
//	Transition  the last change of the condition Ready  it has one Event, whatever answer is lost   the cache shows it
//	children    for each kind of children: see Child
//
// A worker has its key for itself, so that only the Map needs a lock.
type Owner struct {
	uid types.UID

	Written    Written
	Stale      StaleVersion
	Progress   Progress
	Pruned     plan.Owner
	Transition Transition
	children   []*Child
}

// Child is what is remembered of an owner's child of one kind.
//
//	field      what it remembers                        so that                                    until
//	Written    the newest write to it                   no sync acts on a cache that has not it    the cache has it
//	Confirmed  the child as it was for the newest spec  the owner gets ready by no older one       the status says ready
//	Mutation   how an update was stored otherwise       the same is not sent again                 owner or child is changed
//	Repairs    how often in a row it was changed back   the opponent does not set the pace         a repair lasts
type Child struct {
	kind string

	Written   Written
	Confirmed Confirmation
	Mutation  Mutation
	Repairs   Repairs
}

// Child returns what is remembered of the child of a kind.
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

// isEmpty reports whether nothing is remembered. It drops what is empty.
func (o *Owner) isEmpty() bool {
	o.children = slices.DeleteFunc(o.children, func(child *Child) bool { return *child == Child{kind: child.kind} })
	return len(o.children) == 0 && o.Written == Written{} && o.Stale == "" && o.Progress.IsZero() && o.Pruned == nil && o.Transition.IsZero()
}

// Map holds what is remembered of owners by their keys. It is safe for concurrent use.
type Map struct {
	mu    sync.Mutex
	byKey map[cache.ObjectName]*Owner
}

// Of returns what is remembered of an owner: nothing of an earlier one of its name.
func (m *Map) Of(owner metav1.Object) *Owner {
	m.mu.Lock()
	defer m.mu.Unlock()
	if known := m.byKey[cache.MetaObjectToName(owner)]; known != nil && known.uid == owner.GetUID() {
		return known
	}
	return &Owner{uid: owner.GetUID()}
}

// Keep stores what is remembered of an owner after a sync. At rest that is nothing.
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

// Forget forgets an owner that is gone.
func (m *Map) Forget(key cache.ObjectName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.byKey, key)
}
