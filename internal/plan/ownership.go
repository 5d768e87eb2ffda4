// SPDX-License-Identifier: Apache-2.0

// Ownership: which Foo controls an object, which it may adopt, and the keys of the caches' indexes,
// by which it is found.

package plan

import (
	"hash/maphash"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// ControllerOf returns the controller reference of an object if that names one of the kind,
// else nil.
func (k *OwnerKind) ControllerOf(object metav1.Object) *metav1.OwnerReference {
	if ref := metav1.GetControllerOfNoCopy(object); ref != nil && k.isNamedBy(ref) {
		return ref
	}
	return nil
}

// isNamedBy reports whether an owner reference is to one of the kind. It ignores
// the version, because a reference outlives the API version that it was written with.
func (k *OwnerKind) isNamedBy(ref *metav1.OwnerReference) bool {
	version, err := schema.ParseGroupVersion(ref.APIVersion)
	return err == nil && ref.Kind == k.Kind && version.Group == k.Resource.Group
}

// IsControlledBy reports whether this very Foo controls an object. The UID decides: a Foo
// that was deleted and created again under the same name is another owner, and the
// garbage collector is about to delete the objects of the first. An owner is in the
// namespace of what it owns; in another namespace the UID means nothing.
func (k *OwnerKind) IsControlledBy(object metav1.Object, owner Owner) bool {
	ref := k.ControllerOf(object)
	return ref != nil && ref.UID == owner.GetUID() && object.GetNamespace() == owner.GetNamespace()
}

// HasSameHolder reports whether two states of an object give the same answer to whoever
// waits for its name: who controls it, whether it goes, and whom it may be handed over to.
func HasSameHolder(before, after metav1.Object) bool {
	return before.GetUID() == after.GetUID() && IsTerminating(before) == IsTerminating(after) &&
		equality.Semantic.DeepEqual(metav1.GetControllerOfNoCopy(before), metav1.GetControllerOfNoCopy(after)) &&
		before.GetAnnotations()[samplev1alpha1.AnnotationAdoptBy] == after.GetAnnotations()[samplev1alpha1.AnnotationAdoptBy]
}

// mayAdopt reports whether a Foo may become the controller of an object: the object has
// no controller, is not being deleted, and its annotation names the Foo. Without the
// annotation an orphan stays an orphan, because somebody may have orphaned it on purpose.
func mayAdopt(object metav1.Object, owner Owner) bool {
	return metav1.GetControllerOfNoCopy(object) == nil && !IsTerminating(object) &&
		object.GetAnnotations()[samplev1alpha1.AnnotationAdoptBy] == owner.GetName()
}

// adopted returns a copy of an object with the Foo as its controller and the owned fields
// as the Foo asks. It removes the annotation that asked for the adoption: if the object
// loses its controller again, another adoption needs another annotation.
func (c *ChildKind) adopted(found Object, owner Owner, seen Seen) Object {
	adopted := c.withOwnedFields(found, owner, seen)
	owners := slices.DeleteFunc(adopted.GetOwnerReferences(), func(ref metav1.OwnerReference) bool {
		return ref.UID == owner.GetUID() && c.OwnerKind.isNamedBy(&ref)
	})
	adopted.SetOwnerReferences(append(owners, c.OwnerKind.newControllerRef(owner)))
	annotations := adopted.GetAnnotations()
	delete(annotations, samplev1alpha1.AnnotationAdoptBy)
	adopted.SetAnnotations(annotations)
	return adopted
}

// newControllerRef returns the owner reference that makes a Foo the controller of an
// object. It blocks the Foo's foreground deletion until the object is gone.
func (k *OwnerKind) newControllerRef(owner Owner) metav1.OwnerReference {
	return *metav1.NewControllerRef(owner, k.Resource.GroupVersion().WithKind(k.Kind))
}

// AsksTheSame reports whether two states of a Foo ask for the same: neither did the spec
// change, nor did the deletion begin in between.
func AsksTheSame(before, after Owner) bool {
	return equality.Semantic.DeepEqual(StatusInputs(before), StatusInputs(after))
}

// IsTerminating reports whether an object is being deleted.
func IsTerminating(object metav1.Object) bool {
	return object.GetDeletionTimestamp() != nil
}

// indexBuckets is how many values an index has. Each is a set; a set for each object
// would be a tenth of the caches' memory.
const indexBuckets = 4096

// Buckets are the values of the caches' indexes. Whoever may write Foos chooses the names
// that are indexed. The seed, a different one at each start, prevents that somebody
// chooses names that all share one bucket.
type Buckets struct {
	seed maphash.Seed
}

// NewBuckets returns Buckets with a seed of their own.
func NewBuckets() Buckets { return Buckets{maphash.MakeSeed()} }

// Of returns the bucket of a value. Other values share it, so whoever looks something up
// there has to compare.
func (b Buckets) Of(value string) string {
	return strconv.FormatUint(maphash.String(b.seed, value)%indexBuckets, 10)
}

// ByControllerUID indexes an object by the UID of the one of the kind that controls it.
func (k *OwnerKind) ByControllerUID(b Buckets, object metav1.Object) []string {
	if ref := k.ControllerOf(object); ref != nil {
		return []string{b.Of(string(ref.UID))}
	}
	return nil
}

// ByChildName indexes a Foo by the child of the kind that it asks for.
func (c *ChildKind) ByChildName(b Buckets, owner Owner) []string {
	if !c.Wanted(owner) {
		return nil
	}
	name := cache.ObjectName{Namespace: owner.GetNamespace(), Name: c.Name(owner)}
	return []string{b.Of(name.String())}
}
