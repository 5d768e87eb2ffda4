// SPDX-License-Identifier: Apache-2.0

// Figures: medians of runs, and numbers as text.

package report

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"

	"example.com/sample-controller/test/bench/internal/results"
)

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
	return fmt.Sprintf("%s (%s to %s)", number(s.Median), number(s.min), number(s.max))
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
