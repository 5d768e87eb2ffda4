// SPDX-License-Identifier: Apache-2.0

// Tests of the waits for our own writes and for stale Foos.

package consistency

import (
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	clocktesting "k8s.io/utils/clock/testing"

	"example.com/sample-controller/test/footest"
)

// store is an informer's store at a resourceVersion.
type store struct{ version string }

func (s *store) LastStoreSyncResourceVersion() string { return s.version }

var owner = cache.ObjectName{Namespace: "team-a", Name: "a"}

func TestAnOwnerIsReady(t *testing.T) {
	for name, row := range map[string]struct {
		seen, written string
		want          bool
	}{
		"when the store has seen the write": {"9", "9", true},
		"when the store has seen more":      {"10", "9", true},
		"not while the store is behind":     {"9", "10", false},
		"not while the store is far behind": {"99", "100000000000000000000000", false},
		"when the store has no version":     {"", "9", true},
		"when the write has no version":     {"9", "", true},
	} {
		t.Run(name, func(t *testing.T) {
			writes := NewStore(clocktesting.NewFakeClock(time.Now()), time.Minute)
			writes.WroteAt(owner, "uid", &store{row.seen}, row.written)
			if got := writes.EnsureReady(owner) == nil; got != row.want {
				t.Errorf("ready is %v, not %v", got, row.want)
			}
		})
	}
}

func TestEveryStoreMustCatchUpWithTheNewestWrite(t *testing.T) {
	writes := NewStore(clocktesting.NewFakeClock(time.Now()), time.Minute)
	foos, children := &store{"1"}, &store{"1"}
	writes.WroteAt(owner, "uid", children, "2")
	writes.WroteAt(owner, "uid", foos, "3")
	writes.WroteAt(owner, "uid", foos, "5")

	foos.version = "5"
	if writes.EnsureReady(owner) == nil {
		t.Error("ready while one store is behind")
	}
	foos.version, children.version = "4", "2"
	if writes.EnsureReady(owner) != nil {
		t.Error("a store that caught up once is checked again")
	}
}

func TestWaitEndsWithItsLimit(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Now())
	writes := NewStore(clock, time.Minute)
	writes.WroteAt(owner, "uid", &store{"5"}, "900") // then etcd was restored from a backup
	clock.Step(time.Minute - 1)
	if writes.EnsureReady(owner) == nil {
		t.Error("the wait ended before its limit")
	}
	clock.Step(1)
	if writes.EnsureReady(owner) != nil {
		t.Error("the wait continues after its limit")
	}
}

func TestNothingIsKeptOfAnOwnerThatIsGoneOrCaughtUp(t *testing.T) {
	writes := NewStore(clocktesting.NewFakeClock(time.Now()), time.Minute)
	writes.WroteAt(owner, "uid", &store{"5"}, "9")
	writes.Clear(owner, "uid")
	if len(writes.owners) != 0 {
		t.Error("a cleared owner is still remembered")
	}
	writes.WroteAt(owner, "uid", &store{"9"}, "9")
	if err := writes.EnsureReady(owner); err != nil {
		t.Error(err)
	}
	if len(writes.owners) != 0 {
		t.Error("an owner that has caught up is still remembered")
	}
}

func TestAnOwnerIsNotConfusedWithAnotherOfItsName(t *testing.T) {
	writes := NewStore(clocktesting.NewFakeClock(time.Now()), time.Minute)
	foos, children := &store{"1"}, &store{"1"}
	writes.WroteAt(owner, "first", children, "2")
	writes.WroteAt(owner, "second", foos, "3")
	writes.Clear(owner, "first")
	if writes.EnsureReady(owner) == nil {
		t.Error("clearing the first owner cleared the writes of the second")
	}
	foos.version = "3"
	if writes.EnsureReady(owner) != nil {
		t.Error("the second owner waits for the writes of the first")
	}
}

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

func TestAConfirmationIsForOneSpecAndOneChild(t *testing.T) {
	foo, child := footest.Foo("a"), footest.Child("a", footest.AtVersion("20"))
	var confirmed ConfirmedChildren
	confirmed.Observe(foo, child)
	for what, row := range map[string]struct {
		foo, child metav1.Object
		want       bool
	}{
		"the child":             {foo, child, true},
		"a newer version":       {foo, footest.Child("a", footest.AtVersion("21")), true},
		"an older version":      {foo, footest.Child("a", footest.AtVersion("19")), false},
		"another spec":          {footest.Foo("a", footest.WithGeneration(2)), child, false},
		"another Foo":           {footest.Foo("a", footest.WithFooUID("uid-b")), child, false},
		"another child":         {foo, footest.Child("a", footest.AtVersion("20"), func(child footest.Object) { child.SetUID("uid-b") }), false},
		"a Foo of another name": {footest.Foo("b"), child, false},
	} {
		if got := confirmed.UpToDate(row.foo, row.child); got != row.want {
			t.Errorf("%s counts as confirmed: %v, want %v", what, got, row.want)
		}
	}
}
