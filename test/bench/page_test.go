// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"testing"
)

// TestPageIsUpToDate also writes one of no results.
func TestPageIsUpToDate(t *testing.T) {
	const docs = "../../docs/"
	want, err := os.ReadFile(docs + "benchmarks.md")
	if err != nil {
		t.Fatal(err)
	}
	found, err := readResults(docs + "benchmarks/results.json")
	if err != nil || len(found.Measurements) == 0 {
		t.Fatalf("%d measurements: %v", len(found.Measurements), err)
	}
	got, err := render(found)
	if err != nil || string(got) != string(want) {
		t.Errorf("docs/benchmarks.md is not made of its results (%v): run make bench-report", err)
	}
	if err := writePage(&results{}, t.TempDir()); err != nil {
		t.Error(err)
	}
}

func TestVerdict(t *testing.T) {
	for _, row := range []struct {
		sign string
		got  spread
		want string
	}{
		{"≤", nil, "not measured"}, {"≤", spread{1: 0.5, 2: 1, 3: 1.2}, "met"}, {"≤", spread{1: 0.5, 2: 1.1, 3: 1.2}, "**missed**"},
		{"<", spread{1: 0.9}, "met"}, {"<", spread{1: 1}, "**missed**"}, {"≥", spread{1: 1}, "met"}, {"≥", spread{1: 0.9}, "**missed**"},
	} {
		if got := (target{sign: row.sign, bound: 1, Got: row.got}).Verdict(); got != row.want {
			t.Errorf("%v with a target of %s 1: %s, want %s", row.got, row.sign, got, row.want)
		}
	}
}
