// SPDX-License-Identifier: Apache-2.0

// Ownership: which Foo controls an object or may adopt it, and the keys of the caches' indexes
// that find it.

package plan

import (
	"hash/maphash"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/tools/cache"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// ControllerOf returns an object's controller reference if it names an owner of the kind, else
// nil.
func (k *OwnerKind) ControllerOf(object metav1.Object) *metav1.OwnerReference {
	if ref := metav1.GetControllerOfNoCopy(object); ref != nil && k.isNamedBy(ref) {
		return ref
	}
	return nil
}

// HolderOf returns the owner of the kind that controls an object, or nil. find returns the owner with
// a key, or nil.
func (k *OwnerKind) HolderOf(object Object, find func(key cache.ObjectName) Owner) Owner {
	if object == nil {
		return nil
	}
	ref := k.ControllerOf(object)
	if ref == nil {
		return nil
	}
	if holder := find(cache.ObjectName{Namespace: object.GetNamespace(), Name: ref.Name}); holder != nil && holder.GetUID() == ref.UID {
		return holder
	}
	return nil
}

// isNamedBy reports whether an owner reference names an owner of the kind. It ignores the
// version, because a reference outlives the API version that it was written with.
func (k *OwnerKind) isNamedBy(ref *metav1.OwnerReference) bool {
	named, err := schema.ParseGroupVersion(ref.APIVersion)
	return err == nil && ref.Kind == k.Kind && named.Group == k.Resource.Group
}

// IsControlledBy reports whether this very Foo controls an object. The UID decides: a Foo
// that was deleted and recreated with the same name is another owner, and the garbage
// collector is about to delete the objects of the first. An owner is in the same namespace
// as its objects; in another namespace the UID means nothing.
func (k *OwnerKind) IsControlledBy(object metav1.Object, owner Owner) bool {
	ref := k.ControllerOf(object)
	return ref != nil && ref.UID == owner.GetUID() && object.GetNamespace() == owner.GetNamespace()
}

// HasSameHolder reports whether two states of an object are the same for the Foos that wait
// for its name: who controls it, whether it is being deleted, and which Foo may adopt it.
func HasSameHolder(before, after metav1.Object) bool {
	return before.GetUID() == after.GetUID() && IsTerminating(before) == IsTerminating(after) &&
		equality.Semantic.DeepEqual(metav1.GetControllerOfNoCopy(before), metav1.GetControllerOfNoCopy(after)) &&
		before.GetAnnotations()[samplev1alpha1.AnnotationAdoptBy] == after.GetAnnotations()[samplev1alpha1.AnnotationAdoptBy]
}

// mayAdopt reports whether a Foo may become the controller of an object: the object has
// no controller, is not being deleted, and its annotation names the Foo. Without the
// annotation an orphan stays an orphan, because someone may have orphaned it on purpose.
func mayAdopt(object metav1.Object, owner Owner) bool {
	return metav1.GetControllerOfNoCopy(object) == nil && !IsTerminating(object) &&
		object.GetAnnotations()[samplev1alpha1.AnnotationAdoptBy] == owner.GetName()
}

// adopted returns a copy of an object with the Foo as its controller and the owned fields in
// the desired state. It removes the annotation that allows the adoption: if the object loses
// its controller again, another adoption needs another annotation.
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

// renewControllerRef makes the controller reference of a Foo's child name this program's
// version of the API if it names an older one. The garbage collector ignores references to a
// version that is no longer served. A newer version stays: the program of a newer release
// may be running, too.
func (k *OwnerKind) renewControllerRef(child Object) {
	ref := k.ControllerOf(child)
	if ref == nil {
		return
	}
	named, own := schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind).Version, k.Resource.GroupVersion()
	if version.CompareKubeAwareVersionStrings(own.Version, named) > 0 {
		ref.APIVersion = own.String()
	}
}

// AsksTheSame reports whether two states of a Foo have the same desired state: the spec did
// not change in between, and no deletion began.
func AsksTheSame(before, after Owner) bool {
	return equality.Semantic.DeepEqual(StatusInputs(before), StatusInputs(after))
}

// IsTerminating reports whether an object is being deleted.
func IsTerminating(object metav1.Object) bool {
	return object.GetDeletionTimestamp() != nil
}

// indexBuckets is the number of values in an index. The index has a set for each value; a set
// for each object would take a tenth of the caches' memory.
const indexBuckets = 4096

// Buckets maps keys to the values of the caches' indexes. Users who may write Foos choose the
// names that are indexed. The seed, which differs at each start, keeps anyone from choosing
// names that all share one bucket.
type Buckets struct {
	seed maphash.Seed
}

// NewBuckets returns Buckets with a new seed.
func NewBuckets() Buckets { return Buckets{maphash.MakeSeed()} }

// Of returns the bucket of a value. Other values share it, so a caller has to compare the
// objects that it finds there.
func (b Buckets) Of(value string) string {
	return strconv.FormatUint(maphash.String(b.seed, value)%indexBuckets, 10)
}

// ByControllerUID indexes an object by the UID of the owner of the kind that controls it.
func (k *OwnerKind) ByControllerUID(b Buckets, object metav1.Object) []string {
	if ref := k.ControllerOf(object); ref != nil {
		return []string{b.Of(string(ref.UID))}
	}
	return nil
}

// ByChildName indexes a Foo by the name of the child of the kind that it wants.
func (c *ChildKind) ByChildName(b Buckets, owner Owner) []string {
	if !c.Wanted(owner) {
		return nil
	}
	name := cache.ObjectName{Namespace: owner.GetNamespace(), Name: c.Name(owner)}
	return []string{b.Of(name.String())}
}
