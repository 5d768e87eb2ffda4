// SPDX-License-Identifier: Apache-2.0

// Tests of how namespaces share the workers, and rollouts take turns.

package queue

import (
	"fmt"
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
