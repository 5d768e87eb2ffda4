// SPDX-License-Identifier: Apache-2.0

// Package stats summarizes repeated measurements.
package stats

import (
	"slices"
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
