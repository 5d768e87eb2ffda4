// SPDX-License-Identifier: Apache-2.0

// FuzzTrimForCache: decisions on trimmed objects.

package plan

import (
	"testing"

	"example.com/sample-controller/test/footest"
)

// FuzzTrimForCache decides on complete objects and on what the caches keep of them. The
// outcomes must be equal.
func FuzzTrimForCache(f *testing.F) {
	footest.AddSeeds(f, footest.FuzzSeeds)
	f.Fuzz(func(t *testing.T, script, noise []byte, words string) {
		eachWorld(t, script, noise, words, func(r row, w *footest.FuzzWorld) { r.trim(t, w) })
	})
}

func (r row) trim(t *testing.T, w *footest.FuzzWorld) {
	t.Helper()
	whole := r.worldOf(w)
	foo, err := r.OwnerKind.Transform(CopyOf(w.Foo))
	footest.Must(t, err)
	trimmed := world{row: r, foo: foo.(Owner), refused: whole.refused, words: w.Words}
	for _, object := range whole.objects {
		kept := r.kept(CopyOf(object))
		r.checkIndexed(t, NewBuckets(), object, kept)
		checkSmall(t, kept)
		trimmed.objects = append(trimmed.objects, kept)
	}
	want, got := whole.decide(), trimmed.decide()
	footest.ExpectEqual(t, "the action", want.Action, got.Action)
	footest.ExpectEqual(t, "what to delete", footest.NamesOf(want.Obsolete), footest.NamesOf(got.Obsolete))
	footest.ExpectEqual(t, "the drift", want.Drift, got.Drift)
	if want.Action != ActionAdopt && want.Action != ActionUpdate { // which write what they read live
		footest.ExpectEqual(t, "the status", whole.statusAfter(whole.outcomeOf(want), footest.Now).GetStatus(), trimmed.statusAfter(trimmed.outcomeOf(got), footest.Now).GetStatus())
	}
}

// mostKept bounds the memory that the cache may take for one object, in bytes.
const mostKept = 8 << 10

// checkSmall fails if the cache keeps more of an object than the bound for any object.
func checkSmall(t *testing.T, kept footest.Object) {
	t.Helper()
	if sized, ok := kept.(interface{ Size() int }); ok && sized.Size() > mostKept {
		t.Errorf("%d bytes are kept of a %Object", sized.Size(), kept)
	}
}

// checkIndexed fails if the trimmed object has another name, owner, UID or version than
// the complete one.
func (r row) checkIndexed(t *testing.T, buckets Buckets, whole, kept footest.Object) {
	t.Helper()
	footest.ExpectEqual(t, "the owner in the index", r.OwnerKind.ByControllerUID(buckets, whole), r.OwnerKind.ByControllerUID(buckets, kept))
	footest.ExpectEqual(t, "the key", footest.KeyOf(whole), footest.KeyOf(kept))
	if whole.GetUID() != kept.GetUID() || whole.GetResourceVersion() != kept.GetResourceVersion() {
		t.Errorf("UID %s at version %s became UID %s at version %s",
			whole.GetUID(), whole.GetResourceVersion(), kept.GetUID(), kept.GetResourceVersion())
	}
}
