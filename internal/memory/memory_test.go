// SPDX-License-Identifier: Apache-2.0

// Tests of what is remembered of a Foo.

package memory

import (
	"fmt"
	"sync"
	"testing"
	"time"

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
