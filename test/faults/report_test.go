// SPDX-License-Identifier: Apache-2.0

// The results of a run, and the page docs/faults.md that is made of them.

package faults

import (
	"cmp"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"text/template"
)

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
