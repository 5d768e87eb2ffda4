// SPDX-License-Identifier: Apache-2.0

// Tests of the page, of verdicts and of intervals.

package report

import (
	"os"
	"path/filepath"
	"testing"

	"example.com/sample-controller/test/bench/internal/results"
)

const docs = "../../../../docs"

// TestPageIsUpToDate also writes one of no results.
func TestPageIsUpToDate(t *testing.T) {
	want, err := os.ReadFile(filepath.Join(docs, "benchmarks.md"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := render(read(t, "results.json"), read(t, "hogs.json"))
	if err != nil || string(got) != string(want) {
		t.Errorf("docs/benchmarks.md is not made of its results (%v): run make bench-report", err)
	}
	if err := Write(results.New(), t.TempDir()); err != nil {
		t.Error(err)
	}
}

func read(t *testing.T, file string) *results.Results {
	t.Helper()
	r, err := results.Read(filepath.Join(docs, "benchmarks", file))
	if err != nil || len(r.Waits) == 0 {
		t.Fatalf("%s has %d attacks: %v", file, len(r.Waits), err)
	}
	return r
}

// TestVerdictsUnderLoad compares the verdicts of the page with those of the run beside CPU hogs.
func TestVerdictsUnderLoad(t *testing.T) {
	quietRun, loadedRun := read(t, "results.json"), read(t, "hogs.json")
	if quiet, loaded := quietRun.Versions["ours"], loadedRun.Versions["ours"]; quiet != loaded {
		t.Errorf("the runs are of %s and %s", quiet, loaded)
	}
	loadedly := targets(loadedRun)
	for i, quiet := range targets(quietRun) {
		if loaded := loadedly[i]; quiet.Verdict() != loaded.Verdict() {
			t.Errorf("%s: %s of %v, beside CPU hogs %s of %v", quiet.Figure, quiet.Verdict(), quiet.Got, loaded.Verdict(), loaded.Got)
		}
	}
}

// TestVerdict: a target is decided only if its bound is not within the interval.
func TestVerdict(t *testing.T) {
	for _, row := range []struct {
		sign string
		got  spread
		want string
	}{
		{"≤", nil, notMeasured}, {"≤", spread{1, 0.5}, met}, {"≤", spread{1.1, 1.2}, missed}, {"≤", spread{0.5, 1.2}, undecided},
		{"<", spread{0.9}, met}, {"<", spread{1}, missed}, {"≥", spread{1}, met}, {"≥", spread{0.9}, missed}, {"≥", spread{0.9, 1.1}, undecided},
	} {
		if got := (target{sign: row.sign, bound: 1, Got: row.got}).Verdict(); got != row.want {
			t.Errorf("%v with a target of %s 1: %s, want %s", row.got, row.sign, got, row.want)
		}
	}
}

// TestInterval: with six measurements, the median is between the extremes with a probability of
// 1-2/2^6; with nine, between the second and the eighth with one of 1-2*10/2^9.
func TestInterval(t *testing.T) {
	for _, row := range []struct{ of, want spread }{
		{spread{1}, spread{1, 1}}, {spread{3, 1, 2}, spread{1, 3}}, {spread{6, 5, 4, 3, 2, 1}, spread{1, 6}},
		{spread{1, 2, 3, 4, 5, 6, 7, 8}, spread{1, 8}}, {spread{9, 1, 2, 3, 4, 5, 6, 7, 8}, spread{2, 8}},
	} {
		if low, high := row.of.interval(); low != row.want[0] || high != row.want[1] {
			t.Errorf("the median of %v is within %v and %v, want %v", []float64(row.of), low, high, row.want)
		}
	}
}
