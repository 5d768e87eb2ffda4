// SPDX-License-Identifier: Apache-2.0

// Tests of targets, numbers and the page.

package report

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"example.com/sample-controller/test/bench/internal/measure"
	"example.com/sample-controller/test/bench/internal/results"
)

// measured returns a run that meets each target exactly.
func measured() *results.Results {
	r := results.New()
	trial := func(rate, converged, minute float64) []results.Run {
		return []results.Run{
			{Round: 1, Foos: 10, Seconds: 10 / rate, CPUConverged: converged, CPUSettled: minute, SettledSeconds: 61, Rest: results.Rest{Seconds: 60}},
			{Round: 2, Foos: 10, Seconds: 20 / rate, CPUConverged: 2 * converged},
		}
	}
	r.Tables[results.Installed] = results.Table{
		ours: trial(300, 6, 6), unlimited: trial(300/0.75, 6, 10), onRuntime: trial(300/0.75, 7, 10),
	}
	r.Tables[results.GoRun] = results.Table{ours: trial(300, 6, 7), unlimited: trial(300/0.75, 6, 14)}
	r.Tables[results.Bare] = results.Table{ours: trial(300, 6, 7), bareSame: trial(300/0.75, 4, 5), "upstream": trial(10, 9, 9)[:1]}
	holdings := func(mebibytes float64) []results.Run {
		return []results.Run{{Round: 1, PeakMiB: 9}, {Round: 1, Objects: 1000, PeakMiB: mebibytes}}
	}
	r.Tables[results.Settled] = results.Table{ours: holdings(33), unlimited: holdings(30), onRuntime: holdings(40)}
	r.Tables[results.Foreign] = r.Tables[results.Settled]
	r.Tables[results.Peak] = results.Table{ours: {{Foos: 10, PeakMiB: 30}}, unlimited: {{Foos: 10, PeakMiB: 31}}}
	r.Tables[results.Large] = results.Table{
		ours:      {{Foos: 1, Objects: 10000, Seconds: 1, IdleSeconds: 2, CPUIdle: 3000, PeakMiB: 90, Rest: results.Rest{Seconds: 60}}},
		onRuntime: {{Foos: 1, Objects: 10000, PeakMiB: 91}},
	}
	r.Tables[results.Whole] = results.Table{
		ours: {{Foos: 10, HalfSeconds: 7.5, Calls: map[string]float64{
			"create deployments": 10, "update foos/status": 20, "create events": 20, "get foos": 90,
		}}},
		unlimited: {{Foos: 10, HalfSeconds: 7.6}}, onRuntime: {{Foos: 10, HalfSeconds: 6}},
	}
	r.Tables[results.Restart][ours] = []results.Run{{Foos: 1, Calls: map[string]float64{"list foos": 1}}}
	for _, attack := range measure.Attacks {
		r.Waits[attack.Name] = map[string][]results.Wait{ours: {{P50: 1, P99: 3}}}
	}
	r.Waits[measure.Idle][ours] = []results.Wait{{P50: 0.5, P99: 1}}
	r.Waits[measure.Hanging][ours] = []results.Wait{{P50: 1, P99: 20}}
	r.Profiles = map[string]map[string]float64{ours: {"garbage collector": 50}, bareSame: {"garbage collector": 40}}
	return r
}

func TestTargets(t *testing.T) {
	expect := func(r *results.Results, want string) {
		t.Helper()
		for _, target := range targets(r) {
			if got := target.Verdict(); got != want {
				t.Errorf("%s: %v with a target of %v: %s, want %s", target.Figure, target.Got, target.Bound(), got, want)
			}
		}
	}
	expect(measured(), met)
	expect(results.New(), notMeasured)
	r := measured()
	for _, table := range []string{results.Installed, results.GoRun, results.Bare} {
		for i := range r.Tables[table][ours] {
			run := &r.Tables[table][ours][i]
			run.Seconds, run.CPUConverged, run.CPUSettled = 11*run.Seconds, 1.1*run.CPUConverged, 1.1*run.CPUSettled
			run.Rest.Calls = map[string]float64{"get foos": 1}
		}
	}
	r.Tables[results.Settled][ours][1].PeakMiB, r.Tables[results.Large][ours][0].PeakMiB = 34, 91
	r.Tables[results.Peak][ours] = []results.Run{{Foos: 10, PeakMiB: 31}}
	r.Tables[results.Whole][ours] = []results.Run{{Foos: 100, HalfSeconds: 8, Calls: map[string]float64{
		"create deployments": 100, "update foos/status": 201, "create events": 100, "patch events": 101,
	}}}
	r.Tables[results.Restart][ours] = []results.Run{{Calls: map[string]float64{"patch foos": 1}}}
	r.Waits[measure.Idle][ours] = []results.Wait{{P99: 0.9}}
	expect(r, missed)
}

// TestVerdictNeedsTheWholeInterval: more rounds are made only while a bound is within the
// interval.
func TestVerdictNeedsTheWholeInterval(t *testing.T) {
	r := measured()
	if Undecided(r, results.Whole) {
		t.Error("a target that is met is undecided")
	}
	for _, table := range []string{ours, unlimited} {
		r.Tables[results.Whole][table] = append(r.Tables[results.Whole][table], results.Run{Round: 1, Foos: 10, HalfSeconds: 9})
	}
	if !Undecided(r, results.Whole) || Undecided(r, results.Bare) {
		t.Error("a target whose rounds disagree is decided")
	}
}

// TestRatios: the machine is half as fast in the second round, and the third failed for one
// contender.
func TestRatios(t *testing.T) {
	mine := []results.Run{{Round: 1, PeakMiB: 300}, {Round: 2, PeakMiB: 150}, {Round: 3, PeakMiB: 310}, {Round: 4, PeakMiB: 290}}
	theirs := []results.Run{{Round: 1, PeakMiB: 150}, {Round: 2, PeakMiB: 75}, {Round: 4, PeakMiB: 100}}
	if got, want := ratios(mine, theirs, peakMiB), (spread{2, 2, 2.9}); !slices.Equal(got, want) {
		t.Errorf("the ratios are %v, want %v", got, want)
	}
	if got := ratios(mine, nil, peakMiB); len(got) > 0 {
		t.Errorf("the ratio to nothing is %v", got)
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

func TestNumber(t *testing.T) {
	for value, want := range map[float64]string{
		0: "0", 3: "3", 0.4: "0.4", 1234.5: "1234", 12.345: "12.3", 0.0123456: "0.0123", 593: "593", 100: "100", 2.50: "2.5", 99.96: "100", 7622: "7622",
	} {
		if got := number(value); got != want {
			t.Errorf("number(%v) = %q, want %q", value, got, want)
		}
	}
}

// TestVerdictsUnderLoad compares the verdicts of the page with those of the run beside CPU hogs.
func TestVerdictsUnderLoad(t *testing.T) {
	both := make([]*results.Results, 2)
	for i, file := range []string{"results.json", "hogs.json"} {
		var err error
		if both[i], err = results.Read("../../../../docs/benchmarks/" + file); err != nil {
			t.Fatal(err)
		}
	}
	if quiet, loaded := both[0].Versions["ours"], both[1].Versions["ours"]; quiet != loaded {
		t.Errorf("the runs are of %s and %s", quiet, loaded)
	}
	quietly := targets(both[0])
	for i, loaded := range targets(both[1]) {
		if quiet := quietly[i]; quiet.Verdict() != loaded.Verdict() {
			t.Errorf("%s: %s of %v, beside CPU hogs %s of %v", quiet.Figure, quiet.Verdict(), quiet.Got, loaded.Verdict(), loaded.Got)
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
			if bars := "    bar [0.6, 1, 1]\n"; strings.Contains(string(page), bars) != measured {
				t.Errorf("the page has %q: %t", bars, !measured)
			}
			read, err := results.Read(filepath.Join(folder, "benchmarks/results.json"))
			if err != nil || len(read.Tables[results.Installed]) != len(r.Tables[results.Installed]) {
				t.Errorf("reading the results beside the page: %v, %v", read, err)
			}
		})
	}
}
