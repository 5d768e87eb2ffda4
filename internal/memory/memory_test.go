// SPDX-License-Identifier: Apache-2.0

// Tests of what is remembered, and of caches that are behind.

package memory

import (
	"fmt"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/test/footest"
)

// remembers are the things that can be remembered of the Foo "a".
var remembers = map[string]func(known *Owner){
	"a write":         func(known *Owner) { known.Writes.Add(&store{"1"}, "2", time.Unix(0, 0)) },
	"a stale version": func(known *Owner) { known.Stale = "1" },
	"a pruned status": func(known *Owner) { known.Pruned = footest.Foo("a") },
	"a transition":    func(known *Owner) { known.Transition.Unknown(footest.Foo("a"), metav1.Condition{Type: "Ready"}) },
	"a status waiting": func(known *Owner) {
		old, newer := footest.Foo("a", footest.WithStatus(footest.Rolling(0))), footest.Foo("a", footest.WithStatus(footest.Rolling(1)))
		known.Progress.Wait(old, newer, true, time.Unix(0, 0))
	},
	"a confirmation": func(known *Owner) {
		known.Child("A").Confirmed = ConfirmationBy(footest.Foo("a"), footest.Child("a"))
	},
	"a mutation": func(known *Owner) {
		known.Child("A").Mutation = MutationOf(footest.Foo("a"), footest.Child("a"), "the image")
	},
	"a repair": func(known *Owner) {
		known.Child("A").Repairs.Observe(footest.Foo("a"), footest.Child("a"), "the other", "image", time.Unix(0, 0))
	},
}

func TestWhatIsRememberedIsKept(t *testing.T) {
	for what, remember := range remembers {
		var m Map
		foo := footest.Foo("a")
		known := m.Of(foo)
		remember(known)
		m.Keep(footest.KeyOf(foo), known)
		if m.Of(foo) != known {
			t.Errorf("%s is not kept", what)
		}
		if m.Of(footest.Foo("b")) == known || m.Of(footest.Foo("a", footest.WithFooUID("uid-new"))) == known {
			t.Errorf("%s is remembered of another Foo", what)
		}
		if m.Forget(footest.KeyOf(foo)); len(m.byKey) != 0 {
			t.Errorf("%s is remembered of a Foo that is gone", what)
		}
	}
}

// At rest nothing is remembered, so that the memory is that of the Foos that change.
func TestNothingIsKeptOfNothing(t *testing.T) {
	var m Map
	foo := footest.Foo("a")
	known := m.Of(foo)
	known.Stale = "1"
	m.Keep(footest.KeyOf(foo), known)
	known.Stale = ""
	known.Child("A")
	if m.Keep(footest.KeyOf(foo), known); len(m.byKey) != 0 {
		t.Errorf("%+v is kept", known)
	}
}

// TestConcurrentUse fails with the race detector, or by the maps themselves.
func TestConcurrentUse(t *testing.T) {
	var m Map
	mismatch, _, pruned := newMismatch(t)
	replaced, _, _ := written(0)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			foo := withStatus(fmt.Sprint("foo-", i), footest.Settled("a"))
			for range 200 {
				known := m.Of(foo)
				known.Stale = "1"
				m.Keep(footest.KeyOf(foo), known)
				m.Forget(footest.KeyOf(foo))

				_, _ = mismatch.Observe(foo, withStatus(foo.Name, samplev1alpha1.FooStatus{}))
				_ = mismatch.WouldRecur(pruned, foo)
				_ = mismatch.NoSubresource()

				_ = replaced.Wait(foo)
				replaced.Observe(foo)
				replaced.Forget(footest.KeyOf(foo))
			}
		})
	}
	wg.Wait()
	footest.ExpectEqual(t, "how many are left", 0, len(m.byKey)+len(replaced.byKey))
}

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
