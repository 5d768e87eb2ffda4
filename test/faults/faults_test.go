// SPDX-License-Identifier: Apache-2.0

// The rows of the matrix, how they are run, and the report: for each controller first the
// workloads without faults, then all rows in parallel.

package faults

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"text/template"
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

// report collects the results of a run by row.
type report struct {
	mu   sync.Mutex
	rows []*row
}

type row struct {
	scenario scenario
	results  map[string]*result // by the name of the subject
}

type result struct {
	tried   int
	failed  int
	reason  string // of the first failure
	skipped string // why it was not run, if it was not
}

func newReport() *report { return &report{} }

// resultOf returns a row's result for a subject. The caller holds the lock.
func (r *report) resultOf(sc *scenario, s *subject) *result {
	for _, known := range r.rows {
		if known.scenario.row == sc.row && known.scenario.title == sc.title {
			if known.results[s.name] == nil {
				known.results[s.name] = &result{}
			}
			return known.results[s.name]
		}
	}
	first := &result{}
	r.rows = append(r.rows, &row{scenario: *sc, results: map[string]*result{s.name: first}})
	return first
}

func (r *report) note(sc *scenario, s *subject, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	found := r.resultOf(sc, s)
	found.tried++
	if err != nil {
		found.failed++
		if reason := firstLine(err); found.reason == "" || reason < found.reason {
			found.reason = reason // the same one, in whatever order the trials end
		}
	}
}

func (r *report) skip(sc *scenario, s *subject, why string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.resultOf(sc, s).skipped = why
}

// varying matches the parts of an error that differ from run to run.
var varying = regexp.MustCompile(`waiting until the state is right and nothing is written: not within [0-9.a-z]+: |faults-[a-z0-9]+`)

// firstLine returns the first line of an error, without the parts that differ from run to
// run.
func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return strings.TrimRight(varying.ReplaceAllString(line, ""), ". ")
}

// summary describes the run in one line.
func (r *report) summary() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	tried, failed := 0, 0
	for _, one := range r.rows {
		if result := one.results[run.ours.name]; result != nil {
			tried, failed = tried+result.tried, failed+result.failed
		}
	}
	return fmt.Sprintf("%d trials in %d rows, %d failed (seed %d)", tried, len(r.rows), failed, run.seed)
}

// page is the data of the template.
type page struct {
	Upstream, Kubernetes string
	Total                int
	Seed                 uint64
	Ours, Theirs         tally
	Rows                 []pageRow
	Failures             []pageFailure
}

// tally counts a subject's rows.
type tally struct{ Tried, Failed int }

func (t *tally) add(r *result) {
	if r == nil || r.tried == 0 {
		return
	}
	t.Tried++
	if r.failed > 0 {
		t.Failed++
	}
}

type pageRow struct{ Name, Title, Ours, Upstream string }

type pageFailure struct{ Name, Title, Why, Reason string }

// write writes the page.
func (r *report) write(path, kubernetes string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	shown := page{Upstream: run.upstream.version, Kubernetes: kubernetes, Seed: run.seed}
	slices.SortStableFunc(r.rows, func(a, b *row) int { return cmp.Compare(a.rank(), b.rank()) })
	for _, one := range r.rows {
		sc, theirs := one.scenario, one.results[run.upstream.name]
		if mine := one.results[run.ours.name]; mine != nil {
			shown.Total += mine.tried
		}
		shown.Ours.add(one.results[run.ours.name])
		shown.Theirs.add(theirs)
		shown.Rows = append(shown.Rows, pageRow{sc.row, sc.title, one.results[run.ours.name].cell(), theirs.cell()})
		if theirs != nil && theirs.failed > 0 {
			shown.Failures = append(shown.Failures, pageFailure{sc.row, sc.title, sc.why, theirs.reason})
		}
	}
	layout, err := template.ParseFiles("testdata/faults.md.tmpl")
	if err != nil {
		return err
	}
	var text strings.Builder
	if err := layout.Execute(&text, shown); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(text.String()), 0o644)
}

// rank returns a sort key: rows without a fault first, then by letter, number and title.
func (r *row) rank() string {
	var letter string
	var number int
	if _, err := fmt.Sscanf(r.scenario.row, "%1s%d", &letter, &number); err != nil {
		letter = "Z"
	}
	first := 1
	if strings.HasPrefix(r.scenario.title, noFault) {
		first = 0
	}
	return fmt.Sprintf("%d%s%03d%s", first, letter, number, r.scenario.title)
}

// cell returns a result as the text of a cell of the matrix.
func (r *result) cell() string {
	switch {
	case r == nil || r.tried == 0 && r.skipped == "":
		return "not run"
	case r.skipped != "":
		return "– (" + r.skipped + ")"
	case r.failed > 0:
		return fmt.Sprintf("**fails** %d of %d", r.failed, r.tried)
	}
	return fmt.Sprintf("passes (%d)", r.tried)
}
