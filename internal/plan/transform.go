// SPDX-License-Identifier: Apache-2.0

// What the caches keep of an object.

package plan

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// maxKeptText bounds, in bytes, what the cache keeps of texts that the API server does
// not bound: an owner's kind and name, an image. No message quotes as much.
const maxKeptText = 1024

// Transform is a cache.TransformFunc for the objects of the kind. It drops everything that no decision
// reads before a Foo enters an informer's cache. Whoever may write Foos or their children
// can put more than a mebibyte into one: annotations, finalizers, owner references. What
// the caches keep of an object is bounded, whatever is in it.
//
// A Foo's status is sent with what is left of the Foo, because the API server takes only
// the status from that request.
func (k *OwnerKind) Transform(object any) (any, error) {
	owner, ok := object.(Owner)
	if !ok {
		return object, nil // a tombstone
	}
	kept := k.Trim(owner)
	keepIdentity(kept, owner)
	return kept, nil
}

// Transform is a cache.TransformFunc for the objects of a kind. It keeps the fields that
// a Foo owns and those that the status is made from. Of an object that no Foo controls, it
// keeps who controls it. So no update is made from the cache, only from a live read.
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
// read. One that is not to a Foo of our group loses its API version, so that it can't
// become one when its texts are cut.
func (k *OwnerKind) keptController(ref *metav1.OwnerReference) metav1.OwnerReference {
	kept := metav1.OwnerReference{
		Kind:       truncate(ref.Kind, maxKeptText),
		Name:       truncate(ref.Name, maxKeptText),
		UID:        types.UID(truncate(string(ref.UID), maxKeptText)),
		Controller: new(true),
	}
	if k.isNamedBy(ref) {
		kept.APIVersion = k.Resource.GroupVersion().String()
	}
	return kept
}

// consentIn returns the one annotation that a decision reads, if it can be the name of a
// Foo.
func consentIn(object metav1.Object) map[string]string {
	by, ok := object.GetAnnotations()[samplev1alpha1.AnnotationAdoptBy]
	if !ok || len(by) > maxKeptText {
		return nil
	}
	return map[string]string{samplev1alpha1.AnnotationAdoptBy: by}
}
