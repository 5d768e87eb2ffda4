// SPDX-License-Identifier: Apache-2.0

// Tests of Foos that are known to be stale.

package consistency

import (
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"example.com/sample-controller/test/footest"
)

func TestNothingIsKeptOfAFooThatIsGoneOrNewer(t *testing.T) {
	known, old, newer := &StaleOwners{}, footest.Foo("a"), footest.Foo("a")
	old.ResourceVersion, newer.ResourceVersion = "1", "2"
	known.Observe(old, apierrors.NewConflict(footest.FoosResource.GroupResource(), "a", nil))
	if !known.Has(old) || known.Has(newer) {
		t.Errorf("stale: the old state %v, the newer %v", known.Has(old), known.Has(newer))
	}
	known.Observe(newer, nil)
	known.Observe(old, apierrors.NewNotFound(footest.FoosResource.GroupResource(), "a"))
	known.Delete(footest.KeyOf(old))
	if known.Len() != 0 {
		t.Error("a deleted Foo is still remembered")
	}
	known.Observe(old, apierrors.NewTooManyRequests("", 1))
	if known.Len() != 0 {
		t.Error("an error that says nothing about the Foo's version makes it stale")
	}
}
