// SPDX-License-Identifier: Apache-2.0

// What an API server does to an object when it stores it, for those in memory.

package rows

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/diff"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/apimachinery/pkg/watch"
)

// Change is what a write does to a stored object.
type Change struct {
	// Event is the one that watches get, or "" if nothing changes.
	Event watch.EventType
	// Object is that of the event. Who stores it sets its resourceVersion, and the UID of
	// one that is created. It is also the answer, unless that differs.
	Object, Answer Object
}

// Create creates an object. With Update and Delete, it is the API server of all tests in
// memory, as functions of what is stored, or nil, and what is sent. The exploration
// compares them with a real one.
func (k *Kind) Create(stored, sent Object) (Change, error) {
	if stored != nil {
		return Change{}, apierrors.NewAlreadyExists(k.Resource.GroupResource(), sent.GetName())
	}
	created := k.Created(sent)
	return Change{watch.Added, created, created}, nil
}

// Update replaces a stored object by the one that is sent, or its status.
func (k *Kind) Update(stored, sent Object, subresource string) (Change, error) {
	if stored == nil {
		return Change{}, apierrors.NewNotFound(k.Resource.GroupResource(), sent.GetName())
	}
	if sent.GetResourceVersion() != "" && sent.GetResourceVersion() != stored.GetResourceVersion() ||
		sent.GetUID() != "" && sent.GetUID() != stored.GetUID() {
		return Change{}, apierrors.NewConflict(k.Resource.GroupResource(), sent.GetName(), errors.New("the object has been modified"))
	}
	next := k.Updated(stored, sent, subresource)
	switch {
	case next.GetDeletionTimestamp() != nil && len(next.GetFinalizers()) == 0:
		// The object is deleted as it was: the update is not stored, but answered.
		return Change{watch.Deleted, CopyOf(stored), next}, nil
	case equality.Semantic.DeepEqual(stored, next):
		return Change{Answer: next}, nil // a write that changes nothing does not change the version
	}
	return Change{watch.Modified, next, next}, nil
}

// Delete deletes a stored object, or marks it as being deleted.
func (k *Kind) Delete(stored Object, name string, options metav1.DeleteOptions, now metav1.Time) (Change, error) {
	if stored == nil {
		return Change{}, apierrors.NewNotFound(k.Resource.GroupResource(), name)
	}
	if only := options.Preconditions; only != nil {
		if only.UID != nil && *only.UID != stored.GetUID() || only.ResourceVersion != nil && *only.ResourceVersion != stored.GetResourceVersion() {
			// The server names the kind where all other answers name the resource.
			kind := schema.GroupResource{Group: k.Resource.Group, Resource: k.Kind}
			return Change{}, apierrors.NewConflict(kind, name, errors.New("the precondition does not hold"))
		}
	}
	next := k.terminating(stored, options, now)
	switch {
	case next == nil:
		return Change{Event: watch.Deleted, Object: CopyOf(stored)}, nil
	case equality.Semantic.DeepEqual(stored, next):
		return Change{}, nil
	}
	return Change{Event: watch.Modified, Object: next}, nil
}

// Created returns an object as the API server stores one that is created. The caller sets
// its UID and resourceVersion.
func (k *Kind) Created(sent Object) Object {
	object := CopyOf(sent)
	k.Default(object)
	object.SetGeneration(0)
	if k.Generation != nil {
		object.SetGeneration(1)
	}
	return object
}

// Stored returns an owner's child as the API server has it: as it asks, and ready.
func (k *Kind) Stored(foo Object) Object { return k.StoredNamed(foo, k.Name(foo)) }

// StoredNamed is like Stored, for a child of a set.
func (k *Kind) StoredNamed(foo Object, name string) Object {
	object := k.Created(k.NewNamed(foo, name))
	object.SetUID(types.UID("uid-" + k.Resource.Resource))
	object.SetResourceVersion("20")
	for k.Advance(object) {
	}
	return object
}

// Updated returns an object as the API server stores it after an update: a write of the
// status changes only the status, any other write everything else.
func (k *Kind) Updated(stored, sent Object, subresource string) Object {
	next := CopyOf(sent)
	if subresource == "status" {
		next = CopyOf(stored)
		if status := statusOf(next); status.IsValid() {
			status.Set(statusOf(CopyOf(sent)))
			truncateTimes(status)
		}
		k.Default(next)
		return next
	}
	if status := statusOf(next); status.IsValid() {
		status.Set(statusOf(CopyOf(stored)))
	}
	k.Default(next)
	next.SetUID(stored.GetUID())
	next.SetResourceVersion(stored.GetResourceVersion())
	next.SetCreationTimestamp(stored.GetCreationTimestamp())
	next.SetDeletionTimestamp(stored.GetDeletionTimestamp())
	next.SetDeletionGracePeriodSeconds(stored.GetDeletionGracePeriodSeconds())
	next.SetGeneration(stored.GetGeneration())
	if k.Generation != nil && k.Generation(stored, next) {
		next.SetGeneration(stored.GetGeneration() + 1)
	}
	return next
}

// truncateTimes gives conditions the times that JSON can hold.
func truncateTimes(status reflect.Value) {
	field := status.FieldByName("Conditions")
	if !field.IsValid() {
		return
	}
	conditions, _ := reflect.TypeAssert[[]metav1.Condition](field)
	for i := range conditions {
		conditions[i].LastTransitionTime.Time = conditions[i].LastTransitionTime.Truncate(time.Second)
	}
}

// Patched returns the object that a patch asks to store instead of the stored one: an
// update with the UID and the resourceVersion of the patch. Without a stored object, it has
// what is in the patch.
func Patched(stored Object, kind types.PatchType, patch []byte) (Object, error) {
	before, err := json.Marshal(stored)
	if err != nil {
		return nil, err
	}
	var after []byte
	switch kind {
	case types.StrategicMergePatchType:
		after, err = strategicpatch.StrategicMergePatch(before, patch, stored)
	case types.MergePatchType:
		after, err = jsonpatch.MergePatch(before, patch)
	default:
		err = fmt.Errorf("the fake API servers know no %s", kind)
	}
	if err != nil {
		return nil, err
	}
	patched := reflect.New(reflect.TypeOf(stored).Elem()).Interface().(Object)
	return patched, json.Unmarshal(after, patched)
}

// terminating returns an object as the API server stores it after a delete, or nil if the
// delete removes it.
func (k *Kind) terminating(stored Object, options metav1.DeleteOptions, now metav1.Time) Object {
	next := CopyOf(stored)
	if options.PropagationPolicy != nil {
		next.SetFinalizers(finalizersWith(*options.PropagationPolicy, next.GetFinalizers()))
	}
	if len(next.GetFinalizers()) == 0 {
		return nil
	}
	next.SetDeletionGracePeriodSeconds(new(int64(0)))
	if next.GetDeletionTimestamp() == nil {
		next.SetDeletionTimestamp(&now)
		if k.Generation != nil {
			next.SetGeneration(stored.GetGeneration() + 1)
		}
	}
	return next
}

// finalizersWith returns the finalizers of an object after a delete with a policy: that of
// the newest delete counts.
func finalizersWith(policy metav1.DeletionPropagation, finalizers []string) []string {
	collectors := map[metav1.DeletionPropagation]string{
		metav1.DeletePropagationForeground: metav1.FinalizerDeleteDependents, metav1.DeletePropagationOrphan: metav1.FinalizerOrphanDependents,
	}
	wanted := slices.DeleteFunc(slices.Clone(finalizers), func(finalizer string) bool {
		return finalizer == metav1.FinalizerDeleteDependents || finalizer == metav1.FinalizerOrphanDependents
	})
	if finalizer, ok := collectors[policy]; ok {
		wanted = append(wanted, finalizer)
	}
	if sets.New(wanted...).Equal(sets.New(finalizers...)) {
		return finalizers // in their order
	}
	return wanted
}

// ClearObservedGeneration clears the generation that an object's status is about.
func ClearObservedGeneration(object Object) {
	if status := statusOf(object); status.IsValid() {
		if field := status.FieldByName("ObservedGeneration"); field.IsValid() {
			field.SetZero()
		}
	}
}

// CopyOf returns a copy of an object.
func CopyOf(object Object) Object { return as[Object](object.DeepCopyObject()) }

// statusOf returns the field Status of an object, which is not valid for kinds without a
// status.
func statusOf(object Object) reflect.Value {
	return reflect.ValueOf(object).Elem().FieldByName("Status")
}

// SpecChanged reports whether the field Spec of an object changed.
func SpecChanged[T Object](before, after T) bool {
	was, is := reflect.ValueOf(before).Elem().FieldByName("Spec"), reflect.ValueOf(after).Elem().FieldByName("Spec")
	return was.IsValid() && !equality.Semantic.DeepEqual(was.Interface(), is.Interface())
}

// OthersPart returns a copy of an object without the fields that an owner owns, or for a nil
// owner without those that any owner may own, and without those that the API server sets.
func (k *Kind) OthersPart(object, foo Object) Object {
	part := CopyOf(object)
	part.SetResourceVersion("")
	part.SetGeneration(0)
	part.SetManagedFields(nil)
	if status := statusOf(part); status.IsValid() {
		status.SetZero()
	}
	part.SetOwnerReferences(slices.DeleteFunc(part.GetOwnerReferences(), func(ref metav1.OwnerReference) bool {
		return k.owner.IsOwned(&ref) && (foo == nil || ref.UID == foo.GetUID())
	}))
	k.ClearOwned(part, foo)
	return part
}

// DescribeTaken says what of others a write changes, or "". foo is nil if any owner may
// have asked for the write. An adoption removes the annotation that asked for it.
func (k *Kind) DescribeTaken(found, write, foo Object) string {
	was, is := k.OthersPart(found, foo), k.OthersPart(write, foo)
	if controller := metav1.GetControllerOf(write); controller != nil && k.owner.IsOwned(controller) && metav1.GetControllerOf(found) == nil {
		delete(was.GetAnnotations(), k.owner.AdoptBy())
	}
	if equality.Semantic.DeepEqual(was, is) {
		return ""
	}
	return diff.Diff(was, is)
}
