// SPDX-License-Identifier: Apache-2.0

// Tests of targets, numbers and the page.

package report

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"example.com/sample-controller/test/bench/internal/results"
)

// measured returns a run that meets each target exactly.
func measured() *results.Results {
	r := results.New()
	for name, perSecond := range map[string]float64{
		"ours": 300, "bare-same-writes": 300 / 0.95, "bare": 300 / 0.80, "upstream-unlimited": 300 / 1.15, "controller-runtime": 300 / 1.65, "upstream": 6,
	} {
		r.Isolated[name] = []results.Trial{{Foos: 10, PerSecond: perSecond, PerSecondEvents: perSecond / 2, CPUSettled: 1000, SettledSeconds: 1}}
	}
	for name, cpu := range map[string]float64{"ours": 0.6, "upstream-unlimited": 1.5, "controller-runtime": 1} {
		r.Isolated[name] = append(r.Isolated[name], results.Trial{PerSecond: r.Isolated[name][0].PerSecond, CPUSettled: cpu, SettledSeconds: 45})
	}
	holdings := []results.Holding{{PeakMiB: 30}, {Objects: 1000, PeakMiB: 40}}
	r.Memory["ours"] = results.Memory{Foos: holdings, Foreign: holdings, Peak: []results.Trial{{Foos: 10, PeakMiB: 40}}}
	more := []results.Holding{{PeakMiB: 31}, {Objects: 1000, PeakMiB: 41}}
	r.Memory["upstream-unlimited"] = results.Memory{Foos: more, Foreign: more, Peak: []results.Trial{{Foos: 10, PeakMiB: 41}}}
	r.Large = results.Large{Foos: 9000, Starts: map[string]results.Start{
		"ours":               {ReadySeconds: 1, PassSeconds: 2, CPUSeconds: 3, Holding: results.Holding{PeakMiB: 90}, Rest: results.Rest{Seconds: 60}},
		"controller-runtime": {Holding: results.Holding{PeakMiB: 91}},
	}}
	r.Whole["ours"] = []results.Trial{{PerSecond: 33, HalfSeconds: 7, Calls: map[string]float64{"create deployments": 1, "update foos/status": 2, "create events": 2, "get foos": 9}}}
	r.Whole["upstream-unlimited"] = []results.Trial{{PerSecond: 30, HalfSeconds: 10}}
	r.Rest["ours"] = results.Rest{Seconds: 60}
	r.Restart["ours"] = results.Restart{Calls: map[string]float64{"list foos": 1}}
	return r
}

func TestTargetsMet(t *testing.T) {
	for _, target := range Targets(measured()) {
		if !target.Met() {
			t.Errorf("%s: %v with a target of %v: not met", target.Figure, target.Got, target.Bound)
		}
	}
}

func TestTargetsNotMeasured(t *testing.T) {
	for _, target := range Targets(results.New()) {
		if target.Measured || target.Met() {
			t.Errorf("%s: met or measured without a measurement", target.Figure)
		}
	}
}

func TestTargetsMissed(t *testing.T) {
	r := measured()
	r.Isolated["ours"] = []results.Trial{{PerSecond: 5, PerSecondEvents: 1, CPUSettled: 3, SettledSeconds: 45}}
	r.Memory["ours"] = results.Memory{
		Foos: r.Memory["ours"].Foos, Foreign: []results.Holding{{PeakMiB: 31}}, Peak: []results.Trial{{PeakMiB: 41}},
	}
	r.Large.Starts["ours"] = results.Start{Holding: results.Holding{PeakMiB: 91}}
	r.Whole["ours"] = []results.Trial{{PerSecond: 32, HalfSeconds: 8, Calls: map[string]float64{"create deployments": 1, "update foos/status": 2.01, "create events": 1, "patch events": 1.01}}}
	r.Rest["ours"] = results.Rest{Seconds: 60, Calls: map[string]float64{"get foos": 1}}
	r.Restart["ours"] = results.Restart{Calls: map[string]float64{"patch foos": 1}}
	for _, target := range Targets(r) {
		if !target.Measured || target.Met() {
			t.Errorf("%s: %v with a target of %v: not missed", target.Figure, target.Got, target.Bound)
		}
	}
}

func TestRatioIsTheMedianOfRounds(t *testing.T) {
	trials := func(rates ...float64) (all []results.Trial) {
		for _, rate := range rates {
			all = append(all, results.Trial{PerSecond: rate})
		}
		return all
	}
	// The machine is half as fast in the second round, and only one contender has a
	// fourth.
	target := paired("", true, 2, trials(300, 150, 310, 290), trials(150, 75, 100), perSecond)
	if target.Got != 2 || target.Range.Max != 3.1 || !target.Met() {
		t.Errorf("the ratio is %+v", target)
	}
	if paired("", true, 2, trials(300), nil, perSecond).Measured {
		t.Error("a ratio to nothing counts as measured")
	}
}

// TestMemoryIsThatOfTheHeaviestSize: one size at which a peer needs no more is enough to
// miss the target.
func TestMemoryIsThatOfTheHeaviestSize(t *testing.T) {
	r := results.New()
	r.Memory["ours"] = results.Memory{Foos: []results.Holding{{PeakMiB: 10}, {Objects: 7, PeakMiB: 60}, {Objects: 8, PeakMiB: 50}}}
	r.Memory["controller-runtime"] = results.Memory{Foos: []results.Holding{{PeakMiB: 20}, {Objects: 7, PeakMiB: 50}, {Objects: 8, PeakMiB: 100}}}
	r.Memory["ours-before"] = results.Memory{Foos: []results.Holding{{PeakMiB: 5}}} // not a peer
	if target := lightest("", settledWeights(r)); target.Got != 1.2 || target.Met() {
		t.Errorf("the target is %+v, want a ratio of 1.2", target)
	}
}

func TestNumber(t *testing.T) {
	for value, want := range map[float64]string{
		0: "0", 3: "3", 0.4: "0.4", 1234.5: "1234", 12.345: "12.3", 0.0123456: "0.0123", 593: "593", 100: "100", 2.50: "2.5", 99.96: "100",
	} {
		if got := number(value); got != want {
			t.Errorf("number(%v) = %q, want %q", value, got, want)
		}
	}
}

// TestWrite writes a report of no results and one of all kinds of results.
func TestWrite(t *testing.T) {
	for name, r := range map[string]*results.Results{"nothing": results.New(), "everything": measured()} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			if err := Write(r, folder); err != nil {
				t.Fatal(err)
			}
			page, err := os.ReadFile(filepath.Join(folder, "benchmarks.md"))
			if err != nil {
				t.Fatal(err)
			}
			if row := "| ours | 1 | 2 | 3 | 90 |"; strings.Contains(string(page), row) != (r.Large.Foos > 0) {
				t.Errorf("the page has %q: %t", row, r.Large.Foos == 0)
			}
			for line := range strings.Lines(string(page)) {
				_, rest, isPlot := strings.Cut(line, "](benchmarks/")
				if !isPlot {
					continue
				}
				file, _, _ := strings.Cut(rest, ")")
				if _, err := os.Stat(filepath.Join(folder, "benchmarks", file)); err != nil {
					t.Errorf("the page refers to %s: %v", file, err)
				}
			}
			read, err := results.Read(filepath.Join(folder, "benchmarks", "results.json"))
			if err != nil || len(read.Isolated) != len(r.Isolated) {
				t.Errorf("reading the results beside the page: %v, %v", read, err)
			}
		})
	}
}
