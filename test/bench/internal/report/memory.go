// SPDX-License-Identifier: Apache-2.0

// Memory beside that of the other controllers.

package report

import (
	"fmt"

	"example.com/sample-controller/test/bench/internal/results"
)

// peers are the other controllers whose memory is measured.
var peers = []string{"upstream-unlimited", "controller-runtime"}

// weight is our peak memory beside that of a peer, at one size.
type weight struct {
	size       string
	peer       string
	mine, that float64
}

// settledWeights compares at each number of settled Foos.
func settledWeights(r *results.Results) []weight {
	all := weights(r, "settled Foos", func(m results.Memory) []results.Holding { return m.Foos })
	mine, measured := r.Large.Starts[ours]
	for _, peer := range peers {
		if start, both := r.Large.Starts[peer]; measured && both {
			all = append(all, weight{fmt.Sprintf("%d settled Foos", r.Large.Foos), peer, mine.PeakMiB, start.PeakMiB})
		}
	}
	return all
}

// foreignWeights compares at each number of foreign Deployments.
func foreignWeights(r *results.Results) []weight {
	return weights(r, "foreign Deployments", func(m results.Memory) []results.Holding { return m.Foreign })
}

func weights(r *results.Results, what string, of func(results.Memory) []results.Holding) (all []weight) {
	for _, mine := range of(r.Memory[ours]) {
		for _, peer := range peers {
			for _, that := range of(r.Memory[peer]) {
				if that.Objects == mine.Objects {
					all = append(all, weight{fmt.Sprintf("%d %s", mine.Objects, what), peer, mine.PeakMiB, that.PeakMiB})
				}
			}
		}
	}
	return all
}

// peakWeights compares while Foos converge beside as many foreign Deployments.
func peakWeights(r *results.Results) (all []weight) {
	size := fmt.Sprintf("%d Foos that converge beside as many foreign Deployments", peakFoos(r))
	for _, peer := range peers {
		mine, that := spread(r.Memory[ours].Peak, peakMiB), spread(r.Memory[peer].Peak, peakMiB)
		if mine.N > 0 && that.N > 0 {
			all = append(all, weight{size, peer, mine.Median, that.Median})
		}
	}
	return all
}

// lightest returns the target to need less memory than each peer at each size. Its figure is
// the highest of the ratios.
func lightest(figure string, all []weight) Target {
	t := Target{Figure: figure, Bound: 1, Below: true, Measured: len(all) > 0}
	for _, w := range all {
		t.Got = max(t.Got, w.mine/w.that)
	}
	return t
}
