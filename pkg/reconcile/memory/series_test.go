// SPDX-License-Identifier: Apache-2.0

// Tests of repairs and statuses that another client undoes.

package memory

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/pkg/reconcile/plan"
	"example.com/sample-controller/test/footest"
)

// Two installations with different images undo each other's repairs, and both back off. Neither
// may mistake the other's pause for the end of the fight.
func TestTwoWhoAreDampedDoNotBeginAgain(t *testing.T) {
	now := time.Unix(0, 0)
	both, count := []*Series{{}, {}}, 0
	for ; now.Sub(time.Unix(0, 0)) < 3*time.Hour; count++ {
		repairer := both[count%2]
		for wait := repairer.again(now); wait > 0; wait = repairer.again(now) {
			now = now.Add(wait)
			for _, r := range both {
				if fight, _ := r.Fight(false, DefaultFightPeriod, now); fight == nil && count > 2*freeRepairs+1 {
					t.Fatalf("after %d repairs, in a pause of %v, one of them believes that the fight is over", count, wait)
				}
			}
		}
		repairer.Observe(foo, byOther, now)
		now = now.Add(10 * time.Millisecond)
	}
	if count > 100 {
		t.Errorf("%d repairs in three hours", count)
	}
}

var byOther = plan.Fight{Write: plan.ActionUpdate, Name: "web", By: plan.Manager{Name: "the other"}, Drift: "image"}

// again returns how long the next repair of the Foo "a" has to wait, if another client has undone the
// last one.
func (s *Series) again(now time.Time) time.Duration { return s.againFor(foo, DefaultFightPeriod, now) }

func (s *Series) againFor(owner metav1.Object, period time.Duration, now time.Time) time.Duration {
	if s.hasEnded(owner, period, now) {
		s.Forget()
	}
	s.Undo()
	return s.Wait(now)
}

// repaired returns a Series with a number of repairs that were undone at once, and the time.
func repaired(times int) (*Series, time.Time) {
	r, now := &Series{}, time.Unix(0, 0)
	for range times {
		r.again(now)
		r.Observe(foo, byOther, now)
	}
	return r, now
}

// written returns the memory after a status of Foo "a" was written a number of times.
func written(times int) (*Replaced, *clocktesting.FakeClock, *samplev1alpha1.Foo) {
	clock := clocktesting.NewFakeClock(footest.Now.Time)
	r, foo := &Replaced{Clock: clock}, withStatus("a", footest.Settled("a"))
	for range times {
		r.Wait(foo)
		r.Observe(foo)
	}
	return r, clock, foo
}

func TestPausesGrow(t *testing.T) {
	for times, want := range []time.Duration{
		0, 0, 0, time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second,
		32 * time.Second, 64 * time.Second, 128 * time.Second, 256 * time.Second, 5 * time.Minute, 5 * time.Minute,
	} {
		repairs, now := repaired(times)
		statuses, clock, status := written(times)
		for _, row := range []struct{ after, want time.Duration }{{0, want}, {want / 4, want - want/4}, {want, 0}, {time.Hour, 0}} {
			clock.SetTime(footest.Now.Add(row.after))
			after := fmt.Sprintf("%v after %d", row.after, times)
			footest.ExpectEqual(t, "the pause between repairs "+after, row.want, repairs.again(now.Add(row.after)))
			footest.ExpectEqual(t, "the pause between statuses "+after, row.want, statuses.Wait(status))
		}
		footest.ExpectEqual(t, "a repair that was undone goes on", times > 0, repairs.Count() > 0)
	}
}

// TestWhatLastsEndsTheSeries: the last repair must last a minute, or twice the pause.
func TestWhatLastsEndsTheSeries(t *testing.T) {
	for _, row := range []struct {
		times int
		lasts time.Duration
	}{{3, time.Minute}, {7, time.Minute}, {8, 64 * time.Second}} {
		for late, ends := range map[time.Duration]bool{-time.Second: false, 0: true} {
			after := fmt.Sprintf(" %v after %d", row.lasts+late, row.times)
			r, now := repaired(row.times)
			now = now.Add(row.lasts + late)
			_, left := r.Fight(true, DefaultFightPeriod, now)
			footest.ExpectEqual(t, "how much longer it has to last"+after, max(0, -late), left)
			footest.ExpectEqual(t, "ended"+after, ends, r.hasEnded(foo, DefaultFightPeriod, now))

			r, _ = repaired(row.times)
			r.again(now) // another client undoes it now
			footest.ExpectEqual(t, "forgotten when it is undone"+after, ends, r.Count() == 0)

			statuses, clock, status := written(row.times)
			clock.Step(row.lasts + late)
			statuses.Observe(status)
			footest.ExpectEqual(t, "a status begins again"+after, ends, statuses.Wait(status) == 0)
		}
	}
}

// Of two controllers that fight, the one whose repair is in effect must not call the Foo ready
// while the other reports a fight.
func TestWhatIsAFight(t *testing.T) {
	for _, row := range []struct {
		times        int
		undone, told bool
		want         bool
	}{
		{0, false, true, false}, {1, true, true, false}, {2, true, false, false}, {2, false, true, true},
		{3, false, false, false}, {3, true, false, true}, {4, false, false, true},
	} {
		r, now := repaired(row.times)
		if row.undone {
			r.again(now)
		}
		fight, _ := r.Fight(row.told, DefaultFightPeriod, now)
		if (fight != nil) != row.want || fight != nil && *fight != byOther {
			t.Errorf("%+v: a fight %+v", row, fight)
		}
	}
}

func TestRepairsAreThoseOfOneSpec(t *testing.T) {
	r, now := repaired(9)
	newer := footest.Foo("a", footest.WithGeneration(2))
	footest.ExpectEqual(t, "the fight of another spec has ended", true, r.hasEnded(newer, DefaultFightPeriod, now))
	r.Observe(newer, byOther, now) // the first in a new series
	footest.ExpectEqual(t, "the wait after its first repair", 0*time.Second, r.againFor(newer, DefaultFightPeriod, now))
}

// Whoever makes an object chooses its name and its owner reference, so that any number may have to
// be deleted. The one with the most repairs stays known.
func TestTheObjectsWhoseRepairsAreKnownAreBounded(t *testing.T) {
	known := &Child{part: "A"}
	for range freeRepairs {
		known.Repairs("web").Observe(foo, byOther, now)
	}
	for i := range 2 * maxRepaired {
		known.Repairs(fmt.Sprint("old-", i)).Observe(foo, byOther, now.Add(time.Duration(i)))
	}
	footest.ExpectEqual(t, "how many are known", maxRepaired, len(known.repairs))
	footest.ExpectEqual(t, "how often they were repaired", []int{freeRepairs, 1, 0}, []int{
		known.Repairs("web").Count(), known.Repairs(fmt.Sprint("old-", 2*maxRepaired-1)).Count(), known.Repairs("old-0").Count(),
	})
}

// TestWhoseRepairsAreTold: an opponent that acts at long intervals is known by its name.
func TestWhoseRepairsAreTold(t *testing.T) {
	scaler, kubectl := byOther, byOther
	scaler.By.Name, kubectl.By.Name = "scaler", "kubectl"
	deleted := plan.Fight{Write: plan.ActionCreate, Name: "web"}
	type at struct {
		after time.Duration
		fight plan.Fight
	}
	for name, row := range map[string]struct {
		repairs []at
		want    bool
	}{
		"twice":                          {[]at{{0, scaler}, {time.Hour, scaler}}, false},
		"three times":                    {[]at{{0, scaler}, {time.Hour, scaler}, {2 * time.Hour, scaler}}, true},
		"three times, but seldom":        {[]at{{0, scaler}, {time.Hour, scaler}, {3*time.Hour + 1, scaler}}, false},
		"by different clients":           {[]at{{0, scaler}, {0, kubectl}, {0, scaler}}, false},
		"deleted by an unknown client":   {[]at{{0, deleted}, {0, deleted}, {0, deleted}}, true},
		"changed twice and deleted once": {[]at{{0, scaler}, {0, scaler}, {0, deleted}}, false},
	} {
		clock := clocktesting.NewFakeClock(footest.Now.Time)
		opponents, told := &Opponents{Clock: clock}, false
		for _, repair := range row.repairs {
			clock.SetTime(footest.Now.Add(repair.after))
			told = opponents.Observe(foo, "A", repair.fight)
			_ = opponents.Observe(footest.Foo("b", footest.WithFooUID("uid-b")), "A", repair.fight)
		}
		footest.ExpectEqual(t, "an Event about "+name, row.want, told)
	}
	many := &Opponents{Clock: clocktesting.NewFakeClock(footest.Now.Time)}
	for i := range 2 * mostOpponents {
		scaler.Name = fmt.Sprint("web-", i)
		many.Observe(foo, "A", scaler)
	}
	footest.ExpectEqual(t, "of how many objects the opponents are remembered", mostOpponents, len(many.byObject))
}

func TestASeriesIsThatOfOneStatusOfOneFoo(t *testing.T) {
	later := footest.Settled("a")
	later.Conditions[0].LastTransitionTime = footest.Now
	for what, row := range map[string]struct {
		foo   *samplev1alpha1.Foo
		waits bool
	}{
		"the same, with another time": {withStatus("a", later), true},
		"another status":              {withStatus("a", footest.RefusedStatus()), false},
		"another Foo":                 {withStatus("b", footest.Settled("a")), false},
		"another Foo of the name":     {footest.Foo("a", footest.WithFooUID("uid-new"), footest.WithStatus(footest.Settled("a"))), false},
	} {
		r, _, first := written(9)
		footest.ExpectEqual(t, what+" waits", row.waits, r.Wait(row.foo) > 0)
		r.Observe(row.foo)
		footest.ExpectEqual(t, what+" waits after a write", row.waits, r.Wait(row.foo) > 0)
		r.Forget(footest.KeyOf(row.foo))
		r.Forget(footest.KeyOf(first))
		footest.ExpectEqual(t, "what is remembered of Foos that are gone", 0, len(r.byKey))
	}
}

func TestWhatIsKnownOfStatusesIsBounded(t *testing.T) {
	r, _, _ := written(0)
	for i := range 2 * mostReplaced {
		r.Observe(withStatus(fmt.Sprint("foo-", i), footest.Settled("a")))
	}
	footest.ExpectEqual(t, "of how many Foos the status is remembered", mostReplaced, len(r.byKey))
}
