// SPDX-License-Identifier: Apache-2.0

// Command bench measures the controller, other controllers that do the same work, and a client
// without a controller: on the same API server, in turn, in one run. Each measurement starts its
// own cluster.
//
//	bench [flags]                 from the root of the repository
//	bench -report                 only write the page, from existing results
//
// Programs are compared in rounds, one after the other in each, because a shared machine may be
// half as fast some minutes later: what counts is the ratio in each round. The results are written
// to a file after each part, and a page is made of them at the end. plan.go lists the measurements.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"
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

func run(ctx context.Context) error {
	small := flag.Bool("quick", false, "run small measurements, to check that everything works")
	pageOnly := flag.Bool("report", false, "measure nothing, only write the page from existing results")
	file := flag.String("results", "_output/bench/results.json", "`file` for the results")
	docs := flag.String("docs", "_output/bench", "`directory` for benchmarks.md and benchmarks/, a copy of the results")
	part := flag.String("part", "", "comma-separated `parts` to measure, of "+strings.Join(parts, ", ")+" and "+scale+
		"; the results of other parts stay (default all but "+scale+")")
	flag.Parse()
	chosen, found := parts, &results{}
	if *part != "" {
		chosen = strings.Split(*part, ",")
	}
	if *pageOnly || *part != "" {
		var err error
		if found, err = readResults(*file); err != nil {
			return err
		}
	}
	if !*pageOnly {
		r := &runner{sizes: full, found: found}
		if *small {
			r.sizes, found.Quick = quick, true
		}
		if err := r.measure(ctx, chosen, *file); err != nil {
			return err
		}
	}
	if err := writePage(found, *docs); err != nil {
		return err
	}
	fmt.Println("page written to", filepath.Join(*docs, "benchmarks.md"))
	return nil
}

// runner makes the measurements of a run.
type runner struct {
	sizes
	bench    bench
	programs map[string]program
	found    *results
}

// measure makes all measurements of some parts. After a part that fails the others follow; after
// an interruption none does.
func (r *runner) measure(ctx context.Context, chosen []string, file string) error {
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
	if err := r.build(ctx, repository, folder); err != nil {
		return err
	}
	r.bench = bench{devcluster: filepath.Join(repository, "bin/devcluster"), repository: repository}
	r.found.Began = time.Now().UTC().Truncate(time.Second)
	var failed error
	before := r.found.Minutes
	for _, name := range chosen {
		if err := r.part(ctx, name); err != nil {
			failed = errors.Join(failed, fmt.Errorf("%s: %w", name, err))
			fmt.Println("FAILED:", err)
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		r.found.Minutes = before + time.Since(r.found.Began).Minutes()
		if err := r.found.write(file); err != nil {
			return err
		}
	}
	return failed
}

// installed is the environment that artifacts/deploy/workload/deployment.yaml sets, as far as it
// affects the measurements. Without it, a program runs as with go run.
var installed = []string{"GOMAXPROCS=1"}

// build builds all programs in a folder, to be run as they are installed, and notes the machine
// and the versions.
func (r *runner) build(ctx context.Context, repository, folder string) error {
	build := exec.CommandContext(ctx, filepath.Join(repository, "test/bench/contenders.sh"), folder)
	build.Stderr = os.Stderr
	out, err := build.Output()
	if err != nil {
		return fmt.Errorf("building the contenders: %w", err)
	}
	r.found.Versions = map[string]string{}
	for line := range strings.Lines(string(out)) {
		name, version, _ := strings.Cut(strings.TrimSpace(line), " ")
		r.found.Versions[name] = version
	}
	r.found.Machine = r.found.Versions["machine"]
	delete(r.found.Versions, "machine")
	r.programs = map[string]program{}
	for _, name := range contenders {
		r.programs[name] = program{name: name, path: filepath.Join(folder, name), env: installed}
	}
	return nil
}
