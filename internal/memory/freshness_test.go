// SPDX-License-Identifier: Apache-2.0

// Tests of the waits for our own writes and for stale Foos.

package memory

import (
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/sample-controller/test/footest"
)

// store is an informer's store at a resourceVersion.
type store struct{ version string }

func (s *store) LastStoreSyncResourceVersion() string { return s.version }

var now = time.Unix(0, 0)

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
			var writes Writes
			writes.Add(&store{row.seen}, row.written, now)
			if got := writes.EnsureReady(now, time.Minute) == nil; got != row.want {
				t.Errorf("ready is %v, not %v", got, row.want)
			}
		})
	}
}

func TestEveryStoreMustCatchUpWithTheNewestWrite(t *testing.T) {
	var writes Writes
	foos, children := &store{"1"}, &store{"1"}
	writes.Add(children, "2", now)
	writes.Add(foos, "3", now)
	writes.Add(foos, "5", now)

	foos.version = "5"
	if writes.EnsureReady(now, time.Minute) == nil {
		t.Error("ready while one store is behind")
	}
	foos.version, children.version = "4", "2"
	if writes.EnsureReady(now, time.Minute) != nil {
		t.Error("a store that caught up once is checked again")
	}
}

func TestWaitEndsWithItsLimit(t *testing.T) {
	var writes Writes
	writes.Add(&store{"5"}, "900", now) // then etcd was restored from a backup
	if writes.EnsureReady(now.Add(time.Minute-1), time.Minute) == nil {
		t.Error("the wait ended before its limit")
	}
	if writes.EnsureReady(now.Add(time.Minute), time.Minute) != nil || len(writes) != 0 {
		t.Error("the wait continues after its limit")
	}
}

func TestAStaleVersionIsThatOfNoOther(t *testing.T) {
	var stale StaleVersion
	old, newer := footest.Foo("a"), footest.Foo("a")
	old.ResourceVersion, newer.ResourceVersion = "1", "2"
	stale.Observe(old, apierrors.NewConflict(footest.FoosResource.GroupResource(), "a", nil))
	if !stale.IsOf(old) || stale.IsOf(newer) {
		t.Errorf("stale: the old state %v, the newer %v", stale.IsOf(old), stale.IsOf(newer))
	}
	if stale.Observe(newer, nil); stale != "" {
		t.Error("after a write that was accepted, a version is still stale")
	}
	if stale.Observe(old, apierrors.NewTooManyRequests("", 1)); stale != "" {
		t.Error("an error that says nothing about the Foo's version makes it stale")
	}
	if stale.IsOf(footest.Unstored("a")) {
		t.Error("nothing is known, and a Foo without a version is stale")
	}
}

func TestAConfirmationIsForOneSpecAndOneChild(t *testing.T) {
	foo, child := footest.Foo("a"), footest.Child("a", footest.AtVersion("20"))
	confirmed := ConfirmationBy(foo, child)
	for what, row := range map[string]struct {
		foo, child metav1.Object
		want       bool
	}{
		"the child":        {foo, child, true},
		"a newer version":  {foo, footest.Child("a", footest.AtVersion("21")), true},
		"an older version": {foo, footest.Child("a", footest.AtVersion("19")), false},
		"another spec":     {footest.Foo("a", footest.WithGeneration(2)), child, false},
		"another child":    {foo, footest.Child("a", footest.AtVersion("20"), func(child footest.Object) { child.SetUID("uid-b") }), false},
	} {
		if got := confirmed.Includes(row.foo, row.child); got != row.want {
			t.Errorf("%s counts as confirmed: %v, want %v", what, got, row.want)
		}
	}
}
