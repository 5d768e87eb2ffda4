// SPDX-License-Identifier: Apache-2.0

// Owners whose cached version is known to be stale.

package consistency

import (
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"example.com/sample-controller/internal/keyed"
)

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
