// SPDX-License-Identifier: Apache-2.0

// Tests of what the caches keep of objects.

package plan

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/randfill"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/test/footest"
)

// Users who may write Foos or their children must not be able to fill the controller's
// memory. These objects are as large as the API server accepts, or larger.
func TestWhatTheCacheKeepsOfAnObjectIsBounded(t *testing.T) {
	isFoos := metav1.OwnerReference{APIVersion: "samplecontroller.k8s.io/v1alpha1", Kind: "Foo", Name: "a", UID: "uid-a", Controller: new(true)}
	huge := isFoos
	huge.Kind, huge.Name, huge.UID = strings.Repeat("K", 500<<10), strings.Repeat("N", 500<<10), types.UID(strings.Repeat("U", 500<<10))
	hugeFoo := isFoos
	hugeFoo.Name, hugeFoo.UID = huge.Name, huge.UID
	checkBounded(t, map[string]metav1.Object{
		"a Foo":                          largest(footest.Foo("a")),
		"a Foo's child":                  largest(child("a"), isFoos),
		"a child of a Foo's that is not": largest(child("a"), hugeFoo),
		"another's object":               largest(child("a"), huge),
		"nobody's object":                largest(child("a", footest.WithoutOwner)),
		"an object with a huge consent":  largest(child("a", footest.WithoutOwner, footest.WithAdoptBy(strings.Repeat("a", 250<<10)))),
	})
}

func checkBounded(t *testing.T, objects map[string]metav1.Object) {
	t.Helper()
	for name, object := range objects {
		t.Run(name, func(t *testing.T) {
			if size := retained(t, object); size > mostKept {
				t.Errorf("the cache keeps %d bytes", size)
			}
		})
	}
}

// largest fills the fields of an object that belong to others.
func largest[T metav1.Object](object T, owners ...metav1.OwnerReference) T {
	for i := range 1000 {
		owners = append(owners, metav1.OwnerReference{APIVersion: "example.com/v1", Kind: "Other", Name: fmt.Sprint(i), UID: types.UID(fmt.Sprintf("uid-%d", i))})
	}
	object.SetOwnerReferences(owners)
	labels, annotations := map[string]string{}, object.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	for i := range 1000 {
		labels[fmt.Sprintf("label-%d", i)] = strings.Repeat("l", 63)
		annotations[fmt.Sprintf("annotation-%d", i)] = strings.Repeat("a", 240)
	}
	object.SetLabels(labels)
	object.SetAnnotations(annotations)
	object.SetFinalizers([]string{"example.com/" + strings.Repeat("f", 250<<10)})
	object.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: strings.Repeat("m", 100<<10)}})
	return object
}

// retained measures the memory that the cache takes for an object from the API server:
// what a garbage collection frees after the cache has dropped the object.
func retained(t *testing.T, object metav1.Object) int {
	t.Helper()
	const copies = 16
	sent, err := json.Marshal(object)
	footest.Must(t, err)
	kept := make([]any, copies)
	for i := range kept {
		received := newLike(object)
		footest.Must(t, json.Unmarshal(sent, received))
		kept[i], err = transform(received)
		footest.Must(t, err)
	}
	full := heap()
	clear(kept)
	return (full - heap()) / copies
}

func newLike(object metav1.Object) any {
	if _, ok := object.(*samplev1alpha1.Foo); ok {
		return new(samplev1alpha1.Foo)
	}
	return shipped.Empty()
}

// heap returns the bytes in use after garbage collections.
func heap() int {
	var stats runtime.MemStats
	for range 3 { // sync.Pools release their objects at the second
		runtime.GC()
	}
	runtime.ReadMemStats(&stats)
	return int(stats.HeapAlloc)
}

func TestTheCacheKeepsWhatDecisionsReadOfOthersObjects(t *testing.T) {
	for name, options := range map[string][]footest.ChildOption{
		"an orphan":                     {footest.WithoutOwner, footest.Terminating},
		"of another kind":               {footest.WithOwner("example.com/v1", "Foo", "uid-other")},
		"an orphan that others changed": {footest.WithoutOwner, footest.WithTeam},
		"an orphan to be adopted":       {footest.WithoutOwner, footest.WithAdoptBy("a")},
	} {
		t.Run(name, func(t *testing.T) {
			object := child("a", options...)
			trimmed, err := transform(child("a", options...))
			footest.Must(t, err)
			kept := trimmed.(metav1.Object)
			adoptBy := kept.GetAnnotations()[samplev1alpha1.AnnotationAdoptBy]
			if adoptBy != object.Annotations[samplev1alpha1.AnnotationAdoptBy] {
				t.Error("the cache lost the annotation that asks for adoption")
			}
			if len(kept.GetAnnotations()) > 1 || kept.GetAnnotations()["team"] != "" || kept.GetLabels() != nil {
				t.Error("the cache keeps fields that nothing reads")
			}
			footest.ExpectEqual(t, "the name", footest.KeyOf(object), footest.KeyOf(kept))
			if kept.GetResourceVersion() != object.ResourceVersion || kept.GetUID() != object.UID {
				t.Error("the cache lost the version or the UID")
			}
			if was, is := metav1.GetControllerOf(object), metav1.GetControllerOf(kept); (was == nil) != (is == nil) ||
				was != nil && (was.Kind != is.Kind || was.Name != is.Name || was.UID != is.UID) {
				t.Errorf("the controller reference is %[2]v, not %[1]v", was, is)
			}
			footest.ExpectEqual(t, "the deletion timestamp", object.DeletionTimestamp, kept.GetDeletionTimestamp())
		})
	}
}

// If the cache dropped a field that a Foo owns, it would look like drift for ever.
func TestTheCacheKeepsEveryFieldThatAFooOwns(t *testing.T) {
	for seed := range int64(20) {
		wanted := footest.Foo("a")
		randfill.NewWithSeed(seed).NilChance(0).NumElements(1, 3).Fill(&wanted.Spec)
		made := newChild(wanted)
		if differs := shipped.DescribeDrift(trimmedCopy(t, made), wanted, nil); differs != "" {
			t.Errorf("a new child for %+v looks drifted in the cache: %s", wanted.Spec, differs)
		}
	}
}

func TestTheTransformerLeavesTombstonesAlone(t *testing.T) {
	tombstone := cache.DeletedFinalStateUnknown{Key: "team-a/web"}
	trimmed, err := transform(tombstone)
	footest.Must(t, err)
	footest.ExpectEqual(t, "the tombstone", tombstone, trimmed)
}
