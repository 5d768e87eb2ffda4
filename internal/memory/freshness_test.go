// SPDX-License-Identifier: Apache-2.0

// Tests of the waits for our own writes and for stale Foos.

package memory

import (
	"fmt"
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

func TestCachesMustHaveTheWrites(t *testing.T) {
	for what, row := range map[string]struct {
		seen, written string
		later         time.Duration
		want          bool
	}{
		"the store has seen the write":  {"9", "9", 0, true},
		"the store has seen more":       {"10", "9", 0, true},
		"the store is behind":           {"9", "10", 0, false},
		"the store is far behind":       {"99", "100000000000000000000000", 0, false},
		"the store has no version":      {"", "9", 0, true},
		"the write has no version":      {"9", "", 0, true},
		"until the limit":               {"5", "900", time.Minute - 1, false}, // etcd was restored from a backup
		"the wait ends with its limit:": {"5", "900", time.Minute, true},
	} {
		var writes Writes
		writes.Add(&store{row.seen}, row.written, now)
		ready := writes.EnsureReady(now.Add(row.later), time.Minute) == nil
		footest.ExpectEqual(t, what+" ready and forgotten", []bool{row.want, row.want}, []bool{ready, len(writes) == 0})
	}
}

func TestEveryStoreMustCatchUpWithTheNewestWrite(t *testing.T) {
	var writes Writes
	foos, children := &store{"1"}, &store{"1"}
	writes.Add(children, "2", now)
	writes.Add(foos, "3", now)
	writes.Add(foos, "5", now)
	for _, row := range []struct {
		foos, children string
		want           bool
	}{{"3", "1", false}, {"5", "1", false}, {"5", "2", true}, {"4", "2", true}} { // one that has caught up is not asked again
		foos.version, children.version = row.foos, row.children
		footest.ExpectEqual(t, fmt.Sprintf("ready at %+v", row), row.want, writes.EnsureReady(now, time.Minute) == nil)
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
	child := footest.Child("a", footest.AtVersion("20"))
	confirmed := ConfirmationBy(foo, child)
	for what, row := range map[string]struct {
		foo, child metav1.Object
		want       bool
	}{
		"the child":        {foo, child, true},
		"a newer version":  {foo, footest.Child("a", footest.AtVersion("21")), true},
		"an older version": {foo, footest.Child("a", footest.AtVersion("19")), false},
		"another spec":     {footest.Foo("a", footest.WithGeneration(2)), child, false},
		"another child":    {foo, footest.Child("a", footest.AtVersion("20"), withUID), false},
	} {
		footest.ExpectEqual(t, what+" counts as confirmed", row.want, confirmed.Includes(row.foo, row.child))
	}
}
