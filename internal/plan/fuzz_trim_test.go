/*
Copyright The Sample Controller Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

// FuzzTrimForCache: decisions on trimmed objects.

package plan

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"

	"example.com/sample-controller/internal/footest"
)

// FuzzTrimForCache decides on complete objects and on what the caches keep of them. The
// outcomes must be equal.
func FuzzTrimForCache(f *testing.F) {
	footest.AddSeeds(f, footest.FuzzSeeds)
	f.Fuzz(func(t *testing.T, script, noise []byte, words string) {
		whole := footest.NewFuzzWorld(t, script, noise, words)
		trimmed := &footest.FuzzWorld{Foo: trimmedCopy(t, whole.Foo), Words: whole.Words}
		for _, deployment := range whole.Deployments {
			kept := trimmedCopy(t, deployment)
			checkIndexed(t, NewBuckets(), deployment, kept)
			checkSmall(t, kept)
			trimmed.Deployments = append(trimmed.Deployments, kept)
		}
		want := shipped.Decide(whole.Foo, whole.Named(), controlled(t, whole), nil)
		got := shipped.Decide(trimmed.Foo, trimmed.Named(), controlled(t, trimmed), nil)

		footest.ExpectEqual(t, "the action", want.Action, got.Action)
		footest.ExpectEqual(t, "what to delete", footest.NamesOf(want.Obsolete), footest.NamesOf(got.Obsolete))
		if named := whole.Named(); named != nil {
			footest.ExpectEqual(t, "the drift", shipped.DescribeDrift(named, whole.Foo, nil), shipped.DescribeDrift(trimmed.Named(), trimmed.Foo, nil))
		}
		if want.Action != ActionAdopt && want.Action != ActionUpdate { // which write what they read live
			footest.ExpectEqual(t, "the status", statusAfter(whole.Foo, outcomeOf(whole, want), footest.Now), statusAfter(trimmed.Foo, outcomeOf(trimmed, got), footest.Now))
		}
	})
}

// checkSmall fails if the cache keeps more of a Deployment than the bound for any object.
func checkSmall(t *testing.T, kept *appsv1.Deployment) {
	t.Helper()
	if size := kept.Size(); size > mostKept {
		t.Errorf("%d bytes are kept of a Deployment", size)
	}
}

func trimmedCopy[T interface{ DeepCopy() T }](t *testing.T, object T) T {
	t.Helper()
	trimmed, err := transform(object.DeepCopy())
	footest.Must(t, err)
	return trimmed.(T)
}

// checkIndexed fails if the trimmed Deployment has another name, owner, UID or version
// than the complete one.
func checkIndexed(t *testing.T, buckets Buckets, whole, kept *appsv1.Deployment) {
	t.Helper()
	footest.ExpectEqual(t, "the owner in the index", buckets.ByControllerUID(whole), buckets.ByControllerUID(kept))
	footest.ExpectEqual(t, "the key", footest.KeyOf(whole), footest.KeyOf(kept))
	if whole.UID != kept.UID || whole.ResourceVersion != kept.ResourceVersion {
		t.Errorf("UID %s at version %s became UID %s at version %s", whole.UID, whole.ResourceVersion, kept.UID, kept.ResourceVersion)
	}
}
