// SPDX-License-Identifier: Apache-2.0

// Tests of failed and interrupted runs.

package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"example.com/sample-controller/test/bench/internal/results"
)

// TestFailedStepDoesNotStopTheOthers: the other steps run and their results are kept, and
// the error names the failed step and how to repeat it.
func TestFailedStepDoesNotStopTheOthers(t *testing.T) {
	var made []string
	of := func(part string, err error) step {
		return step{part: part, title: "step " + part, run: func(context.Context) (string, error) {
			made = append(made, part)
			return "measured", err
		}}
	}
	o := &options{results: filepath.Join(t.TempDir(), "results.json")}
	err := o.runSteps(t.Context(), []step{
		of("throughput", nil), of("whole", errors.New("too slow")), of("memory", nil),
	}, results.New())
	if err == nil || !strings.Contains(err.Error(), "step whole: too slow") || !strings.Contains(err.Error(), "-part=whole") {
		t.Errorf("the error is %v", err)
	}
	if want := []string{"throughput", "whole", "memory"}; !slices.Equal(made, want) {
		t.Errorf("steps %v have run, want %v", made, want)
	}
	if _, err := results.Read(o.results); err != nil {
		t.Errorf("the results were not written: %v", err)
	}
}

// TestInterruptStopsTheRun: no further step runs, and no result of the interrupted one is
// kept.
func TestInterruptStopsTheRun(t *testing.T) {
	ctx, interrupt := context.WithCancelCause(t.Context())
	cause := errors.New("interrupted")
	steps := []step{
		{part: "throughput", run: func(context.Context) (string, error) { interrupt(cause); return "", nil }},
		{part: "memory", run: func(context.Context) (string, error) { t.Error("the run continued"); return "", nil }},
	}
	o := &options{results: filepath.Join(t.TempDir(), "results.json")}
	if err := o.runSteps(ctx, steps, results.New()); !errors.Is(err, cause) {
		t.Errorf("the error is %v, want %v", err, cause)
	}
	if _, err := os.Stat(o.results); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the result of an interrupted step was written: %v", err)
	}
}
