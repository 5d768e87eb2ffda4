// SPDX-License-Identifier: Apache-2.0

// The parts of an object that the caches keep.

package plan

import (
	"maps"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

// Transforms returns the cache.TransformFunc of a cache whose objects are owners of kinds, children of
// rows, or both. It keeps what any of them reads of an object.
func Transforms(owners []*Kind, rows []*ChildKind) cache.TransformFunc {
	switch {
	case len(owners) == 1 && len(rows) == 0:
		return owners[0].Transform
	case len(owners) == 0 && len(rows) == 1 && !rows[0].IsReference():
		return rows[0].Transform
	}
	return func(object any) (any, error) {
		found, ok := object.(Object)
		if !ok {
			return object, nil // a tombstone
		}
		kept := emptyLike(found)
		keepIdentity(kept, found)
		for _, row := range rows {
			row.retain(kept, found)
		}
		// Owners last: they keep the spec and the status whole, and a row may have kept a part.
		for _, kind := range owners {
			kind.retain(kept.(Owner), found.(Owner)) //nolint:forcetypeassert // the kind's type
		}
		return kept, nil
	}
}

// Transform is a cache.TransformFunc for the objects of the kind. Before an owner enters an
// informer's cache, it drops everything that no decision reads. Users who may write owners or
// their children can put more than a mebibyte into one: annotations, finalizers, owner
// references. The size of a cached object is bounded, whatever it contains.
//
// A status update sends the trimmed owner, because the API server takes only the status from
// that request.
func (k *Kind) Transform(object any) (any, error) {
	if found, ok := object.(Object); ok && k.IsOthers() {
		if _, isKept := found.(*Others); isKept {
			return object, nil
		}
		return k.others(found, k.keepAll), nil
	}
	owner, ok := object.(Owner)
	if !ok {
		return object, nil // a tombstone
	}
	kept := emptyLike(owner)
	keepIdentity(kept, owner)
	k.retain(kept, owner)
	return kept, nil
}

// keepAll copies what the cache keeps of an object that isn't the program's own: what decisions read, and the fields that
// rows set in it.
func (k *Kind) keepAll(kept, found Object) {
	k.Keep(kept, found)
	for _, row := range k.Children {
		if row.isItself {
			row.Keep(kept, found)
		}
	}
}

// retain copies to kept what decisions read of an owner.
func (k *Kind) retain(kept, owner Owner) {
	if request := k.requestOf(owner); request != "" {
		annotate(kept, k.SyncRequested(), request)
	}
	if k.hasFinalizer(owner) {
		kept.SetFinalizers(append(kept.GetFinalizers(), k.Finalizer))
	}
	reflect.ValueOf(kept.GetSpec()).Elem().Set(reflect.ValueOf(owner.GetSpec()).Elem())
	reflect.ValueOf(kept.GetStatus()).Elem().Set(reflect.ValueOf(owner.GetStatus()).Elem())
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
	c.retain(kept, found)
	return kept, nil
}

// retain adds to kept what the decisions of a row read of an object. An object has at most one
// controller, so of the rows that share a cache, one at most keeps fields of it, and only its kind
// keeps the reference's API version. Of an object that owners name, nothing is kept.
func (c *ChildKind) retain(kept, found Object) {
	if c.IsReference() {
		return
	}
	if c.isItself {
		c.Keep(kept, found)
		return
	}
	ref := metav1.GetControllerOfNoCopy(found)
	if ref == nil {
		if by, ok := c.OwnerKind.consentIn(found); ok {
			annotate(kept, c.OwnerKind.AdoptBy(), by)
		}
		if _, _, isMarked := c.OwnerKind.markOf(found); isMarked && c.isElsewhere {
			c.Keep(kept, found)
			c.OwnerKind.keepMarks(kept, found)
		}
		return
	}
	isNamed := c.OwnerKind.isNamedBy(ref)
	if isNamed || len(kept.GetOwnerReferences()) == 0 {
		kept.SetOwnerReferences([]metav1.OwnerReference{c.OwnerKind.keptController(ref)})
	}
	if isNamed {
		c.Keep(kept, found)
	}
}

// emptyLike returns a new object of an object's type.
func emptyLike[T Object](object T) T {
	return reflect.New(reflect.TypeOf(object).Elem()).Interface().(T) //nolint:forcetypeassert // the type of object
}

// annotate adds an annotation to an object that is kept. It copies the others, which may be those
// of the object from the API server.
func annotate(kept Object, key, value string) {
	annotations := maps.Clone(kept.GetAnnotations())
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[key] = value
	kept.SetAnnotations(annotations)
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
func (k *Kind) consentIn(object metav1.Object) (by string, ok bool) {
	by, ok = object.GetAnnotations()[k.AdoptBy()]
	if !ok || len(by) > MaxKept {
		return "", false
	}
	return by, true
}
