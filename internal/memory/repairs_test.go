// SPDX-License-Identifier: Apache-2.0

// Tests of repairs that somebody undoes, and of what admission changes.

package memory

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/sample-controller/test/footest"
)

// Of two controllers that fight, the one whose repair stands must not call the Foo ready while
// the other says that they fight.
func TestAFightThatIsToldIsOneAfterTwoRepairs(t *testing.T) {
	foo, child := footest.Foo("a"), footest.Child("a")
	r, now := &Repairs{}, time.Unix(0, 0)
	for repairs, want := range []map[bool]bool{{false: false, true: false}, {false: false, true: false}, {false: false, true: true}} {
		for told, want := range want {
			if _, _, _, fights := r.Fight(foo, child, told, now); fights != want {
				t.Errorf("after %d repairs, told %v: fights %v", repairs, told, fights)
			}
		}
		r.Observe(foo, child, "the other", "image", now)
	}
}

// Two installations with different images undo each other's repairs, and both are damped.
// Neither may take the other's pause for the end of the fight.
func TestTwoWhoAreDampedDoNotBeginAgain(t *testing.T) {
	now := time.Unix(0, 0)
	foo, child := footest.Foo("a"), footest.Child("a")
	both, count := []*Repairs{{}, {}}, 0
	for ; now.Sub(time.Unix(0, 0)) < 3*time.Hour; count++ {
		repairer := both[count%2]
		for wait := repairer.Wait(foo, child, now); wait > 0; wait = repairer.Wait(foo, child, now) {
			now = now.Add(wait)
			for _, r := range both {
				if _, _, _, fights := r.Fight(foo, child, false, now); !fights && count > 2*freeRepairs+1 {
					t.Fatalf("after %d repairs, in a pause of %v, one of them believes that the fight is over", count, wait)
				}
			}
		}
		repairer.Observe(foo, child, "the other", "image", now)
		now = now.Add(10 * time.Millisecond)
	}
	if count > 100 {
		t.Errorf("%d repairs in three hours", count)
	}
}

func TestAMutationIsThatOfOneSpecAndOneChild(t *testing.T) {
	foo, mirrored := footest.Foo("a"), footest.Child("a", footest.Drifted)
	m := MutationOf(foo, mirrored, "the image")
	for what, row := range map[string]struct {
		foo, child metav1.Object
		differs    string
		want       bool
	}{
		"the same":         {foo, mirrored, "the image", true},
		"another spec":     {footest.Foo("a", footest.WithGeneration(2)), mirrored, "the image", false},
		"another child":    {foo, footest.Child("a", func(child footest.Object) { child.SetUID("uid-b") }), "the image", false},
		"another drift":    {foo, mirrored, "the labels", false},
		"an adopted child": {foo, mirrored, "", false},
	} {
		if got := m.WouldRecur(row.foo, row.child, row.differs); got != row.want {
			t.Errorf("%s: it would recur: %v, want %v", what, got, row.want)
		}
	}
	if stored := MutationOf(foo, mirrored, ""); stored != (Mutation{}) || stored.WouldRecur(foo, mirrored, "") {
		t.Errorf("a child that was stored as sent is remembered: %+v", stored)
	}
}

// repaired returns Repairs with a number of repairs that somebody undid at once, and the time.
func repaired(times int) (*Repairs, time.Time) {
	r, now := &Repairs{}, time.Unix(0, 0)
	for range times {
		r.Wait(footest.Foo("a"), footest.Child("a"), now)
		r.Observe(footest.Foo("a"), footest.Child("a"), "the other", "image", now)
	}
	return r, now
}

func TestPausesBetweenRepairsGrow(t *testing.T) {
	for times, want := range []time.Duration{
		0, 0, 0, time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second,
		32 * time.Second, 64 * time.Second, 128 * time.Second, 256 * time.Second, 5 * time.Minute, 5 * time.Minute,
	} {
		r, now := repaired(times)
		if got := r.Wait(footest.Foo("a"), footest.Child("a"), now); got != want {
			t.Errorf("after %d repairs the next has to wait for %v, want %v", times, got, want)
		}
		now = now.Add(want / 4)
		if got := r.Wait(footest.Foo("a"), footest.Child("a"), now); got != want-want/4 {
			t.Errorf("after %d repairs and a quarter of the pause, the next has to wait for %v", times, got)
		}
		now = now.Add(time.Hour)
		if got := r.Wait(footest.Foo("a"), footest.Child("a"), now); got != 0 {
			t.Errorf("after %d repairs and an hour, the next has to wait for %v", times, got)
		}
	}
}

// TestARepairThatLastsEndsTheSeries: for a minute, or twice the pause, until it is undone.
func TestARepairThatLastsEndsTheSeries(t *testing.T) {
	for _, row := range []struct {
		times int
		lasts time.Duration
	}{{3, time.Minute}, {7, time.Minute}, {8, 64 * time.Second}} {
		for late, ends := range map[time.Duration]bool{-time.Second: false, 0: true} {
			r, now := repaired(row.times)
			now = now.Add(row.lasts + late)
			_, _, left, fights := r.Fight(footest.Foo("a"), footest.Child("a"), true, now)
			if fights == ends || !ends && left != time.Second {
				t.Errorf("%v after %d repairs there is a fight: %v, for another %v", row.lasts+late, row.times, fights, left)
			}
			if known := *r != (Repairs{}); known == ends {
				t.Errorf("%v after %d repairs the series is remembered: %v", row.lasts+late, row.times, known)
			}

			r, now = repaired(row.times)
			now = now.Add(row.lasts + late)
			r.Wait(footest.Foo("a"), footest.Child("a"), now) // somebody undoes it now
			if known := *r != (Repairs{}); known == ends {
				t.Errorf("undone %v after %d repairs, the series goes on: %v", row.lasts+late, row.times, known)
			}
		}
	}
}

func TestWhatIsAFight(t *testing.T) {
	for _, row := range []struct {
		times        int
		undone, told bool
		want         bool
	}{
		{1, true, true, false}, {2, true, false, false}, {2, false, true, true},
		{3, false, false, false}, {3, true, false, true}, {4, false, false, true},
	} {
		r, now := repaired(row.times)
		if row.undone {
			r.Wait(footest.Foo("a"), footest.Child("a"), now)
		}
		by, drift, _, fights := r.Fight(footest.Foo("a"), footest.Child("a"), row.told, now)
		if fights != row.want || by != "the other" || drift != "image" {
			t.Errorf("%+v: a fight %v with %q about %q", row, fights, by, drift)
		}
	}
}

func TestRepairsAreThoseOfOneSpecAndOneChild(t *testing.T) {
	for what, row := range map[string]struct{ foo, child metav1.Object }{
		"another spec":  {footest.Foo("a", footest.WithGeneration(2)), footest.Child("a")},
		"another child": {footest.Foo("a"), footest.Child("a", func(child footest.Object) { child.SetUID("uid-b") })},
	} {
		r, now := repaired(9)
		if wait := r.Wait(row.foo, row.child, now); wait != 0 {
			t.Errorf("%s waits for %v", what, wait)
		}
		if _, _, _, fights := r.Fight(row.foo, row.child, true, now); fights {
			t.Errorf("%s is said to fight", what)
		}
		r.Observe(row.foo, row.child, "the other", "image", now) // the first of a new series
		if wait := r.Wait(row.foo, row.child, now); wait != 0 {
			t.Errorf("%s waits for %v after its first repair", what, wait)
		}
	}
}

// TestAMutationOfAKindWithoutGenerationEndsWithTheVersion: any write may have changed it.
func TestAMutationOfAKindWithoutGenerationEndsWithTheVersion(t *testing.T) {
	at := func(version string, generation int64) footest.Object {
		return footest.Child("a", footest.AtVersion(version), func(child footest.Object) { child.SetGeneration(generation) })
	}
	for generation, want := range map[int64]bool{0: false, 1: true} {
		m := MutationOf(footest.Foo("a"), at("20", generation), "the image")
		if !m.WouldRecur(footest.Foo("a"), at("20", generation), "the image") {
			t.Errorf("generation %d: the mutation is not remembered", generation)
		}
		if recurs := m.WouldRecur(footest.Foo("a"), at("21", generation), "the image"); recurs != want {
			t.Errorf("generation %d: an update of another version would be changed again: %v, want %v", generation, recurs, want)
		}
	}
}
