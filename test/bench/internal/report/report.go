// SPDX-License-Identifier: Apache-2.0

// Package report writes the results of the benchmark as a page with a plot.
package report

import (
	"bytes"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
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
		"names": names, "targets": targets, "rows": rows, "kinds": kinds, "settledSeconds": longestSettled,
		"number": number, "count": count, "seconds": seconds, "perObject": perObject,
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

// names returns those of the contenders that a map has, in order.
func names(of any) []string {
	return slices.DeleteFunc(slices.Clone(Contenders), func(name string) bool {
		return !reflect.ValueOf(of).MapIndex(reflect.ValueOf(name)).IsValid()
	})
}
