// SPDX-License-Identifier: Apache-2.0

// The parts of a run: which measurements there are, their order and their sizes.

package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"example.com/sample-controller/test/bench/internal/measure"
	"example.com/sample-controller/test/bench/internal/results"
)

// sizes holds the numbers of objects, repetitions and durations.
type sizes struct {
	// foos wait in a trial; upstreamFoos if it is upstream with its limiter, which
	// processes 5 in a second.
	foos, upstreamFoos int
	// rounds is how often each trial is repeated. In the first round, CPU and calls of the
	// controllers are counted until settle after convergence, then calls for rest, and for
	// restart after a restart.
	rounds                int
	settle, rest, restart time.Duration
	// wholeFoos wait in each of the rounds with all components.
	wholeFoos int
	// holdings lists the numbers of objects at which memory is measured. peak Foos
	// converge beside as many foreign Deployments.
	holdings     []int
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
		foos: 2000, upstreamFoos: 60, rounds: 5,
		settle: 45 * time.Second, rest: time.Minute, restart: 5 * time.Second,
		wholeFoos: 300, holdings: []int{0, 1000, 10000, 50000}, holdingLimit: time.Minute, peak: 10000,
		large: 100000, largeLimit: 2 * time.Minute, largeRest: time.Minute,
	}
	quick = sizes{
		foos: 200, upstreamFoos: 15, rounds: 1,
		settle: 4 * time.Second, rest: 4 * time.Second, restart: 2 * time.Second,
		wholeFoos: 50, holdings: []int{0, 1000}, holdingLimit: 10 * time.Second, peak: 500,
		large: 2000, largeLimit: 20 * time.Second, largeRest: 4 * time.Second,
	}
)

// step is one measurement of a part. It adds to the results and returns a summary.
type step struct {
	part, title string
	run         func(ctx context.Context) (summary string, err error)
}

// planner makes the steps of a run.
type planner struct {
	bench    *measure.Bench
	programs *measure.Set
	sizes    sizes
	found    *results.Results
	// only holds the names of the programs to measure; empty means all.
	only []string
}

// steps returns all steps of some parts, or of all parts if none is given.
func (p *planner) steps(parts []string) []step {
	all := slices.Concat(p.throughput(), p.whole(), p.memory(), p.large())
	return slices.DeleteFunc(all, func(s step) bool {
		return len(parts) > 0 && !slices.Contains(parts, s.part)
	})
}

// chosen returns the programs that -only selects.
func (p *planner) chosen(programs ...measure.Program) []measure.Program {
	return slices.DeleteFunc(programs, func(candidate measure.Program) bool {
		return len(p.only) > 0 && !slices.Contains(p.only, candidate.Name)
	})
}

// controllers returns all controllers without a rate limiter. Upstream's is the last: it
// writes the status of each Foo at its start, without what its types lack, so that the next
// controller would find none settled. Where others follow it has a cluster of its own.
func (p *planner) controllers() []measure.Program {
	return p.chosen(p.programs.Ours, p.programs.ControllerRuntime, p.programs.Unlimited)
}

// throughput measures each program in turn, in several rounds.
func (p *planner) throughput() (steps []step) {
	controllers := p.controllers()
	contenders := slices.Concat(controllers, p.chosen(
		p.programs.Bare,
		p.programs.Bare.With("bare-same-writes", "-events", "-watch"),
		p.programs.Upstream))
	for round := range p.sizes.rounds {
		for i, contender := range contenders {
			options := measure.TrialOptions{Foos: p.sizes.foos}
			if contender.Name == p.programs.Upstream.Name {
				options.Foos = p.sizes.upstreamFoos
			}
			if i < len(controllers) && round == 0 {
				options.Settle, options.Rest, options.Restart = p.sizes.settle, p.sizes.rest, p.sizes.restart
			}
			steps = append(steps, step{
				part:  "throughput",
				title: fmt.Sprintf("%d waiting Foos, round %d of %d: %s", options.Foos, round+1, p.sizes.rounds, contender.Name),
				run:   p.trial(contender, options, p.found.Isolated),
			})
		}
	}
	return steps
}

func (p *planner) whole() (steps []step) {
	for round := range p.sizes.rounds {
		for _, contender := range p.controllers() {
			steps = append(steps, step{
				part: "whole",
				title: fmt.Sprintf("%d Foos until their Pods are available, round %d of %d: %s",
					p.sizes.wholeFoos, round+1, p.sizes.rounds, contender.Name),
				run: p.trial(contender, measure.TrialOptions{Foos: p.sizes.wholeFoos, Whole: true}, p.found.Whole),
			})
		}
	}
	return steps
}

// trial returns the function of a step that adds a trial to some results.
func (p *planner) trial(
	contender measure.Program, options measure.TrialOptions, into map[string][]results.Trial,
) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		outcome, err := p.bench.Trial(ctx, contender, options)
		if err != nil {
			return "", err
		}
		trial := outcome.Trial
		into[contender.Name] = append(into[contender.Name], trial)
		summary := fmt.Sprintf("%.1f Foos/s, CPU per Foo %.2f ms, %.0f s later %.2f ms, %.0f MiB",
			trial.PerSecond, trial.CPUConverged, trial.SettledSeconds, trial.CPUSettled, trial.PeakMiB)
		if outcome.Rest != nil {
			p.found.Rest[contender.Name], p.found.Restart[contender.Name] = *outcome.Rest, *outcome.Restart
			summary += fmt.Sprintf("; at rest %.0f calls in %.0f s; restarted: ready in %.2f s, %.0f writes",
				outcome.Rest.Calls.Total(), outcome.Rest.Seconds, outcome.Restart.ReadySeconds, outcome.Restart.Calls.Writes())
		}
		return summary, nil
	}
}

func (p *planner) memory() []step {
	steps := slices.Concat(
		p.holdings(false, p.found.Memory.Foos, p.chosen(p.programs.Ours, p.programs.ControllerRuntime)),
		p.holdings(false, p.found.Memory.Foos, p.chosen(p.programs.Unlimited)),
		p.holdings(true, p.found.Memory.Foreign, p.controllers()))
	for _, contender := range p.chosen(p.programs.Ours, p.programs.Unlimited) {
		steps = append(steps, step{
			part:  "memory",
			title: fmt.Sprintf("%d waiting Foos beside as many foreign Deployments: %s", p.sizes.peak, contender.Name),
			run:   p.trial(contender, measure.TrialOptions{Foos: p.sizes.peak, Foreign: p.sizes.peak}, p.found.Memory.Peak),
		})
	}
	return steps
}

// holdings measures memory beside some kind of objects.
func (p *planner) holdings(foreign bool, into map[string][]results.Holding, controllers []measure.Program) []step {
	kind := "settled Foos"
	if foreign {
		kind = "foreign Deployments"
	}
	options := measure.StartOptions{Sizes: p.sizes.holdings, Foreign: foreign, Limit: p.sizes.holdingLimit}
	return p.starts("memory", kind, options, controllers, func(name string, start results.Start) {
		into[name] = append(into[name], start.Holding)
	})
}

// large shows when one replica is not enough.
func (p *planner) large() []step {
	options := measure.StartOptions{Sizes: []int{p.sizes.large}, Limit: p.sizes.largeLimit, Rest: p.sizes.largeRest}
	return p.starts("large", "settled Foos", options, p.controllers(), func(name string, start results.Start) {
		p.found.Large.Foos = p.sizes.large
		p.found.Large.Starts[name] = start
	})
}

// starts returns the step of a part that starts controllers beside objects.
func (p *planner) starts(
	part, kind string, options measure.StartOptions, controllers []measure.Program, add func(string, results.Start),
) []step {
	if len(controllers) == 0 {
		return nil
	}
	return []step{{
		part:  part,
		title: fmt.Sprintf("starts beside %v %s", options.Sizes, kind),
		run: func(ctx context.Context) (string, error) {
			var summary []string
			err := p.bench.Starts(ctx, controllers, options, func(name string, start results.Start) {
				add(name, start)
				summary = append(summary, fmt.Sprintf("%s beside %d: ready in %.1f s, %.0f MiB",
					name, start.Objects, start.ReadySeconds, start.PeakMiB))
			})
			return strings.Join(summary, "; "), err
		},
	}}
}
