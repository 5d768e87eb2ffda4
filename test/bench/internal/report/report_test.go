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
	for name, rate := range map[string]float64{
		ours: 300, bareSame: 300 / 0.95, "bare": 300 / 0.80, unlimited: 300 / 1.15, onRuntime: 300 / 1.65, "upstream": 6,
	} {
		r.Isolated[name] = []results.Trial{{Foos: 10, PerSecond: rate, PerSecondEvents: rate / 2, CPUSettled: 1000, SettledSeconds: 1}}
	}
	for name, cpu := range map[string]float64{ours: 0.6, unlimited: 1.5, onRuntime: 1} {
		r.Isolated[name] = append(r.Isolated[name], results.Trial{PerSecond: r.Isolated[name][0].PerSecond, CPUSettled: cpu, SettledSeconds: 45})
	}
	for name, mebibytes := range map[string]float64{ours: 30, unlimited: 31} {
		holdings := []results.Holding{{PeakMiB: mebibytes}, {Objects: 1000, PeakMiB: mebibytes + 10}}
		r.Memory.Foos[name], r.Memory.Foreign[name] = holdings, holdings
		r.Memory.Peak[name] = []results.Trial{{Foos: 10, PeakMiB: mebibytes}}
	}
	r.Large = results.Large{Foos: 9000, Starts: map[string]results.Start{
		ours:      {ReadySeconds: 1, PassSeconds: 2, CPUSeconds: 3, Holding: results.Holding{PeakMiB: 90}, Rest: results.Rest{Seconds: 60}},
		onRuntime: {Holding: results.Holding{PeakMiB: 91}},
	}}
	r.Whole[ours] = []results.Trial{{PerSecond: 33, HalfSeconds: 7, Calls: map[string]float64{
		"create deployments": 1, "update foos/status": 2, "create events": 2, "get foos": 9,
	}}}
	r.Whole[unlimited] = []results.Trial{{PerSecond: 30, HalfSeconds: 10}}
	r.Rest[ours] = results.Rest{Seconds: 60}
	r.Restart[ours] = results.Restart{Calls: map[string]float64{"list foos": 1}}
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
	r.Isolated[ours] = []results.Trial{{PerSecond: 5, PerSecondEvents: 1, CPUSettled: 3, SettledSeconds: 45}}
	r.Memory.Foreign[ours] = []results.Holding{{PeakMiB: 31}}
	r.Memory.Peak[ours] = []results.Trial{{PeakMiB: 31}}
	r.Large.Starts[ours] = results.Start{Holding: results.Holding{PeakMiB: 91}}
	r.Whole[ours] = []results.Trial{{PerSecond: 32, HalfSeconds: 8, Calls: map[string]float64{
		"create deployments": 1, "update foos/status": 2.01, "create events": 1, "patch events": 1.01,
	}}}
	r.Rest[ours] = results.Rest{Seconds: 60, Calls: map[string]float64{"get foos": 1}}
	r.Restart[ours] = results.Restart{Calls: map[string]float64{"patch foos": 1}}
	for _, target := range targets(r) {
		if target.Got.n == 0 || target.met() {
			t.Errorf("%s: %v with a target of %v: not missed", target.Figure, target.Got, target.Bound())
		}
	}
}

// TestRatios: the machine is half as fast in the second round, and only one contender has a
// fourth.
func TestRatios(t *testing.T) {
	trials := func(rates ...float64) (all []results.Trial) {
		for _, rate := range rates {
			all = append(all, results.Trial{PerSecond: rate})
		}
		return all
	}
	if got, want := ratios(trials(300, 150, 310, 290), trials(150, 75, 100), perSecond), (spread{2, 2, 3.1, 3}); got != want {
		t.Errorf("the ratios are %v, want %v", got, want)
	}
	if got := ratios(trials(300), nil, perSecond); got.n > 0 {
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
			measured := r.Large.Foos > 0
			if row := "| ours | 1 | 2 | 3 | 90 |"; strings.Contains(string(page), row) != measured {
				t.Errorf("the page has %q: %t", row, !measured)
			}
			if bars := "    bar [300, 261, 182, 6, 316, 375]\n"; strings.Contains(string(page), bars) != measured {
				t.Errorf("the page has %q: %t", bars, !measured)
			}
			read, err := results.Read(filepath.Join(folder, "benchmarks/results.json"))
			if err != nil || len(read.Isolated) != len(r.Isolated) {
				t.Errorf("reading the results beside the page: %v, %v", read, err)
			}
		})
	}
}
