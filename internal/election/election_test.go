/*
Copyright The Sample Controller Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

package election

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestOneLeadsAndTheOtherStandsBy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		a := compete(t, s, "a", 0)
		a.leadsBetween(t, 0, time.Second)
		b := compete(t, s, "b", 0)
		advance(2 * time.Minute)
		if b.leading.Load() || a.drained.Load() || s.holder(t) != "a" {
			t.Errorf("after 2 minutes b leads: %v, a has stopped: %v, and %q has the Lease", b.leading.Load(), a.drained.Load(), s.holder(t))
		}
		if open := s.watches.Load(); open != 1 {
			t.Errorf("%d watches are open, want the standby's alone", open)
		}
	})
}

func TestTheLeaseIsGivenBackOnlyWhenTheWorkHasEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		a := compete(t, s, "a", time.Minute) // longer than the Lease lasts unless renewed
		a.leadsBetween(t, 0, time.Second)
		b := compete(t, s, "b", 0)
		a.stop()
		advance(time.Minute - time.Second)
		if s.holder(t) != "a" || b.leading.Load() {
			t.Fatalf("while a still works %q has the Lease, and b leads: %v", s.holder(t), b.leading.Load())
		}
		b.leadsBetween(t, time.Second/2, 2*time.Second)
		if err := a.ends(t, time.Second); err != nil || !a.drained.Load() {
			t.Errorf("a ended with %v, its work ended: %v", err, a.drained.Load())
		}
	})
}

func TestAStandbyTakesOverAtOnceWhenTheLeaseIsGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		a := compete(t, s, "a", 0)
		b := compete(t, s, "b", 0)
		advance(time.Minute)
		a.stop()
		b.leadsBetween(t, 0, 300*time.Millisecond)
	})
}

func TestAStandbyThatCanNotWatchTakesOverAtItsNextLook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		s.blind.Store(true)
		a := compete(t, s, "a", 0)
		b := compete(t, s, "b", 0)
		advance(time.Minute)
		a.stop()
		b.leadsBetween(t, 0, 2300*time.Millisecond)
	})
}

func TestAStandbyTakesOverWhenTheLeaseExpires(t *testing.T) {
	for name, blind := range map[string]bool{"seen by the watch": false, "seen by looking": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer()
				s.blind.Store(blind)
				if err := s.Tracker().Add(leaseHeldBy("a leader that was killed")); err != nil {
					t.Fatal(err)
				}
				b := compete(t, s, "b", 0)
				b.leadsBetween(t, 15*time.Second, 16*time.Second)
			})
		})
	}
}

func TestALeaderThatCanNotRenewStopsBeforeAnotherMayBegin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		a := compete(t, s, "a", 0)
		a.leadsBetween(t, 0, time.Second)
		advance(time.Minute)
		s.down.Store(true)
		advance(7 * time.Second)
		if a.lost.Load() {
			t.Fatal("the Lease is said to be lost before the renew deadline")
		}
		err := a.ends(t, 6*time.Second)
		if !errors.Is(err, ErrLost) || !a.lost.Load() || !a.drained.Load() {
			t.Errorf("a ended with %v, was told: %v, its work ended: %v", err, a.lost.Load(), a.drained.Load())
		}
	})
}

func TestALeaderThatIsStoppingIsToldOfTheLoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		a := compete(t, s, "a", time.Hour)
		a.leadsBetween(t, 0, time.Second)
		a.stop()
		s.down.Store(true)
		if err := a.ends(t, 13*time.Second); !errors.Is(err, ErrLost) {
			t.Errorf("a ended with %v", err)
		}
	})
}

func TestALeaderStepsDownAtOnceForAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		a := compete(t, s, "a", 0)
		a.leadsBetween(t, 0, time.Second)
		advance(time.Minute)
		s.seize(t, "b")
		if err := a.ends(t, 3*time.Second); !errors.Is(err, ErrLost) || !a.drained.Load() {
			t.Errorf("a ended with %v, its work ended: %v", err, a.drained.Load())
		}
		if s.holder(t) != "b" {
			t.Errorf("%q has the Lease: it was given back by one who no longer had it", s.holder(t))
		}
	})
}

func TestTheLeaseOfAnotherIsNotGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		a := compete(t, s, "a", 0)
		a.leadsBetween(t, 0, time.Second)
		s.seize(t, "b")
		a.stop() // before a has seen it
		_ = a.ends(t, time.Second)
		if s.holder(t) != "b" {
			t.Errorf("%q has the Lease", s.holder(t))
		}
	})
}

func TestALeaderMakesADeletedLeaseAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		a := compete(t, s, "a", 0)
		a.leadsBetween(t, 0, time.Second)
		s.deleteLease(t)
		advance(5 * time.Second)
		if s.holder(t) != "a" || a.lost.Load() {
			t.Errorf("%q has the Lease, and a has lost it: %v", s.holder(t), a.lost.Load())
		}
	})
}

func TestAStandbyStopsAtOnceAndLeavesTheLeaseAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		a := compete(t, s, "a", 0)
		b := compete(t, s, "b", 0)
		advance(time.Minute)
		b.stop()
		if err := b.ends(t, time.Second/4); err != nil || b.leading.Load() {
			t.Errorf("b ended with %v, led: %v", err, b.leading.Load())
		}
		if s.holder(t) != "a" || a.drained.Load() {
			t.Errorf("%q has the Lease", s.holder(t))
		}
	})
}

func TestAStandbyWaitsForAnAPIServerThatIsDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		s.down.Store(true)
		a := compete(t, s, "a", 0)
		advance(2 * time.Minute)
		s.down.Store(false)
		a.leadsBetween(t, 0, 5*time.Second)
	})
}

// In 2 minutes there are 60 retry periods.
func TestCallsAreAsRareAsTheRetryPeriodSays(t *testing.T) {
	for name, blind := range map[string]bool{"with a watch": false, "without": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer()
				s.blind.Store(blind)
				a := compete(t, s, "a", 0)
				a.leadsBetween(t, 0, time.Second)
				compete(t, s, "b", 0)
				s.gets.Store(0)
				s.updates.Store(0)
				advance(2 * time.Minute)
				if gets, updates := s.gets.Load(), s.updates.Load(); updates > 60 || updates < 52 || gets > 120 {
					t.Errorf("in 2 minutes the leader wrote %d times, and there were %d reads", updates, gets)
				}
			})
		})
	}
}

func TestABadConfigurationIsRefused(t *testing.T) {
	config := configFor(newServer(), "a")
	config.RenewDeadline = config.LeaseDuration
	err := Run(t.Context(), config, func(context.Context) error { t.Error("it leads"); return nil })
	if err == nil || errors.Is(err, ErrLost) {
		t.Errorf("the error is %v", err)
	}
}

func TestAHundredLeadersLeaveNothingBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		last := compete(t, s, "leader-0", 0)
		last.leadsBetween(t, 0, time.Second)
		before := goroutines()
		for i := range 100 {
			next := compete(t, s, fmt.Sprint("leader-", i+1), 0)
			last.stop()
			if err := last.ends(t, time.Second); err != nil {
				t.Fatal(err)
			}
			next.leadsBetween(t, 0, time.Second)
			last = next
		}
		if after := goroutines(); after > before {
			t.Errorf("there were %d goroutines, and are %d", before, after)
		}
	})
}

// goroutines counts those of the test's bubble. Others are the runtime's, which starts one when it first needs it.
func goroutines() int {
	stacks := make([]byte, 1<<20)
	return strings.Count(string(stacks[:runtime.Stack(stacks, true)]), ", synctest bubble ")
}
