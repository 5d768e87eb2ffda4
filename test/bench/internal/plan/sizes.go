// SPDX-License-Identifier: Apache-2.0

// Package plan defines the measurements of a run, their order and their sizes.
package plan

import "time"

// Sizes holds the numbers of objects, repetitions and durations.
type Sizes struct {
	// Foos wait in a trial; UpstreamFoos if it is upstream with its limiter, which
	// processes 5 in a second.
	Foos, UpstreamFoos int
	// Rounds is how often each trial is repeated. In the first SettledRounds, CPU and
	// calls are counted until Settle after convergence.
	Rounds, SettledRounds int
	Settle                time.Duration
	// Rest and Restart are how long calls are counted at rest and after a restart, in the
	// first round.
	Rest, Restart time.Duration
	// WholeFoos wait in each of WholeRounds trials with all components.
	WholeFoos, WholeRounds int
	// Few leaves out, except for throughput, all contenders that no target needs.
	Few bool
	// Holdings lists the numbers of objects at which memory is measured. Peak Foos
	// converge beside as many foreign Deployments.
	Holdings []int
	Peak     int
	// Large Foos are settled when programs start; CPU and calls are then counted for
	// LargeRest, two periods of the controllers' resync.
	Large     int
	LargeRest time.Duration
}

// Full returns the sizes for docs/benchmarks.md.
func Full() Sizes {
	return Sizes{
		Foos: 2000, UpstreamFoos: 60,
		Rounds: 5, SettledRounds: 1, Settle: 45 * time.Second,
		Rest: time.Minute, Restart: 5 * time.Second,
		WholeFoos: 300, WholeRounds: 5,
		Holdings: []int{0, 1000, 10000, 50000}, Peak: 10000,
		Large: 100000, LargeRest: time.Minute,
	}
}

// Quick returns small sizes, to check that all measurements work.
func Quick() Sizes {
	return Sizes{
		Foos: 200, UpstreamFoos: 15,
		Rounds: 1, SettledRounds: 1, Settle: 4 * time.Second,
		Rest: 4 * time.Second, Restart: 2 * time.Second,
		WholeFoos: 50, WholeRounds: 1, Few: true,
		Holdings: []int{0, 1000}, Peak: 500,
		Large: 2000, LargeRest: 4 * time.Second,
	}
}
