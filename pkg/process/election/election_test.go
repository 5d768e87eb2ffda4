// SPDX-License-Identifier: Apache-2.0

// The promises of docs/operations.md about replicas and the Lease.

package election

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
)

func Example() {
	config := Config{
		Client: fake.NewClientset().CoordinationV1(), Namespace: "default", Name: "gadget-controller", Identity: "a",
		LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 2 * time.Second,
	}
	err := Run(context.Background(), config, func(leaseCtx context.Context) error {
		fmt.Println("works while it holds the Lease:", leaseCtx.Err() == nil)
		return nil // the work has ended: Run releases the Lease
	})
	fmt.Println(err)
	// Output:
	// works while it holds the Lease: true
	// <nil>
}

func run(t *testing.T, name string, test func(*testing.T, *server)) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) { test(t, &server{}) })
	})
}

func blind(c *candidate) { c.blind.Store(true) }

func TestAStandbyTakesOver(t *testing.T) {
	stop := func(leader *candidate) { leader.stop() }
	kill := func(leader *candidate) { leader.down.Store(true) } // it is never seen again
	watches := func(*candidate) {}
	for name, row := range map[string]struct {
		end, standby     func(*candidate)
		earliest, latest time.Duration
	}{
		"the Lease is released":                     {stop, watches, 0, 50 * time.Millisecond},
		"the Lease is released, and no one watches": {stop, blind, 0, 4500 * time.Millisecond},
		"the leader is killed":                      {kill, watches, 13 * time.Second, 17 * time.Second},
		"the leader is killed, and no one watches":  {kill, blind, 13 * time.Second, 24 * time.Second},
	} {
		for i := range 10 { // at different times, and attempts are random
			run(t, fmt.Sprint(name, " ", i), func(t *testing.T, s *server) {
				leader := compete(t, s, "leader", drains(0))
				var standbys []*candidate
				for name := range i%3 + 1 {
					standbys = append(standbys, compete(t, s, fmt.Sprint(name), drains(0), row.standby))
				}
				advance(time.Minute + time.Duration(i)*time.Second/3)
				row.end(leader)
				next, took := leads(t, row.latest, standbys...)
				if took < row.earliest {
					t.Errorf("it took only %v", took)
				}
				advance(time.Minute)
				for _, c := range standbys {
					if (c.terms.Load() > 0) != (c == next) || c.lost.Load() {
						t.Error("not one alone leads for good")
					}
				}
			})
		}
	}
}

func TestOneLeadsAndTheOthersStandBy(t *testing.T) {
	run(t, "", func(t *testing.T, s *server) {
		a, b, c := compete(t, s, "a", drains(0)), compete(t, s, "b", drains(0)), compete(t, s, "c", drains(0), blind)
		advance(2 * time.Minute)
		if s.holder() != "a" || a.lost.Load() || b.terms.Load()+c.terms.Load() > 0 {
			t.Errorf("after 2 minutes %q has the Lease", s.holder())
		}
		if open := slices.DeleteFunc(slices.Clone(s.watchers), (*watch.RaceFreeFakeWatcher).IsStopped); len(open) != 1 {
			t.Errorf("%d watches are open, want only b's", len(open))
		}
		// A leader renews at once, too. After that, 60 retry periods follow.
		if writes, b, c := a.writes.Load(), b.reads.Load(), c.reads.Load(); writes < 60 || writes > 62 || b > 62 || c > 60 {
			t.Errorf("in 2 minutes there were %d writes of the leader, and %d and %d reads of standbys", writes, b, c)
		}
	})
}

func TestAHundredLeadersLeaveNothingBehind(t *testing.T) {
	run(t, "", func(t *testing.T, s *server) {
		compete(t, s, "leader", drains(0))
		standby := compete(t, s, "standby", drains(0))
		s.seize("first")
		advance(5 * time.Second) // the leader has ended
		before := runtime.NumGoroutine()
		for i := range 100 {
			s.seize(fmt.Sprint("leader-", i))
			advance(time.Second)
		}
		if open := slices.DeleteFunc(slices.Clone(s.watchers), (*watch.RaceFreeFakeWatcher).IsStopped); len(open) > 1 {
			t.Errorf("%d watches are open, want one", len(open))
		}
		// A goroutine may be ending; one per leader would be a hundred.
		if after := runtime.NumGoroutine(); after > before+10 || standby.terms.Load() > 0 {
			t.Errorf("%d goroutines run, and %d did before", after, before)
		}
	})
}

func TestTheLeaseIsGivenBackOnlyWhenTheWorkHasEnded(t *testing.T) {
	run(t, "", func(t *testing.T, s *server) {
		a := compete(t, s, "a", drains(time.Minute)) // longer than the Lease lasts unless renewed
		b := compete(t, s, "b", drains(0))
		a.stop()
		advance(time.Minute - time.Second)
		if s.holder() != "a" || b.terms.Load() > 0 {
			t.Fatalf("while a still works %q has the Lease", s.holder())
		}
		if err := a.ends(t, time.Second); err != nil || s.holder() != "b" {
			t.Errorf("a ended with %v, and %q has the Lease", err, s.holder())
		}
	})
}

func TestALeaderThatCanNotRenewStopsBeforeAnotherMayBegin(t *testing.T) {
	for name, stopping := range map[string]bool{"at work": false, "stopping": true} {
		run(t, name, func(t *testing.T, s *server) {
			a, b := compete(t, s, "a", drains(time.Hour)), compete(t, s, "b", drains(0))
			advance(time.Minute + time.Second)
			if stopping {
				a.stop()
			}
			a.down.Store(true)
			advance(7 * time.Second)
			if a.lost.Load() {
				t.Error("the Lease is said to be lost before the renew deadline")
			}
			if err := a.ends(t, 3*time.Second); !errors.Is(err, ErrLost) || !a.lost.Load() {
				t.Errorf("a ended with %v", err)
			}
			if advance(3 * time.Second); b.terms.Load() > 0 {
				t.Error("b began earlier than 4 s later")
			}
		})
	}
}

// A Lease that is lost, or that its holder releases, is left alone. In the last two rows, b has the
// Lease, and the response that says so is on its way.
func TestWhoHasTheLeaseAfterwards(t *testing.T) {
	acquires := func(a, b *candidate) {
		b.delay.Store(int64(time.Second))
		a.stop()
		advance(time.Second / 2)
	}
	for name, row := range map[string]struct {
		act    func(s *server, leader, standby *candidate)
		after  time.Duration
		holder string
		lost   bool  // by the leader
		terms  int64 // of the standby
		ended  [2]bool
	}{
		"a call of the leader hangs":    {func(_ *server, a, _ *candidate) { a.hung.Store(true) }, 20 * time.Second, "a", false, 0, [2]bool{}},
		"the Lease is deleted":          {func(s *server, _, _ *candidate) { _ = s.set(nil, s.get().ResourceVersion) }, 20 * time.Second, "a", false, 0, [2]bool{}},
		"another replica takes it":      {func(s *server, _, _ *candidate) { s.seize("c") }, 2100 * time.Millisecond, "c", true, 0, [2]bool{true, false}},
		"the leader stops after that":   {func(s *server, a, _ *candidate) { s.seize("c"); a.stop() }, 2100 * time.Millisecond, "c", false, 0, [2]bool{true, false}},
		"the standby stops":             {func(_ *server, _, b *candidate) { b.stop() }, time.Millisecond, "a", false, 0, [2]bool{false, true}},
		"the standby stops in a call":   {func(_ *server, _, b *candidate) { b.hung.Store(true); advance(3 * time.Second); b.stop() }, time.Millisecond, "a", false, 0, [2]bool{false, true}},
		"the standby stops, and has it": {func(_ *server, a, b *candidate) { acquires(a, b); b.stop() }, time.Minute, "", false, 1, [2]bool{true, true}},
		"it changes, and b has it":      {func(s *server, a, b *candidate) { acquires(a, b); s.seize("b") }, time.Minute, "b", false, 1, [2]bool{true, false}},
	} {
		run(t, name, func(t *testing.T, s *server) {
			a, b := compete(t, s, "a", drains(0)), compete(t, s, "b", drains(0))
			advance(time.Minute + time.Second)
			row.act(s, a, b)
			advance(row.after)
			if s.holder() != row.holder || a.lost.Load() != row.lost || b.lost.Load() || b.terms.Load() != row.terms {
				t.Errorf("%q has the Lease, a has lost it: %v, b: %v, and b led %d times", s.holder(), a.lost.Load(), b.lost.Load(), b.terms.Load())
			}
			if ended := [2]bool{a.hasEnded(), b.hasEnded()}; ended != row.ended {
				t.Errorf("a and b have ended: %v, not %v", ended, row.ended)
			}
		})
	}
}

func TestAStandbyWaitsForAnAPIServerThatIsDown(t *testing.T) {
	run(t, "", func(t *testing.T, s *server) {
		a := compete(t, s, "a", drains(0), func(a *candidate) { a.down.Store(true) })
		advance(2 * time.Minute)
		a.down.Store(false)
		leads(t, 5*time.Second, a)
	})
}

func TestABadConfigurationIsRefused(t *testing.T) {
	config := (&candidate{}).config("a")
	config.RenewDeadline = config.LeaseDuration
	err := Run(t.Context(), config, func(context.Context) error { t.Error("it leads"); return nil })
	if err == nil || errors.Is(err, ErrLost) {
		t.Errorf("the error is %v", err)
	}
}

func TestRunReturnsWhatTheWorkReturns(t *testing.T) {
	failed := errors.New("no more work")
	for name, row := range map[string]struct {
		work            work
		lost, hasFailed bool
	}{
		"the work ends":              {func(_, _ context.Context) error { return nil }, false, false},
		"the work fails":             {func(_, _ context.Context) error { return failed }, false, true},
		"the Lease is lost":          {func(_, held context.Context) error { <-held.Done(); return failed }, true, true},
		"the work outlives the loss": {func(_, _ context.Context) error { <-time.After(time.Hour); return failed }, true, false},
	} {
		run(t, name, func(t *testing.T, s *server) {
			a := compete(t, s, "a", row.work)
			if row.lost {
				s.seize("b")
			}
			err := a.ends(t, 13*time.Second)
			if errors.Is(err, ErrLost) != row.lost || errors.Is(err, failed) != row.hasFailed || (s.holder() != "") != row.lost {
				t.Errorf("Run returned %v, and %q has the Lease", err, s.holder())
			}
			advance(time.Hour) // by then all work has ended, although its results are dropped
		})
	}
}
