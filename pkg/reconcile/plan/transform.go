// SPDX-License-Identifier: Apache-2.0

// The parts of an object that the caches keep.

package plan

import (
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Transform is a cache.TransformFunc for the objects of the kind. Before an owner enters an
// informer's cache, it drops everything that no decision reads. Users who may write owners or
// their children can put more than a mebibyte into one: annotations, finalizers, owner
// references. The size of a cached object is bounded, whatever it contains.
//
// A status update sends the trimmed owner, because the API server takes only the status from
// that request.
func (k *Kind) Transform(object any) (any, error) {
	owner, ok := object.(Owner)
	if !ok {
		return object, nil // a tombstone
	}
	kept := reflect.New(reflect.TypeOf(owner).Elem()).Interface().(Owner) //nolint:forcetypeassert // the type of owner
	keepIdentity(kept, owner)
	if request := k.requestOf(owner); request != "" {
		kept.SetAnnotations(map[string]string{k.SyncRequested(): request})
	}
	reflect.ValueOf(kept.GetSpec()).Elem().Set(reflect.ValueOf(owner.GetSpec()).Elem())
	reflect.ValueOf(kept.GetStatus()).Elem().Set(reflect.ValueOf(owner.GetStatus()).Elem())
	return kept, nil
}

// Transform is a cache.TransformFunc for the objects of a kind. It keeps the fields that an owner
// owns and those that the status is based on. Of an object that no owner controls, it keeps only
// the controller. So updates must be based on a live read, never on the cache.
func (c *ChildKind) Transform(object any) (any, error) {
	found, ok := object.(Object)
	if !ok {
		return object, nil // a tombstone
	}
	kept := c.Empty()
	keepIdentity(kept, found)
	ref := metav1.GetControllerOfNoCopy(found)
	if ref == nil {
		kept.SetAnnotations(c.OwnerKind.consentIn(found))
		return kept, nil
	}
	kept.SetOwnerReferences([]metav1.OwnerReference{c.OwnerKind.keptController(ref)})
	if c.OwnerKind.isNamedBy(ref) {
		c.Keep(kept, found)
	}
	return kept, nil
}

// TransformReference is a cache.TransformFunc for objects that owners name and do not own. It keeps no data: only
// what identifies an object and its version.
func TransformReference(object any) (any, error) {
	found, ok := object.(Object)
	if !ok {
		return object, nil // a tombstone
	}
	kept := &metav1.PartialObjectMetadata{}
	keepIdentity(kept, found)
	return kept, nil
}

// keepIdentity copies the metadata that identifies an object and its version.
func keepIdentity(kept, found metav1.Object) {
	kept.SetName(found.GetName())
	kept.SetNamespace(found.GetNamespace())
	kept.SetUID(found.GetUID())
	kept.SetResourceVersion(found.GetResourceVersion())
	kept.SetGeneration(found.GetGeneration())
	kept.SetDeletionTimestamp(found.GetDeletionTimestamp())
}

// keptController returns the fields of a controller reference that decisions and messages
// read. A reference that does not name an owner of the kind loses its API version, so that
// truncating its texts can't turn it into one that does.
func (k *Kind) keptController(ref *metav1.OwnerReference) metav1.OwnerReference {
	kept := metav1.OwnerReference{
		Kind:       Truncate(ref.Kind, MaxKept),
		Name:       Truncate(ref.Name, MaxKept),
		UID:        types.UID(Truncate(string(ref.UID), MaxKept)),
		Controller: new(true),
	}
	if k.isNamedBy(ref) {
		kept.APIVersion = Truncate(ref.APIVersion, MaxKept)
	}
	return kept
}

// consentIn returns the only annotation that a decision reads, if it can be the name of an
// owner.
func (k *Kind) consentIn(object metav1.Object) map[string]string {
	by, ok := object.GetAnnotations()[k.AdoptBy()]
	if !ok || len(by) > MaxKept {
		return nil
	}
	return map[string]string{k.AdoptBy(): by}
}
