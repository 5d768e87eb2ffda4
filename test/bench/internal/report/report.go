// SPDX-License-Identifier: Apache-2.0

// Package report writes the results of the benchmark as a page.
package report

import (
	"bytes"
	_ "embed"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"text/template"

	"example.com/sample-controller/test/bench/internal/measure"
	"example.com/sample-controller/test/bench/internal/results"
)

// page is the template of the page.
//
//go:embed benchmarks.md.tmpl
var page string

// Write writes benchmarks.md into a directory, and a copy of the results into benchmarks/ in it.
// The page has the verdicts of hogs.json there, too.
func Write(r *results.Results, folder string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	hogs, err := results.Read(filepath.Join(folder, "benchmarks/hogs.json"))
	if err != nil {
		return err
	}
	text, err := render(r, hogs)
	if err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	if err := os.WriteFile(filepath.Join(folder, "benchmarks.md"), text, 0o644); err != nil {
		return err
	}
	return r.Write(filepath.Join(folder, "benchmarks/results.json"))
}

func render(r, hogs *results.Results) ([]byte, error) {
	loaded := targets(hogs)
	tmpl, err := template.New("page").Funcs(template.FuncMap{
		"besideHogs": func(i int) string { return loaded[i].Verdict() },
		"names":      names, "targets": targets, "rows": rows, "kinds": kinds, "first": first, "waits": waits, "profileParts": measure.ProfileParts, "holdings": holdings, "milliseconds": milliseconds,
		"contenders": func() []string { return Contenders[:3] }, "profiled": func() []string { return append(Contenders[:3:3], bareSame) }, "cpuOfBare": cpuOfBare, "mostRounds": func() int { return MostRounds },
		"number": number, "count": count, "seconds": seconds, "thousandth": func(n float64) float64 { return n / 1000 }, "perObject": perObject,
	}).Parse(page)
	if err != nil {
		return nil, err
	}
	var text bytes.Buffer
	err = tmpl.Execute(&text, r)
	return text.Bytes(), err
}

const (
	ours      = "ours"
	unlimited = "upstream-unlimited"
	onRuntime = "controller-runtime"
	bareSame  = "bare-same-writes"
)

// Contenders are the names of all contenders, in the order of the tables.
var Contenders = []string{ours, unlimited, onRuntime, "upstream", bareSame, "bare"}

// MostRounds is how often contenders are compared at most.
const MostRounds = 15

// names returns those of the contenders that a table has, in order.
func names(of results.Table) []string {
	return slices.DeleteFunc(slices.Clone(Contenders), func(name string) bool { return len(of[name]) == 0 })
}

// waitRow is what the tenants of each contender wait beside an attack.
type waitRow struct {
	Name string
	// Half and Most hold the waits of 50% and 99% of the Foos by contender, in seconds.
	Half, Most map[string]spread
	// TimesIdle is the wait of 99% of ours, compared with the median of that beside nothing.
	TimesIdle spread
}

// waits returns the row of each attack.
func waits(r *results.Results) (rows []waitRow) {
	for _, attack := range measure.Attacks {
		row := waitRow{Name: attack.Name, Half: map[string]spread{}, Most: map[string]spread{}}
		for name, measured := range r.Waits[attack.Name] {
			for _, wait := range measured {
				row.Half[name] = append(row.Half[name], wait.P50)
				row.Most[name] = append(row.Most[name], wait.P99)
			}
		}
		rows = append(rows, row)
	}
	for i := range rows { // nothing is the first
		for _, wait := range rows[i].Most[ours] {
			if idle := rows[0].Most[ours].Median(); idle > 0 {
				rows[i].TimesIdle = append(rows[i].TimesIdle, wait/idle)
			}
		}
	}
	return rows
}

// figure is one of the figures of a run.
type figure func(results.Run) float64

func halfSeconds(r results.Run) float64  { return r.HalfSeconds }
func cpuConverged(r results.Run) float64 { return r.CPUConverged / float64(r.Foos) }
func cpuSettled(r results.Run) float64   { return r.CPUSettled / float64(r.Foos) }
func peakMiB(r results.Run) float64      { return r.PeakMiB }
func writes(r results.Run) float64       { return r.Calls.Writes() / float64(r.Foos) }

func spreadOf(runs []results.Run, of figure) (values spread) {
	for _, run := range runs {
		values = append(values, of(run))
	}
	return values
}

// settled returns the runs of a table that were also measured at rest. The others lack what
// happens later.
func settled(of results.Table) results.Table {
	found := results.Table{}
	for name, runs := range of {
		found[name] = slices.DeleteFunc(slices.Clone(runs), func(r results.Run) bool { return r.Rest.Seconds == 0 })
	}
	return found
}

// row summarizes the runs of a contender.
type row struct {
	Name                                   string
	Foos                                   int
	PerSecond, CPUConverged, Peak          spread
	CPUSettled, Writes, Refused            spread
	FirstSeconds, HalfSeconds, LastSeconds spread
	settled                                []results.Run
}

// rows summarizes the runs of each contender.
func rows(of results.Table) (all []row) {
	for _, name := range names(of) {
		runs := of[name]
		late, foos := settled(of)[name], float64(runs[0].Foos)
		r := row{
			Name: name, Foos: runs[0].Foos, settled: late,
			PerSecond:    spreadOf(runs, results.Run.PerSecond),
			CPUConverged: spreadOf(runs, cpuConverged), Peak: spreadOf(runs, peakMiB),
			CPUSettled: spreadOf(late, cpuSettled),
			Writes:     spreadOf(runs, writes), Refused: spreadOf(runs, func(r results.Run) float64 { return float64(r.Refused) / foos }),
			FirstSeconds: spreadOf(runs, func(r results.Run) float64 { return r.FirstSeconds }),
			HalfSeconds:  spreadOf(runs, halfSeconds),
			LastSeconds:  spreadOf(runs, func(r results.Run) float64 { return r.Seconds }),
		}
		if len(late) > 0 { // what happens later belongs to it
			r.Writes, r.Refused = spreadOf(late, writes), spreadOf(late, func(r results.Run) float64 { return float64(r.Refused) / foos })
		}
		all = append(all, r)
	}
	return all
}

// Calls summarizes the calls of a kind.
func (r row) Calls(kind string) spread {
	return spreadOf(r.settled, func(run results.Run) float64 { return run.Calls[kind] / float64(run.Foos) })
}

// first returns a contender's first run that was also measured at rest, or the first.
func first(of results.Table, name string) (run results.Run) {
	for _, run := range slices.Concat(settled(of)[name], of[name]) {
		return run
	}
	return run
}

// kinds returns the kinds of all calls of some runs.
func kinds(of results.Table) []string {
	found := map[string]bool{}
	for _, runs := range of {
		for _, run := range runs {
			for kind := range run.Calls {
				found[kind] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// cpuOfBare returns the CPU per Foo of the bare client with the same writes, compared with that
// of another contender, in their profiles.
func cpuOfBare(r *results.Results, other string) string {
	sum := func(parts map[string]float64) (all float64) {
		for _, part := range parts {
			all += part
		}
		return all
	}
	return number(sum(r.Profiles[bareSame]) / sum(r.Profiles[other]))
}

// number formats a value with three significant digits, or without decimals.
func number(value float64) string {
	if value >= 999.5 {
		return strconv.FormatFloat(value, 'f', 0, 64)
	}
	return strconv.FormatFloat(value, 'g', 3, 64)
}

// count formats calls per Foo. It distinguishes few from none.
func count(calls spread) string {
	if calls.Median() > 0 && calls.Median() < 0.005 {
		return "< 0.01"
	}
	return strconv.FormatFloat(math.Round(calls.Median()*100)/100, 'f', -1, 64)
}

// seconds formats a time, which is 0 if it was too long to be measured.
func seconds(s float64) string {
	if s == 0 {
		return "too long"
	}
	return number(s)
}

// holdings returns the runs of a contender with each number of objects, by that number, and the
// numbers in order.
func holdings(of results.Table) (sizes []int) {
	for _, run := range of[ours] {
		if !slices.Contains(sizes, run.Objects) {
			sizes = append(sizes, run.Objects)
		}
	}
	return sizes
}

// milliseconds formats the median of times in seconds.
func milliseconds(s spread) string {
	if s.n() == 0 {
		return ""
	}
	return number(s.Median() * 1000)
}

// perObject returns the median peak memory with a number of objects, and the KiB for each of
// them, compared with none.
func perObject(of results.Table, name string, objects int) string {
	peak := map[int]spread{}
	for _, run := range of[name] {
		peak[run.Objects] = append(peak[run.Objects], run.PeakMiB)
	}
	text := number(peak[objects].Median())
	if objects > 0 && len(peak[objects]) > 0 {
		text += fmt.Sprintf(" (%s)", number((peak[objects].Median()-peak[0].Median())*1024/float64(objects)))
	}
	return text
}
