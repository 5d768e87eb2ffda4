// SPDX-License-Identifier: Apache-2.0

// The results as a page: medians, and whether they reach the targets.

package main

import (
	"bytes"
	_ "embed"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/template"

	"k8s.io/apimachinery/pkg/util/sets"
)

// page is the template of the page.
//
//go:embed benchmarks.md.tmpl
var page string

// writePage writes benchmarks.md into a directory, and a copy of the results into benchmarks/ in it.
func writePage(r *results, folder string) error {
	text, err := render(r)
	if err != nil {
		return fmt.Errorf("writing the page: %w", err)
	}
	if err := r.write(filepath.Join(folder, "benchmarks/results.json")); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, "benchmarks.md"), text, 0o644)
}

func render(r *results) ([]byte, error) {
	tmpl, err := template.New("page").Funcs(template.FuncMap{
		"targets": func() []target { return targets(r) }, "rows": r.rows, "memory": r.memory, "pairs": r.pairs, "ours": r.ours,
		"attacks": func() (names []string) {
			for _, attack := range attacks {
				names = append(names, attack.name)
			}
			return names
		},
	}).Parse(page)
	if err != nil {
		return nil, err
	}
	var text bytes.Buffer
	err = tmpl.Execute(&text, r)
	return text.Bytes(), err
}

// ours returns the version of ours that was measured, with the tables of each if there are several.
func (r *results) ours() string {
	tables := map[string]sets.Set[string]{}
	for _, m := range r.Measurements {
		if tables[m.Of] == nil {
			tables[m.Of] = sets.New[string]()
		}
		tables[m.Of].Insert(m.Table)
	}
	var texts []string
	for _, version := range slices.Sorted(maps.Keys(tables)) {
		if len(tables) > 1 {
			version += " (" + strings.Join(sets.List(tables[version]), ", ") + ")"
		}
		texts = append(texts, version)
	}
	return strings.Join(texts, "; ")
}

// spread holds the same figure by round.
type spread map[int]float64

func (r *results) spread(table, contender string, objects int, figure string) spread {
	found := spread{}
	for _, m := range r.Measurements {
		if value, is := m.Figures[figure]; is && m.Table == table && m.Contender == contender && m.Objects == objects {
			found[m.Round] = value
		}
	}
	return found
}

// median returns the median, or 0 if there is no measurement.
func (s spread) median() float64 {
	if len(s) == 0 {
		return 0
	}
	sorted := s.sorted()
	return (sorted[(len(s)-1)/2] + sorted[len(s)/2]) / 2
}

func (s spread) sorted() (values []float64) {
	for _, value := range s {
		values = append(values, value)
	}
	slices.Sort(values)
	return values
}

// String formats the median, with the extremes if the measurements differ.
func (s spread) String() string {
	if len(s) == 0 {
		return ""
	}
	sorted := s.sorted()
	text, low, high := number(s.median()), number(sorted[0]), number(sorted[len(sorted)-1])
	if low == high {
		return text
	}
	return fmt.Sprintf("%s (%s–%s)", text, low, high)
}

// number formats a value with three significant digits, or without decimals.
func number(value float64) string {
	switch {
	case value >= 999.5:
		return strconv.FormatFloat(value, 'f', 0, 64)
	case value > 0 && value < 0.01:
		return "< 0.01"
	}
	return strconv.FormatFloat(value, 'g', 3, 64)
}

// rows are the lines of a Markdown table, each of a contender and a number of objects, with
// figures in the columns. The figure "objects" is that number.
func (r *results) rows(table string, figures ...string) string {
	var text strings.Builder
	for _, contender := range append(slices.Clone(contenders), limited, oneOfTwo) {
		for _, objects := range r.objects(table, contender) {
			fmt.Fprintf(&text, "\n| %s |", contender)
			for _, figure := range figures {
				if figure == "objects" {
					fmt.Fprintf(&text, " %d |", objects)
					continue
				}
				fmt.Fprintf(&text, " %s |", r.spread(table, contender, objects, figure))
			}
		}
	}
	return text.String()
}

// pairs are the lines of a table with a figure of each contender, and of ours at the same time.
func (r *results) pairs(figure string) string {
	var text strings.Builder
	for _, other := range contenders[1:] {
		table := tableWith(other)
		fmt.Fprintf(&text, "\n| %s | %s | %s |", other, r.spread(table, other, 0, figure), r.spread(table, ours, 0, figure))
	}
	return text.String()
}

// objects returns the numbers of objects of a contender in a table, in ascending order.
func (r *results) objects(table, contender string) (numbers []int) {
	for _, m := range r.Measurements {
		if m.Table == table && m.Contender == contender {
			numbers = append(numbers, m.Objects)
		}
	}
	slices.Sort(numbers)
	return slices.Compact(numbers)
}

// memory are lines of a table with the median peak memory beside objects, and the KiB for each of
// them, compared with none: a line for each number, and a column for each controller.
func (r *results) memory(table string) string {
	var text strings.Builder
	for _, objects := range r.objects(table, ours) {
		fmt.Fprintf(&text, "\n| %d |", objects)
		for _, contender := range []string{ours, unlimited, onRuntime} {
			used := r.spread(table, contender, objects, peakMiB).median()
			fmt.Fprintf(&text, " %s", number(used))
			if objects > 0 && used > 0 {
				fmt.Fprintf(&text, " (%s)", number((used-r.spread(table, contender, 0, peakMiB).median())*1024/float64(objects)))
			}
			text.WriteString(" |")
		}
	}
	return text.String()
}

// target is a figure to reach.
type target struct {
	Figure string
	// sign is what the figure has to be, compared with the bound: ≥, ≤ or <.
	sign  string
	bound float64
	// Got is what was measured, in each round. It is empty if a measurement is missing.
	Got spread
}

// Bound formats what to reach.
func (t target) Bound() string { return t.sign + " " + number(t.bound) }

// Verdict says whether the median of the figure reaches the bound.
func (t target) Verdict() string {
	got := t.Got.median()
	switch {
	case len(t.Got) == 0:
		return "not measured"
	case t.sign == "≥" && got >= t.bound, t.sign == "≤" && got <= t.bound, t.sign == "<" && got < t.bound:
		return "met"
	}
	return "**missed**"
}

// targets returns all targets, with the figures of a run.
func targets(r *results) (list []target) {
	value := func(text, table, figure, sign string, bound float64) {
		list = append(list, target{text, sign, bound, r.spread(table, ours, 0, figure)})
	}
	ratio := func(text, table string, objects int, figure, other, sign string, bound float64) {
		list = append(list, target{text + " / " + other, sign, bound, ratios(
			r.spread(table, ours, objects, figure), r.spread(table, other, objects, figure))})
	}
	ratio("CPU per Foo until it has converged and has an Event", tableWith(unlimited), 0, cpuEvents, unlimited, "≤", 1)
	ratio("the same", tableWith(onRuntime), 0, cpuEvents, onRuntime, "≤", 0.78)
	ratio("the same", tableWith(bare), 0, cpuEvents, bare, "≤", 1.15)
	ratio("CPU per Foo with the minute after", asInstalled, 0, cpuRested, unlimited, "≤", 0.6)
	ratio("throughput", asInstalled, 0, perSecond, bare, "≥", 0.75)
	ratio("throughput", asInstalled, 0, perSecond, unlimited, "≥", 0.75)
	ratio("throughput", asInstalled, 0, perSecond, onRuntime, "≥", 0.75)
	ratio("throughput, as with go run", asGoRun, 0, perSecond, unlimited, "≥", 0.75)
	ratio("time until half of the Foos are available, whole control plane", whole, 0, half, unlimited, "<", 1)
	ratio("the same", whole, 0, half, onRuntime, "≤", 1.25)
	value("writes per new Foo, whole control plane", whole, writes, "≤", 5)
	for _, objects := range []int{100, 1000, 10000} {
		text := fmt.Sprintf("peak memory beside %d settled Foos", objects)
		ratio(text, settled, objects, peakMiB, unlimited, "<", 1)
		ratio(text, settled, objects, peakMiB, onRuntime, "<", 1)
	}
	ratio("peak memory beside 50000 settled Foos", large, 50000, peakMiB, unlimited, "<", 1)
	for _, contender := range []string{ours, limited} {
		list = append(list, target{"peak MiB beside 100000 settled Foos, " + contender, "≤", 600, r.spread(large, contender, 100000, peakMiB)})
	}
	ratio("peak memory while Foos converge beside as many foreign Deployments", peak, 0, peakMiB, unlimited, "<", 1)
	value("calls in the minute after", asInstalled, restCalls, "≤", 0)
	list = append(list, target{"writes at a start beside 1000 settled Foos", "≤", 0, r.spread(settled, ours, 1000, writes)})
	for _, attack := range attacks[1:] {
		limit := 3.0
		if attack.name != attacks[1].name {
			limit = 20 // nothing shows beforehand that a call will hang
		}
		list = append(list, target{"wait of 99% of a tenant's Foos beside " + attack.name + " / beside nothing", "≤", limit, ratios(
			r.spread(attack.name, ours, 0, waitMost), r.spread(nothing, ours, 0, waitMost))})
	}
	return list
}

// ratios returns the ratio of two figures in each round.
func ratios(a, b spread) spread {
	found := spread{}
	for round, value := range a {
		if b[round] > 0 {
			found[round] = value / b[round]
		}
	}
	return found
}
