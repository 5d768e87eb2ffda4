// SPDX-License-Identifier: Apache-2.0

// The measurements of a run.

package main

import (
	"context"
	"fmt"
	"time"

	"example.com/sample-controller/test/bench/internal/measure"
	"example.com/sample-controller/test/bench/internal/report"
	"example.com/sample-controller/test/bench/internal/results"
)

// sizes holds the numbers of objects, repetitions and durations.
type sizes struct {
	// foos wait in a trial; upstreamFoos if it is upstream with its limiter, which
	// processes 5 in a second.
	foos, upstreamFoos int
	// rounds is how often contenders are compared, and mostRounds how often if a target is
	// not decided by then. In the first resting rounds with the installed programs, CPU and
	// calls are also counted for rest after convergence, and in the first, calls for restart
	// after a restart.
	rounds, mostRounds, resting int
	rest, restart               time.Duration
	// wholeFoos wait in each of the rounds with all components.
	wholeFoos int
	// attacked is how often the waits of probes are measured for ours; for the others once.
	attacked, probes int
	// holdings lists the numbers of objects at which memory is measured: each up to few in
	// rounds, the others once. peak Foos converge beside as many foreign Deployments.
	holdings     []int
	few          int
	holdingLimit time.Duration
	peak         int
	// large Foos are settled when programs start; CPU and calls are then counted for
	// largeRest, two periods of the controllers' resync.
	large                 int
	largeLimit, largeRest time.Duration
}

var (
	// full is for docs/benchmarks.md, and quick to check that all measurements work.
	full = sizes{
		foos: 2000, upstreamFoos: 60, rounds: 5, mostRounds: report.MostRounds, resting: 3, rest: time.Minute, restart: 5 * time.Second,
		wholeFoos: 300, attacked: 3, probes: 100,
		holdings: []int{0, 1000, 10000}, few: 1000, holdingLimit: time.Minute, peak: 10000,
		large: 50000, largeLimit: 2 * time.Minute, largeRest: time.Minute,
	}
	quick = sizes{
		foos: 200, upstreamFoos: 15, rounds: 1, mostRounds: 1, resting: 1, rest: 4 * time.Second, restart: 2 * time.Second,
		wholeFoos: 50, attacked: 1, probes: 10,
		holdings: []int{0, 1000}, holdingLimit: 10 * time.Second, peak: 500,
		large: 2000, largeLimit: 20 * time.Second, largeRest: 4 * time.Second,
	}
)

// part makes all measurements of one of results.Parts. All programs run as they are installed
// unless noted.
func (r *runner) part(ctx context.Context, name string) {
	ours, unlimited, onRuntime, bare := r.programs["ours"], r.programs["upstream-unlimited"], r.programs["controller-runtime"], r.programs["bare"]
	// Ours is between the two that it is compared with.
	controllers := []measure.Program{unlimited, ours, onRuntime}
	sameWrites := bare.With("bare-same-writes", "-same-writes")
	held := measure.Options{Limit: r.holdingLimit, Idle: r.holdingLimit, Late: true}
	switch name {
	case "throughput":
		foos := measure.TrialOptions{Foos: r.foos}
		r.rounds(ctx, results.Installed, controllers, func(round int) measure.TrialOptions { return r.atRest(round, foos) })
		asWithGoRun := []measure.Program{unlimited.In(nil), ours.In(nil), onRuntime.In(nil)}
		r.rounds(ctx, results.GoRun, asWithGoRun, func(int) measure.TrialOptions { return foos })
		r.rounds(ctx, results.Bare, []measure.Program{sameWrites, ours, bare}, func(int) measure.TrialOptions { return foos })
		r.trial(ctx, results.Bare, 1, r.programs["upstream"], measure.TrialOptions{Foos: r.upstreamFoos})
	case "whole":
		r.rounds(ctx, results.Whole, controllers, func(int) measure.TrialOptions { return measure.TrialOptions{Foos: r.wholeFoos, Whole: true} })
	case "waits":
		for round := 1; round <= r.mostRounds; round++ {
			for _, attack := range measure.Attacks {
				if round <= r.attacked || report.Undecided(r.found, attack.Name) {
					r.waits(ctx, round, attack, controllers)
				}
			}
		}
	case "memory":
		// Upstream's is in a cluster of its own: it writes the status of each Foo at its start,
		// without what its types lack, so that the next controller would find none settled.
		r.starts(ctx, results.Settled, r.holdings, held, ours, onRuntime)
		r.starts(ctx, results.Settled, r.holdings, held, unlimited)
		r.starts(ctx, results.Foreign, r.holdings, held, controllers...)
		for _, contender := range []measure.Program{ours, unlimited} {
			r.trial(ctx, results.Peak, 1, contender, measure.TrialOptions{Foos: r.peak, Foreign: r.peak})
		}
	case "large": // shows when one replica is not enough
		options := measure.Options{Limit: r.largeLimit, Idle: r.largeLimit, Late: true, Rest: r.largeRest}
		r.starts(ctx, results.Large, []int{r.large}, options, ours, onRuntime, unlimited)
	}
}

// atRest returns the options of a round in which programs may also be measured at rest.
func (r *runner) atRest(round int, options measure.TrialOptions) measure.TrialOptions {
	if round <= r.resting {
		options.Rest = r.rest
	}
	if round == 1 {
		options.Restart = r.restart
	}
	return options
}

// rounds makes the trials of contenders for a table, in turn in each round. The last rounds are
// left out unless a target that needs the table is not decided.
func (r *runner) rounds(
	ctx context.Context, table string, contenders []measure.Program, options func(round int) measure.TrialOptions,
) {
	for round := 1; round <= r.sizes.rounds || round <= r.mostRounds && report.Undecided(r.found, table); round++ {
		for _, contender := range contenders {
			r.trial(ctx, table, round, contender, options(round))
		}
	}
}

func (r *runner) trial(ctx context.Context, table string, round int, contender measure.Program, options measure.TrialOptions) {
	title := fmt.Sprintf("%s, round %d, %d waiting Foos: %s", table, round, options.Foos, contender.Name)
	r.try(ctx, title, func() (string, error) {
		run, restart, err := r.bench.Trial(ctx, contender, options)
		if err != nil {
			return "", err
		}
		r.add(table, contender.Name, round, run)
		summary := fmt.Sprintf("%.1f Foos/s, CPU per Foo %.2f ms, %.0f s later %.2f ms, %.0f MiB",
			run.PerSecond(), run.CPUConverged/float64(run.Foos), run.SettledSeconds, run.CPUSettled/float64(run.Foos), run.PeakMiB)
		if restart != nil {
			r.add(results.Restart, contender.Name, round, *restart)
			summary += fmt.Sprintf("; at rest %.0f calls; restarted: ready in %.2f s, %.0f writes",
				run.Rest.Calls.Total(), restart.Seconds, restart.Calls.Writes())
		}
		return summary, nil
	})
}

func (r *runner) add(table, contender string, round int, run results.Run) {
	run.Round = round
	r.found.Tables[table][contender] = append(r.found.Tables[table][contender], run)
}

// waits measures how long a tenant waits while another attacks: for ours in each round.
func (r *runner) waits(ctx context.Context, round int, attack measure.Attack, contenders []measure.Program) {
	for _, contender := range contenders {
		if round > 1 && contender.Name != "ours" {
			continue
		}
		title := fmt.Sprintf("round %d, a tenant waits beside %s: %s", round, attack.Name, contender.Name)
		r.try(ctx, title, func() (string, error) {
			wait, err := r.bench.Waits(ctx, contender, attack, r.probes)
			if err != nil {
				return "", err
			}
			if r.found.Waits[attack.Name] == nil {
				r.found.Waits[attack.Name] = map[string][]results.Wait{}
			}
			r.found.Waits[attack.Name][contender.Name] = append(r.found.Waits[attack.Name][contender.Name], wait)
			return fmt.Sprintf("half wait at most %.0f ms, 99%% at most %.0f ms, %d too long", wait.P50*1000, wait.P99*1000, wait.Late), nil
		})
	}
}

// starts starts controllers beside objects: foreign Deployments for that table, or settled Foos.
func (r *runner) starts(ctx context.Context, table string, sizes []int, options measure.Options, controllers ...measure.Program) {
	r.try(ctx, fmt.Sprintf("%s, starts beside %v", table, sizes), func() (summary string, err error) {
		repeats := func(size int) int {
			if size <= r.few {
				return r.resting
			}
			return 1
		}
		err = r.bench.Starts(ctx, controllers, sizes, repeats, table == results.Foreign, options, func(name string, round int, start results.Run) {
			r.add(table, name, round, start)
			summary += fmt.Sprintf("%s beside %d: ready in %.1f s, %.0f MiB; ", name, start.Objects, start.Seconds, start.PeakMiB)
		})
		return summary, err
	})
}
