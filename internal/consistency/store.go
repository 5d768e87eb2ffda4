/*
Copyright The Sample Controller Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

// Package consistency keeps a controller from acting on a cache that has
// not yet seen the controller's own writes.
//
// A worker that creates a child and is then called again, before the child's
// watch event has arrived, finds no child and creates another; here the second
// create would fail by name, a stale status would conflict, and each such call
// is work for nothing. So a controller tells the Store the resourceVersion
// of each write, and asks before each sync whether the caches have reached it.
//
// kube-controller-manager does the same since 1.36 (KEP-5647,
// k8s.io/kubernetes/pkg/controller/util/consistency), without a limit in time.
// Here a write that the cache has not reached in time is forgotten: after etcd
// is restored from a backup the versions start again below it, and a guard
// without a limit would hold the key for ever. Writes carry preconditions of
// their own, so that acting on a stale cache is wasteful, never wrong.
package consistency

import (
	"errors"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
)

// ErrStale ends a sync that would have acted on a cache which has not seen the
// controller's own last write.
var ErrStale = errors.New("the cache has not seen the controller's last write yet")

// LastSyncRVGetter is what the Store asks of an informer's store; every cache.LastSyncRVGetter has it.
type LastSyncRVGetter interface {
	// LastStoreSyncResourceVersion returns the newest resourceVersion that the
	// store holds, or "" if it does not know.
	LastStoreSyncResourceVersion() string
}

// Store remembers, for each owner, the newest write to each kind of object
// until the kind's store has caught up with it. It is safe for concurrent use.
type Store struct {
	clock clock.PassiveClock
	limit time.Duration

	mu     sync.Mutex
	owners map[cache.ObjectName]*owned
}

// owned is what was written on behalf of one owner; another of the same name
// that comes after it has another UID.
type owned struct {
	uid    types.UID
	writes map[LastSyncRVGetter]write
}

type write struct {
	resourceVersion string
	at              time.Time
}

// NewStore returns a Store that waits at most limit for a store to catch up.
func NewStore(clock clock.PassiveClock, limit time.Duration) *Store {
	return &Store{clock: clock, limit: limit, owners: map[cache.ObjectName]*owned{}}
}

// WroteAt records that a write on behalf of an owner gave an object, of the kind
// that store caches, this resourceVersion. What was written on behalf of an
// earlier owner of the name is forgotten.
func (s *Store) WroteAt(owner cache.ObjectName, uid types.UID, store LastSyncRVGetter, resourceVersion string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known := s.owners[owner]; known == nil || known.uid != uid {
		s.owners[owner] = &owned{uid: uid, writes: map[LastSyncRVGetter]write{}}
	}
	s.owners[owner].writes[store] = write{resourceVersion, s.clock.Now()}
}

// EnsureReady returns nil if the stores have seen every write recorded for an
// owner, else ErrStale. Ask before reading the stores: one that catches up in between would
// otherwise vouch for what was read before it did.
func (s *Store) EnsureReady(owner cache.ObjectName) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.owners[owner]
	if known == nil {
		return nil
	}
	for store, written := range known.writes {
		if reached(store, written.resourceVersion) || s.clock.Since(written.at) >= s.limit {
			delete(known.writes, store)
		}
	}
	if len(known.writes) > 0 {
		return ErrStale
	}
	delete(s.owners, owner)
	return nil
}

// Clear drops what is recorded for an owner that is gone, or replaced by
// another of its name. What has been written for that other already stays: a
// cache holds an object before its event handlers hear of it.
func (s *Store) Clear(owner cache.ObjectName, uid types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known := s.owners[owner]; known != nil && known.uid == uid {
		delete(s.owners, owner)
	}
}

// reached reports whether a store is at least as new as a write. Versions that
// can't be compared (fake clientsets make none) count as reached.
func reached(store LastSyncRVGetter, written string) bool {
	order, err := resourceversion.CompareResourceVersion(store.LastStoreSyncResourceVersion(), written)
	return err != nil || order >= 0
}
