// SPDX-License-Identifier: Apache-2.0

// What keeps a controller from acting on stale caches: caches that lack its own writes, or
// that are older than a response of the API server.

package memory

import (
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"example.com/sample-controller/pkg/reconcile/failure"
)

// LastSyncRVGetter is the method of an informer's store that Written needs. Every cache.Store
// has it.
type LastSyncRVGetter interface {
	// LastStoreSyncResourceVersion returns the newest resourceVersion that the
	// store holds, or "" if it does not know it.
	LastStoreSyncResourceVersion() string
}

// Written is a controller's newest write to an owner or its child of one kind, or none.
//
// A worker that creates a child and syncs its owner again before the child's watch event has
// arrived finds no child and creates another. Here the second create would fail because of
// the name, and a stale status would conflict, but each such call is wasted. So the
// controller records the resourceVersion of each write, and a sync begins only if the
// caches include it.
//
// kube-controller-manager has done the same since 1.36 (KEP-5647, also with EnsureReady, in
// k8s.io/kubernetes/pkg/controller/util/consistency), without a time limit. Here a write that
// the cache does not reach in time is forgotten: after a restore of etcd, versions start
// again below it, and without a limit the key would be blocked forever. Each write has a
// precondition, so acting on a stale cache is wasteful, but never wrong.
type Written struct {
	resourceVersion string
	at              time.Time
}

// Observe records the write that stored an object.
func (w *Written) Observe(stored metav1.Object, now time.Time) {
	*w = Written{stored.GetResourceVersion(), now}
}

// EnsureReady returns nil if the cache of the kind includes the write, else ErrStale. After
// limit it forgets the write. Call it before reading the cache, which could otherwise receive
// the write between the read and the call.
//
// Versions that can't be compared count as reached: fake clientsets set none.
func (w *Written) EnsureReady(store LastSyncRVGetter, now time.Time, limit time.Duration) error {
	if *w == (Written{}) {
		return nil
	}
	order, err := resourceversion.CompareResourceVersion(store.LastStoreSyncResourceVersion(), w.resourceVersion)
	if err == nil && order < 0 && now.Sub(w.at) < limit {
		return failure.ErrStale
	}
	*w = Written{}
	return nil
}

// StaleVersion is the resourceVersion of a cached owner that is known to be stale, or "" if
// none is. Until the cache has another version, a sync reads the owner live before it does
// anything.
//
// Without that, an owner that exists only in the cache would get a new child each time the
// garbage collector deletes the last one.
type StaleVersion string

// Observe learns from the result of a call that was based on a cached owner.
func (v *StaleVersion) Observe(owner metav1.Object, err error) {
	switch {
	case err == nil:
		*v = ""
	case saysStale(err):
		*v = StaleVersion(owner.GetResourceVersion())
	}
}

// saysStale reports whether the API server's reason is that the owner is gone or has changed.
// A webhook's code 404 or 409 says nothing about the owner.
func saysStale(err error) bool {
	reason := apierrors.ReasonForError(err)
	return reason == metav1.StatusReasonNotFound || reason == metav1.StatusReasonConflict
}

// IsOf reports whether a cached owner is known to be stale.
func (v StaleVersion) IsOf(owner metav1.Object) bool {
	return v != "" && string(v) == owner.GetResourceVersion()
}

// Confirmation is the version of a child that was written or read live for the newest spec of
// its owner, until the status says Ready. From that version on, the cached child is newer
// than the spec. Before it, the cache may show the child as it was before the spec changed,
// and the owner must not become ready because of that child.
type Confirmation struct {
	generation int64
	child      types.UID
	version    string
}

// ConfirmationBy returns the confirmation for a child that the API server has just returned.
func ConfirmationBy(owner, live metav1.Object) Confirmation {
	return Confirmation{owner.GetGeneration(), live.GetUID(), live.GetResourceVersion()}
}

// Includes reports whether a cached child is known to be newer than its owner's newest spec.
func (c Confirmation) Includes(owner, cached metav1.Object) bool {
	if c.generation != owner.GetGeneration() || c.child != cached.GetUID() {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(cached.GetResourceVersion(), c.version)
	return err == nil && order >= 0
}
