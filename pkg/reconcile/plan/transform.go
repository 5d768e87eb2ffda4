// SPDX-License-Identifier: Apache-2.0

// The parts of an object that the caches keep.

package plan

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// maxKeptText bounds, in bytes, how much the cache keeps of texts that the API server does
// not bound: an owner's kind and name, an image. No message quotes that much.
const maxKeptText = 1024

// Transform is a cache.TransformFunc for the objects of the kind. Before a Foo enters an
// informer's cache, it drops everything that no decision reads. Users who may write Foos or
// their children can put more than a mebibyte into one: annotations, finalizers, owner
// references. The size of a cached object is bounded, whatever it contains.
//
// A status update sends the trimmed Foo, because the API server takes only the status from
// that request.
func (k *OwnerKind) Transform(object any) (any, error) {
	owner, ok := object.(Owner)
	if !ok {
		return object, nil // a tombstone
	}
	kept := k.Trim(owner)
	keepIdentity(kept, owner)
	return kept, nil
}

// Transform is a cache.TransformFunc for the objects of a kind. It keeps the fields that a Foo
// owns and those that the status is based on. Of an object that no Foo controls, it keeps only
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
		kept.SetAnnotations(consentIn(found))
		return kept, nil
	}
	kept.SetOwnerReferences([]metav1.OwnerReference{c.OwnerKind.keptController(ref)})
	if c.OwnerKind.isNamedBy(ref) {
		c.Keep(kept, found)
	}
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
func (k *OwnerKind) keptController(ref *metav1.OwnerReference) metav1.OwnerReference {
	kept := metav1.OwnerReference{
		Kind:       truncate(ref.Kind, maxKeptText),
		Name:       truncate(ref.Name, maxKeptText),
		UID:        types.UID(truncate(string(ref.UID), maxKeptText)),
		Controller: new(true),
	}
	if k.isNamedBy(ref) {
		kept.APIVersion = truncate(ref.APIVersion, maxKeptText)
	}
	return kept
}

// consentIn returns the only annotation that a decision reads, if it can be the name of a
// Foo.
func consentIn(object metav1.Object) map[string]string {
	by, ok := object.GetAnnotations()[samplev1alpha1.AnnotationAdoptBy]
	if !ok || len(by) > maxKeptText {
		return nil
	}
	return map[string]string{samplev1alpha1.AnnotationAdoptBy: by}
}
