// SPDX-License-Identifier: Apache-2.0

// Figures: medians of trials, and numbers as text.

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

// figure is one of the figures of a trial.
type figure func(results.Trial) float64

func perSecond(t results.Trial) float64       { return t.PerSecond }
func perSecondEvents(t results.Trial) float64 { return t.PerSecondEvents }
func halfSeconds(t results.Trial) float64     { return t.HalfSeconds }
func cpuSettled(t results.Trial) float64      { return t.CPUSettled }
func settledSeconds(t results.Trial) float64  { return t.SettledSeconds }
func peakMiB(t results.Trial) float64         { return t.PeakMiB }
func writes(t results.Trial) float64          { return t.Calls.Writes() }

func spreadOf(trials []results.Trial, of figure) spread {
	var values []float64
	for _, trial := range trials {
		values = append(values, of(trial))
	}
	return summarize(values...)
}

// settled returns the trials that were measured longest after convergence. The others
// lack what happens later.
func settled(trials []results.Trial) []results.Trial {
	longest := spreadOf(trials, settledSeconds).max
	return slices.DeleteFunc(slices.Clone(trials), func(t results.Trial) bool { return t.SettledSeconds < longest })
}

// row summarizes the trials of a contender.
type row struct {
	Name                                           string
	Foos                                           int
	PerSecond, PerSecondEvents, CPUConverged, Peak spread
	CPUSettled, Writes, Refused                    spread
	FirstSeconds, HalfSeconds, LastSeconds         spread
	settled                                        []results.Trial
}

// rows summarizes the trials of each contender.
func rows(of map[string][]results.Trial) (all []row) {
	longest := longestSettled(of)
	for _, name := range names(of) {
		trials := of[name]
		withEvents := slices.DeleteFunc(slices.Clone(trials), func(t results.Trial) bool { return t.PerSecondEvents == 0 })
		late := settled(trials)
		r := row{
			Name: name, Foos: trials[0].Foos, settled: late,
			PerSecond: spreadOf(trials, perSecond), PerSecondEvents: spreadOf(withEvents, perSecondEvents),
			CPUConverged: spreadOf(trials, func(t results.Trial) float64 { return t.CPUConverged }), Peak: spreadOf(trials, peakMiB),
			Writes: spreadOf(late, writes), Refused: spreadOf(late, func(t results.Trial) float64 { return t.Refused }),
			FirstSeconds: spreadOf(trials, func(t results.Trial) float64 { return t.FirstSeconds }),
			HalfSeconds:  spreadOf(trials, halfSeconds),
			LastSeconds:  spreadOf(trials, func(t results.Trial) float64 { return t.Seconds }),
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
	return spreadOf(r.settled, func(t results.Trial) float64 { return t.Calls[kind] })
}

// longestSettled returns how many seconds after convergence contenders were measured.
func longestSettled(of map[string][]results.Trial) (longest float64) {
	for _, trials := range of {
		longest = max(longest, spreadOf(trials, settledSeconds).max)
	}
	return longest
}

// kinds returns the kinds of all calls of some trials.
func kinds(of map[string][]results.Trial) []string {
	found := map[string]bool{}
	for _, trials := range of {
		for _, trial := range trials {
			for kind := range trial.Calls {
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

// perObject returns the KiB of peak memory for each object, compared with the first holding.
func perObject(holding results.Holding, all []results.Holding) string {
	if holding == all[0] {
		return ""
	}
	return number((holding.PeakMiB - all[0].PeakMiB) * 1024 / float64(holding.Objects-all[0].Objects))
}
