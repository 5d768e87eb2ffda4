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
	// Reason explains why the target is missed, if that is known.
	Reason string
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
	fairness := r.Fairness[ours]
	return []Target{
		throughput("throughput / bare loop with the same writes and watches", 0.95, "bare-same-writes"),
		paired("throughput including events / bare loop with the same writes and watches", true, 0.95, r.Isolated[ours], r.Isolated["bare-same-writes"], perSecondEvents).because(reasonEvents(r)),
		throughput("throughput / bare loop, no watch, no event", 0.80, "bare"),
		throughput("throughput / upstream without limiter", 1.15, "upstream-unlimited").because(reasonThroughput(r, "upstream-unlimited")),
		throughput("throughput / controller-runtime", 1.65, "controller-runtime").because(reasonThroughput(r, "controller-runtime")),
		throughput("throughput / upstream as shipped", 50, "upstream").because(reasonBesideLimiter(r)),
		ratio("best throughput in a sweep / best of the bare loop", true, 0.75, best(r, ours), best(r, "bare")),
		cpu(fmt.Sprintf("CPU per Foo to %.0f s after convergence / upstream without limiter", settledSeconds(r)), 0.40, "upstream-unlimited").because(reasonCPU(r, "upstream-unlimited")),
		cpu("CPU per Foo, the same / controller-runtime", 0.60, "controller-runtime").because(reasonCPU(r, "controller-runtime")),
		lightest("peak memory / each other controller, at each number of settled Foos", settledWeights(r), reasonStart),
		lightest("peak memory / each other controller, at each number of foreign Deployments", foreignWeights(r), reasonStart),
		lightest(fmt.Sprintf("peak memory, %d Foos beside as many foreign Deployments / upstream without limiter", peakFoos(r)), peakWeights(r), reasonMemory(r)),
		paired("throughput with the whole control plane / upstream without limiter", true, 1.1,
			r.Whole[ours], r.Whole["upstream-unlimited"], perSecond).because(reasonWhole(r, "upstream-unlimited")),
		paired("time until half of the Foos are available, whole control plane / upstream without limiter", false, 0.7,
			r.Whole[ours], r.Whole["upstream-unlimited"], halfSeconds),
		counted("writes per new Foo without events, whole control plane", 3, spread(whole, writesButEvents).Median, len(whole) > 0),
		counted("events per new Foo, whole control plane", 2, spread(whole, events).Median, len(whole) > 0),
		counted(fmt.Sprintf("calls over %.0f s at rest", rest.Seconds), 0, results.Total(rest.Calls), rested),
		counted("writes after a restart with all Foos settled", 0, results.Writes(restart.Calls), restarted),
		ratio("p99 from Foo acknowledged to Deployment created, 50 % load / without a controller", false, 2, half(r, ours).Created.P99, half(r, "bare").Created.P99).because(reasonLatency(r)),
		ratio(fmt.Sprintf("p99 of a single Foo while %d of another namespace wait / when idle", fairness.Backlog), false, 3, fairness.Busy.P99, fairness.Idle.P99).because(reasonFairness(r)),
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

// because returns the target with a reason.
func (t Target) because(reason string) Target {
	t.Reason = reason
	return t
}

// counted returns a target for a number of which less is better.
func counted(figure string, bound, got float64, measured bool) Target {
	return Target{Figure: figure, Bound: bound, Got: got, Measured: measured}
}

// ratio returns a target whose figure is a/b. It is not measured if one of them is not.
func ratio(figure string, atLeast bool, bound, a, b float64) Target {
	t := Target{Figure: figure, AtLeast: atLeast, Bound: bound, Measured: a > 0 && b > 0}
	if t.Measured {
		t.Got = a / b
	}
	return t
}

func events(t results.Trial) float64 { return results.WritesOf(t.Calls, "events") }

func writesButEvents(t results.Trial) float64 { return results.Writes(t.Calls) - events(t) }

// best returns the highest throughput of a sweep.
func best(r *results.Results, name string) float64 {
	highest := 0.0
	for _, trials := range r.Sweep[name] {
		highest = max(highest, spread(trials, perSecond).Median)
	}
	return highest
}

// half returns the measurement at half the load.
func half(r *results.Results, name string) results.Load {
	for _, load := range r.Latency[name] {
		if load.Share == 0.5 {
			return load
		}
	}
	return results.Load{}
}

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

// missedList lists the reasons of the missed targets.
func missedList(targets []Target) string {
	var lines []string
	for _, target := range targets {
		if target.Measured && !target.Met() && target.Reason != "" {
			lines = append(lines, fmt.Sprintf("- **%s**: %s", target.Figure, target.Reason))
		}
	}
	return strings.Join(lines, "\n")
}
