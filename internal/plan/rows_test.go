// SPDX-License-Identifier: Apache-2.0

// What must be right in each row of the table, in the order in which mistakes are made.

package plan

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

// TestAChildOfEachRowStaysAsItWasCreated follows a child of each row through its creation:
// the row makes it, the API server fills in the rest, the cache keeps a part, and nothing
// is left to do.
func TestAChildOfEachRowStaysAsItWasCreated(t *testing.T) {
	for _, row := range rows {
		t.Run(row.resource(), row.created)
	}
}

func (r row) created(t *testing.T) {
	if err := r.Check(); err != nil {
		t.Fatal(err)
	}
	foo := r.kind.Owner().Asking("a", "web", 1).(Owner)
	seen := r.seenIn(foo)
	stored := r.stored(foo, seen)
	if differs := r.kind.Differs(stored, foo); differs != "" {
		t.Fatalf("SetOwned forgets something: a new %s %s", r.Kind, differs)
	}
	if drift := r.DescribeDrift(stored, foo, seen); drift != "" {
		t.Fatalf("SetOwned changes what the API server has filled in (set single fields, not whole structs and lists): %s", drift)
	}
	if drift := r.DescribeDrift(r.kept(stored), foo, seen); drift != "" {
		t.Fatalf("Keep drops what SetOwned sets, so to the controller it is never there: %s", drift)
	}
}

// stored returns a new child as the API server stores it.
func (r row) stored(foo Owner, seen Seen) Object {
	child := r.Desired(foo, seen)
	child.SetUID(types.UID(r.Kind))
	child.SetResourceVersion("1")
	r.kind.Default(child)
	return child
}
