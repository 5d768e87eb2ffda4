// SPDX-License-Identifier: Apache-2.0

// Tests of how namespaces share the workers.

package queue

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"example.com/sample-controller/test/footest"
)

// sharing is a queue with workers, whose syncs take a time that depends on the namespace.
type sharing struct {
	*Queue

	mu sync.Mutex
	// ended maps a namespace to the end of its last sync, and syncs to the number of its syncs.
	ended map[string]time.Time
	syncs map[string]int
}

// share calls a test in a bubble with workers.
func share(t *testing.T, workers int, takes map[string]time.Duration, test func(s *sharing)) {
	t.Helper()
	synctest.Test(t, func(*testing.T) {
		s := &sharing{Queue: New("", clock.RealClock{}), ended: map[string]time.Time{}, syncs: map[string]int{}}
		s.SetWorkers(workers)
		var wg sync.WaitGroup
		defer wg.Wait()
		defer s.ShutDown()
		for range workers {
			wg.Go(func() {
				for key, shutdown := s.Get(); !shutdown; key, shutdown = s.Get() {
					<-time.After(takes[key.Namespace])
					s.mu.Lock()
					s.ended[key.Namespace] = time.Now()
					s.syncs[key.Namespace]++
					s.mu.Unlock()
					s.Done(key)
				}
			})
		}
		test(s)
	})
}

// of returns the number of syncs of a namespace, and when the last one ended.
func (s *sharing) of(namespace string) (syncs int, last time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.syncs[namespace], s.ended[namespace]
}

// add adds keys of a namespace.
func (s *sharing) add(namespace string, count int) {
	for _, added := range many(namespace, count) {
		s.Add(key(added))
	}
}

// A namespace whose syncs take 10 s, for example while its webhook times out, leaves a worker
// to the others, and gets no more turns than its share of the time.
func TestASlowNamespaceDelaysOthersByOneSyncAtMost(t *testing.T) {
	for _, row := range []struct {
		workers  int
		at, most time.Duration
	}{
		{1, 95 * time.Second, 6 * time.Second}, // the current sync has 5 s left
		{2, 95 * time.Second, time.Second},
		{2, 5 * time.Second, 6 * time.Second}, // it is not known to be slow yet
		{4, 95 * time.Second, time.Second},
	} {
		t.Run(fmt.Sprintf("%d workers, after %v", row.workers, row.at), func(t *testing.T) {
			share(t, row.workers, map[string]time.Duration{"slow": 10 * time.Second, "quick": time.Millisecond}, func(s *sharing) {
				s.add("slow", 100)
				footest.Advance(row.at)
				asked := time.Now()
				s.add("quick", 20)
				footest.Advance(time.Minute)
				if syncs, last := s.of("quick"); syncs != 20 || last.Sub(asked) > row.most {
					t.Errorf("of 20 syncs of the other namespace %d were made, the last after %v", syncs, last.Sub(asked))
				}
				footest.Advance(time.Hour)
				syncs, _ := s.of("slow")
				footest.ExpectEqual(t, "the syncs of the slow namespace", 100, syncs)
			})
		})
	}
}

// Two namespaces whose syncs take different times have the same share. A namespace that arrives
// later has no claim to earlier time.
func TestNamespacesShareTheTime(t *testing.T) {
	share(t, 1, map[string]time.Duration{"a": 40 * time.Millisecond, "b": 10 * time.Millisecond}, func(s *sharing) {
		s.add("a", 1000)
		footest.Advance(4 * time.Second)
		before, _ := s.of("a")
		footest.ExpectEqual(t, "the syncs of 40 ms before", 100, before)
		s.add("b", 1000)
		footest.Advance(2 * time.Second)
		slow, _ := s.of("a")
		quick, _ := s.of("b")
		if slow -= before; slow < 23 || slow > 27 || quick < 90 || quick > 110 {
			t.Errorf("in 2 s, %d syncs of 40 ms and %d of 10 ms were made", slow, quick)
		}
	})
}

// TestWhichKeysAreParked follows a namespace that becomes slow, with three workers.
func TestWhichKeysAreParked(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Unix(0, 0))
	s := newFairQueue(clock)
	s.workers = 3
	step := func(d time.Duration) { clock.SetTime(clock.Now().Add(d)) }
	begin := func(name string, want bool) {
		t.Helper()
		footest.ExpectEqual(t, name+" may begin", want, s.begin(key(name)))
	}
	end := func(name string, want ...string) {
		t.Helper()
		var freed []string
		for _, key := range s.end(key(name)) {
			freed = append(freed, key.String())
		}
		footest.ExpectEqual(t, "what the end of "+name+" frees", want, freed)
	}
	begin("a/1", true)
	step(slowSync - 1)
	begin("a/2", true)
	begin("a/3", true) // it is not known to be slow yet
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
	end("a/2", "a/5") // a/4 is in progress, and slow
	end("a/4", "a/6")
	end("a/0") // of a key that never began
	begin("a/7", true)
	end("a/7") // quick, as most syncs of a slow namespace are
	begin("a/7", true)
	begin("a/8", true)
	begin("a/9", false)
	end("a/8", "a/9")
	step(slowFor - 1)
	end("a/7")
	step(slowFor)
	begin("a/1", true)
	begin("a/2", true)
	begin("a/3", true) // it is quick again
	for _, name := range []string{"a/1", "a/2", "a/3"} {
		end(name)
	}
	begin("a/1", true)
	step(slowSync)
	end("a/1")
	step(slowFor - 1)
	begin("a/1", true)
	begin("a/2", true)
	begin("a/3", false)
	begin("a/4", false)
	step(1)
	end("a/1", "a/3", "a/4") // all at once: it is quick now
	footest.ExpectEqual(t, "the next turn while a sync is in progress", time.Duration(1), s.next["a"])
	end("a/2")
	if len(s.next)+len(s.began)+len(s.running)+len(s.parked)+len(s.slowUntil) != 0 || s.now != 0 {
		t.Errorf("it remembers %+v", s)
	}
}

// TestAnIdleQueueRemembersNothing about keys, including parked ones, or namespaces. A key that
// is added while it is processed is processed again, parked or not.
func TestAnIdleQueueRemembersNothing(t *testing.T) {
	share(t, 2, map[string]time.Duration{"slow": 10 * time.Second, "quick": time.Millisecond}, func(s *sharing) {
		for range 2 { // a processed key may return
			s.add("slow", 5)
			s.add("quick", 5)
			footest.Advance(time.Hour)
		}
		for _, after := range []time.Duration{0, 5 * time.Second, 7 * time.Second} { // each runs twice
			footest.Advance(after)
			s.add("slow", 3)
		}
		footest.Advance(time.Hour)
		s.add("quick", 1) // its end forgets the slow one
		footest.Advance(time.Second)
		fair := s.fair
		fair.expectEmpty(t)
		if len(fair.next)+len(fair.began)+len(fair.running)+len(fair.parked)+len(fair.slowUntil) != 0 {
			t.Errorf("the queue remembers %+v", fair)
		}
		footest.ExpectEqual(t, "how many syncs were made", map[string]int{"slow": 16, "quick": 11}, s.syncs)
	})
}
