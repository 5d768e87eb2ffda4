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

package faults

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
)

// scenario is a row of the matrix: one thing that goes wrong, and the
// perturbations by which it is tried.
type scenario struct {
	// row is the row's name in the catalogue: a letter and a number.
	row   string
	title string
	// quick is how many of the cases are tried in the quick part.
	quick int
	cases func(counted) []trialCase
	// oursOnly says why only our controller can be asked for it; empty if both can.
	oursOnly string
}

// trialCase is one perturbation.
type trialCase struct {
	name string
	run  func(ctx context.Context, tr *trial) error
}

// counted is how many writes each workload takes without a fault. A workload
// that fails without one is not in it.
type counted map[string]int

const noElection = "has no leader election"

func scenarios() []scenario {
	return []scenario{
		{row: "A1", title: "crash before and after each write", quick: 10, cases: eachWrite(crashes)},
		{row: "A2", title: "a write is done and its reply lost", quick: 6, cases: eachWrite(lostReplies)},
		{row: "A3", title: "a write is cut off, and done after it has been made again", quick: 6, cases: eachWrite(lateWrites)},
		{row: "A4", title: "SIGTERM while a write is under way", quick: 1, cases: stopped},
		{row: "A5", title: "the caches are late at the start, and the controller is killed meanwhile", quick: 2, cases: emptyCaches},
		{row: "B1", title: "the cache has not seen the controller's own create", quick: 1, cases: staleDeployments},
		{row: "B2", title: "the Foo in the cache is older than what has been carried out", quick: 1, cases: staleFoos},
		{row: "B3", title: "the Deployment of a dead namesake is not collected yet", quick: 1, cases: deadOwner},
		{row: "B5", title: "restart beside an API server that is behind", quick: 2, cases: olderServer},
		{row: "B6", title: "a DELETE event is missed, then a relist", quick: 1, cases: missedDelete},
		{row: "B7", title: "each watch ends in 410 Gone", quick: 2, cases: expiredWatches},
		{row: "B9", title: "each event comes twice", quick: 2, cases: doubled},
		{row: "B10", title: "renamed and back before it is seen", quick: 1, cases: thereAndBack},
		{row: "C3", title: "foreground deletion: no new Deployment", quick: 1, cases: foreground},
		{row: "C4-C5", title: "orphan deletion: the Deployment survives, and is not taken over", quick: 2, cases: orphaned},
		{row: "C7", title: "two Foos ask for one Deployment", quick: 1, cases: sharedName},
		{row: "C14", title: "what others put on the Deployment stays", quick: 1, cases: kept},
		{row: "D1", title: "a rival writes to the Deployment", quick: 2, cases: rivals},
		{row: "D1-D3", title: "a write is answered 409, 429, 500, 503, 401, or reset", quick: 6, cases: eachWrite(refusals)},
		{row: "D2-D3", title: "nothing gets through for a while", quick: 2, cases: outages},
		{row: "D4", title: "calls that hang hold up nothing else", quick: 1, cases: hanging},
		{row: "D8", title: "a server without WatchList", quick: 2, cases: withoutWatchList},
		{row: "E1", title: "the leader is killed", quick: 1, cases: leaderKilled, oursOnly: noElection},
		{row: "E2", title: "the leader is stopped in mid-write: the Lease is released after it", quick: 1, cases: leaderStopped, oursOnly: noElection},
		{row: "E3-E6", title: "the Lease is taken, or deleted", quick: 1, cases: leaseLost, oursOnly: noElection},
		{row: "E4", title: "a leader is frozen until another leads, and goes on", quick: 1, cases: leaderFrozen, oursOnly: noElection},
		{row: "E4b", title: "two controllers work at once", quick: 2, cases: twoAtOnce},
		{row: "E7", title: "writes are slower than the Lease's renewals", quick: 1, cases: slowServer, oursOnly: noElection},
		{row: "F", title: "a process that stands still for a while", quick: 1, cases: frozen},
		{row: "rest", title: "at rest nothing is written, over resyncs too", quick: 1, cases: atRest},
	}
}

func TestFaults(t *testing.T) {
	for _, s := range []*subject{run.ours, run.upstream} {
		if s == nil {
			continue
		}
		t.Run(s.name, func(t *testing.T) {
			writes := countWrites(t, s)
			for _, sc := range scenarios() {
				t.Run(sc.row, func(t *testing.T) {
					t.Parallel()
					sc.try(t, s, writes)
				})
			}
		})
	}
}

// manyWrites is more than any workload takes.
const manyWrites = 9

// countWrites runs the workloads without faults.
func countWrites(t *testing.T, s *subject) counted {
	t.Helper()
	writes, tried := counted{}, map[string]bool{}
	var mu sync.Mutex
	t.Run("no fault", func(t *testing.T) {
		for _, w := range workloads() {
			row := w.scenario()
			if row.notFor(s) {
				continue
			}
			t.Run(w.name, func(t *testing.T) {
				tried[w.name] = true
				t.Parallel()
				row.tryCase(t, s, func(ctx context.Context, tr *trial) error {
					n, err := w.run(ctx, tr)
					if err == nil {
						mu.Lock()
						defer mu.Unlock()
						writes[w.name] = n
					}
					return err
				})
			})
		}
	})
	for _, w := range workloads() {
		if _, ok := tried[w.name]; !ok && (w.oursOnly == "" || s == run.ours) {
			writes[w.name] = manyWrites // -run left it out: cases beyond the last write are skipped
		}
	}
	return writes
}

// scenario is the row of a workload without a fault.
func (w *workload) scenario() scenario {
	return scenario{row: w.row, title: "no fault: " + w.title, oursOnly: w.oursOnly}
}

func (sc *scenario) notFor(s *subject) bool {
	if sc.oursOnly == "" || s == run.ours {
		return false
	}
	run.report.skip(sc, s)
	return true
}

// try tries a scenario's cases, or a choice of them.
func (sc *scenario) try(t *testing.T, s *subject, writes counted) {
	if sc.notFor(s) {
		return
	}
	cases := sc.cases(writes)
	if !run.all && len(cases) > sc.quick {
		// The same choice for the same seed, whatever else is run.
		random := rand.New(rand.NewPCG(run.seed, uint64(len(sc.title))))
		random.Shuffle(len(cases), func(i, j int) { cases[i], cases[j] = cases[j], cases[i] })
		cases = cases[:sc.quick]
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			sc.tryCase(t, s, c.run)
		})
	}
}

// tryCase makes a trial. Ours has to pass; what upstream's does is only noted.
func (sc *scenario) tryCase(t *testing.T, s *subject, try func(context.Context, *trial) error) {
	tr := newTrial(t, s)
	err := try(t.Context(), tr)
	if errors.Is(err, errNotReached) {
		t.Skip(err)
	}
	run.report.note(sc, s, t.Name(), err)
	if err == nil {
		return
	}
	if s == run.ours {
		t.Errorf("%s, %s: %v\nAgain: FAULTS=all FAULTS_SEED=%d GO_TEST_FLAGS='-run=^%s$' hack/check.sh faults\n%s",
			sc.row, sc.title, err, run.seed, t.Name(), tr.story())
		return
	}
	t.Logf("%s, %s: %v\n%s", sc.row, sc.title, err, tr.story())
}
