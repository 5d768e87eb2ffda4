// SPDX-License-Identifier: Apache-2.0

// Tests of the memory, of stale caches, and of changes by admission.

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

// remembers are the things that can be remembered about the Foo "a".
var remembers = map[string]func(known *Owner){
	"a write":         func(known *Owner) { known.Written.Observe(footest.Foo("a"), time.Unix(0, 0)) },
	"a child's write": func(known *Owner) { known.Child("A").Written.Observe(footest.Child("a"), time.Unix(0, 0)) },
	"a stale version": func(known *Owner) { known.stale = "1" },
	"a pruned status": func(known *Owner) { known.Pruned = footest.Foo("a") },
	"a transition":    func(known *Owner) { known.Transition.Unknown(footest.Foo("a"), metav1.Condition{Type: "Ready"}) },
	"a status waiting": func(known *Owner) {
		known.Postpone(ThrottleInterval, time.Unix(0, 0))
	},
	"a confirmation": func(known *Owner) {
		known.Child("A").Confirmed = ConfirmationBy(footest.Foo("a"), footest.Child("a"), "")
	},
	"a new spec": func(known *Owner) { known.Child("A").newSpec = 2 },
	"a problem":  func(known *Owner) { known.Child("A").problem.observe("refused", time.Unix(0, 0)) },
	"a loss of readiness": func(known *Owner) {
		known.WroteStatus(withStatus("a", footest.Settled("a")), withStatus("a", footest.Rolling(1)), time.Unix(0, 0))
	},
	"a repair": func(known *Owner) {
		known.Child("A").Repairs("web").Observe(footest.Foo("a"), byOther, time.Unix(0, 0))
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

// At rest nothing is remembered, so that only Foos that change take memory.
func TestNothingIsKeptOfNothing(t *testing.T) {
	var m Map
	foo := footest.Foo("a")
	known := m.Of(foo)
	known.stale = "1"
	m.Keep(footest.KeyOf(foo), known)
	known.stale = ""
	known.Child("A").Repairs("web").Undo()
	if m.Keep(footest.KeyOf(foo), known); len(m.byKey) != 0 {
		t.Errorf("%+v is kept", known)
	}
}

// TestConcurrentUse fails under the race detector, or because of the maps themselves.
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
				known.stale = "1"
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
		var written Written
		written.Observe(footest.Child("a", footest.AtVersion(row.written)), now)
		footest.ExpectEqual(t, what+" ready", row.want, written.EnsureReady(&store{row.seen}, now.Add(row.later), time.Minute) == nil)
	}
}

func TestAStaleVersionIsThatOfNoOther(t *testing.T) {
	var stale Owner
	old, newer := footest.Foo("a"), footest.Foo("a")
	old.ResourceVersion, newer.ResourceVersion = "1", "2"
	stale.ObserveCall(old, apierrors.NewConflict(footest.FoosResource.GroupResource(), "a", nil))
	if !stale.IsStale(old) || stale.IsStale(newer) {
		t.Errorf("stale: the old state %v, the newer %v", stale.IsStale(old), stale.IsStale(newer))
	}
	if stale.ObserveCall(newer, nil); stale.stale != "" {
		t.Error("after a write that was accepted, a version is still stale")
	}
	if stale.ObserveCall(old, apierrors.NewTooManyRequests("", 1)); stale.stale != "" {
		t.Error("an error that says nothing about the Foo's version makes it stale")
	}
	if stale.IsStale(footest.Unstored("a")) {
		t.Error("nothing is known, and a Foo without a version is stale")
	}
}

func TestAConfirmationIsForOneSpecAndOneChild(t *testing.T) {
	child := footest.Child("a", footest.AtVersion("20"))
	confirmed := ConfirmationBy(foo, child, "")
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

var foo, web = footest.Foo("a"), footest.Child("a")

func withUID(child footest.Object) { child.SetUID("uid-b") }

// A mutation of a kind without generation ends with the version: any write may have changed it.
func TestAMutationIsThatOfOneSpecAndOneChild(t *testing.T) {
	at := func(version string, generation int64) footest.Object {
		return footest.Child("a", footest.AtVersion(version), footest.AtGeneration(generation))
	}
	for what, row := range map[string]struct {
		foo, stored, child metav1.Object
		differs            string
		want               bool
	}{
		"the same":            {foo, web, web, "the image", true},
		"another spec":        {footest.Foo("a", footest.WithGeneration(2)), web, web, "the image", false},
		"another child":       {foo, web, footest.Child("a", withUID), "the image", false},
		"another drift":       {foo, web, web, "the labels", false},
		"an adopted child":    {foo, web, web, "", false},
		"another generation":  {foo, at("20", 1), at("20", 2), "the image", false},
		"another status":      {foo, at("20", 1), at("21", 1), "the image", true},
		"without generations": {foo, at("20", 0), at("20", 0), "the image", true},
		"another version":     {foo, at("20", 0), at("21", 0), "the image", false},
	} {
		got := ConfirmationBy(foo, row.stored, "the image").WouldRecur(row.foo, row.child, row.differs)
		footest.ExpectEqual(t, what+" would recur", row.want, got)
	}
	footest.ExpectEqual(t, "an update of a child that was stored as sent would recur", false, ConfirmationBy(foo, web, "").WouldRecur(foo, web, "the image"))
}
