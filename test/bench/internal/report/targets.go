// SPDX-License-Identifier: Apache-2.0

// Targets: the figures to reach.

package report

import (
	"fmt"
	"strings"

	"example.com/sample-controller/test/bench/internal/results"
	"example.com/sample-controller/test/bench/internal/stats"
)

// Target is a figure to reach.
type Target struct {
	Figure string
	// AtLeast is true if more is better. Bound is the figure to reach, Got the measured
	// one.
	AtLeast    bool
	Bound, Got float64
	// Below is true if less is better, and the bound itself is not enough.
	Below bool
	// Measured is false if the run lacks a measurement that the figure needs.
	Measured bool
	// Range is the range of the figure over the rounds, if there are rounds.
	Range stats.Spread
}

// Met reports whether the figure was reached.
func (t Target) Met() bool {
	if t.AtLeast {
		return t.Measured && t.Got >= t.Bound
	}
	return t.Measured && (t.Got < t.Bound || t.Got == t.Bound && !t.Below)
}

const ours = "ours"

// Targets returns all targets, with the figures of a run.
func Targets(r *results.Results) []Target {
	throughput := func(figure string, bound float64, other string) Target {
		return paired(figure, true, bound, r.Isolated[ours], r.Isolated[other], perSecond)
	}
	cpu := func(figure string, bound float64, other string) Target {
		return paired(figure, false, bound, settled(r.Isolated[ours]), settled(r.Isolated[other]), cpuSettled)
	}
	whole := settled(r.Whole[ours])
	rest, rested := r.Rest[ours]
	restart, restarted := r.Restart[ours]
	return []Target{
		throughput("throughput / bare loop with the same writes and watches", 0.95, "bare-same-writes"),
		paired("throughput including events / bare loop with the same writes and watches", true, 0.95, r.Isolated[ours], r.Isolated["bare-same-writes"], perSecondEvents),
		throughput("throughput / bare loop, no watch, no event", 0.80, "bare"),
		throughput("throughput / upstream without limiter", 1.15, "upstream-unlimited"),
		throughput("throughput / controller-runtime", 1.65, "controller-runtime"),
		throughput("throughput / upstream as shipped", 50, "upstream"),
		cpu(fmt.Sprintf("CPU per Foo to %.0f s after convergence / upstream without limiter", settledSeconds(r)), 0.40, "upstream-unlimited"),
		cpu("CPU per Foo, the same / controller-runtime", 0.60, "controller-runtime"),
		lightest("peak memory / each other controller, at each number of settled Foos", settledWeights(r)),
		lightest("peak memory / each other controller, at each number of foreign Deployments", foreignWeights(r)),
		lightest(fmt.Sprintf("peak memory, %d Foos beside as many foreign Deployments / upstream without limiter", peakFoos(r)), peakWeights(r)),
		paired("throughput with the whole control plane / upstream without limiter", true, 1.1,
			r.Whole[ours], r.Whole["upstream-unlimited"], perSecond),
		paired("time until half of the Foos are available, whole control plane / upstream without limiter", false, 0.7,
			r.Whole[ours], r.Whole["upstream-unlimited"], halfSeconds),
		counted("writes per new Foo without events, whole control plane", 3, spread(whole, writesButEvents).Median, len(whole) > 0),
		counted("events per new Foo, whole control plane", 2, spread(whole, events).Median, len(whole) > 0),
		counted(fmt.Sprintf("calls over %.0f s at rest", rest.Seconds), 0, results.Total(rest.Calls), rested),
		counted("writes after a restart with all Foos settled", 0, results.Writes(restart.Calls), restarted),
	}
}

// paired returns a target whose figure is the median of the ratios of the rounds.
func paired(figure string, atLeast bool, bound float64, a, b []results.Trial, of func(results.Trial) float64) Target {
	ratios := roundRatios(a, b, of)
	return Target{Figure: figure, AtLeast: atLeast, Bound: bound, Got: ratios.Median, Measured: ratios.N > 0, Range: ratios}
}

// roundRatios returns the ratio of two contenders in each round. The trials of a round
// run within minutes of each other, whereas a shared machine may be half as fast in the
// next round.
func roundRatios(a, b []results.Trial, of func(results.Trial) float64) stats.Spread {
	var ratios []float64
	for round := range min(len(a), len(b)) {
		if of(a[round]) > 0 && of(b[round]) > 0 {
			ratios = append(ratios, of(a[round])/of(b[round]))
		}
	}
	return stats.Of(ratios...)
}

// counted returns a target for a number of which less is better.
func counted(figure string, bound, got float64, measured bool) Target {
	return Target{Figure: figure, Bound: bound, Got: got, Measured: measured}
}

func events(t results.Trial) float64 { return results.WritesOf(t.Calls, "events") }

func writesButEvents(t results.Trial) float64 { return results.Writes(t.Calls) - events(t) }

func settledSeconds(r *results.Results) float64 {
	for _, trial := range settled(r.Isolated[ours]) {
		return trial.SettledSeconds
	}
	return 0
}

func peakFoos(r *results.Results) int {
	for _, trial := range r.Memory[ours].Peak {
		return trial.Foos
	}
	return 0
}

func targetsTable(targets []Target) string {
	rows := make([][]string, 0, len(targets))
	for _, target := range targets {
		sign, got, verdict := "≤", "", "not measured"
		switch {
		case target.AtLeast:
			sign = "≥"
		case target.Below:
			sign = "<"
		}
		if target.Measured {
			got, verdict = number(target.Got), "**missed**"
			if target.Range.N > 1 {
				got = ranged(target.Range)
			}
		}
		if target.Met() {
			verdict = "met"
		}
		rows = append(rows, []string{target.Figure, fmt.Sprintf("%s %s", sign, number(target.Bound)), got, verdict})
	}
	return strings.ReplaceAll(table([]string{"figure", "target", "measured", ""}, rows), "≤ 0 |", "0 |")
}
