// SPDX-License-Identifier: Apache-2.0

// The results of all cases.

package judge

import (
	"slices"
	"sync"
	"time"
)

// Failure is a case that broke a rule in each attempt.
type Failure struct {
	Case string
	Finding
}

// Row is what is known of a fault, or of a rule that holds in every case.
type Row struct {
	Level, Title string
	Cases        int
	Failures     []Failure
	// NotJudged are the reasons for which some could not be judged.
	NotJudged []string
}

// Results are the results so far. Its methods may be called at the same time.
type Results struct {
	// Command is the command line, and Took how long it ran.
	Command string
	Took    time.Duration
	// Chosen is the expression that chose the cases, or "" if all were to be run.
	Chosen string

	mu   sync.Mutex
	rows []*Row
}

// row returns the row with a level and title. It needs the lock.
func (r *Results) row(level, title string) *Row {
	for _, row := range r.rows {
		if row.Level == level && row.Title == title {
			return row
		}
	}
	row := &Row{Level: level, Title: title}
	r.rows = append(r.rows, row)
	return row
}

// everyCase are the rules that hold in each case, whatever its level. canHaveSurplus says which cases
// that about surplus concerns.
var everyCase = map[string]string{
	"others' writes stay":           Quiet,
	noSurplus:                       CacheSafe,
	"deletions have a precondition": CacheSafe,
	"status":                        Honest,
}

// titleOf returns the title of the row to which a finding in a case belongs.
func titleOf(c Case, f Finding) string {
	if _, ok := everyCase[f.Rule]; ok {
		return f.Rule
	}
	return c.Fault
}

// mostFailures is how many failed cases a row needs: further ones show the same.
const mostFailures = 3

// FailedOften reports whether so many cases with the fault failed that another need not run.
func (r *Results) FailedOften(c Case) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.row(c.Level, c.Fault).Failures) >= mostFailures
}

// Decided reports whether a case needs no further attempt: the last one broke no rule, or
// there were enough, or each rule that it broke is one of every case, and known to fail.
func (r *Results) Decided(c Case, attempts [][]Finding) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, f := range attempts[len(attempts)-1] {
		title := titleOf(c, f)
		if title == c.Fault || len(r.row(f.Level, title).Failures) == 0 {
			return len(attempts) >= 3
		}
	}
	return true
}

// Common3 returns the findings of the first attempt whose rules each attempt broke.
func Common3(attempts [][]Finding) []Finding {
	common := slices.Clone(attempts[0])
	return slices.DeleteFunc(common, func(f Finding) bool {
		return slices.ContainsFunc(attempts, func(other []Finding) bool {
			return !slices.ContainsFunc(other, func(o Finding) bool { return o.Level == f.Level && o.Rule == f.Rule })
		})
	})
}

// Judged adds a case with what was found in each attempt, and returns its failures.
func (r *Results) Judged(c Case, findings []Finding) []Failure {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.row(c.Level, c.Fault).Cases++
	for rule, level := range everyCase {
		row := r.row(level, rule)
		if c.Level != Definition && len(row.NotJudged) == 0 && (rule != noSurplus || canHaveSurplus(c)) {
			row.Cases++
		}
	}
	var failures []Failure
	for _, f := range findings {
		row := r.row(f.Level, titleOf(c, f))
		row.Failures = append(row.Failures, Failure{c.Name, f})
		failures = append(failures, Failure{c.Name, f})
	}
	return failures
}

// NotJudged adds why a fault or a rule could not be judged.
func (r *Results) NotJudged(level, title, why string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	row := r.row(level, title)
	if !slices.Contains(row.NotJudged, why) {
		row.NotJudged = append(row.NotJudged, why)
	}
}

// Verdict says whether a level holds: "holds", "fails" or "not judged". A level of which some cases
// were not to be run at most "holds in the chosen cases".
func (r *Results) Verdict(level string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	verdict := "not judged"
	for _, row := range r.rows {
		switch {
		case row.Level != level:
		case len(row.Failures) > 0:
			return "fails"
		case row.Cases > 0 && r.Chosen != "" && level != Definition:
			verdict = "holds in the chosen cases"
		case row.Cases > 0:
			verdict = "holds"
		}
	}
	return verdict
}
