// SPDX-License-Identifier: Apache-2.0

// Package report writes the results of the benchmark as a page with plots.
package report

import (
	"bytes"
	_ "embed"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/template"

	"example.com/sample-controller/test/bench/internal/results"
)

// page is the template of the page.
//
//go:embed benchmarks.md.tmpl
var page string

const (
	fileName = "benchmarks.md"
	// assets is the folder of plots and results beside the page.
	assets = "benchmarks"
)

// Write writes the page, its plots and a copy of the results into a folder.
func Write(r *results.Results, folder string) error {
	plots := filepath.Join(folder, assets)
	if err := os.MkdirAll(plots, 0o755); err != nil {
		return err
	}
	text, err := render(r)
	if err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	if err := os.WriteFile(filepath.Join(folder, fileName), text, 0o644); err != nil {
		return err
	}
	if err := writePlots(r, plots); err != nil {
		return fmt.Errorf("drawing plots: %w", err)
	}
	return r.Write(filepath.Join(plots, "results.json"))
}

func render(r *results.Results) ([]byte, error) {
	tmpl, err := template.New(fileName).Funcs(template.FuncMap{
		"versions":    func() string { return versions(r) },
		"targets":     func() string { return targetsTable(Targets(r)) },
		"throughput":  func() string { return trialsTable(r.Isolated) },
		"calls":       func() string { return callsTable(r.Isolated) },
		"quiet":       func() string { return quietTable(r) },
		"whole":       func() string { return trialsTable(r.Whole) },
		"wholeTimes":  func() string { return arrivalsTable(r.Whole) },
		"wholeCalls":  func() string { return callsTable(r.Whole) },
		"memory":      func() string { return memoryTable(r) },
		"peak":        func() string { return trialsTable(peaks(r)) },
		"large":       func() string { return largeTable(r) },
		"components":  func() string { return componentsTable(r) },
		"number":      number,
		"restSeconds": func() float64 { return r.Large.Starts[ours].Rest.Seconds },
	}).Parse(page)
	if err != nil {
		return nil, err
	}
	var text bytes.Buffer
	if err := tmpl.Execute(&text, r); err != nil {
		return nil, err
	}
	return text.Bytes(), nil
}

// order is the order of contenders; others follow.
var order = []string{"ours", "upstream-unlimited", "controller-runtime", "upstream", "bare-same-writes", "bare"}

// contenders returns the names that have results, in order.
func contenders[V any](of map[string]V) []string {
	names := slices.Sorted(maps.Keys(of))
	rank := func(name string) int {
		if i := slices.Index(order, name); i >= 0 {
			return i
		}
		return len(order)
	}
	slices.SortStableFunc(names, func(a, b string) int { return rank(a) - rank(b) })
	return names
}

// table returns a Markdown table whose first column is text and whose others are numbers.
func table(head []string, rows [][]string) string {
	var b strings.Builder
	line := func(cells []string) { fmt.Fprintf(&b, "| %s |\n", strings.Join(cells, " | ")) }
	line(head)
	rule := slices.Repeat([]string{"---:"}, len(head))
	rule[0] = "---"
	line(rule)
	for _, row := range rows {
		line(row)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func versions(r *results.Results) string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(r.Versions)) {
		list = append(list, name+" "+r.Versions[name])
	}
	return strings.Join(list, "; ")
}

// peaks returns the trials beside foreign Deployments.
func peaks(r *results.Results) map[string][]results.Trial {
	of := map[string][]results.Trial{}
	for name, memory := range r.Memory {
		if len(memory.Peak) > 0 {
			of[name] = memory.Peak
		}
	}
	return of
}
