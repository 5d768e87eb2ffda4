// SPDX-License-Identifier: Apache-2.0

// Package report writes the results of the benchmark as a page.
package report

import (
	"bytes"
	_ "embed"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"text/template"

	"example.com/sample-controller/test/bench/internal/results"
)

// page is the template of the page.
//
//go:embed benchmarks.md.tmpl
var page string

// Write writes benchmarks.md into a directory, and a copy of the results into benchmarks/ in it.
func Write(r *results.Results, folder string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	text, err := render(r)
	if err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	if err := os.WriteFile(filepath.Join(folder, "benchmarks.md"), text, 0o644); err != nil {
		return err
	}
	return r.Write(filepath.Join(folder, "benchmarks/results.json"))
}

func render(r *results.Results) ([]byte, error) {
	tmpl, err := template.New("page").Funcs(template.FuncMap{
		"names": names, "targets": targets, "rows": rows, "kinds": kinds, "settledSeconds": longestSettled, "latest": latest,
		"number": number, "count": count, "seconds": seconds, "thousandth": func(n float64) float64 { return n / 1000 }, "perObject": perObject,
	}).Parse(page)
	if err != nil {
		return nil, err
	}
	var text bytes.Buffer
	err = tmpl.Execute(&text, r)
	return text.Bytes(), err
}

const (
	ours      = "ours"
	unlimited = "upstream-unlimited"
	onRuntime = "controller-runtime"
	bareSame  = "bare-same-writes"
)

// Contenders are the names of all contenders, in the order of the tables.
var Contenders = []string{ours, unlimited, onRuntime, "upstream", bareSame, "bare"}

// names returns those of the contenders that a table has, in order.
func names(of results.Table) []string {
	return slices.DeleteFunc(slices.Clone(Contenders), func(name string) bool { return len(of[name]) == 0 })
}

// target is a figure to reach.
type target struct {
	Figure string
	// sign is what the figure has to be, compared with the bound: ≥, ≤ or <.
	sign  string
	bound float64
	// got is the measured figure, the median if there are rounds. It has no measurement
	// if the run lacks one that the figure needs.
	Got spread
}

// Bound formats what to reach.
func (t target) Bound() string {
	if t.sign == "≤" && t.bound == 0 {
		return "0"
	}
	return t.sign + " " + number(t.bound)
}

// Verdict says whether the figure was reached.
func (t target) Verdict() string {
	switch {
	case t.Got.n == 0:
		return "not measured"
	case t.met():
		return "met"
	}
	return "**missed**"
}

// met reports whether the figure was reached.
func (t target) met() bool {
	switch got := t.Got.Median; {
	case t.Got.n == 0:
		return false
	case t.sign == "≥":
		return got >= t.bound
	case t.sign == "<":
		return got < t.bound
	default:
		return got <= t.bound
	}
}

// targets returns all targets, with the figures of a run of the benchmark.
func targets(r *results.Results) []target {
	isolated, whole, peak := r.Tables[results.Isolated], r.Tables[results.Whole], r.Tables[results.Peak]
	throughput := func(of string, bound float64, other string) target {
		return target{"throughput / " + of, "≥", bound, ratios(isolated[ours], isolated[other], results.Run.PerSecond)}
	}
	cpu := func(of string, bound float64, other string) target {
		name := fmt.Sprintf("CPU per Foo to %.0f s after convergence / %s", longestSettled(isolated), of)
		return target{name, "≤", bound, ratios(settled(isolated[ours]), settled(isolated[other]), cpuSettled)}
	}
	list := []target{
		throughput("bare-same-writes", 0.95, bareSame),
		{"throughput including events / bare-same-writes", "≥", 0.95,
			ratios(isolated[ours], isolated[bareSame], results.Run.PerSecondEvents)},
		throughput("bare", 0.80, "bare"),
		throughput("upstream-unlimited", 1.15, unlimited),
		throughput("controller-runtime", 1.65, onRuntime),
		throughput("upstream", 50, "upstream"),
		cpu("upstream-unlimited", 0.40, unlimited),
		cpu("controller-runtime", 0.60, onRuntime),
		{"peak memory / each other controller, at each number of settled Foos", "<", 1, heaviest(r.Tables[results.Settled], r.Tables[results.Large])},
		{"the same, at each number of foreign Deployments", "<", 1, heaviest(r.Tables[results.Foreign])},
		{"peak memory while Foos converge beside as many foreign Deployments / upstream-unlimited", "<", 1,
			ratios(peak[ours], peak[unlimited], peakMiB)},
		{"throughput with the whole control plane / upstream-unlimited", "≥", 1.1, ratios(whole[ours], whole[unlimited], results.Run.PerSecond)},
		{"time until half of the Foos are available, whole control plane / upstream-unlimited", "≤", 0.7,
			ratios(whole[ours], whole[unlimited], halfSeconds)},
		{"writes per new Foo without events, whole control plane", "≤", 3,
			median(whole[ours], func(r results.Run) float64 { return writes(r) - events(r) })},
		{"events per new Foo, whole control plane", "≤", 2, median(whole[ours], events)},
	}
	if restarts := r.Tables[results.Restart][ours]; len(restarts) > 0 {
		rest := latest(isolated, ours).Rest
		list = append(list,
			target{fmt.Sprintf("calls over %.0f s at rest", rest.Seconds), "≤", 0, summarize(rest.Calls.Total())},
			target{"writes after a restart with all Foos settled", "≤", 0, summarize(restarts[0].Calls.Writes())})
	}
	return list
}

func events(r results.Run) float64 {
	return (r.Calls["create events"] + r.Calls["patch events"]) / float64(r.Foos)
}

// ratios summarizes the ratio of two contenders in each round. The runs of a round are
// within minutes of each other, whereas a shared machine may be half as fast in the next
// round.
func ratios(a, b []results.Run, of figure) spread {
	var found []float64
	for round := range min(len(a), len(b)) {
		if of(a[round]) > 0 && of(b[round]) > 0 {
			found = append(found, of(a[round])/of(b[round]))
		}
	}
	return summarize(found...)
}

// median summarizes runs as if the median were the only measurement.
func median(runs []results.Run, of figure) spread {
	if len(runs) == 0 {
		return spread{}
	}
	return summarize(spreadOf(runs, of).Median)
}

// heaviest returns the highest ratio of our peak memory to that of another controller, of all
// numbers of objects.
func heaviest(tables ...results.Table) spread {
	var found []float64
	for _, table := range tables {
		for _, that := range slices.Concat(table[unlimited], table[onRuntime]) {
			for _, mine := range table[ours] {
				if that.Objects == mine.Objects {
					found = append(found, mine.PeakMiB/that.PeakMiB)
				}
			}
		}
	}
	if len(found) == 0 {
		return spread{}
	}
	return summarize(slices.Max(found))
}

// spread summarizes n measurements.
type spread struct {
	Median, min, max float64
	n                int
}

func summarize(values ...float64) spread {
	n := len(values)
	if n == 0 {
		return spread{}
	}
	slices.Sort(values)
	return spread{Median: (values[(n-1)/2] + values[n/2]) / 2, min: values[0], max: values[n-1], n: n}
}

// String formats the median, with minimum and maximum if there are several measurements.
func (s spread) String() string {
	switch s.n {
	case 0:
		return ""
	case 1:
		return number(s.Median)
	}
	return fmt.Sprintf("%s (%s–%s)", number(s.Median), number(s.min), number(s.max))
}

// figure is one of the figures of a run.
type figure func(results.Run) float64

func halfSeconds(r results.Run) float64    { return r.HalfSeconds }
func cpuSettled(r results.Run) float64     { return r.CPUSettled / float64(r.Foos) }
func settledSeconds(r results.Run) float64 { return r.SettledSeconds }
func peakMiB(r results.Run) float64        { return r.PeakMiB }
func writes(r results.Run) float64         { return r.Calls.Writes() / float64(r.Foos) }

func spreadOf(runs []results.Run, of figure) spread {
	var values []float64
	for _, run := range runs {
		values = append(values, of(run))
	}
	return summarize(values...)
}

// settled returns the runs that were measured longest after convergence. The others
// lack what happens later.
func settled(runs []results.Run) []results.Run {
	longest := spreadOf(runs, settledSeconds).max
	return slices.DeleteFunc(slices.Clone(runs), func(r results.Run) bool { return r.SettledSeconds < longest })
}

// row summarizes the runs of a contender.
type row struct {
	Name                                           string
	Foos                                           int
	PerSecond, PerSecondEvents, CPUConverged, Peak spread
	CPUSettled, Writes, Refused                    spread
	FirstSeconds, HalfSeconds, LastSeconds         spread
	settled                                        []results.Run
}

// rows summarizes the runs of each contender.
func rows(of results.Table) (all []row) {
	longest := longestSettled(of)
	for _, name := range names(of) {
		runs := of[name]
		withEvents := slices.DeleteFunc(slices.Clone(runs), func(r results.Run) bool { return r.EventSeconds == 0 })
		late, foos := settled(runs), float64(runs[0].Foos)
		r := row{
			Name: name, Foos: runs[0].Foos, settled: late,
			PerSecond:       spreadOf(runs, results.Run.PerSecond),
			PerSecondEvents: spreadOf(withEvents, results.Run.PerSecondEvents),
			CPUConverged:    spreadOf(runs, func(r results.Run) float64 { return r.CPUConverged / foos }), Peak: spreadOf(runs, peakMiB),
			Writes: spreadOf(late, writes), Refused: spreadOf(late, func(r results.Run) float64 { return float64(r.Refused) / foos }),
			FirstSeconds: spreadOf(runs, func(r results.Run) float64 { return r.FirstSeconds }),
			HalfSeconds:  spreadOf(runs, halfSeconds),
			LastSeconds:  spreadOf(runs, func(r results.Run) float64 { return r.Seconds }),
		}
		if late[0].SettledSeconds == longest { // otherwise not measured for as long as the others
			r.CPUSettled = spreadOf(late, cpuSettled)
		}
		all = append(all, r)
	}
	return all
}

// Calls summarizes the calls of a kind.
func (r row) Calls(kind string) spread {
	return spreadOf(r.settled, func(run results.Run) float64 { return run.Calls[kind] / float64(run.Foos) })
}

// latest returns a contender's run that was measured longest after convergence.
func latest(of results.Table, name string) (run results.Run) {
	for _, run := range settled(of[name]) {
		return run
	}
	return run
}

// longestSettled returns how many seconds after convergence contenders were measured.
func longestSettled(of results.Table) (longest float64) {
	for _, runs := range of {
		longest = max(longest, spreadOf(runs, settledSeconds).max)
	}
	return longest
}

// kinds returns the kinds of all calls of some runs.
func kinds(of results.Table) []string {
	found := map[string]bool{}
	for _, runs := range of {
		for _, run := range runs {
			for kind := range run.Calls {
				found[kind] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// number formats a value with three significant digits, or without decimals.
func number(value float64) string {
	if value >= 999.5 {
		return strconv.FormatFloat(value, 'f', 0, 64)
	}
	return strconv.FormatFloat(value, 'g', 3, 64)
}

// count formats calls per Foo. It distinguishes few from none.
func count(calls spread) string {
	if calls.Median > 0 && calls.Median < 0.005 {
		return "< 0.01"
	}
	return strconv.FormatFloat(math.Round(calls.Median*100)/100, 'f', -1, 64)
}

// seconds formats a time, which is 0 if it was too long to be measured.
func seconds(s float64) string {
	if s == 0 {
		return "too long"
	}
	return number(s)
}

// perObject returns the KiB of peak memory for each object, compared with the first run.
func perObject(run results.Run, all []results.Run) string {
	if run.Objects == all[0].Objects {
		return ""
	}
	return number((run.PeakMiB - all[0].PeakMiB) * 1024 / float64(run.Objects-all[0].Objects))
}
