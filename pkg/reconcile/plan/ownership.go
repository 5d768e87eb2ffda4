// SPDX-License-Identifier: Apache-2.0

// Ownership: which owner controls an object or may adopt it.

package plan

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/tools/cache"
)

// ControllerOf returns an object's controller reference if it names an owner of the kind, else
// nil.
func (k *Kind) ControllerOf(object metav1.Object) *metav1.OwnerReference {
	if ref := metav1.GetControllerOfNoCopy(object); ref != nil && k.isNamedBy(ref) {
		return ref
	}
	return nil
}

// HolderKey returns the key of the owner of the kind that controls an object, if there is one.
func (k *Kind) HolderKey(object metav1.Object) (key cache.ObjectName, ok bool) {
	ref := k.ControllerOf(object)
	if ref == nil {
		_, key, ok = k.markOf(object)
		return key, ok
	}
	return k.keyBeside(object, ref.Name), true
}

// keyBeside returns the key of an owner with a name that an object in a namespace refers to.
func (k *Kind) keyBeside(object metav1.Object, name string) cache.ObjectName {
	key := cache.ObjectName{Namespace: object.GetNamespace(), Name: name}
	if k.ClusterScoped {
		key.Namespace = ""
	}
	return key
}

// reaches reports whether Kubernetes follows a reference of an object to an owner of the kind: in another
// namespace the UID means nothing.
func (k *Kind) reaches(object metav1.Object, owner Owner) bool {
	return k.ClusterScoped || object.GetNamespace() == owner.GetNamespace()
}

// AdopterKey returns the key of the owner that may adopt an object, if its annotation names one.
func (k *Kind) AdopterKey(object metav1.Object) (key cache.ObjectName, ok bool) {
	name := object.GetAnnotations()[k.AdoptBy()]
	if isKey(name) {
		key, err := cache.ParseObjectName(name)
		return key, err == nil && k.Finalizer != "" && !k.ClusterScoped
	}
	return k.keyBeside(object, name), name != ""
}

// HolderOf returns the owner of the kind that controls an object, or nil. find returns the owner with
// a key, or nil.
func (k *Kind) HolderOf(object Object, find func(key cache.ObjectName) Owner) Owner {
	if object == nil {
		return nil
	}
	key, ok := k.HolderKey(object)
	if !ok {
		return nil
	}
	if holder := find(key); holder != nil && string(holder.GetUID()) == k.UIDOfOwner(object) {
		return holder
	}
	return nil
}

// isNamedBy reports whether an owner reference names an owner of the kind. It ignores the
// version, because a reference outlives the API version that it was written with.
func (k *Kind) isNamedBy(ref *metav1.OwnerReference) bool {
	named, err := schema.ParseGroupVersion(ref.APIVersion)
	return err == nil && ref.Kind == k.Name && named.Group == k.Resource.Group
}

// IsControlledBy reports whether this very owner controls an object. The UID decides: an owner
// that was deleted and recreated with the same name is another owner, and the garbage
// collector is about to delete the objects of the first.
func (k *Kind) IsControlledBy(object metav1.Object, owner Owner) bool {
	ref := k.ControllerOf(object)
	if ref == nil {
		isItself := k.IsOthers() && object.GetUID() == owner.GetUID() // a row of fields of the owner
		return isItself || k.isMarkedBy(object, owner)
	}
	return ref.UID == owner.GetUID() && k.reaches(object, owner)
}

// HasSameHolder reports whether two states of an object are the same for the owners that wait
// for its name: who controls it, whether it is being deleted, and which owner may adopt it.
func (k *Kind) HasSameHolder(before, after metav1.Object) bool {
	uidBefore, keyBefore, _ := k.markOf(before)
	uidAfter, keyAfter, _ := k.markOf(after)
	return uidBefore == uidAfter && keyBefore == keyAfter && before.GetUID() == after.GetUID() && IsTerminating(before) == IsTerminating(after) &&
		equality.Semantic.DeepEqual(metav1.GetControllerOfNoCopy(before), metav1.GetControllerOfNoCopy(after)) &&
		before.GetAnnotations()[k.AdoptBy()] == after.GetAnnotations()[k.AdoptBy()]
}

// mayAdopt reports whether an owner may become the controller of an object: the object has
// no controller, is not being deleted, and its annotation names the owner. Without the
// annotation an orphan stays an orphan, because someone may have orphaned it on purpose.
func (k *Kind) mayAdopt(object metav1.Object, owner Owner) bool {
	return metav1.GetControllerOfNoCopy(object) == nil && !IsTerminating(object) &&
		object.GetAnnotations()[k.AdoptBy()] == k.adoptValue(object, owner)
}

// adopted returns a copy of an object with the owner as its controller and the owned fields in
// the desired state. It removes the annotation that allows the adoption: if the object loses
// its controller again, another adoption needs another annotation.
func (c *ChildKind) adopted(found Object, owner Owner, view *View) Object {
	adopted := c.withOwnedFields(found, owner, view)
	owners := slices.DeleteFunc(adopted.GetOwnerReferences(), func(ref metav1.OwnerReference) bool {
		return ref.UID == owner.GetUID() && c.OwnerKind.isNamedBy(&ref)
	})
	adopted.SetOwnerReferences(owners)
	c.OwnerKind.own(adopted, owner)
	annotations := adopted.GetAnnotations()
	delete(annotations, c.OwnerKind.AdoptBy())
	adopted.SetAnnotations(annotations)
	return adopted
}

// newControllerRef returns the owner reference that makes an owner the controller of an
// object. It blocks the owner's foreground deletion until the object is gone.
func (k *Kind) newControllerRef(owner Owner) metav1.OwnerReference {
	return *metav1.NewControllerRef(owner, k.Resource.GroupVersion().WithKind(k.Name))
}

// renewControllerRef makes the controller reference of an owner's child name this program's
// version of the API if it names an older one. The garbage collector ignores references to a
// version that is no longer served. A newer version stays: the program of a newer release
// may be running, too.
func (k *Kind) renewControllerRef(child Object) {
	ref := k.ControllerOf(child)
	if ref == nil {
		return
	}
	named, own := schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind).Version, k.Resource.GroupVersion()
	if version.CompareKubeAwareVersionStrings(own.Version, named) > 0 {
		ref.APIVersion = own.String()
	}
}

// AsksTheSame reports whether two states of an owner have the same desired state: the spec did
// not change in between, no deletion began, and its user asked for no sync.
func (k *Kind) AsksTheSame(before, after Owner) bool {
	return sameInputs(k.inputsOf(before), k.inputsOf(after))
}

// IsTerminating reports whether an object is being deleted.
func IsTerminating(object metav1.Object) bool {
	return object.GetDeletionTimestamp() != nil
}
