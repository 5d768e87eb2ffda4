// SPDX-License-Identifier: Apache-2.0

// Tests of turns: how namespaces share them, and what becomes of them while calls hang.

package queue

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
)

// sharing is a queue with workers, as in a controller.
type sharing struct {
	*Queue
	t *testing.T
	// calls returns how long each call of a sync takes.
	calls func(key cache.ObjectName) []time.Duration

	mu sync.Mutex
	// ended maps a namespace to the end of its last sync, and syncs to the number of its syncs.
	ended map[string]time.Time
	syncs map[string]int
	// inProgress are the keys that are synced, and the others count these, the most of a namespace,
	// those outside calls, and the workers.
	inProgress                        map[cache.ObjectName]bool
	most, mostOf, outside, goroutines int
}

// share calls a test in a bubble with workers, and checks the bounds of their number.
func share(t *testing.T, workers int, calls func(key cache.ObjectName) []time.Duration, test func(s *sharing)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &sharing{
			Queue: New("shared", clock.RealClock{}), t: t, calls: calls,
			ended: map[string]time.Time{}, syncs: map[string]int{}, inProgress: map[cache.ObjectName]bool{},
		}
		var wg sync.WaitGroup
		worker := func() {
			s.count(&s.goroutines, 1, 2*workers+maxHandedOver+1)
			for key, end := s.Get(); !end; key, end = s.Get() {
				s.sync(key, workers)
			}
			s.count(&s.goroutines, -1, 0)
		}
		s.SetWorkers(workers, func() { wg.Go(worker) })
		for range workers {
			wg.Go(worker)
		}
		test(s)
		expectEqual(t, "the number of workers at rest", workers, max(workers, s.goroutines))
		s.ShutDown()
		wg.Wait()
		expectEqual(t, "the number of workers at the end", 0, s.goroutines)
		s.fair.expectEmpty(t)
	})
}

// advance lets time pass in a bubble, until nothing happens any more.
func advance(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// count changes a number, and fails the test if it is then above a limit.
func (s *sharing) count(number *int, by, limit int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if *number += by; by > 0 && *number > limit {
		s.t.Errorf("%d are more than %d", *number, limit)
	}
}

func (s *sharing) sync(key cache.ObjectName, workers int) {
	s.count(&s.outside, 1, workers)
	s.mu.Lock()
	if s.inProgress[key] {
		s.t.Errorf("%s is synced twice at the same time", key)
	}
	s.inProgress[key] = true
	of := 0
	for other := range s.inProgress {
		if other.Namespace == key.Namespace {
			of++
		}
	}
	s.most, s.mostOf = max(s.most, len(s.inProgress)), max(s.mostOf, of)
	s.mu.Unlock()
	for _, took := range s.calls(key) {
		s.count(&s.outside, -1, 0)
		returned := s.Calling(key)
		<-time.After(took)
		returned()
		s.count(&s.outside, 1, workers)
	}
	s.mu.Lock()
	delete(s.inProgress, key)
	s.ended[key.Namespace] = time.Now()
	s.syncs[key.Namespace]++
	s.outside--
	s.mu.Unlock()
	s.Done(key)
}

// take returns a call whose time depends on the namespace, up to its first "-".
func take(times map[string]time.Duration) func(key cache.ObjectName) []time.Duration {
	return func(key cache.ObjectName) []time.Duration {
		namespace, _, _ := strings.Cut(key.Namespace, "-")
		return []time.Duration{times[namespace]}
	}
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

func TestNamespacesWhoseCallsHangDelayNoOther(t *testing.T) {
	for _, workers := range []int{1, 2, 4, 16} {
		for _, namespaces := range []int{1, 2, 3, 40} {
			t.Run(fmt.Sprintf("%d workers, %d namespaces", workers, namespaces), func(t *testing.T) {
				const quick = time.Millisecond
				share(t, workers, take(map[string]time.Duration{"slow": 10 * time.Second, "quick": quick}), func(s *sharing) {
					for i := range namespaces {
						s.add(fmt.Sprint("slow-", i), 100)
					}
					for _, at := range []time.Duration{8 * time.Second, 3 * time.Second, 7 * time.Second, time.Minute} {
						advance(at)
						asked := time.Now()
						s.add("quick", workers)
						advance(5 * time.Second)
						if _, last := s.of("quick"); !last.After(asked) || last.Sub(asked) > 3*handOverAfter+time.Duration(workers)*quick {
							t.Errorf("after %v the other namespace waited %v", at, last.Sub(asked))
						}
					}
					advance(3 * time.Hour)
					for i := range namespaces {
						syncs, _ := s.of(fmt.Sprint("slow-", i))
						expectEqual(t, "the syncs of a slow namespace", 100, syncs)
					}
					if s.mostOf > max(workers, maxHanging) || s.most > maxHandedOver/2+namespaces+workers {
						t.Errorf("there were up to %d syncs of a namespace at the same time, and %d in all", s.mostOf, s.most)
					}
				})
			})
		}
	}
}

func TestANamespaceWhoseCallsHangLeavesTheLastTurnToOthers(t *testing.T) {
	share(t, 2, take(map[string]time.Duration{"slow": 10 * time.Second}), func(s *sharing) {
		s.add("slow", 8)
		advance(10*time.Second + handOverAfter/2) // the first two have ended
		asked := time.Now()
		s.add("quick", 20)
		advance(time.Minute)
		if syncs, last := s.of("quick"); syncs != 20 || last != asked {
			t.Errorf("%d syncs of another namespace ended, after %v", syncs, last.Sub(asked))
		}
	})
}

// A sync beyond that keeps its turn, but only until there is room.
func TestAtMostAHundredTurnsAreHandedOver(t *testing.T) {
	share(t, 1, take(map[string]time.Duration{"slow": time.Minute, "late": time.Hour}), func(s *sharing) {
		began := time.Now()
		for i := range maxHandedOver {
			s.add(fmt.Sprint("slow-", i), 1)
		}
		advance(30 * time.Second)
		s.add("late", 1)
		advance(time.Second)
		s.add("quick", 1)
		advance(time.Hour)
		expectEqual(t, "the most syncs at the same time", maxHandedOver+1, s.most)
		if syncs, last := s.of("quick"); syncs != 1 || last.Sub(began) > time.Minute+3*handOverAfter {
			t.Errorf("the other namespace was synced after %v", last.Sub(began))
		}
	})
}

// TestAllWorkersWorkAgainAfterCallsHang checks that keys of a namespace that had to wait are synced
// by all workers once its calls respond.
func TestAllWorkersWorkAgainAfterCallsHang(t *testing.T) {
	var began time.Time
	share(t, 8, func(cache.ObjectName) []time.Duration {
		if time.Since(began) < time.Second {
			return []time.Duration{10 * time.Second}
		}
		return []time.Duration{handOverAfter / 2}
	}, func(s *sharing) {
		began = time.Now()
		s.add("a", 8+80)
		advance(time.Minute)
		if syncs, last := s.of("a"); syncs != 88 || last.Sub(began) != 10*time.Second+10*handOverAfter/2 {
			t.Errorf("%d syncs ended after %v", syncs, last.Sub(began))
		}
	})
}

// Two namespaces whose syncs take different times have the same share. A namespace that arrives
// later has no claim to earlier time.
func TestNamespacesShareTheTime(t *testing.T) {
	share(t, 1, take(map[string]time.Duration{"a": 40 * time.Millisecond, "b": 10 * time.Millisecond}), func(s *sharing) {
		s.add("a", 1000)
		advance(4 * time.Second)
		before, _ := s.of("a")
		expectEqual(t, "the syncs of 40 ms before", 100, before)
		s.add("b", 1000)
		advance(2 * time.Second)
		slow, _ := s.of("a")
		quick, _ := s.of("b")
		if slow -= before; slow < 23 || slow > 27 || quick < 90 || quick > 110 {
			t.Errorf("in 2 s, %d syncs of 40 ms and %d of 10 ms were made", slow, quick)
		}
		advance(time.Hour)
	})
}

// TestRandomTurns checks that no key is lost, whatever its calls take. share checks the rest.
func TestRandomTurns(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 0))
		var mu sync.Mutex
		number := func(n int) int {
			mu.Lock()
			defer mu.Unlock()
			return random.IntN(n)
		}
		takes := []time.Duration{0, time.Millisecond, handOverAfter, handOverAfter + 1, 3 * time.Second}
		share(t, 1+number(5), func(cache.ObjectName) (calls []time.Duration) {
			for range number(4) {
				calls = append(calls, takes[number(len(takes))])
			}
			return calls
		}, func(s *sharing) {
			changed := map[cache.ObjectName]time.Time{}
			for range 200 {
				key := cache.ObjectName{Namespace: fmt.Sprint(number(4)), Name: fmt.Sprint(number(6))}
				if changed[key] = time.Now(); number(3) == 0 {
					s.AddLowPriority(key)
				} else {
					s.Add(key)
				}
				if number(2) == 0 {
					advance(takes[number(len(takes))] / 3)
				}
			}
			advance(time.Hour)
			expectEqual(t, "how many wait", 0, s.Len())
		})
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// A stop must not wait for turns, and a sync that panics in a call leaves nothing behind.
func TestTheEndOfASyncWithoutATurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New("", clock.RealClock{})
		q.SetWorkers(1, func() {})
		q.Add(key("a/1"))
		q.Add(key("a/2"))
		q.Get()
		returned := q.Calling(key("a/1"))
		advance(handOverAfter)
		q.Get()
		back := false
		go func() {
			returned()
			back = true
		}()
		advance(time.Hour)
		expectEqual(t, "whether it has a turn while another sync has it", false, back)
		q.ShutDown()
		synctest.Wait()
		expectEqual(t, "whether it continues after a shutdown", true, back)
		q.Calling(key("a/2"))
		advance(handOverAfter)
		q.Done(key("a/1"))
		q.Done(key("a/2"))
		q.fair.expectEmpty(t)
	})
}

// TestAShutdownWithDrain checks that it waits for the syncs in progress alone.
func TestAShutdownWithDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New("", clock.RealClock{})
		q.SetWorkers(2, nil)
		q.Add(key("a/1"))
		q.Get()
		ended := make(chan bool, 1)
		go func() {
			_, end := q.Get()
			ended <- end
		}()
		began := time.Now()
		time.AfterFunc(time.Minute, func() { q.Done(key("a/1")) })
		q.ShutDownWithDrain()
		expectEqual(t, "the time of the sync in progress", time.Minute, time.Since(began))
		expectEqual(t, "whether the other worker ends", true, <-ended)
	})
}

// gauges keeps the longest time that a sync has been running, in seconds.
type gauges struct{ longest float64 }

var longestSync = &gauges{}

// TestMain sets the provider of metrics: a process has one, and the first stays.
func TestMain(m *testing.M) {
	workqueue.SetProvider(longestSync)
	os.Exit(m.Run())
}

func (*gauges) Inc()            {}
func (*gauges) Dec()            {}
func (*gauges) Observe(float64) {}
func (g *gauges) Set(v float64) { g.longest = max(g.longest, v) }

func (g *gauges) NewDepthMetric(string) workqueue.GaugeMetric            { return g }
func (g *gauges) NewAddsMetric(string) workqueue.CounterMetric           { return g }
func (g *gauges) NewLatencyMetric(string) workqueue.HistogramMetric      { return g }
func (g *gauges) NewWorkDurationMetric(string) workqueue.HistogramMetric { return g }
func (g *gauges) NewRetriesMetric(string) workqueue.CounterMetric        { return g }

func (g *gauges) NewUnfinishedWorkSecondsMetric(string) workqueue.SettableGaugeMetric {
	return &gauges{}
}

func (g *gauges) NewLongestRunningProcessorSecondsMetric(string) workqueue.SettableGaugeMetric {
	return g
}

// The alert SampleControllerWorkerStuck reports a sync that runs for 180 s.
func TestASyncRunsNoLongerThanItsCalls(t *testing.T) {
	share(t, 2, take(map[string]time.Duration{"slow": 30 * time.Second}), func(s *sharing) {
		longestSync.longest = 0
		s.add("slow", 20)
		advance(time.Hour)
		if longestSync.longest < 29 || longestSync.longest > 31 {
			t.Errorf("of syncs of 30 s, one seemed to take %v s", longestSync.longest)
		}
	})
}
