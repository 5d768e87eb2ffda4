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
	// why explains to the reader of the matrix what upstream's controller does
	// where it fails. What it did in the run is told besides.
	why string
}

// trialCase is one perturbation.
type trialCase struct {
	name string
	run  func(ctx context.Context, tr *trial) error
}

// counted is how many writes each workload takes without a fault. A workload
// that fails without one is not in it.
type counted map[string]int

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
			t.Run(w.name, func(t *testing.T) {
				tried[w.name] = true
				row.skipFor(t, s)
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
		if !tried[w.name] && (w.oursOnly == "" || s == run.ours) {
			writes[w.name] = manyWrites // -run left it out: cases beyond the last write are skipped
		}
	}
	return writes
}

// noFault begins the titles of rows in which nothing goes wrong.
const noFault = "no fault: "

// scenario is the row of a workload without a fault.
func (w *workload) scenario() scenario {
	return scenario{row: w.row, title: noFault + w.title, oursOnly: w.oursOnly, why: w.why}
}

// failsAnyway is said where a controller fails what a row needs while nothing goes wrong.
const failsAnyway = "fails what it needs without a fault"

// skipFor skips a test that a subject can't be asked for.
func (sc *scenario) skipFor(t *testing.T, s *subject) {
	t.Helper()
	if sc.oursOnly != "" && s != run.ours {
		run.report.skip(sc, s, sc.oursOnly)
		t.Skip(sc.oursOnly)
	}
}

// try tries a scenario's cases, or a choice of them.
func (sc *scenario) try(t *testing.T, s *subject, writes counted) {
	sc.skipFor(t, s)
	cases := sc.cases(writes)
	if len(cases) == 0 {
		run.report.skip(sc, s, failsAnyway)
		t.Skip(failsAnyway)
	}
	if !run.all && sc.quick == 0 {
		t.Skip("not in the quick part")
	}
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
	sc.tryCaseOn(t, run.cluster, s, try)
}

func (sc *scenario) tryCaseOn(t *testing.T, c *testCluster, s *subject, try func(context.Context, *trial) error) {
	tr := newTrialOn(t, c, s)
	err, lies := try(t.Context(), tr), tr.lies(t.Context())
	if errors.Is(err, errNotReached) && lies == nil {
		t.Skip(err)
	}
	err = errors.Join(err, lies)
	run.report.note(sc, s, err)
	if err == nil {
		return
	}
	if s == run.ours {
		t.Errorf("%s, %s: %v\nAgain: make test-faults FAULTS=all FAULTS_SEED=%d GO_TEST_FLAGS='-run=^%s$$'\n%s",
			sc.row, sc.title, err, run.seed, t.Name(), tr.story())
		return
	}
	t.Logf("%s, %s: %v\n%s", sc.row, sc.title, err, tr.story())
}
