// SPDX-License-Identifier: Apache-2.0

// The rows of the matrix and how they are run: for each controller first the workloads
// without faults, then all rows in parallel.

package faults

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
)

// scenario is a row of the matrix: one kind of fault, and the cases that try it.
type scenario struct {
	// row is the row's name in docs/faults.md: a letter and a number.
	row   string
	title string
	// quick is how many of the cases FAULTS=quick runs.
	quick int
	cases func(writeCounts) []trialCase
	// oursOnly says why the row can be run with our controller only. It is empty if the
	// row can be run with both.
	oursOnly string
	// why explains in docs/faults.md why upstream's controller fails the row. The error
	// of the run is shown beside it.
	why string
}

// trialCase is one way to try a fault.
type trialCase struct {
	name string
	run  func(ctx context.Context, tr *trial) error
}

// writeCounts holds how many writes each workload makes without a fault. A workload that
// fails without one is missing.
type writeCounts map[string]int

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

// manyWrites is more than any workload makes.
const manyWrites = 9

// countWrites runs the workloads without faults and counts their writes.
func countWrites(t *testing.T, s *subject) writeCounts {
	t.Helper()
	writes, tried := writeCounts{}, map[string]bool{}
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
			writes[w.name] = manyWrites // excluded by -run: cases beyond the last write are skipped
		}
	}
	return writes
}

// noFault is the prefix of the titles of rows without a fault.
const noFault = "no fault: "

// scenario returns the row of a workload without a fault.
func (w *workload) scenario() scenario {
	return scenario{row: w.row, title: noFault + w.title, oursOnly: w.oursOnly, why: w.why}
}

// failsWithoutFault is the reason to skip a row whose workload a controller fails even
// without a fault.
const failsWithoutFault = "fails the workload even without a fault"

// skipFor skips a test that can't be run with a subject.
func (sc *scenario) skipFor(t *testing.T, s *subject) {
	t.Helper()
	if sc.oursOnly != "" && s != run.ours {
		run.report.skip(sc, s, sc.oursOnly)
		t.Skip(sc.oursOnly)
	}
}

// skipUnlessQuick skips a test that only FAULTS=all runs.
func (sc *scenario) skipUnlessQuick(t *testing.T) {
	t.Helper()
	if !run.all && sc.quick == 0 {
		t.Skip("only with FAULTS=all")
	}
}

// try runs a scenario's cases, or with FAULTS=quick a selection of them.
func (sc *scenario) try(t *testing.T, s *subject, writes writeCounts) {
	sc.skipFor(t, s)
	cases := sc.cases(writes)
	if len(cases) == 0 {
		run.report.skip(sc, s, failsWithoutFault)
		t.Skip(failsWithoutFault)
	}
	sc.skipUnlessQuick(t)
	if !run.all && len(cases) > sc.quick {
		// The same selection for the same seed, whatever else is run.
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

// tryCase runs a trial. A failure of our controller fails the test; a failure of
// upstream's is only recorded.
func (sc *scenario) tryCase(t *testing.T, s *subject, try func(context.Context, *trial) error) {
	sc.tryCaseOn(t, run.cluster, s, try)
}

func (sc *scenario) tryCaseOn(t *testing.T, c *testCluster, s *subject, try func(context.Context, *trial) error) {
	tr := newTrialOn(t, c, s)
	err, falseStatuses := try(t.Context(), tr), tr.falseStatuses(t.Context())
	if errors.Is(err, errNotReached) && falseStatuses == nil {
		t.Skip(err)
	}
	err = errors.Join(err, falseStatuses)
	run.report.note(sc, s, err)
	if err == nil {
		return
	}
	if s == run.ours {
		t.Errorf("%s, %s: %v\nTo repeat it: make test-faults FAULTS=all FAULTS_SEED=%d GO_TEST_FLAGS='-run=^%s$$'\n%s",
			sc.row, sc.title, err, run.seed, t.Name(), tr.diagnostics())
		return
	}
	t.Logf("%s, %s: %v\n%s", sc.row, sc.title, err, tr.diagnostics())
}
