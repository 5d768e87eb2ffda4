// SPDX-License-Identifier: Apache-2.0

// Tests of the summaries.

package stats

import (
	"testing"
	"time"
)

func TestOf(t *testing.T) {
	for name, test := range map[string]struct {
		values []float64
		want   Spread
	}{
		"nothing":             {nil, Spread{}},
		"one":                 {[]float64{7}, Spread{Median: 7, Min: 7, Max: 7, N: 1}},
		"an odd number":       {[]float64{9, 1, 4}, Spread{Median: 4, Min: 1, Max: 9, N: 3}},
		"an even number":      {[]float64{9, 1, 4, 6}, Spread{Median: 5, Min: 1, Max: 9, N: 4}},
		"an outlier":          {[]float64{5, 5, 5, 5, 1000}, Spread{Median: 5, Min: 5, Max: 1000, N: 5}},
		"in descending order": {[]float64{3, 2, 1}, Spread{Median: 2, Min: 1, Max: 3, N: 3}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Of(test.values...); got != test.want {
				t.Errorf("Of(%v) = %+v, want %+v", test.values, got, test.want)
			}
		})
	}
}

func TestLatencyOf(t *testing.T) {
	hundred := make([]time.Duration, 100)
	for i := range hundred {
		hundred[i] = time.Duration(100-i) * time.Millisecond
	}
	for name, test := range map[string]struct {
		durations []time.Duration
		want      Latency
	}{
		"nothing":            {nil, Latency{}},
		"one":                {hundred[:1], Latency{P50: 100, P99: 100, Max: 100, N: 1}},
		"a hundred":          {hundred, Latency{P50: 50, P99: 99, Max: 100, N: 100}},
		"less than a tenth":  {[]time.Duration{250 * time.Microsecond}, Latency{P50: 0.25, P99: 0.25, Max: 0.25, N: 1}},
		"one among the many": {append([]time.Duration{time.Second}, hundred...), Latency{P50: 51, P99: 100, Max: 1000, N: 101}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := LatencyOf(test.durations); got != test.want {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
}
