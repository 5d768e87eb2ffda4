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

	"example.com/sample-controller/test/bench/internal/measure"
	"example.com/sample-controller/test/bench/internal/results"
)

// page is the template of the page.
//
//go:embed benchmarks.md.tmpl
var page string

// Write writes benchmarks.md into a directory, and a copy of the results into benchmarks/ in it.
// The page has the verdicts of hogs.json there, too.
func Write(r *results.Results, folder string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	hogs, err := results.Read(filepath.Join(folder, "benchmarks/hogs.json"))
	if err != nil {
		return err
	}
	text, err := render(r, hogs)
	if err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	if err := os.WriteFile(filepath.Join(folder, "benchmarks.md"), text, 0o644); err != nil {
		return err
	}
	return r.Write(filepath.Join(folder, "benchmarks/results.json"))
}

func render(r, hogs *results.Results) ([]byte, error) {
	loaded := targets(hogs)
	wait := func(attack, name string, of func(results.Wait) float64) string {
		return milliseconds(spreadOf(r.Waits[attack][name], of))
	}
	tmpl, err := template.New("page").Funcs(template.FuncMap{
		"targets": targets, "besideHogs": func(i int) string { return loaded[i].Verdict() }, "mostRounds": func() int { return MostRounds },
		"names": names, "figure": figureOf, "first": first, "kinds": kinds, "holdings": holdings, "perObject": perObject,
		"attacks": func() []measure.Attack { return measure.Attacks }, "contenders": func() []string { return contenders[:3] },
		"half":      func(attack, name string) string { return wait(attack, name, halfWait) },
		"most":      func(attack, name string) string { return wait(attack, name, mostWait) },
		"timesIdle": func(attack string) spread { return timesIdle(r, attack) },
		"number":    number, "count": count, "seconds": seconds, "thousandth": func(n float64) float64 { return n / 1000 },
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

// contenders are the names of all contenders, in the order of the tables.
var contenders = []string{ours, unlimited, onRuntime, "upstream", bareSame, "bare"}

// MostRounds is how often contenders are compared at most.
const MostRounds = 15

// names returns those of the contenders that a table has, in order.
func names(of results.Table) []string {
	return slices.DeleteFunc(slices.Clone(contenders), func(name string) bool { return len(of[name]) == 0 })
}

func halfWait(w results.Wait) float64 { return w.P50 }
func mostWait(w results.Wait) float64 { return w.P99 }

// timesIdle returns how long 99% of the Foos wait for ours beside an attack, compared with the
// median of that beside nothing.
func timesIdle(r *results.Results, attack string) (times spread) {
	idle := spreadOf(r.Waits[measure.Idle][ours], mostWait).Median()
	for _, wait := range r.Waits[attack][ours] {
		if idle > 0 {
			times = append(times, wait.P99/idle)
		}
	}
	return times
}

// figure is one of the figures of a run.
type figure func(results.Run) float64

func halfSeconds(r results.Run) float64  { return r.HalfSeconds }
func cpuConverged(r results.Run) float64 { return r.CPUConverged / float64(r.Foos) }
func cpuSettled(r results.Run) float64   { return r.CPUSettled / float64(r.Foos) }
func peakMiB(r results.Run) float64      { return r.PeakMiB }
func writes(r results.Run) float64       { return r.Calls.Writes() / float64(r.Foos) }

func spreadOf[T any](measured []T, of func(T) float64) (values spread) {
	for _, one := range measured {
		values = append(values, of(one))
	}
	return values
}

// settled returns the runs of a table that were also measured at rest. The others lack what
// happens later.
func settled(of results.Table) results.Table {
	found := results.Table{}
	for name, runs := range of {
		found[name] = slices.DeleteFunc(slices.Clone(runs), func(r results.Run) bool { return r.Rest.Seconds == 0 })
	}
	return found
}

// figureOf returns a figure of a contender's runs, by the name that the page uses: one of a
// time, or the calls of a kind per Foo.
func figureOf(of results.Table, name, figure string) spread {
	runs, late := of[name], settled(of)[name]
	ever := runs
	if len(late) > 0 { // what happens later belongs to it
		ever = late
	}
	switch figure {
	case "Foos/s":
		return spreadOf(runs, results.Run.PerSecond)
	case "CPU":
		return spreadOf(runs, cpuConverged)
	case "CPU later":
		return spreadOf(late, cpuSettled)
	case "MiB":
		return spreadOf(runs, peakMiB)
	case "writes":
		return spreadOf(ever, writes)
	case "rejected":
		return spreadOf(ever, func(r results.Run) float64 { return float64(r.Refused) / float64(r.Foos) })
	case "first":
		return spreadOf(runs, func(r results.Run) float64 { return r.FirstSeconds })
	case "half":
		return spreadOf(runs, halfSeconds)
	case "last":
		return spreadOf(runs, func(r results.Run) float64 { return r.Seconds })
	}
	return spreadOf(late, func(r results.Run) float64 { return r.Calls[figure] / float64(r.Foos) })
}

// first returns a contender's first run that was also measured at rest, or the first.
func first(of results.Table, name string) (run results.Run) {
	for _, run := range slices.Concat(settled(of)[name], of[name]) {
		return run
	}
	return run
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
	if calls.Median() > 0 && calls.Median() < 0.005 {
		return "< 0.01"
	}
	return strconv.FormatFloat(math.Round(calls.Median()*100)/100, 'f', -1, 64)
}

// seconds formats a time, which is 0 if it was too long to be measured.
func seconds(s float64) string {
	if s == 0 {
		return "too long"
	}
	return number(s)
}

// holdings returns the numbers of objects, in order.
func holdings(of results.Table) (sizes []int) {
	for _, run := range of[ours] {
		if !slices.Contains(sizes, run.Objects) {
			sizes = append(sizes, run.Objects)
		}
	}
	return sizes
}

// milliseconds formats the median of times in seconds.
func milliseconds(s spread) string {
	if s.n() == 0 {
		return ""
	}
	return number(s.Median() * 1000)
}

// perObject returns the median peak memory with a number of objects, and the KiB for each of
// them, compared with none.
func perObject(of results.Table, name string, objects int) string {
	peak := map[int]spread{}
	for _, run := range of[name] {
		peak[run.Objects] = append(peak[run.Objects], run.PeakMiB)
	}
	text := number(peak[objects].Median())
	if objects > 0 && len(peak[objects]) > 0 {
		text += fmt.Sprintf(" (%s)", number((peak[objects].Median()-peak[0].Median())*1024/float64(objects)))
	}
	return text
}
