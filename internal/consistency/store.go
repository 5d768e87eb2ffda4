// SPDX-License-Identifier: Apache-2.0

// Package consistency keeps a controller from acting on caches that are behind: behind
// its own writes, or behind what the API server has said in the meantime.
package consistency

import (
	"errors"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"example.com/sample-controller/internal/keyed"
)

// ErrStale ends a sync that would have acted on a cache which has not seen the
// controller's own last write. ErrBehind ends one whose live read contradicts the cache:
// somebody else has written.
var (
	ErrStale  = errors.New("the cache has not seen the controller's last write yet")
	ErrBehind = errors.New("the cache does not show the newest state yet")
)

// LastSyncRVGetter is what the Store needs of an informer's store. Every cache.Store has
// it.
type LastSyncRVGetter interface {
	// LastStoreSyncResourceVersion returns the newest resourceVersion that the
	// store holds, or "" if it does not know.
	LastStoreSyncResourceVersion() string
}

// Store remembers, for each owner, the newest write to each kind of object until the
// cache of that kind has it. It is safe for concurrent use.
//
// A worker that creates a child and syncs its owner again, before the watch event of the
// child has arrived, finds no child and creates another. Here the second create would
// fail by name and a stale status would conflict, but each such call is wasted. So the
// controller records the resourceVersion of each write, and a sync begins only if the
// caches have it.
//
// kube-controller-manager does the same since 1.36 (KEP-5647,
// k8s.io/kubernetes/pkg/controller/util/consistency), without a limit in time. Here a
// write that the cache does not reach in time is forgotten: after a restore of etcd the
// versions start again below it, and without a limit the key would be blocked for ever.
// Writes have preconditions of their own, so acting on a stale cache is wasteful, never
// wrong.
type Store struct {
	clock clock.PassiveClock
	limit time.Duration

	mu     sync.Mutex
	owners map[cache.ObjectName]*owned
}

// owned are the writes for one owner. Another owner of the same name has another UID.
type owned struct {
	uid    types.UID
	writes map[LastSyncRVGetter]write
}

type write struct {
	resourceVersion string
	at              time.Time
}

// NewStore returns a Store that waits for a cache at most limit.
func NewStore(clock clock.PassiveClock, limit time.Duration) *Store {
	return &Store{clock: clock, limit: limit, owners: map[cache.ObjectName]*owned{}}
}

// WroteAt records the resourceVersion that a write for an owner has given to an object of
// the kind that store caches. It forgets the writes for an earlier owner of the name.
func (s *Store) WroteAt(owner cache.ObjectName, uid types.UID, store LastSyncRVGetter, resourceVersion string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known := s.owners[owner]; known == nil || known.uid != uid {
		s.owners[owner] = &owned{uid: uid, writes: map[LastSyncRVGetter]write{}}
	}
	s.owners[owner].writes[store] = write{resourceVersion, s.clock.Now()}
}

// EnsureReady returns nil if the caches have every write recorded for an owner, else
// ErrStale. Call it before reading the caches: a cache could receive the write after it
// was read and before the call.
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

// Clear forgets the writes for an owner that is gone or replaced by another of its name.
// It keeps what was written for that other owner: a cache holds an object before its
// event handlers hear of it.
func (s *Store) Clear(owner cache.ObjectName, uid types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known := s.owners[owner]; known != nil && known.uid == uid {
		delete(s.owners, owner)
	}
}

// reached reports whether a cache is at least as new as a write. Versions that can't be
// compared count as reached; fake clientsets make none.
func reached(store LastSyncRVGetter, written string) bool {
	order, err := resourceversion.CompareResourceVersion(store.LastStoreSyncResourceVersion(), written)
	return err != nil || order >= 0
}

// StaleOwners remembers owners, such as Foos, whose cached version is stale: the API
// server has another one, or none. Until the cache has another version, a sync reads such
// an owner live before it does anything.
//
// Without that, an owner which exists in the cache alone would get a child each time the
// garbage collector has deleted the last one.
type StaleOwners struct {
	// The Map holds the resourceVersions that are stale.
	keyed.Map[string]
}

// Observe learns from the result of a write that was made from a cached owner.
func (o *StaleOwners) Observe(owner metav1.Object, err error) {
	switch {
	case err == nil:
		o.Delete(cache.MetaObjectToName(owner))
	case saysStale(err):
		o.Set(cache.MetaObjectToName(owner), owner.GetResourceVersion())
	}
}

// saysStale reports whether the API server's reason is that the owner is gone or newer. A
// webhook's code 404 or 409 says nothing of the owner.
func saysStale(err error) bool {
	reason := apierrors.ReasonForError(err)
	return reason == metav1.StatusReasonNotFound || reason == metav1.StatusReasonConflict
}

// Has reports whether a cached owner is known to be stale.
func (o *StaleOwners) Has(owner metav1.Object) bool {
	version, known := o.Get(cache.MetaObjectToName(owner))
	return known && version == owner.GetResourceVersion()
}

// ConfirmedChildren remembers, for each Foo, the child that was written or read live
// for its newest spec, until the status says Ready. From that version on, the cached child
// is newer than the spec. Before it, the cache may show the child from before the spec was
// changed, and the Foo must not become ready by that.
type ConfirmedChildren struct {
	keyed.Map[confirmation]
}

// confirmation is the version of a child that was seen at a Foo's generation.
type confirmation struct {
	owner      types.UID
	generation int64
	child      types.UID
	version    string
}

// Observe records a child that the API server has just returned.
func (c *ConfirmedChildren) Observe(owner metav1.Object, live metav1.Object) {
	c.Set(cache.MetaObjectToName(owner), confirmation{owner.GetUID(), owner.GetGeneration(), live.GetUID(), live.GetResourceVersion()})
}

// UpToDate reports whether a cached child is known to be newer than the Foo's newest
// spec.
func (c *ConfirmedChildren) UpToDate(owner metav1.Object, cached metav1.Object) bool {
	known, ok := c.Get(cache.MetaObjectToName(owner))
	if !ok || known.owner != owner.GetUID() || known.generation != owner.GetGeneration() || known.child != cached.GetUID() {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(cached.GetResourceVersion(), known.version)
	return err == nil && order >= 0
}
