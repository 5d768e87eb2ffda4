// SPDX-License-Identifier: Apache-2.0

// Figures: medians of trials, and numbers as text.

package report

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"example.com/sample-controller/test/bench/internal/results"
	"example.com/sample-controller/test/bench/internal/stats"
)

// spread summarizes one figure of trials.
func spread(trials []results.Trial, figure func(results.Trial) float64) stats.Spread {
	values := make([]float64, len(trials))
	for i, trial := range trials {
		values[i] = figure(trial)
	}
	return stats.Of(values...)
}

func perSecond(t results.Trial) float64       { return t.PerSecond }
func perSecondEvents(t results.Trial) float64 { return t.PerSecondEvents }

func firstSeconds(t results.Trial) float64 { return t.FirstSeconds }
func halfSeconds(t results.Trial) float64  { return t.HalfSeconds }
func lastSeconds(t results.Trial) float64  { return t.Seconds }
func othersWrites(t results.Trial) float64 { return t.OthersWrites }

func cpuConverged(t results.Trial) float64 { return t.CPUConverged }
func cpuSettled(t results.Trial) float64   { return t.CPUSettled }
func peakMiB(t results.Trial) float64      { return t.PeakMiB }

// settled returns the trials that were measured longest after convergence. The others
// lack what happens later.
func settled(trials []results.Trial) []results.Trial {
	longest := 0.0
	for _, trial := range trials {
		longest = max(longest, trial.SettledSeconds)
	}
	return slices.DeleteFunc(slices.Clone(trials), func(trial results.Trial) bool { return trial.SettledSeconds < longest })
}

// withEvents returns the trials in which each Foo had its event while it was measured.
func withEvents(trials []results.Trial) []results.Trial {
	return slices.DeleteFunc(slices.Clone(trials), func(trial results.Trial) bool { return trial.PerSecondEvents == 0 })
}

// number formats a value with at most three significant digits.
func number(value float64) string {
	if value == 0 {
		return "0"
	}
	digits := max(0, 2-int(math.Floor(math.Log10(math.Abs(value)))))
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
	return strings.TrimSuffix(strings.TrimRight(strconv.FormatFloat(value, 'f', 2, 64), "0"), ".")
}

// ranged formats a median with minimum and maximum.
func ranged(s stats.Spread) string {
	switch s.N {
	case 0:
		return ""
	case 1:
		return number(s.Median)
	}
	return fmt.Sprintf("%s (%s to %s)", number(s.Median), number(s.Min), number(s.Max))
}
