// SPDX-License-Identifier: Apache-2.0

// Command bench measures the controller, other controllers that do the same work, and a
// client without a controller, which is the limit: on the same API server, in turn, in
// one run. Each measurement starts its own cluster.
//
//	bench [flags]                 from the root of the repository
//	bench -report                 only write the report, from existing results
//
// The results are written to a file after each measurement. At the end, a report is made
// of them.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"example.com/sample-controller/test/bench/internal/measure"
	"example.com/sample-controller/test/bench/internal/report"
	"example.com/sample-controller/test/bench/internal/results"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// options holds the command's flags.
type options struct {
	quick, reportOnly bool
	results, docs     string
	parts, only, ours string
}

func run(ctx context.Context, args []string) error {
	var o options
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.BoolVar(&o.quick, "quick", false, "run small measurements, to check that everything works: 5 to 6 minutes")
	flags.BoolVar(&o.reportOnly, "report", false, "measure nothing, only write the report from existing results")
	flags.StringVar(&o.results, "results", "_output/bench/results.json",
		"`file` for the results, written after each measurement")
	flags.StringVar(&o.docs, "docs", "_output/bench", "`directory` for benchmarks.md and benchmarks/, a copy of the results")
	flags.StringVar(&o.parts, "part", "",
		"comma-separated `parts` to measure, of "+strings.Join(results.Parts, ", ")+"; other parts keep their results (default all)")
	flags.StringVar(&o.only, "only", "",
		"comma-separated `names` of contenders to measure, of "+strings.Join(report.Contenders, ", ")+" (default all)")
	flags.StringVar(&o.ours, "ours", "", "`path` of a controller to measure as ours (default: build it from this tree)")
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return nil // flags has printed the help
	} else if err != nil {
		return err
	}
	return o.run(ctx)
}

func (o *options) run(ctx context.Context) error {
	parts := split(o.parts)
	err := errors.Join(known("-part", parts, results.Parts), known("-only", split(o.only), report.Contenders))
	if err != nil {
		return err
	}
	found := results.New()
	if len(parts) > 0 || o.reportOnly {
		if found, err = results.Read(o.results); err != nil {
			return err
		}
	}
	if !o.reportOnly {
		if err := o.measure(ctx, found, parts); err != nil {
			return err
		}
	}
	if err := report.Write(found, o.docs); err != nil {
		return err
	}
	say("report written to %s", filepath.Join(o.docs, "benchmarks.md"))
	return nil
}

// measure makes all measurements, and writes the results after each.
func (o *options) measure(ctx context.Context, found *results.Results, parts []string) error {
	repository, err := os.Getwd()
	if err != nil {
		return err
	}
	devcluster := filepath.Join(repository, "bin/devcluster")
	if _, err := os.Stat(devcluster); err != nil {
		return fmt.Errorf("%w: run make bench in the root of the repository", err)
	}
	folder, err := os.MkdirTemp("", "foo-bench-programs-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	say("building the contenders")
	programs, err := measure.Build(ctx, repository, folder, o.ours)
	if err != nil {
		return err
	}
	p := &planner{
		bench: &measure.Bench{Devcluster: devcluster, Repository: repository}, programs: programs,
		sizes: full, found: found, only: split(o.only),
	}
	if o.quick {
		p.sizes = quick
	}
	steps := p.steps(parts)
	if len(steps) == 0 {
		return errors.New("-part and -only select no measurement")
	}
	found.Machine, found.Versions = measure.DescribeMachine(), measure.Versions(ctx, devcluster, programs.Ours.Path)
	maps.Copy(found.Versions, programs.Versions)
	found.Quick = o.quick
	found.Forget(parts)
	return o.runSteps(ctx, steps, found)
}

// runSteps makes measurements one after the other. It continues after one that fails.
func (o *options) runSteps(ctx context.Context, steps []step, found *results.Results) error {
	began, before := time.Now(), found.Minutes
	found.Began = began.UTC().Truncate(time.Second)
	var failed []error
	for i, step := range steps {
		say("[%d/%d, %v] %s", i+1, len(steps), time.Since(began).Round(time.Second), step.title)
		summary, err := step.run(ctx)
		if ctx.Err() != nil {
			return errors.Join(err, context.Cause(ctx))
		}
		if err != nil {
			failed = append(failed, fmt.Errorf("%s: %w; repeat it with -part=%s", step.title, err, step.part))
			summary = "FAILED: " + err.Error()
		}
		say("    %s", summary)
		found.Minutes = before + time.Since(began).Minutes()
		if err := found.Write(o.results); err != nil {
			return err
		}
	}
	say("%d measurements in %v, results in %s", len(steps)-len(failed), time.Since(began).Round(time.Second), o.results)
	return errors.Join(failed...)
}

func say(format string, args ...any) {
	fmt.Printf(format+"\n", args...)
}

func split(list string) []string {
	return strings.FieldsFunc(list, func(r rune) bool { return r == ',' })
}

// known returns an error if a flag has an unknown value.
func known(flag string, values, all []string) error {
	for _, value := range values {
		if !slices.Contains(all, value) {
			return fmt.Errorf("%s=%s: unknown; there are %s", flag, value, strings.Join(all, ", "))
		}
	}
	return nil
}

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
// controller would find none settled. Where others follow it has its own cluster.
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
				run:   p.trial(contender, options, results.Isolated),
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
				run: p.trial(contender, measure.TrialOptions{Foos: p.sizes.wholeFoos, Whole: true}, results.Whole),
			})
		}
	}
	return steps
}

// trial returns the function of a step that adds a trial to a table.
func (p *planner) trial(
	contender measure.Program, options measure.TrialOptions, table string,
) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		run, restart, err := p.bench.Trial(ctx, contender, options)
		if err != nil {
			return "", err
		}
		p.add(table, contender.Name, run)
		foos := float64(run.Foos)
		summary := fmt.Sprintf("%.1f Foos/s, CPU per Foo %.2f ms, %.0f s later %.2f ms, %.0f MiB",
			run.PerSecond(), run.CPUConverged/foos, run.SettledSeconds, run.CPUSettled/foos, run.PeakMiB)
		if restart != nil {
			p.add(results.Restart, contender.Name, *restart)
			summary += fmt.Sprintf("; at rest %.0f calls in %.0f s; restarted: ready in %.2f s, %.0f writes",
				run.Rest.Calls.Total(), run.Rest.Seconds, restart.Seconds, restart.Calls.Writes())
		}
		return summary, nil
	}
}

func (p *planner) add(table, contender string, run results.Run) {
	p.found.Tables[table][contender] = append(p.found.Tables[table][contender], run)
}

func (p *planner) memory() []step {
	options := measure.Options{Limit: p.sizes.holdingLimit, Idle: p.sizes.holdingLimit, Late: true}
	holdings := func(kind, table string, controllers ...measure.Program) []step {
		return p.starts("memory", kind, table, p.sizes.holdings, options, controllers)
	}
	steps := slices.Concat(
		holdings("settled Foos", results.Settled, p.chosen(p.programs.Ours, p.programs.ControllerRuntime)...),
		holdings("settled Foos", results.Settled, p.chosen(p.programs.Unlimited)...),
		holdings("foreign Deployments", results.Foreign, p.controllers()...))
	for _, contender := range p.chosen(p.programs.Ours, p.programs.Unlimited) {
		steps = append(steps, step{
			part:  "memory",
			title: fmt.Sprintf("%d waiting Foos beside as many foreign Deployments: %s", p.sizes.peak, contender.Name),
			run:   p.trial(contender, measure.TrialOptions{Foos: p.sizes.peak, Foreign: p.sizes.peak}, results.Peak),
		})
	}
	return steps
}

// large shows when one replica is not enough.
func (p *planner) large() []step {
	options := measure.Options{Limit: p.sizes.largeLimit, Idle: p.sizes.largeLimit, Late: true, Rest: p.sizes.largeRest}
	return p.starts("large", "settled Foos", results.Large, []int{p.sizes.large}, options, p.controllers())
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
			err := p.bench.Starts(ctx, controllers, sizes, table == results.Foreign, options, func(name string, start results.Run) {
				p.add(table, name, start)
				summary = append(summary, fmt.Sprintf("%s beside %d: ready in %.1f s, %.0f MiB",
					name, start.Objects, start.Seconds, start.PeakMiB))
			})
			return strings.Join(summary, "; "), err
		},
	}}
}
