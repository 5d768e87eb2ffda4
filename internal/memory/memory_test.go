// SPDX-License-Identifier: Apache-2.0

// Tests of the memory, of stale caches, of repairs and statuses that another client undoes, and
// of changes by admission.

package memory

import (
	"fmt"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"example.com/sample-controller/internal/plan"
	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/test/footest"
)

// remembers are the things that can be remembered about the Foo "a".
var remembers = map[string]func(known *Owner){
	"a write":         func(known *Owner) { known.Written.Observe(footest.Foo("a"), time.Unix(0, 0)) },
	"a child's write": func(known *Owner) { known.Child("A").Written.Observe(footest.Child("a"), time.Unix(0, 0)) },
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
	"a new spec": func(known *Owner) { known.Child("A").NewSpec = 2 },
	"a problem":  func(known *Owner) { known.Child("A").Problem.Observe("refused", time.Unix(0, 0)) },
	"a loss of readiness": func(known *Owner) {
		known.Flapping.Wrote(withStatus("a", footest.Settled("a")), withStatus("a", footest.Rolling(1)), time.Unix(0, 0))
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
	known.Stale = "1"
	m.Keep(footest.KeyOf(foo), known)
	known.Stale = ""
	known.Child("A").Repairs("web").Wait(foo, DefaultFightPeriod, now)
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
		var written Written
		written.Observe(footest.Child("a", footest.AtVersion(row.written)), now)
		ready := written.EnsureReady(&store{row.seen}, now.Add(row.later), time.Minute) == nil
		footest.ExpectEqual(t, what+" ready and forgotten", []bool{row.want, row.want}, []bool{ready, written == Written{}})
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

var foo, web = footest.Foo("a"), footest.Child("a")

func withUID(child footest.Object) { child.SetUID("uid-b") }

// Two installations with different images undo each other's repairs, and both back off. Neither
// may mistake the other's pause for the end of the fight.
func TestTwoWhoAreDampedDoNotBeginAgain(t *testing.T) {
	now := time.Unix(0, 0)
	both, count := []*Repairs{{}, {}}, 0
	for ; now.Sub(time.Unix(0, 0)) < 3*time.Hour; count++ {
		repairer := both[count%2]
		for wait := repairer.Wait(foo, DefaultFightPeriod, now); wait > 0; wait = repairer.Wait(foo, DefaultFightPeriod, now) {
			now = now.Add(wait)
			for _, r := range both {
				if fight, _ := r.Fight(foo, false, DefaultFightPeriod, now); fight == nil && count > 2*freeRepairs+1 {
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

// repaired returns Repairs with a number of repairs that were undone at once, and the time.
func repaired(times int) (*Repairs, time.Time) {
	r, now := &Repairs{}, time.Unix(0, 0)
	for range times {
		r.Wait(foo, DefaultFightPeriod, now)
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
			footest.ExpectEqual(t, "the pause between repairs "+after, row.want, repairs.Wait(foo, DefaultFightPeriod, now.Add(row.after)))
			footest.ExpectEqual(t, "the pause between statuses "+after, row.want, statuses.Wait(status))
		}
		footest.ExpectEqual(t, "a repair that was undone goes on", times > 0, repairs.Count(foo) > 0)
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
			fight, left := r.Fight(foo, true, DefaultFightPeriod, now)
			footest.ExpectEqual(t, "a fight"+after, []any{!ends, max(0, -late)}, []any{fight != nil, left})
			footest.ExpectEqual(t, "forgotten"+after, ends, r.Count(foo) == 0)

			r, _ = repaired(row.times)
			r.Wait(foo, DefaultFightPeriod, now) // another client undoes it now
			footest.ExpectEqual(t, "forgotten when it is undone"+after, ends, r.Count(foo) == 0)

			statuses, clock, status := written(row.times)
			clock.Step(row.lasts + late)
			statuses.Wait(status)
			footest.ExpectEqual(t, "a status is forgotten"+after, ends, len(statuses.byKey) == 0)
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
			r.Wait(foo, DefaultFightPeriod, now)
		}
		fight, _ := r.Fight(foo, row.told, DefaultFightPeriod, now)
		if (fight != nil) != row.want || fight != nil && *fight != byOther {
			t.Errorf("%+v: a fight %+v", row, fight)
		}
	}
}

func TestRepairsAreThoseOfOneSpec(t *testing.T) {
	r, now := repaired(9)
	newer := footest.Foo("a", footest.WithGeneration(2))
	fight, _ := r.Fight(newer, true, DefaultFightPeriod, now)
	footest.ExpectEqual(t, "the fight of another spec", (*plan.Fight)(nil), fight)
	footest.ExpectEqual(t, "the wait of another spec", 0*time.Second, r.Wait(newer, DefaultFightPeriod, now))
	r.Observe(newer, byOther, now) // the first in a new series
	footest.ExpectEqual(t, "the wait after its first repair", 0*time.Second, r.Wait(newer, DefaultFightPeriod, now))
}

// A longer period also catches opponents that act at longer intervals.
func TestAnOpponentThatActsOnceInAPeriodIsInAFight(t *testing.T) {
	for interval, want := range map[time.Duration]bool{59 * time.Minute: true, 61 * time.Minute: false} {
		r, now := &Repairs{}, time.Unix(0, 0)
		for range freeRepairs + 1 {
			r.Wait(foo, time.Hour, now)
			r.Observe(foo, byOther, now)
			now = now.Add(interval)
		}
		fight, _ := r.Fight(foo, false, time.Hour, now.Add(-interval))
		footest.ExpectEqual(t, fmt.Sprint("a fight at intervals of ", interval), want, fight != nil)
	}
}

// Whoever makes an object chooses its name and its owner reference, so that any number may have to
// be deleted. The one with the most repairs stays known.
func TestTheObjectsWhoseRepairsAreKnownAreBounded(t *testing.T) {
	known := &Child{kind: "A"}
	for range freeRepairs {
		known.Repairs("web").Observe(foo, byOther, now)
	}
	for i := range 2 * maxRepaired {
		known.Repairs(fmt.Sprint("old-", i)).Observe(foo, byOther, now.Add(time.Duration(i)))
	}
	footest.ExpectEqual(t, "how many are known", maxRepaired, len(known.AllRepairs()))
	footest.ExpectEqual(t, "how often they were repaired", []int{freeRepairs, 1, 0}, []int{
		known.Repairs("web").Count(foo), known.Repairs(fmt.Sprint("old-", 2*maxRepaired-1)).Count(foo), known.Repairs("old-0").Count(foo),
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
		got := MutationOf(foo, row.stored, "the image").WouldRecur(row.foo, row.child, row.differs)
		footest.ExpectEqual(t, what+" would recur", row.want, got)
	}
	stored := MutationOf(foo, web, "")
	footest.ExpectEqual(t, "a child that was stored as sent is forgotten, and would recur", []bool{true, false},
		[]bool{stored == Mutation{}, stored.WouldRecur(foo, web, "")})
}
