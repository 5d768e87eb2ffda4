// SPDX-License-Identifier: Apache-2.0

// The measurements of a run.

package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
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
	// profiled Foos wait while a profile is taken.
	profiled int
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
		wholeFoos: 300, attacked: 3, probes: 100, profiled: 10000,
		holdings: []int{0, 1000, 10000}, few: 1000, holdingLimit: time.Minute, peak: 10000,
		large: 50000, largeLimit: 2 * time.Minute, largeRest: time.Minute,
	}
	quick = sizes{
		foos: 200, upstreamFoos: 15, rounds: 1, mostRounds: 1, resting: 1, rest: 4 * time.Second, restart: 2 * time.Second,
		wholeFoos: 50, attacked: 1, probes: 10, profiled: 1000,
		holdings: []int{0, 1000}, holdingLimit: 10 * time.Second, peak: 500,
		large: 2000, largeLimit: 20 * time.Second, largeRest: 4 * time.Second,
	}
)

// step is one measurement of a part. It adds to the results and returns a summary.
type step struct {
	part, title string
	// skip reports, when it is the step's turn, whether it is not needed. It may be nil.
	skip func() bool
	run  func(ctx context.Context) (summary string, err error)
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
	all := slices.Concat(p.throughput(), p.whole(), p.waits(), p.profile(), p.memory(), p.large())
	return slices.DeleteFunc(all, func(s step) bool {
		return len(parts) > 0 && !slices.Contains(parts, s.part)
	})
}

// chosen returns the programs that -only selects, in an environment.
func (p *planner) chosen(env []string, programs ...measure.Program) (chosen []measure.Program) {
	for _, program := range programs {
		if len(p.only) == 0 || slices.Contains(p.only, program.Name) {
			chosen = append(chosen, program.In(env))
		}
	}
	return chosen
}

// controllers returns all controllers without a rate limiter, ours between the two that it is
// compared with.
func (p *planner) controllers(env []string) []measure.Program {
	return p.chosen(env, p.programs.Unlimited, p.programs.Ours, p.programs.ControllerRuntime)
}

// throughput measures programs as they are installed, as with go run, and beside a client
// without a controller.
func (p *planner) throughput() []step {
	foos := measure.TrialOptions{Foos: p.sizes.foos}
	bare := p.programs.Bare
	return slices.Concat(
		p.rounds("throughput", results.Installed, "installed", p.controllers(measure.Installed), func(round int) measure.TrialOptions {
			options := foos
			if round <= p.sizes.resting {
				options.Rest = p.sizes.rest
			}
			if round == 1 {
				options.Restart = p.sizes.restart
			}
			return options
		}),
		p.rounds("throughput", results.GoRun, "as with go run", p.controllers(nil), func(int) measure.TrialOptions { return foos }),
		p.rounds("throughput", results.Bare, "installed",
			p.chosen(measure.Installed, bare.With("bare-same-writes", "-events", "-watch"), p.programs.Ours, bare),
			func(int) measure.TrialOptions { return foos }),
		p.trials("throughput", results.Bare, "as shipped", 1, p.chosen(measure.Installed, p.programs.Upstream),
			measure.TrialOptions{Foos: p.sizes.upstreamFoos}))
}

func (p *planner) whole() []step {
	return p.rounds("whole", results.Whole, "until their Pods are available", p.controllers(measure.Installed),
		func(int) measure.TrialOptions { return measure.TrialOptions{Foos: p.sizes.wholeFoos, Whole: true} })
}

// rounds returns the trials of contenders, in turn in each round. The last rounds are skipped
// unless a target that needs the table is not decided.
func (p *planner) rounds(
	part, table, title string, contenders []measure.Program, options func(round int) measure.TrialOptions,
) (steps []step) {
	for round := 1; round <= p.sizes.mostRounds; round++ {
		made := p.trials(part, table, title, round, contenders, options(round))
		if round > p.sizes.rounds {
			decided := false
			for i := range made {
				made[i].skip = func() bool {
					if i == 0 {
						decided = !report.Undecided(p.found, table)
					}
					return decided
				}
			}
		}
		steps = append(steps, made...)
	}
	return steps
}

// trials returns the trials of contenders in a round.
func (p *planner) trials(
	part, table, title string, round int, contenders []measure.Program, options measure.TrialOptions,
) (steps []step) {
	for _, contender := range contenders {
		steps = append(steps, step{
			part:  part,
			title: fmt.Sprintf("round %d, %d waiting Foos, %s: %s", round, options.Foos, title, contender.Name),
			run:   p.trial(contender, options, table, round),
		})
	}
	return steps
}

// trial returns the function of a step that adds a trial to a table.
func (p *planner) trial(
	contender measure.Program, options measure.TrialOptions, table string, round int,
) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		run, restart, err := p.bench.Trial(ctx, contender, options)
		if err != nil {
			return "", err
		}
		p.add(table, contender.Name, round, run)
		foos := float64(run.Foos)
		summary := fmt.Sprintf("%.1f Foos/s, CPU per Foo %.2f ms, %.0f s later %.2f ms, %.0f MiB",
			run.PerSecond(), run.CPUConverged/foos, run.SettledSeconds, run.CPUSettled/foos, run.PeakMiB)
		if restart != nil {
			p.add(results.Restart, contender.Name, round, *restart)
			summary += fmt.Sprintf("; at rest %.0f calls in %.0f s; restarted: ready in %.2f s, %.0f writes",
				run.Rest.Calls.Total(), run.Rest.Seconds, restart.Seconds, restart.Calls.Writes())
		}
		return summary, nil
	}
}

func (p *planner) add(table, contender string, round int, run results.Run) {
	run.Round = round
	p.found.Tables[table][contender] = append(p.found.Tables[table][contender], run)
}

// waits measures how long a tenant waits while another attacks: for ours in rounds.
func (p *planner) waits() (steps []step) {
	for round := 1; round <= p.sizes.mostRounds; round++ {
		for _, attack := range measure.Attacks {
			for _, contender := range p.controllers(measure.Installed) {
				if round > 1 && contender.Name != p.programs.Ours.Name {
					continue
				}
				steps = append(steps, step{
					part:  "waits",
					title: fmt.Sprintf("round %d, a tenant waits beside %s: %s", round, attack.Name, contender.Name),
					skip:  func() bool { return round > p.sizes.attacked && !report.Undecided(p.found, attack.Name) },
					run:   p.wait(contender, attack),
				})
			}
		}
	}
	return steps
}

func (p *planner) wait(contender measure.Program, attack measure.Attack) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		wait, err := p.bench.Waits(ctx, contender, attack, p.sizes.probes)
		if err != nil {
			return "", err
		}
		if p.found.Waits[attack.Name] == nil {
			p.found.Waits[attack.Name] = map[string][]results.Wait{}
		}
		of := p.found.Waits[attack.Name]
		of[contender.Name] = append(of[contender.Name], wait)
		return fmt.Sprintf("half wait at most %.0f ms, 99%% at most %.0f ms, %d too long", wait.P50*1000, wait.P99*1000, wait.Late), nil
	}
}

// profile divides the CPU of the controllers, and that of the bare client with the same writes.
func (p *planner) profile() (steps []step) {
	contenders := slices.Concat(p.controllers(measure.Installed),
		p.chosen(measure.Installed, p.programs.Bare.With("bare-same-writes", "-events", "-watch")))
	for _, contender := range contenders {
		steps = append(steps, step{
			part:  "profile",
			title: fmt.Sprintf("a profile while %d Foos wait: %s", p.sizes.profiled, contender.Name),
			run: func(ctx context.Context) (string, error) {
				perFoo, err := p.bench.Profile(ctx, contender, p.sizes.profiled)
				p.found.Profiles[contender.Name] = perFoo
				return fmt.Sprintf("%.0f µs per Foo for calls", perFoo["calls: encoding, sending and decoding"]), err
			},
		})
	}
	return steps
}

func (p *planner) memory() []step {
	options := measure.Options{Limit: p.sizes.holdingLimit, Idle: p.sizes.holdingLimit, Late: true}
	// Upstream's is the last, in a cluster of its own: it writes the status of each Foo at its
	// start, without what its types lack, so that the next controller would find none settled.
	steps := slices.Concat(
		p.starts("memory", "settled Foos", results.Settled, p.sizes.holdings, options,
			p.chosen(measure.Installed, p.programs.Ours, p.programs.ControllerRuntime)),
		p.starts("memory", "settled Foos", results.Settled, p.sizes.holdings, options, p.chosen(measure.Installed, p.programs.Unlimited)),
		p.starts("memory", "foreign Deployments", results.Foreign, p.sizes.holdings, options, p.controllers(measure.Installed)))
	return slices.Concat(steps, p.trials("memory", results.Peak, "beside as many foreign Deployments", 1,
		p.chosen(measure.Installed, p.programs.Ours, p.programs.Unlimited),
		measure.TrialOptions{Foos: p.sizes.peak, Foreign: p.sizes.peak}))
}

// large shows when one replica is not enough.
func (p *planner) large() []step {
	options := measure.Options{Limit: p.sizes.largeLimit, Idle: p.sizes.largeLimit, Late: true, Rest: p.sizes.largeRest}
	return p.starts("large", "settled Foos", results.Large, []int{p.sizes.large}, options,
		p.chosen(measure.Installed, p.programs.Ours, p.programs.ControllerRuntime, p.programs.Unlimited))
}

// starts returns the step of a part that starts controllers beside objects of some kind.
func (p *planner) starts(
	part, kind, table string, sizes []int, options measure.Options, controllers []measure.Program,
) []step {
	if len(controllers) == 0 {
		return nil
	}
	return []step{{
		part:  part,
		title: fmt.Sprintf("starts beside %v %s", sizes, kind),
		run: func(ctx context.Context) (string, error) {
			var summary []string
			repeats := func(size int) int {
				if size <= p.sizes.few {
					return p.sizes.resting
				}
				return 1
			}
			err := p.bench.Starts(ctx, controllers, sizes, repeats, table == results.Foreign, options, func(name string, round int, start results.Run) {
				p.add(table, name, round, start)
				summary = append(summary, fmt.Sprintf("%s beside %d: ready in %.1f s, %.0f MiB",
					name, start.Objects, start.Seconds, start.PeakMiB))
			})
			return strings.Join(summary, "; "), err
		},
	}}
}
