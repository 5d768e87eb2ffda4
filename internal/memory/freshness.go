// SPDX-License-Identifier: Apache-2.0

// What keeps a controller from acting on caches that are behind: behind its own writes, or
// behind what the API server has said in the meantime.

package memory

import (
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"example.com/sample-controller/internal/failure"
)

// LastSyncRVGetter is what Written needs of an informer's store. Every cache.Store has it.
type LastSyncRVGetter interface {
	// LastStoreSyncResourceVersion returns the newest resourceVersion that the
	// store holds, or "" if it does not know.
	LastStoreSyncResourceVersion() string
}

// Written is a controller's newest write to an owner or its child of one kind, or none.
//
// A worker that creates a child and syncs its owner again, before the watch event of the
// child has arrived, finds no child and creates another. Here the second create would
// fail by name and a stale status would conflict, but each such call is wasted. So the
// controller records the resourceVersion of each write, and a sync begins only if the
// caches have it.
//
// kube-controller-manager does the same since 1.36 (KEP-5647, its consistency store in
// k8s.io/kubernetes/pkg/controller/util/consistency), without a limit in time. Here a
// write that the cache does not reach in time is forgotten: after a restore of etcd the
// versions start again below it, and without a limit the key would be blocked for ever.
// A write has a precondition of its own, so acting on a stale cache is wasteful, never
// wrong.
type Written struct {
	resourceVersion string
	at              time.Time
}

// Observe records the write that an object was stored by.
func (w *Written) Observe(stored metav1.Object, now time.Time) {
	*w = Written{stored.GetResourceVersion(), now}
}

// EnsureReady returns nil if the cache of the kind has the write, else ErrStale. It waits no
// longer than limit. Call it before reading the cache, which could receive the write after
// it was read and before the call.
//
// Versions that can't be compared count as reached; fake clientsets make none.
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

// StaleVersion is the resourceVersion of a cached owner of which the API server has another
// version, or none. Until the cache has another, a sync reads the owner live before it does
// anything.
//
// Without that, an owner which exists in the cache alone would get a child each time the
// garbage collector has deleted the last one.
type StaleVersion string

// Observe learns from the result of a call that was made from a cached owner.
func (v *StaleVersion) Observe(owner metav1.Object, err error) {
	switch {
	case err == nil:
		*v = ""
	case saysStale(err):
		*v = StaleVersion(owner.GetResourceVersion())
	}
}

// saysStale reports whether the API server's reason is that the owner is gone or newer. A
// webhook's code 404 or 409 says nothing of the owner.
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
// than the spec. Before it, the cache may show the child from before the spec was changed, and
// the owner must not become ready by that.
type Confirmation struct {
	generation int64
	child      types.UID
	version    string
}

// ConfirmationBy returns the confirmation by a child that the API server has just returned.
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
