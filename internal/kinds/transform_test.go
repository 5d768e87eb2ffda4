// SPDX-License-Identifier: Apache-2.0

// Tests of what the caches keep of objects.

package kinds

import (
	"encoding/json"
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/randfill"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/pkg/reconcile/plan"
	"example.com/sample-controller/test/footest"
)

// mostKept bounds the memory that the cache may take for one object, in bytes.
const mostKept = 8 << 10

// Users who may write Foos or their children must not be able to fill the controller's memory.
// These objects are as large as the API server accepts, or larger.
func TestWhatTheCacheKeepsOfAnObjectIsBounded(t *testing.T) {
	isFoos := metav1.OwnerReference{APIVersion: "samplecontroller.k8s.io/v1alpha1", Kind: "Foo", Name: "a", UID: "uid-a", Controller: new(true)}
	huge := isFoos
	huge.Kind, huge.Name, huge.UID = strings.Repeat("K", 500<<10), strings.Repeat("N", 500<<10), types.UID(strings.Repeat("U", 500<<10))
	hugeFoo := isFoos
	hugeFoo.Name, hugeFoo.UID = huge.Name, huge.UID
	full := func(options ...footest.ChildOption) *appsv1.Deployment {
		deployment := largest(footest.Deployment("a", options...), isFoos)
		fillDeployment(deployment)
		return deployment
	}
	for name, object := range map[string]metav1.Object{
		"a Foo":                           largest(footest.Foo("a")),
		"a Foo's child":                   largest(child("a"), isFoos),
		"a child of a Foo's that is not":  largest(child("a"), hugeFoo),
		"another's object":                largest(child("a"), huge),
		"an unowned object":               largest(child("a", footest.WithoutOwner)),
		"an object with a huge consent":   largest(child("a", footest.WithoutOwner, footest.WithAdoptBy(strings.Repeat("a", 250<<10)))),
		"a full Deployment":               full(),
		"a selector of many small labels": full(footest.Changed(withManyLabels)),
		"a selector of a huge expression": full(footest.Changed(withHugeExpression)),
	} {
		if size := retained(t, object); size > mostKept {
			t.Errorf("the cache keeps %d bytes of %s", size, name)
		}
	}
}

// largest fills the fields of an object that belong to others.
func largest[Object metav1.Object](object Object, owners ...metav1.OwnerReference) Object {
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
		received := reflect.New(reflect.TypeOf(object).Elem()).Interface()
		footest.Must(t, json.Unmarshal(sent, received))
		kept[i], err = transform(received)
		footest.Must(t, err)
	}
	full := heap()
	clear(kept)
	return (full - heap()) / copies
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

// If the cache dropped a field that a Foo owns, it would look like drift forever.
func TestTheCacheKeepsEveryFieldThatAFooOwns(t *testing.T) {
	for seed := range int64(20) {
		wanted := footest.Foo("a")
		randfill.NewWithSeed(seed).NilChance(0).NumElements(1, 3).Funcs(footest.FillFuncs()...).Fill(&wanted.Spec)
		kept, err := shipped.Transform(newChild(wanted))
		footest.Must(t, err)
		if differs := shipped.DescribeDrift(kept.(plan.Object), wanted, nil); differs != "" {
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

func TestARowMustBeWhole(t *testing.T) {
	if err := shipped.Check(); err != nil {
		t.Errorf("a whole row: %v", err)
	}
	type row = plan.Row[*samplev1alpha1.Foo, *appsv1.Deployment]
	for want, change := range map[string]func(row *row){
		`the row of the kind "` + shipped.Kind + `" lacks Keep`: func(row *row) { row.Keep = nil },
		`the row of the kind "" lacks Kind, and lacks SetOwned`: func(row *row) { row.Kind, row.SetOwned = "", nil },
	} {
		row := deployment(Options{Image: footest.DefaultImage})
		change(&row)
		if err := row.Of(shipped.OwnerKind).Check(); err == nil || err.Error() != want {
			t.Errorf("the error is %v, not %q", err, want)
		}
	}
}
