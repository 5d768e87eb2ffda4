// SPDX-License-Identifier: Apache-2.0

// Tests of remembered admission mutations.

package consistency

import (
	"testing"

	"example.com/sample-controller/test/footest"
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
