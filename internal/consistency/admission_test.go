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

// Tests of remembered admission mutations.

package consistency

import (
	"testing"

	"example.com/sample-controller/internal/footest"
)

func TestAMutationIsRememberedForOneFooAndChild(t *testing.T) {
	o := &AdmissionMutations{}
	mirrored := footest.Child("a", footest.Drifted)
	o.Observe(footest.Foo("a"), mirrored, "the image")
	if !o.WouldRecur(footest.Foo("a"), mirrored, "the image") {
		t.Error("the mutation of a child is not remembered")
	}
	again := footest.Foo("a", footest.WithFooUID("uid-new"))
	if o.WouldRecur(again, mirrored, "the image") {
		t.Error("the mutation counts for another Foo of the name")
	}
	o.Observe(footest.Foo("a"), footest.Child("a"), "")
	if o.WouldRecur(footest.Foo("a"), mirrored, "the image") {
		t.Error("the mutation counts after a write that was stored as sent")
	}
	o.Observe(footest.Foo("a"), mirrored, "the image")
	o.Delete(footest.KeyOf(footest.Foo("a")))
	if o.Len() != 0 {
		t.Error("a deleted Foo is still remembered")
	}
}
