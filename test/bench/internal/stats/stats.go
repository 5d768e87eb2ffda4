// SPDX-License-Identifier: Apache-2.0

// Package stats summarizes repeated measurements.
package stats

import (
	"math"
	"slices"
	"time"
)

// Spread summarizes a repeated measurement.
type Spread struct {
	Median, Min, Max float64
	// N is the number of measurements.
	N int
}

// Of summarizes values.
func Of(values ...float64) Spread {
	if len(values) == 0 {
		return Spread{}
	}
	sorted := slices.Sorted(slices.Values(values))
	return Spread{Median: median(sorted), Min: sorted[0], Max: sorted[len(sorted)-1], N: len(sorted)}
}

func median(sorted []float64) float64 {
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}

// Latency summarizes how long something took, in milliseconds.
type Latency struct {
	P50, P99, Max float64
	N             int
}

// LatencyOf summarizes durations. A percentile is the smallest duration that is not
// exceeded by that share of them.
func LatencyOf(durations []time.Duration) Latency {
	if len(durations) == 0 {
		return Latency{}
	}
	sorted := slices.Sorted(slices.Values(durations))
	rank := func(share float64) float64 {
		return Milliseconds(sorted[max(0, int(math.Ceil(share*float64(len(sorted))))-1)])
	}
	return Latency{P50: rank(0.50), P99: rank(0.99), Max: rank(1), N: len(sorted)}
}

// Milliseconds returns a duration as a number of milliseconds.
func Milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
