// SPDX-License-Identifier: Apache-2.0

// The tables of the page.

package report

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"example.com/sample-controller/test/bench/internal/results"
)

func trialsTable(of map[string][]results.Trial) string {
	seconds := 0.0
	for _, trials := range of {
		for _, trial := range trials {
			seconds = max(seconds, trial.SettledSeconds)
		}
	}
	head := []string{"", "waiting Foos", "Foos/s", "Foos/s with an event each", "ms of CPU per Foo", fmt.Sprintf("ms of CPU per Foo, %.0f s later", seconds), "peak MiB", "writes per Foo"}
	var rows [][]string
	for _, name := range contenders(of) {
		trials := of[name]
		late := settled(trials)
		cpuLater := ranged(spread(late, cpuSettled))
		if late[0].SettledSeconds < seconds {
			cpuLater = "" // not measured for as long as the others
		}
		rows = append(rows, []string{
			name, strconv.Itoa(trials[0].Foos), ranged(spread(trials, perSecond)), ranged(spread(withEvents(trials), perSecondEvents)), ranged(spread(trials, cpuConverged)), cpuLater,
			ranged(spread(trials, peakMiB)), count(spread(late, func(t results.Trial) float64 { return results.Writes(t.Calls) }).Median),
		})
	}
	return table(head, rows)
}

// arrivalsTable shows when waiting Foos converge, and how much others write meanwhile.
func arrivalsTable(of map[string][]results.Trial) string {
	var rows [][]string
	for _, name := range contenders(of) {
		trials := of[name]
		rows = append(rows, []string{
			name, ranged(spread(trials, firstSeconds)), ranged(spread(trials, halfSeconds)), ranged(spread(trials, lastSeconds)),
			count(spread(trials, othersWrites).Median),
		})
	}
	return table([]string{"", "s until the first is available", "half of them", "all", "writes of all others per Foo"}, rows)
}

// callsTable shows the calls per Foo of each contender, by kind.
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
	row := func(kind string, figure func(results.Trial) float64) {
		cells := []string{kind}
		for _, name := range names {
			cells = append(cells, count(spread(settled(of[name]), figure).Median))
		}
		rows = append(rows, cells)
	}
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		row(kind, func(t results.Trial) float64 { return t.Calls[kind] })
	}
	row("refused writes", func(t results.Trial) float64 { return t.Refused })
	return table(append([]string{"calls per Foo"}, names...), rows)
}

func quietTable(r *results.Results) string {
	var rows [][]string
	seconds, foos := 0.0, 0
	for _, name := range contenders(r.Rest) {
		rest, restart := r.Rest[name], r.Restart[name]
		seconds, foos = rest.Seconds, restart.Foos
		rows = append(rows, []string{
			name, number(results.Total(rest.Calls)), number(rest.CPUMilliseconds),
			number(restart.ReadySeconds), number(results.Writes(restart.Calls)),
		})
	}
	return table([]string{
		"", fmt.Sprintf("calls in %.0f s at rest", seconds), "ms of CPU in that time",
		fmt.Sprintf("s from a restart with %d settled Foos until a new Foo has converged", foos), "writes after the restart",
	}, rows)
}

func memoryTable(r *results.Results) string {
	var rows [][]string
	for _, name := range contenders(r.Memory) {
		memory := r.Memory[name]
		for _, kind := range []struct {
			what     string
			holdings []results.Holding
		}{{"settled Foos", memory.Foos}, {"foreign Deployments", memory.Foreign}} {
			for i, holding := range kind.holdings {
				each := ""
				if i > 0 {
					none := kind.holdings[0]
					each = number((holding.PeakMiB - none.PeakMiB) * 1024 / float64(holding.Objects-none.Objects))
				}
				rows = append(rows, []string{name + ", " + kind.what, strconv.Itoa(holding.Objects), number(holding.PeakMiB), number(holding.ResidentMiB), each})
			}
		}
	}
	return table([]string{"", "objects", "peak MiB", "MiB at rest", "KiB of peak per object"}, rows)
}
