// SPDX-License-Identifier: Apache-2.0

// Package report writes the results of the benchmark as a page with a plot.
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

// Write writes benchmarks.md into a folder, and into benchmarks/ in it the plot and a copy of
// the results.
func Write(r *results.Results, folder string) error {
	assets := filepath.Join(folder, "benchmarks")
	if err := os.MkdirAll(assets, 0o755); err != nil {
		return err
	}
	text, err := render(r)
	if err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	if err := os.WriteFile(filepath.Join(folder, "benchmarks.md"), text, 0o644); err != nil {
		return err
	}
	if len(r.Isolated) > 0 {
		if err := plotThroughput(r, filepath.Join(assets, "throughput.svg")); err != nil {
			return fmt.Errorf("drawing throughput: %w", err)
		}
	}
	return r.Write(filepath.Join(assets, "results.json"))
}

func render(r *results.Results) ([]byte, error) {
	tmpl, err := template.New("page").Funcs(template.FuncMap{
		"versions":    func() string { return versions(r) },
		"targets":     func() string { return targetsTable(targets(r)) },
		"throughput":  func() string { return trialsTable(r.Isolated) },
		"calls":       func() string { return callsTable(r.Isolated) },
		"quiet":       func() string { return quietTable(r) },
		"whole":       func() string { return trialsTable(r.Whole) },
		"arrivals":    func() string { return arrivalsTable(r.Whole) },
		"memory":      func() string { return memoryTable(r) },
		"peak":        func() string { return trialsTable(r.Memory.Peak) },
		"large":       func() string { return largeTable(r) },
		"restSeconds": func() float64 { return r.Large.Starts[ours].Rest.Seconds },
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

// contenders returns the names that have results, in order.
func contenders[V any](of map[string]V) []string {
	return slices.DeleteFunc(slices.Clone(Contenders), func(name string) bool {
		_, found := of[name]
		return !found
	})
}

// table returns a Markdown table whose first column is text and whose others are numbers.
func table(head []string, rows [][]string) string {
	rule := slices.Repeat([]string{"---:"}, len(head))
	rule[0] = "---"
	var lines []string
	for _, cells := range slices.Concat([][]string{head, rule}, rows) {
		lines = append(lines, "| "+strings.Join(cells, " | ")+" |")
	}
	return strings.Join(lines, "\n")
}

func versions(r *results.Results) string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(r.Versions)) {
		list = append(list, name+" "+r.Versions[name])
	}
	return strings.Join(list, "; ")
}
