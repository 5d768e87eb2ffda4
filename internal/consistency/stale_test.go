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

// Tests of Foos that are known to be stale.

package consistency

import (
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"example.com/sample-controller/internal/footest"
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
