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

package main

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
)

// FuzzTrimForCache decides once on objects as the API server has them, and once
// on what the caches keep of them: whatever is trimmed, the outcome is one.
func FuzzTrimForCache(f *testing.F) {
	addSeeds(f, fuzzSeeds)
	f.Fuzz(func(t *testing.T, script, noise []byte, words string) {
		whole := newFuzzWorld(t, script, noise, words)
		trimmer := newTrimmer(defaultImage)
		trimmed := &fuzzWorld{foo: trimmedCopy(t, trimmer, whole.foo), words: whole.words}
		for _, deployment := range whole.deployments {
			kept := trimmedCopy(t, trimmer, deployment)
			checkIndexed(t, newBuckets(), deployment, kept)
			checkSmall(t, kept)
			trimmed.deployments = append(trimmed.deployments, kept)
		}
		want := shipped.decide(whole.foo, whole.named(), controlled(t, whole))
		got := shipped.decide(trimmed.foo, trimmed.named(), controlled(t, trimmed))

		expectEqual(t, "the action", want.action, got.action)
		expectEqual(t, "what to delete", namesOf(want.surplus), namesOf(got.surplus))
		if named := whole.named(); named != nil {
			expectEqual(t, "the drift", shipped.describeDrift(named, whole.foo), shipped.describeDrift(trimmed.named(), trimmed.foo))
		}
		if want.action != actionAdopt && want.action != actionUpdate { // which write to what they read live
			expectEqual(t, "the status", shipped.calculateStatus(whole.foo, outcomeOf(whole, want), now), shipped.calculateStatus(trimmed.foo, outcomeOf(trimmed, got), now))
		}
	})
}

// checkSmall fails if the cache keeps more of a Deployment than it should of any.
func checkSmall(t *testing.T, kept *appsv1.Deployment) {
	t.Helper()
	if size := kept.Size(); size > mostKept {
		t.Errorf("%d bytes are kept of a Deployment", size)
	}
}

func trimmedCopy[T interface{ DeepCopy() T }](t *testing.T, trimmer *trimmer, object T) T {
	t.Helper()
	trimmed, err := trimmer.trim(object.DeepCopy())
	must(t, err)
	return trimmed.(T)
}

// checkIndexed fails if what is kept of a Deployment is found under another name
// or owner than the whole, or can't say how new it is.
func checkIndexed(t *testing.T, buckets buckets, whole, kept *appsv1.Deployment) {
	t.Helper()
	want, err := buckets.byControllerUID(whole)
	must(t, err)
	got, err := buckets.byControllerUID(kept)
	must(t, err)
	expectEqual(t, "the owner in the index", want, got)
	expectEqual(t, "the key", keyOf(whole), keyOf(kept))
	if whole.UID != kept.UID || whole.ResourceVersion != kept.ResourceVersion {
		t.Errorf("of UID %s at version %s, UID %s at version %s is kept", whole.UID, whole.ResourceVersion, kept.UID, kept.ResourceVersion)
	}
}
