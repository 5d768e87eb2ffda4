// SPDX-License-Identifier: Apache-2.0

// The flags of the command, and a run with them.

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"example.com/sample-controller/test/bench/internal/machine"
	"example.com/sample-controller/test/bench/internal/measure"
	"example.com/sample-controller/test/bench/internal/plan"
	"example.com/sample-controller/test/bench/internal/program"
	"example.com/sample-controller/test/bench/internal/report"
	"example.com/sample-controller/test/bench/internal/results"
)

// options holds the command's flags.
type options struct {
	quick, reportOnly bool
	results, docs     string
	parts, only       string
	foos, rounds      int
	large             int
	ours              string
	further           []program.Program
}

func (o *options) addFlags(flags *flag.FlagSet) {
	flags.BoolVar(&o.quick, "quick", false, "run small measurements, to check that everything works: 5 to 6 minutes")
	flags.BoolVar(&o.reportOnly, "report", false, "measure nothing, only write the report from existing results")
	flags.StringVar(&o.results, "results", "_output/bench/results.json", "`file` for the results, written after each measurement")
	flags.StringVar(&o.docs, "docs", "_output/bench", "`folder` for benchmarks.md, and for benchmarks/ with its plots and a copy of the results")
	flags.StringVar(&o.parts, "part", "", "comma-separated `parts` to measure, of "+strings.Join(plan.Parts(), ", ")+"; existing results of other parts are kept (default all)")
	flags.StringVar(&o.only, "only", "", "comma-separated `names` of programs to measure: ours, upstream, upstream-unlimited, controller-runtime, bare, bare-same-writes (default all)")
	flags.IntVar(&o.foos, "foos", 0, "`number` of waiting Foos (default 2000, with -quick 200)")
	flags.IntVar(&o.rounds, "rounds", 0, "`number` of rounds (default 5, with -quick 1)")
	flags.IntVar(&o.large, "large", 0, "`number` of settled Foos in part large (default 100000, with -quick 2000)")
	flags.StringVar(&o.ours, "ours", "", "`path` of a controller to measure as ours (default: build it from this tree)")
	flags.Func("also", "`name=path` of an additional program to measure, which must take -kubeconfig; may be repeated", func(value string) error {
		name, path, ok := strings.Cut(value, "=")
		if !ok || name == "" {
			return errors.New("must be NAME=PATH")
		}
		path, err := exec.LookPath(path)
		if err == nil {
			path, err = filepath.Abs(path)
		}
		o.further = append(o.further, program.Program{Name: name, Path: path})
		return err
	})
}

func (o *options) sizes() plan.Sizes {
	sizes := plan.Full()
	if o.quick {
		sizes = plan.Quick()
	}
	if o.foos > 0 {
		sizes.Foos, sizes.Peak, sizes.UpstreamFoos = o.foos, min(sizes.Peak, o.foos), min(sizes.UpstreamFoos, o.foos)
	}
	if o.large > 0 {
		sizes.Large = o.large
	}
	if o.rounds > 0 {
		sizes.Rounds, sizes.WholeRounds = o.rounds, min(sizes.WholeRounds, o.rounds)
	}
	return sizes
}

func (o *options) run(ctx context.Context) error {
	repository, err := os.Getwd()
	if err != nil {
		return err
	}
	parts := split(o.parts)
	for _, part := range parts {
		if !slices.Contains(plan.Parts(), part) {
			return fmt.Errorf("-part=%s: unknown part; the parts are %s", part, strings.Join(plan.Parts(), ", "))
		}
	}
	found := results.New()
	if len(parts) > 0 || o.reportOnly {
		if found, err = results.Read(o.results); err != nil {
			return err
		}
	}
	if !o.reportOnly {
		if err := o.measure(ctx, repository, found, parts); err != nil {
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
func (o *options) measure(ctx context.Context, repository string, found *results.Results, parts []string) error {
	devcluster := filepath.Join(repository, "bin/devcluster")
	if _, err := os.Stat(devcluster); err != nil {
		return fmt.Errorf("%w: run make bench in the root of the repository", err)
	}
	copies, err := os.MkdirTemp("", "foo-bench-programs-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(copies)
	programs, err := program.Build(ctx, repository, filepath.Join(repository, "_output/bench/bin"), copies, o.ours, say)
	if err != nil {
		return err
	}
	planner := &plan.Planner{
		Bench:    &measure.Bench{Devcluster: devcluster, Repository: repository},
		Programs: programs, Sizes: o.sizes(), Results: found,
		Further: o.further, Only: split(o.only), Say: say,
	}
	found.Machine, found.Versions = machine.Describe(), machine.Versions(ctx, devcluster, programs.Ours.Path)
	maps.Copy(found.Versions, programs.Versions)
	found.Quick = o.quick
	found.Forget(parts)
	steps := planner.Steps(parts)
	if len(steps) == 0 {
		return errors.New("-part and -only select no measurement")
	}
	return o.runSteps(ctx, steps, found)
}

// runSteps makes measurements one after the other. It continues after one that fails.
func (o *options) runSteps(ctx context.Context, steps []plan.Step, found *results.Results) error {
	began, before := time.Now(), found.Minutes
	found.Began = began.UTC().Truncate(time.Second)
	var failed []error
	for i, step := range steps {
		say("[%d/%d, %v] %s", i+1, len(steps), time.Since(began).Round(time.Second), step.Title)
		summary, err := step.Run(ctx)
		if ctx.Err() != nil {
			return errors.Join(err, context.Cause(ctx))
		}
		if err != nil {
			failed = append(failed, fmt.Errorf("%s: %w; repeat it with -part=%s", step.Title, err, step.Part))
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
