// SPDX-License-Identifier: Apache-2.0

// The steps of a run, and those that are repeated in rounds: throughput, whole, sweep.

package plan

import (
	"context"
	"fmt"
	"slices"

	"example.com/sample-controller/test/bench/internal/measure"
	"example.com/sample-controller/test/bench/internal/program"
	"example.com/sample-controller/test/bench/internal/results"
)

// Step is one measurement. It adds to the results and returns a summary.
type Step struct {
	// Part is the part of the run that it belongs to, Title what it measures.
	Part, Title string
	Run         func(ctx context.Context) (found string, err error)
}

// Parts returns the parts that a run can be limited to.
func Parts() []string {
	return []string{"throughput", "whole", "memory", "large"}
}

// The names of the bare loop. It creates a Deployment and writes a status, in as many
// goroutines as the controller has workers. With the same writes, it also writes an Event
// and keeps watches open.
const (
	Bare     = "bare"
	BareSame = "bare-same-writes"
)

// Planner makes the steps of a run.
type Planner struct {
	Bench    *measure.Bench
	Programs *program.Set
	Sizes    Sizes
	Results  *results.Results
	// Further are additional controllers to measure.
	Further []program.Program
	// Only holds the names of the programs to measure; empty means all.
	Only []string
	// Say reports the progress of a step that takes minutes.
	Say func(format string, args ...any)
}

// Steps returns all steps of some parts, or of all parts if none is given.
func (p *Planner) Steps(parts []string) []Step {
	all := slices.Concat(p.throughput(), p.whole(), p.memory(), p.large())
	return slices.DeleteFunc(all, func(step Step) bool {
		return len(parts) > 0 && !slices.Contains(parts, step.Part)
	})
}

// chosen returns the programs that Only selects.
func (p *Planner) chosen(programs ...program.Program) []program.Program {
	return slices.DeleteFunc(programs, func(candidate program.Program) bool {
		return len(p.Only) > 0 && !slices.Contains(p.Only, candidate.Name)
	})
}

// controllers returns all controllers without a rate limiter.
func (p *Planner) controllers() []program.Program {
	return p.oursAnd(p.Programs.Unlimited, p.Programs.ControllerRuntime)
}

// compared returns the controllers to compare in all parts other than throughput: all, or
// with Sizes.Few ours and the needed ones.
func (p *Planner) compared(needed ...program.Program) []program.Program {
	if p.Sizes.Few {
		return p.oursAnd(needed...)
	}
	return p.controllers()
}

// oursAnd returns ours, some others, and the additional controllers.
func (p *Planner) oursAnd(others ...program.Program) []program.Program {
	return p.chosen(slices.Concat([]program.Program{p.Programs.Ours}, others, p.Further)...)
}

// throughput measures each program in turn, in several rounds.
func (p *Planner) throughput() (steps []Step) {
	controllers := p.controllers()
	contenders := slices.Concat(controllers, p.chosen(
		p.Programs.Bare.With(Bare),
		p.Programs.Bare.With(BareSame, "-events", "-watch"),
		p.Programs.Upstream))
	for round := range p.Sizes.Rounds {
		for i, contender := range contenders {
			options := measure.TrialOptions{Foos: p.Sizes.Foos}
			if contender.Name == p.Programs.Upstream.Name {
				options.Foos = p.Sizes.UpstreamFoos
			}
			if i < len(controllers) && round < p.Sizes.SettledRounds {
				options.Settle = p.Sizes.Settle
			}
			if i < len(controllers) && round == 0 {
				options.Rest, options.Restart = p.Sizes.Rest, p.Sizes.Restart
			}
			steps = append(steps, Step{
				Part:  "throughput",
				Title: fmt.Sprintf("%d waiting Foos, round %d of %d: %s", options.Foos, round+1, p.Sizes.Rounds, contender.Name),
				Run:   p.trial(contender, options, p.Results.Isolated),
			})
		}
	}
	return steps
}

func (p *Planner) whole() (steps []Step) {
	for round := range p.Sizes.WholeRounds {
		for _, contender := range p.compared() {
			steps = append(steps, Step{
				Part: "whole",
				Title: fmt.Sprintf("%d waiting Foos until their Pods are available, round %d of %d: %s",
					p.Sizes.WholeFoos, round+1, p.Sizes.WholeRounds, contender.Name),
				Run: p.trial(contender, measure.TrialOptions{Foos: p.Sizes.WholeFoos, Whole: true}, p.Results.Whole),
			})
		}
	}
	return steps
}

// trial returns the function of a step that adds a trial to some results.
func (p *Planner) trial(contender program.Program, options measure.TrialOptions, into map[string][]results.Trial) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		outcome, err := p.Bench.Trial(ctx, contender, options)
		if err != nil {
			return "", err
		}
		trial := outcome.Trial
		into[contender.Name] = append(into[contender.Name], trial)
		found := fmt.Sprintf("%.1f Foos/s, CPU per Foo %.2f ms, %.0f s later %.2f ms, %.0f MiB",
			trial.PerSecond, trial.CPUConverged, trial.SettledSeconds, trial.CPUSettled, trial.PeakMiB)
		if outcome.Rest != nil {
			p.Results.Rest[contender.Name] = *outcome.Rest
			found += fmt.Sprintf("; at rest %.0f calls in %.0f s", results.Total(outcome.Rest.Calls), outcome.Rest.Seconds)
		}
		if outcome.Restart != nil {
			p.Results.Restart[contender.Name] = *outcome.Restart
			found += fmt.Sprintf("; restarted: ready in %.2f s, %.0f writes", outcome.Restart.ReadySeconds, results.Writes(outcome.Restart.Calls))
		}
		return found, nil
	}
}
