// SPDX-License-Identifier: Apache-2.0

// The targets, and whether measurements reach them.

package report

import (
	"fmt"
	"math"
	"slices"

	"example.com/sample-controller/test/bench/internal/measure"
	"example.com/sample-controller/test/bench/internal/results"
)

// target is a figure to reach.
type target struct {
	Figure string
	// sign is what the figure has to be, compared with the bound: ≥, ≤ or <.
	sign  string
	bound float64
	// got is the measured figure: the ratio of each round, or one value. It has no measurement
	// if the run lacks one that the figure needs.
	Got spread
	// table is the table, or the attack, that more rounds of would decide it, or "".
	table string
}

// Bound formats what to reach.
func (t target) Bound() string {
	if t.sign == "≤" && t.bound == 0 {
		return "0"
	}
	return t.sign + " " + number(t.bound)
}

// The verdicts on a target.
const (
	met         = "met"
	missed      = "**missed**"
	undecided   = "not decided"
	notMeasured = "not measured"
)

// Verdict says whether the figure was reached. It is not decided if the bound is within the
// interval of the median.
func (t target) Verdict() string {
	low, high := t.Got.interval()
	switch {
	case t.Got.n() == 0:
		return notMeasured
	case t.reaches(low) && t.reaches(high):
		return met
	case !t.reaches(low) && !t.reaches(high):
		return missed
	}
	return undecided
}

func (t target) reaches(value float64) bool {
	switch t.sign {
	case "≥":
		return value >= t.bound
	case "<":
		return value < t.bound
	}
	return value <= t.bound
}

// Undecided reports whether more rounds of a table might decide a target.
func Undecided(r *results.Results, table string) bool {
	return slices.ContainsFunc(targets(r), func(t target) bool { return t.table == table && t.Verdict() == undecided })
}

// targets returns all targets, with the figures of a run of the benchmark.
func targets(r *results.Results) []target {
	compare := func(figure, table, other, sign string, bound float64, of figure) target {
		mine, theirs := r.Tables[table][ours], r.Tables[table][other]
		return target{figure + " / " + other, sign, bound, ratios(mine, theirs, of), table}
	}
	whole, rests := r.Tables[results.Whole], settled(r.Tables[results.Installed])
	most := func(figure string, bound float64, got spread) target {
		t := target{Figure: figure, sign: "≤", bound: bound}
		if len(got) > 0 {
			t.Got = spread{slices.Max(got)}
		}
		return t
	}
	list := []target{
		compare("CPU per Foo until the last has converged", results.Bare, bareSame, "≤", 1.5, cpuConverged),
		{"CPU per Foo with the minute after / " + unlimited, "≤", 0.6, ratios(rests[ours], rests[unlimited], cpuSettled), results.Installed},
		compare("throughput", results.Bare, bareSame, "≥", 0.75, results.Run.PerSecond),
		compare("throughput", results.Installed, unlimited, "≥", 0.75, results.Run.PerSecond),
		compare("the same, as with go run", results.GoRun, unlimited, "≥", 0.75, results.Run.PerSecond),
		compare("throughput", results.Installed, onRuntime, "≥", 0.75, results.Run.PerSecond),
		{"throughput / upstream", "≥", 30, ratios(r.Tables[results.Bare][ours], r.Tables[results.Bare]["upstream"], results.Run.PerSecond), ""},
		compare("time until half of the Foos are available, whole control plane", results.Whole, unlimited, "<", 1, halfSeconds),
		compare("the same", results.Whole, onRuntime, "≤", 1.25, halfSeconds),
		most("writes per new Foo without events, whole control plane", 3,
			spreadOf(whole[ours], func(r results.Run) float64 { return writes(r) - events(r) })),
		most("events per new Foo, whole control plane", 2, spreadOf(whole[ours], events)),
		{"peak memory / the lighter of the others, from 1,000 settled Foos on", "≤", 1.1,
			heaviest(1000, r.Tables[results.Settled], r.Tables[results.Large]), ""},
		{"the same, from 10,000 on", "<", 1, heaviest(10000, r.Tables[results.Settled], r.Tables[results.Large]), ""},
		compare("peak memory while Foos converge beside as many foreign Deployments", results.Peak, unlimited, "<", 1, peakMiB),
	}
	list = append(list,
		most("calls in the minute after", 0, spreadOf(rests[ours], func(r results.Run) float64 { return r.Rest.Calls.Total() })),
		most("writes after a restart with all Foos settled", 0,
			spreadOf(r.Tables[results.Restart][ours], func(r results.Run) float64 { return r.Calls.Writes() })))
	for _, attack := range measure.Attacks {
		limit := 3.0
		if attack.Name == measure.Hanging {
			limit = 20 // nothing shows beforehand that a call will hang
		}
		if attack.Name != measure.Idle {
			list = append(list, target{"wait of 99% of a tenant's Foos beside " + attack.Name + " / beside nothing", "≤", limit, timesIdle(r, attack.Name), attack.Name})
		}
	}
	return list
}

func events(r results.Run) float64 {
	return (r.Calls["create events"] + r.Calls["patch events"]) / float64(r.Foos)
}

// ratios returns the ratio of two contenders in each round.
func ratios(a, b []results.Run, of figure) (found spread) {
	for _, mine := range a {
		for _, theirs := range b {
			if mine.Round == theirs.Round && mine.Objects == theirs.Objects && of(mine) > 0 && of(theirs) > 0 {
				found = append(found, of(mine)/of(theirs))
			}
		}
	}
	return found
}

// heaviest returns the ratios of our peak memory to that of the lighter of the other
// controllers, at the number of objects where the median is highest, of those that are not
// fewer than some number.
func heaviest(from int, tables ...results.Table) (worst spread) {
	for _, table := range tables {
		for _, other := range []string{unlimited, onRuntime} {
			byObjects := map[int][]results.Run{}
			for _, mine := range table[ours] {
				byObjects[mine.Objects] = append(byObjects[mine.Objects], mine)
			}
			for objects, mine := range byObjects {
				if found := ratios(mine, table[other], peakMiB); objects >= from && len(found) > 0 && found.Median() > worst.Median() {
					worst = found
				}
			}
		}
	}
	return worst
}

// spread holds measurements of the same.
type spread []float64

func (s spread) n() int { return len(s) }

// Median returns the median, or 0 if there is no measurement.
func (s spread) Median() float64 {
	if len(s) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(s))
	return (sorted[(len(s)-1)/2] + sorted[len(s)/2]) / 2
}

// interval returns the order statistics between which the median is with a probability of 95%:
// whatever the distribution, a measurement is above it half of the time. With fewer than six
// measurements, which are too few for that, these are the minimum and the maximum.
func (s spread) interval() (low, high float64) {
	if len(s) == 0 {
		return 0, 0
	}
	sorted := slices.Sorted(slices.Values(s))
	outside, tail := 0, math.Pow(0.5, float64(len(s))) // the probability that at most outside are below
	for choose := 1.0; ; outside++ {
		choose *= float64(len(s)-outside) / float64(outside+1)
		if tail += choose * math.Pow(0.5, float64(len(s))); 2*tail > 0.05 {
			break
		}
	}
	return sorted[outside], sorted[len(s)-1-outside]
}

// String formats the median, with the interval if there are several measurements.
func (s spread) String() string {
	switch s.n() {
	case 0:
		return ""
	case 1:
		return number(s[0])
	}
	low, high := s.interval()
	return fmt.Sprintf("%s (%s–%s)", number(s.Median()), number(low), number(high))
}
