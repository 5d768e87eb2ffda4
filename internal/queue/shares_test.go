// SPDX-License-Identifier: Apache-2.0

// Tests of how namespaces share the workers, and rollouts take turns.

package queue

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
)

// sharing is a queue with workers, whose syncs take a time that depends on the namespace.
type sharing struct {
	*Queue

	takes map[string]time.Duration
	mu    sync.Mutex
	ended map[cache.ObjectName]time.Time
	syncs int
}

// share starts workers in a bubble.
func share(t *testing.T, workers int, takes map[string]time.Duration) *sharing {
	t.Helper()
	s := &sharing{Queue: New("", clock.RealClock{}), takes: takes, ended: map[cache.ObjectName]time.Time{}}
	s.SetWorkers(workers)
	var wg sync.WaitGroup
	t.Cleanup(func() {
		s.ShutDown()
		wg.Wait()
	})
	for range workers {
		wg.Go(func() {
			for {
				key, shutdown := s.Get()
				if shutdown {
					return
				}
				s.mu.Lock()
				takes := s.takes[key.Namespace]
				s.mu.Unlock()
				<-time.After(takes)
				s.mu.Lock()
				s.ended[key] = time.Now()
				s.syncs++
				s.mu.Unlock()
				s.Done(key)
			}
		})
	}
	return s
}

// add adds keys of a namespace.
func (s *sharing) add(namespace string, count int) {
	for i := range count {
		s.Add(cache.ObjectName{Namespace: namespace, Name: fmt.Sprint(i)})
	}
}

// last returns when the last sync of a namespace ended, and how many there were.
func (s *sharing) last(namespace string) (at time.Time, count int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, ended := range s.ended {
		if key.Namespace == namespace {
			count++
			if ended.After(at) {
				at = ended
			}
		}
	}
	return at, count
}

func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// A namespace whose syncs take 10 s, as while its webhook times out, leaves a worker to the
// others, and gets no more turns than its share of the time.
func TestASlowNamespaceDelaysOthersByOneSyncAtMost(t *testing.T) {
	for _, row := range []struct {
		workers  int
		at, most time.Duration
	}{
		{1, 95 * time.Second, 6 * time.Second}, // the sync under way has 5 s left
		{2, 95 * time.Second, time.Second},
		{2, 5 * time.Second, 6 * time.Second}, // nobody knows yet that it is slow
		{4, 95 * time.Second, time.Second},
	} {
		t.Run(fmt.Sprintf("%d workers, after %v", row.workers, row.at), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := share(t, row.workers, map[string]time.Duration{"slow": 10 * time.Second, "quick": time.Millisecond})
				s.add("slow", 100)
				pass(row.at)
				asked := time.Now()
				s.add("quick", 20)
				pass(time.Minute)
				if last, count := s.last("quick"); count != 20 || last.Sub(asked) > row.most {
					t.Errorf("of 20 syncs of the other namespace %d were made, the last after %v", count, last.Sub(asked))
				}
				pass(time.Hour)
				if _, count := s.last("slow"); count != 100 {
					t.Errorf("of 100 syncs of the slow namespace %d were made", count)
				}
			})
		})
	}
}

// Once its syncs have been quick for a while, it has all workers again.
func TestANamespaceThatIsQuickAgainHasAllWorkers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := share(t, 2, map[string]time.Duration{"a": 10 * time.Second})
		s.add("a", 10)
		pass(time.Minute + 5*time.Second)
		s.mu.Lock()
		s.takes["a"] = 100 * time.Millisecond
		s.mu.Unlock()
		pass(10*time.Second + slowFor)
		s.add("a", 20)
		began := time.Now()
		pass(time.Minute)
		if last, _ := s.last("a"); last.Sub(began) > 1100*time.Millisecond {
			t.Errorf("20 syncs of 100 ms took two workers %v", last.Sub(began))
		}
	})
}

// Syncs without a call do not make a namespace quick: the second of two slow ones would
// take the last worker again.
func TestAQuickSyncDoesNotHideASlowNamespace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := share(t, 2, map[string]time.Duration{"a": 10 * time.Second, "b": time.Millisecond})
		s.add("a", 1)
		pass(11 * time.Second)
		s.mu.Lock()
		s.takes["a"] = time.Millisecond
		s.mu.Unlock()
		s.add("a", 1)
		pass(time.Second)
		s.mu.Lock()
		s.takes["a"] = 10 * time.Second
		s.mu.Unlock()
		s.add("a", 2)
		pass(time.Millisecond)
		asked := time.Now()
		s.add("b", 1)
		pass(time.Minute)
		if last, _ := s.last("b"); last.Sub(asked) > time.Second {
			t.Errorf("a sync of the other namespace took %v", last.Sub(asked))
		}
	})
}

// Two namespaces whose syncs take a different time have the same share of it.
func TestNamespacesShareTheTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := share(t, 1, map[string]time.Duration{"a": 40 * time.Millisecond, "b": 10 * time.Millisecond})
		s.add("a", 1000)
		s.add("b", 1000)
		pass(2 * time.Second)
		_, slow := s.last("a")
		_, quick := s.last("b")
		if slow < 23 || slow > 27 || quick < 90 || quick > 110 {
			t.Errorf("in 2 s, %d syncs of 40 ms and %d of 10 ms were made", slow, quick)
		}
	})
}

// Whoever comes later has no claim to the time before.
func TestALateNamespaceDoesNotCatchUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := share(t, 1, map[string]time.Duration{"a": 10 * time.Millisecond, "b": 10 * time.Millisecond})
		s.add("a", 1000)
		pass(5 * time.Second)
		_, before := s.last("a")
		s.add("b", 1000)
		pass(2 * time.Second)
		_, after := s.last("a")
		if got := after - before; got < 90 {
			t.Errorf("of 200 syncs %d were those of the first namespace", got)
		}
	})
}

// A key that is added while it is processed is processed again, parked or not.
func TestAKeyThatIsParkedIsNotLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := share(t, 2, map[string]time.Duration{"a": 2 * time.Second})
		for round := range 5 {
			s.add("a", 3)
			pass(time.Duration(round) * 700 * time.Millisecond)
		}
		pass(time.Minute)
		var left []string
		for i := range 3 {
			if key := (cache.ObjectName{Namespace: "a", Name: fmt.Sprint(i)}); s.ended[key].IsZero() {
				left = append(left, key.String())
			}
		}
		if len(left) > 0 || s.Len() > 0 || s.HasWaiting("a") {
			t.Errorf("not processed: %s; %d wait", strings.Join(left, ", "), s.Len())
		}
	})
}

func TestRolloutsOfOneNamespaceLeaveRoomForOthers(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Now())
	r := &Rollouts{Clock: clock, Limit: 10}
	begun := map[string]int{}
	for i := range 1000 {
		for _, namespace := range []string{"a", "b", "c"}[:1+min(2, i/100)] {
			if foo := (cache.ObjectName{Namespace: namespace, Name: fmt.Sprint(i)}); r.Begin(foo) == 0 {
				begun[namespace]++
			}
		}
	}
	if begun["a"] != 5 || begun["b"] != 5 || begun["c"] != 0 {
		t.Errorf("begun by namespace: %v", begun)
	}
	c := cache.ObjectName{Namespace: "c", Name: "first"}
	if wait := r.Begin(c); wait < 10*time.Second || wait > time.Minute {
		t.Errorf("with 2,700 that wait, one asks again after %v", wait)
	}
	r.End(cache.ObjectName{Namespace: "a", Name: "0"})
	if wait := r.Begin(c); wait != 0 {
		t.Errorf("a free place is not given: %v", wait)
	}
	clock.Step(rolloutTimeout)
	if wait := r.Begin(cache.ObjectName{Namespace: "c", Name: "second"}); wait != 0 {
		t.Errorf("rollouts count for ever: %v", wait)
	}
}

// TestWhichKeysAreParked follows a namespace that becomes slow, with three workers.
func TestWhichKeysAreParked(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Unix(0, 0))
	s := newFairQueue(clock)
	s.workers = 3
	step := func(d time.Duration) { clock.SetTime(clock.Now().Add(d)) }
	begin := func(name string, want bool) {
		t.Helper()
		if got := s.begin(key(name)); got != want {
			t.Errorf("%s may begin: %v, want %v", name, got, want)
		}
	}
	end := func(name string, want ...string) {
		t.Helper()
		var freed []string
		for _, key := range s.end(key(name)) {
			freed = append(freed, key.String())
		}
		if !slices.Equal(freed, want) {
			t.Errorf("the end of %s frees %v, want %v", name, freed, want)
		}
	}
	begin("a/1", true)
	step(slowSync - 1)
	begin("a/2", true)
	begin("a/3", true) // nobody knows yet that it is slow
	end("a/3")
	step(1)
	begin("a/4", false) // a/1 is slow
	begin("a/5", false)
	begin("b/1", true)
	end("b/1")
	end("a/1", "a/4") // one at a time, as long as it is slow
	begin("a/4", true)
	begin("a/6", false)
	step(slowFor)
	end("a/2", "a/5") // a/4 is under way, and slow
	end("a/4", "a/6")
	end("a/0") // of a key that never began
	begin("a/7", true)
	step(slowFor - 1)
	begin("a/8", true)
	begin("a/9", false)
	end("a/7", "a/9")
	end("a/8")
	step(slowFor)
	begin("a/1", true)
	begin("a/2", true)
	begin("a/3", true) // it is quick again
	for _, name := range []string{"a/1", "a/2", "a/3"} {
		end(name)
	}
	if len(s.next)+len(s.began)+len(s.running)+len(s.parked)+len(s.slowUntil) != 0 || s.now != 0 {
		t.Errorf("it remembers %+v", s)
	}
}

// TestASlowNamespaceHasAllWorkersButOne fails if it has fewer.
func TestASlowNamespaceHasAllWorkersButOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := share(t, 4, map[string]time.Duration{"slow": 10 * time.Second})
		s.add("slow", 31)
		began := time.Now()
		pass(time.Hour)
		if last, count := s.last("slow"); count != 31 || last.Sub(began) > 110*time.Second {
			t.Errorf("%d syncs of 10 s took three of four workers %v", count, last.Sub(began))
		}
	})
}

// TestAnIdleQueueRemembersNothing: of keys, parked ones among them, and of namespaces.
func TestAnIdleQueueRemembersNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := share(t, 2, map[string]time.Duration{"slow": 10 * time.Second, "quick": time.Millisecond})
		for range 2 { // a key that is done may come again
			s.add("slow", 5)
			s.add("quick", 5)
			pass(time.Hour)
		}
		s.add("quick", 1) // its end forgets the slow one
		pass(time.Second)
		fair, shares := s.fair, &s.fair.shares
		if len(fair.processing)+fair.announced.Len()+fair.Len()+len(shares.next)+len(shares.began)+len(shares.running)+len(shares.parked)+len(shares.slowUntil) != 0 {
			t.Errorf("the queue remembers %+v and %+v", fair, shares)
		}
		if s.syncs != 21 {
			t.Errorf("%d syncs were made of 21", s.syncs)
		}
	})
}

func TestRolloutsThatWait(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Now())
	unlimited, r := &Rollouts{Clock: clock}, &Rollouts{Clock: clock, Limit: 1}
	for i := range 10 {
		if wait := unlimited.Begin(key(fmt.Sprint("a/", i))); wait != 0 {
			t.Errorf("without a limit, number %d waits %v", i, wait)
		}
	}
	for i := range 201 {
		r.Begin(key(fmt.Sprint("a/", i)))
	}
	if wait := r.Begin(key("a/1")); wait != 2*time.Second {
		t.Errorf("of 200 that wait, one asks again after %v", wait)
	}
	if wait := r.Begin(key("a/0")); wait != 0 {
		t.Errorf("one that rolls out waits %v", wait)
	}
	for i := range 101 {
		r.End(key(fmt.Sprint("a/", 100+i)))
	}
	if wait := r.Begin(key("a/1")); wait != time.Second {
		t.Errorf("of 99 that wait, one asks again after %v", wait)
	}
	clock.Step(rolloutTimeout - 1)
	if wait := r.Begin(key("a/1")); wait == 0 {
		t.Error("a rollout does not count until its timeout")
	}
	clock.Step(1)
	if wait := r.Begin(key("a/1")); wait != 0 {
		t.Errorf("after the timeout, one waits %v", wait)
	}
}
