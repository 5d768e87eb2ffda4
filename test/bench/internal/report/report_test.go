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
	isolated := r.Tables[results.Isolated]
	for name, rate := range map[string]float64{
		ours: 300, bareSame: 300 / 0.95, "bare": 300 / 0.80, unlimited: 300 / 1.15, onRuntime: 300 / 1.65, "upstream": 6,
	} {
		isolated[name] = []results.Run{{Foos: 10, Seconds: 10 / rate, EventSeconds: 20 / rate, CPUSettled: 10000, SettledSeconds: 1}}
	}
	for name, cpu := range map[string]float64{ours: 6, unlimited: 15, onRuntime: 10} {
		isolated[name] = append(isolated[name], results.Run{
			Foos: 10, Seconds: isolated[name][0].Seconds, CPUSettled: cpu, SettledSeconds: 45, Rest: results.Rest{Seconds: 60},
		})
	}
	for name, mebibytes := range map[string]float64{ours: 30, unlimited: 31} {
		holdings := []results.Run{{PeakMiB: mebibytes}, {Objects: 1000, PeakMiB: mebibytes + 10}}
		r.Tables[results.Settled][name], r.Tables[results.Foreign][name] = holdings, holdings
		r.Tables[results.Peak][name] = []results.Run{{Foos: 10, PeakMiB: mebibytes}}
	}
	r.Tables[results.Large] = results.Table{
		ours:      {{Foos: 1, Objects: 9000, Seconds: 1, IdleSeconds: 2, CPUIdle: 3000, PeakMiB: 90, Rest: results.Rest{Seconds: 60}}},
		onRuntime: {{Foos: 1, Objects: 9000, PeakMiB: 91}},
	}
	r.Tables[results.Whole][ours] = []results.Run{{Foos: 10, Seconds: 10. / 33, HalfSeconds: 7, Calls: map[string]float64{
		"create deployments": 10, "update foos/status": 20, "create events": 20, "get foos": 90,
	}}}
	r.Tables[results.Whole][unlimited] = []results.Run{{Foos: 10, Seconds: 10. / 30, HalfSeconds: 10}}
	r.Tables[results.Restart][ours] = []results.Run{{Foos: 1, Calls: map[string]float64{"list foos": 1}}}
	return r
}

func TestTargets(t *testing.T) {
	for _, target := range targets(measured()) {
		if !target.met() {
			t.Errorf("%s: %v with a target of %v: not met", target.Figure, target.Got, target.Bound())
		}
	}
	for _, target := range targets(results.New()) {
		if target.Got.n > 0 || target.met() {
			t.Errorf("%s: met or measured without a measurement", target.Figure)
		}
	}
	r := measured()
	r.Tables[results.Isolated][ours] = []results.Run{{
		Foos: 10, Seconds: 2, EventSeconds: 10, CPUSettled: 30, SettledSeconds: 45,
		Rest: results.Rest{Seconds: 60, Calls: map[string]float64{"get foos": 1}},
	}}
	r.Tables[results.Foreign][ours] = []results.Run{{PeakMiB: 31}}
	r.Tables[results.Peak][ours] = []results.Run{{Foos: 10, PeakMiB: 31}}
	r.Tables[results.Large][ours] = []results.Run{{Objects: 9000, PeakMiB: 91}}
	r.Tables[results.Whole][ours] = []results.Run{{Foos: 100, Seconds: 100. / 32, HalfSeconds: 8, Calls: map[string]float64{
		"create deployments": 100, "update foos/status": 201, "create events": 100, "patch events": 101,
	}}}
	r.Tables[results.Restart][ours] = []results.Run{{Calls: map[string]float64{"patch foos": 1}}}
	for _, target := range targets(r) {
		if target.Got.n == 0 || target.met() {
			t.Errorf("%s: %v with a target of %v: not missed", target.Figure, target.Got, target.Bound())
		}
	}
}

// TestRatios: the machine is half as fast in the second round, and only one contender has a
// fourth.
func TestRatios(t *testing.T) {
	runs := func(rates ...float64) (all []results.Run) {
		for _, rate := range rates {
			all = append(all, results.Run{PeakMiB: rate})
		}
		return all
	}
	if got, want := ratios(runs(300, 150, 310, 290), runs(150, 75, 100), peakMiB), (spread{2, 2, 3.1, 3}); got != want {
		t.Errorf("the ratios are %v, want %v", got, want)
	}
	if got := ratios(runs(300), nil, peakMiB); got.n > 0 {
		t.Errorf("the ratio to nothing is %v", got)
	}
}

func TestNumber(t *testing.T) {
	for value, want := range map[float64]string{
		0: "0", 3: "3", 0.4: "0.4", 1234.5: "1234", 12.345: "12.3", 0.0123456: "0.0123", 593: "593", 100: "100", 2.50: "2.5", 99.96: "100", 7622: "7622",
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
			measured := len(r.Tables[results.Large]) > 0
			if row := "| ours | 1 | 2 | 3 | 90 |"; strings.Contains(string(page), row) != measured {
				t.Errorf("the page has %q: %t", row, !measured)
			}
			if bars := "    bar [300, 261, 182, 6, 316, 375]\n"; strings.Contains(string(page), bars) != measured {
				t.Errorf("the page has %q: %t", bars, !measured)
			}
			read, err := results.Read(filepath.Join(folder, "benchmarks/results.json"))
			if err != nil || len(read.Tables[results.Isolated]) != len(r.Tables[results.Isolated]) {
				t.Errorf("reading the results beside the page: %v, %v", read, err)
			}
		})
	}
}
