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
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) (err error) {
	small := flag.Bool("quick", false, "run small measurements, to check that everything works: 11 minutes")
	reportOnly := flag.Bool("report", false, "measure nothing, only write the report from existing results")
	file := flag.String("results", "_output/bench/results.json", "`file` for the results, written after each measurement")
	docs := flag.String("docs", "_output/bench", "`directory` for benchmarks.md and benchmarks/, a copy of the results")
	part := flag.String("part", "", "comma-separated `parts` to measure, of "+strings.Join(results.Parts, ", ")+"; other parts keep their results (default all)")
	flag.Parse()
	chosen := results.Parts
	if *part != "" {
		chosen = strings.Split(*part, ",")
	}
	found := results.New()
	if *reportOnly || *part != "" {
		if found, err = results.Read(*file); err != nil {
			return err
		}
	}
	if !*reportOnly {
		r := &runner{sizes: full, found: found, file: *file, began: time.Now(), before: found.Minutes}
		if *small {
			r.sizes, found.Quick = quick, true
		}
		if err := r.measure(ctx, chosen); err != nil {
			return err
		}
	}
	if err := report.Write(found, *docs); err != nil {
		return err
	}
	fmt.Println("report written to", filepath.Join(*docs, "benchmarks.md"))
	return nil
}

// runner makes the measurements of a run.
type runner struct {
	sizes
	bench    *measure.Bench
	programs map[string]measure.Program
	found    *results.Results
	// file is where the results are written.
	file  string
	began time.Time
	// before is how many minutes the runs took whose results are kept.
	before float64
	failed []error
}

// measure makes all measurements of some parts.
func (r *runner) measure(ctx context.Context, chosen []string) error {
	for _, name := range chosen {
		if !slices.Contains(results.Parts, name) {
			return fmt.Errorf("-part=%s: unknown; there are %s", name, strings.Join(results.Parts, ", "))
		}
	}
	repository, err := os.Getwd()
	if err != nil {
		return err
	}
	folder, err := os.MkdirTemp("", "foo-bench-programs-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	fmt.Println("building the contenders")
	built, err := measure.Build(ctx, repository, folder)
	if err != nil {
		return err
	}
	r.programs, r.found.Machine, r.found.Versions = built.Programs, built.Machine, built.Versions
	r.bench = &measure.Bench{Devcluster: filepath.Join(repository, "bin/devcluster"), Repository: repository}
	r.found.Began = r.began.UTC().Truncate(time.Second)
	for _, name := range chosen {
		r.found.Forget(name)
		r.part(ctx, name)
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	fmt.Printf("measured in %v, %d failures, results in %s\n", time.Since(r.began).Round(time.Second), len(r.failed), r.file)
	return errors.Join(r.failed...)
}

// try makes a measurement, which adds to the results and returns a summary, and writes the
// results. After one that fails the others follow; after an interruption none does.
func (r *runner) try(ctx context.Context, title string, measure func() (summary string, err error)) {
	if ctx.Err() != nil {
		return
	}
	fmt.Printf("[%v] %s\n", time.Since(r.began).Round(time.Second), title)
	summary, err := measure()
	if ctx.Err() != nil {
		return
	}
	if err == nil {
		r.found.Minutes = r.before + time.Since(r.began).Minutes()
		err = r.found.Write(r.file)
	}
	if err != nil {
		r.failed = append(r.failed, fmt.Errorf("%s: %w", title, err))
		summary = "FAILED: " + err.Error()
	}
	fmt.Println("    " + summary)
}
