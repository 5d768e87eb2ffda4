// SPDX-License-Identifier: Apache-2.0

// Command bench measures the controller, other controllers that do the same work, and a
// client without a controller, which is the limit: on the same API server, in turn, in
// one run. Each measurement starts its own cluster.
//
//	bench [flags]                 from the root of the repository
//	bench -report                 only write the report, from existing results
//
// Two programs are compared in rounds, one after the other in each, because a shared machine
// may be half as fast some minutes later: what counts is the ratio in each round. More rounds
// follow while a target is not decided. The results are written to a file after each
// measurement. At the end, a report is made of them. plan.go lists the measurements.
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
	parts, only       string
}

func run(ctx context.Context, args []string) error {
	var o options
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.BoolVar(&o.quick, "quick", false, "run small measurements, to check that everything works: 11 minutes")
	flags.BoolVar(&o.reportOnly, "report", false, "measure nothing, only write the report from existing results")
	flags.StringVar(&o.results, "results", "_output/bench/results.json",
		"`file` for the results, written after each measurement")
	flags.StringVar(&o.docs, "docs", "_output/bench", "`directory` for benchmarks.md and benchmarks/, a copy of the results")
	flags.StringVar(&o.parts, "part", "",
		"comma-separated `parts` to measure, of "+strings.Join(results.Parts, ", ")+"; other parts keep their results (default all)")
	flags.StringVar(&o.only, "only", "",
		"comma-separated `names` of contenders to measure, of "+strings.Join(report.Contenders, ", ")+" (default all)")
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
	programs, err := measure.Build(ctx, repository, folder)
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
		if step.skip != nil && step.skip() {
			continue
		}
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
	say("measured in %v, %d failures, results in %s", time.Since(began).Round(time.Second), len(failed), o.results)
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
