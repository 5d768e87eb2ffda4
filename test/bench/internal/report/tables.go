// SPDX-License-Identifier: Apache-2.0

// The tables of the page, and how they show figures.

package report

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"example.com/sample-controller/test/bench/internal/results"
)

// spread summarizes n measurements.
type spread struct {
	median, min, max float64
	n                int
}

func summarize(values ...float64) spread {
	n := len(values)
	if n == 0 {
		return spread{}
	}
	sorted := slices.Sorted(slices.Values(values))
	return spread{median: (sorted[(n-1)/2] + sorted[n/2]) / 2, min: sorted[0], max: sorted[n-1], n: n}
}

// figure is one of the figures of a trial.
type figure func(results.Trial) float64

func perSecond(t results.Trial) float64       { return t.PerSecond }
func perSecondEvents(t results.Trial) float64 { return t.PerSecondEvents }
func firstSeconds(t results.Trial) float64    { return t.FirstSeconds }
func halfSeconds(t results.Trial) float64     { return t.HalfSeconds }
func lastSeconds(t results.Trial) float64     { return t.Seconds }
func cpuConverged(t results.Trial) float64    { return t.CPUConverged }
func cpuSettled(t results.Trial) float64      { return t.CPUSettled }
func peakMiB(t results.Trial) float64         { return t.PeakMiB }
func refused(t results.Trial) float64         { return t.Refused }
func writes(t results.Trial) float64          { return results.Writes(t.Calls) }

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
	longest := spreadOf(trials, func(t results.Trial) float64 { return t.SettledSeconds }).max
	return slices.DeleteFunc(slices.Clone(trials), func(t results.Trial) bool { return t.SettledSeconds < longest })
}

// settledSeconds returns how long after convergence the contenders were measured.
func settledSeconds(of map[string][]results.Trial) (longest float64) {
	for _, trials := range of {
		for _, trial := range trials {
			longest = max(longest, trial.SettledSeconds)
		}
	}
	return longest
}

// number formats a value with at most three significant digits.
func number(value float64) string {
	if value == 0 {
		return "0"
	}
	return decimal(value, max(0, 2-int(math.Floor(math.Log10(math.Abs(value))))))
}

// decimal formats a value with at most some digits after the point.
func decimal(value float64, digits int) string {
	text := strconv.FormatFloat(value, 'f', digits, 64)
	if strings.Contains(text, ".") {
		text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
	}
	return text
}

// count formats calls per Foo. It distinguishes few from none.
func count(value float64) string {
	if value > 0 && value < 0.005 {
		return "< 0.01"
	}
	return decimal(value, 2)
}

// seconds formats a time, which is 0 if it was too long to be measured.
func seconds(s float64) string {
	if s == 0 {
		return "too long"
	}
	return number(s)
}

// String formats a median, with minimum and maximum if there are several measurements.
func (s spread) String() string {
	switch s.n {
	case 0:
		return ""
	case 1:
		return number(s.median)
	}
	return fmt.Sprintf("%s (%s to %s)", number(s.median), number(s.min), number(s.max))
}

func trialsTable(of map[string][]results.Trial) string {
	after := settledSeconds(of)
	var rows [][]string
	for _, name := range contenders(of) {
		trials := of[name]
		withEvents := slices.DeleteFunc(slices.Clone(trials), func(t results.Trial) bool { return t.PerSecondEvents == 0 })
		late := settled(trials)
		cpuLater := spreadOf(late, cpuSettled).String()
		if late[0].SettledSeconds < after {
			cpuLater = "" // not measured for as long as the others
		}
		rows = append(rows, []string{
			name, strconv.Itoa(trials[0].Foos), spreadOf(trials, perSecond).String(), spreadOf(withEvents, perSecondEvents).String(),
			spreadOf(trials, cpuConverged).String(), cpuLater, spreadOf(trials, peakMiB).String(), count(spreadOf(late, writes).median),
		})
	}
	return table([]string{
		"", "waiting Foos", "Foos/s", "Foos/s with an event each", "ms of CPU per Foo",
		fmt.Sprintf("ms of CPU per Foo, %.0f s later", after), "peak MiB", "writes per Foo",
	}, rows)
}

// arrivalsTable shows when waiting Foos converge.
func arrivalsTable(of map[string][]results.Trial) string {
	var rows [][]string
	for _, name := range contenders(of) {
		row := []string{name}
		for _, at := range []figure{firstSeconds, halfSeconds, lastSeconds} {
			row = append(row, spreadOf(of[name], at).String())
		}
		rows = append(rows, row)
	}
	return table([]string{"", "s until the first is available", "half of them", "all"}, rows)
}

// callsTable shows the calls of each kind that a contender makes for a Foo.
func callsTable(of map[string][]results.Trial) string {
	names := contenders(of)
	kinds := map[string]bool{}
	for _, trials := range of {
		for _, trial := range trials {
			for kind := range trial.Calls {
				kinds[kind] = true
			}
		}
	}
	var rows [][]string
	row := func(kind string, calls figure) {
		cells := []string{kind}
		for _, name := range names {
			cells = append(cells, count(spreadOf(settled(of[name]), calls).median))
		}
		rows = append(rows, cells)
	}
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		row(kind, func(t results.Trial) float64 { return t.Calls[kind] })
	}
	row("refused writes", refused)
	return table(append([]string{"calls per Foo"}, names...), rows)
}

func quietTable(r *results.Results) string {
	var rows [][]string
	for _, name := range contenders(r.Rest) {
		rest, restart := r.Rest[name], r.Restart[name]
		rows = append(rows, []string{
			name, number(results.Total(rest.Calls)), number(rest.CPUMilliseconds),
			number(restart.ReadySeconds), number(results.Writes(restart.Calls)),
		})
	}
	return table([]string{
		"", fmt.Sprintf("calls in %.0f s at rest", r.Rest[ours].Seconds), "ms of CPU in that time",
		fmt.Sprintf("s from a restart with %d settled Foos until a new Foo has converged", r.Restart[ours].Foos), "writes after the restart",
	}, rows)
}

func memoryTable(r *results.Results) string {
	var rows [][]string
	for _, name := range contenders(r.Memory.Foos) {
		for _, kind := range []struct {
			what     string
			holdings []results.Holding
		}{{"settled Foos", r.Memory.Foos[name]}, {"foreign Deployments", r.Memory.Foreign[name]}} {
			for i, holding := range kind.holdings {
				each := ""
				if i > 0 {
					none := kind.holdings[0]
					each = number((holding.PeakMiB - none.PeakMiB) * 1024 / float64(holding.Objects-none.Objects))
				}
				rows = append(rows, []string{
					name + ", " + kind.what, strconv.Itoa(holding.Objects), number(holding.PeakMiB), number(holding.ResidentMiB), each,
				})
			}
		}
	}
	return table([]string{"", "objects", "peak MiB", "MiB at rest", "KiB of peak per object"}, rows)
}

// largeTable shows the start of each program beside very many Foos.
func largeTable(r *results.Results) string {
	var rows [][]string
	for _, name := range contenders(r.Large.Starts) {
		start := r.Large.Starts[name]
		rows = append(rows, []string{
			name, seconds(start.ReadySeconds), seconds(start.PassSeconds), seconds(start.CPUSeconds),
			number(start.PeakMiB), number(start.ResidentMiB),
			number(start.Rest.CPUMilliseconds / 1000), decimal(results.Total(start.Rest.Calls), 0),
		})
	}
	return table([]string{
		"", "s until a new Foo has converged", "s until each has been synced", "s of CPU until then", "peak MiB", "MiB at rest",
		fmt.Sprintf("s of CPU in the next %.0f s", r.Large.Starts[ours].Rest.Seconds), "calls in that time",
	}, rows)
}
