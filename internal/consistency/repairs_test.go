// SPDX-License-Identifier: Apache-2.0

// Tests of repairs that somebody undoes, and of what admission changes.

package consistency

import (
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"example.com/sample-controller/test/footest"
)

// Of two controllers that fight, the one whose repair stands must not call the Foo ready while
// the other says that they fight.
func TestAFightThatIsToldIsOneAfterTwoRepairs(t *testing.T) {
	foo, child := footest.Foo("a"), footest.Child("a")
	r := &Repairs{Clock: clocktesting.NewFakePassiveClock(time.Unix(0, 0))}
	for repairs, want := range []map[bool]bool{{false: false, true: false}, {false: false, true: false}, {false: false, true: true}} {
		for told, want := range want {
			if _, _, _, fights := r.Fight(foo, child, told); fights != want {
				t.Errorf("after %d repairs, told %v: fights %v", repairs, told, fights)
			}
		}
		r.Observe(foo, child, "the other", "image")
	}
}

// Two installations with different images undo each other's repairs, and both are damped.
// Neither may take the other's pause for the end of the fight.
func TestTwoWhoAreDampedDoNotBeginAgain(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Unix(0, 0))
	foo, child := footest.Foo("a"), footest.Child("a")
	both, count := []*Repairs{{Clock: clock}, {Clock: clock}}, 0
	for ; clock.Since(time.Unix(0, 0)) < 3*time.Hour; count++ {
		repairer := both[count%2]
		for wait := repairer.Wait(foo, child); wait > 0; wait = repairer.Wait(foo, child) {
			clock.SetTime(clock.Now().Add(wait))
			for _, r := range both {
				if _, _, _, fights := r.Fight(foo, child, false); !fights && count > 2*freeRepairs+1 {
					t.Fatalf("after %d repairs, in a pause of %v, one of them believes that the fight is over", count, wait)
				}
			}
		}
		repairer.Observe(foo, child, "the other", "image")
		clock.SetTime(clock.Now().Add(10 * time.Millisecond))
	}
	if count > 100 {
		t.Errorf("%d repairs in three hours", count)
	}
}

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
