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
	"example.com/sample-controller/pkg/reconcile/plan"
)

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

// EnsureReady returns nil if the cache of the kind includes the write, or if the write was made longer
// ago than limit, else ErrStale. Call it before reading the cache, which could otherwise receive
// the write between the read and the call. Every cache.Store is a store.
//
// Versions that can't be compared count as reached: fake clientsets set none.
func (w Written) EnsureReady(store interface{ LastStoreSyncResourceVersion() string }, now time.Time, limit time.Duration) error {
	if w == (Written{}) {
		return nil
	}
	order, err := resourceversion.CompareResourceVersion(store.LastStoreSyncResourceVersion(), w.resourceVersion)
	if err == nil && order < 0 && now.Sub(w.at) < limit {
		return failure.ErrStale
	}
	return nil
}

// ObserveCall learns from the result of a call that was based on a cached owner whether that is the
// newest. Until the cache has another version, a sync reads the owner live before it does anything.
//
// Without that, an owner that exists only in the cache would get a new child each time the
// garbage collector deletes the last one.
func (o *Owner) ObserveCall(owner metav1.Object, err error) {
	switch {
	case err == nil:
		o.stale = ""
	case saysStale(err):
		o.stale = owner.GetResourceVersion()
	}
}

// saysStale reports whether the API server's reason is that the owner is gone or has changed.
// A webhook's code 404 or 409 says nothing about the owner.
func saysStale(err error) bool {
	reason := apierrors.ReasonForError(err)
	return reason == metav1.StatusReasonNotFound || reason == metav1.StatusReasonConflict
}

// IsStale reports whether a cached owner is known not to be the newest.
func (o *Owner) IsStale(owner metav1.Object) bool {
	return o.stale != "" && o.stale == owner.GetResourceVersion()
}

// Confirmation is what the API server last returned of a child for the newest spec of its owner, until
// the status says Ready.
//
// From that version on, the cached child is newer than the spec. Before it, the cache may show the
// child as it was before the spec changed, and the owner must not become ready because of that child.
//
// If an update was not stored as sent, an admission webhook may have changed it, for example one that
// prefixes each image with a mirror's name. Sending the same again would have the same result, at
// each resync and forever.
type Confirmation struct {
	generation      int64
	child           types.UID
	resourceVersion string
	// version changes with the child's desired state, and recurs describes how it differs from what
	// an update sent. After a restore of etcd, a generation can occur twice, with another spec.
	version, recurs string
}

// ConfirmationBy returns the confirmation for a child that the API server has just returned. recurs
// describes the owned fields in which it differs from an update that was sent, or is "".
func ConfirmationBy(owner, live metav1.Object, recurs string) Confirmation {
	return Confirmation{owner.GetGeneration(), live.GetUID(), live.GetResourceVersion(), plan.VersionOf(live), recurs}
}

// Includes reports whether a cached child is known to be newer than its owner's newest spec.
func (c Confirmation) Includes(owner, cached metav1.Object) bool {
	if c.generation != owner.GetGeneration() || c.child != cached.GetUID() {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(cached.GetResourceVersion(), c.resourceVersion)
	return err == nil && order >= 0
}

// WouldRecur reports whether an update of a child with some drift would again be changed in the same
// way: neither the owner nor the child has changed since.
func (c Confirmation) WouldRecur(owner, child metav1.Object, drift string) bool {
	return drift != "" && c.recurs == drift && c.generation == owner.GetGeneration() && c.child == child.GetUID() && c.version == plan.VersionOf(child)
}
