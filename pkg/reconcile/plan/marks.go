// SPDX-License-Identifier: Apache-2.0

// Marks stand for owner references where Kubernetes does not follow those: for children of a namespaced owner in
// another namespace, or without one. The garbage collector would delete a child with such a reference, or never.
// Marks count only there, and only on objects without a controller. What makes them safe:
//
//   - The kind's finalizer is written before the first child, and nothing else in that sync.
//   - Each deletion reads the object and its owner live, and names the UID and version.
//   - The finalizer goes only when a live list by label finds nothing more: a cache can lack a child that was
//     written before a crash.
//   - An admission policy lets only the controller's account set them. Without it, whoever may edit an
//     object could have it deleted.

package plan

import (
	"maps"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
)

// OwnerLabel returns the label that has the UID of the owner, and OwnerKey the annotation that has its key.
func (k *Kind) OwnerLabel() string { return k.group() + "/owner-uid" }

// OwnerKey returns the annotation that has the key of the owner, "NAMESPACE/NAME".
func (k *Kind) OwnerKey() string { return k.group() + "/owner" }

// IsElsewhere reports whether the kind's children are where Kubernetes does not follow references to their owner.
func (c *ChildKind) IsElsewhere() bool { return c.isElsewhere }

// own makes an owner the controller of an object.
func (k *Kind) own(object Object, owner Owner) {
	if k.reaches(object, owner) {
		object.SetOwnerReferences(append(object.GetOwnerReferences(), k.newControllerRef(owner)))
		return
	}
	k.mark(object, string(owner.GetUID()), cache.MetaObjectToName(owner).String())
}

// mark sets the marks of an object. It copies its labels and annotations, which may be shared.
func (k *Kind) mark(object Object, uid, key string) {
	labels := maps.Clone(object.GetLabels())
	if labels == nil {
		labels = map[string]string{}
	}
	labels[k.OwnerLabel()] = uid
	object.SetLabels(labels)
	annotate(object, k.OwnerKey(), key)
}

// markOf returns the UID and the key of the owner that an object's marks name. ok is false if it has none, or a
// controller.
func (k *Kind) markOf(object metav1.Object) (uid string, key cache.ObjectName, ok bool) {
	uid = object.GetLabels()[k.OwnerLabel()]
	if uid == "" || k.ClusterScoped || k.Finalizer == "" || metav1.GetControllerOfNoCopy(object) != nil {
		return "", key, false
	}
	key, _ = cache.ParseObjectName(object.GetAnnotations()[k.OwnerKey()]) // another text names no owner
	return uid, key, true
}

// UIDOfOwner returns the UID of the owner of the kind that controls an object, by reference or by marks, or "".
func (k *Kind) UIDOfOwner(object metav1.Object) string {
	if ref := k.ControllerOf(object); ref != nil {
		return string(ref.UID)
	}
	uid, _, _ := k.markOf(object)
	return uid
}

// isMarkedBy reports whether an object has the marks of this very owner, and is where they count.
func (k *Kind) isMarkedBy(object metav1.Object, owner Owner) bool {
	uid, _, ok := k.markOf(object)
	return ok && uid == string(owner.GetUID()) && !k.reaches(object, owner)
}

// keepMarks copies the marks of an object.
func (k *Kind) keepMarks(kept, found Object) {
	uid, key := found.GetLabels()[k.OwnerLabel()], found.GetAnnotations()[k.OwnerKey()]
	k.mark(kept, Truncate(uid, MaxKept), Truncate(key, MaxKept))
}

// adoptValue returns the value of the annotation AdoptBy that hands an object over to an owner: its name, or its key
// if it is in another namespace.
func (k *Kind) adoptValue(object metav1.Object, owner Owner) string {
	if k.reaches(object, owner) {
		return owner.GetName()
	}
	return cache.MetaObjectToName(owner).String()
}

// isKey reports whether the value of an annotation AdoptBy is a key, not the name of an owner nearby.
func isKey(value string) bool { return strings.Contains(value, "/") }
