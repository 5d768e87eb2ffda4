// SPDX-License-Identifier: Apache-2.0

// Tests of the summaries.

package stats

import (
	"testing"
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
