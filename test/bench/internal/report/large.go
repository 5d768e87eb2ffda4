// SPDX-License-Identifier: Apache-2.0

// The tables of what very many Foos cost.

package report

import (
	"fmt"
	"strconv"

	"example.com/sample-controller/test/bench/internal/results"
)

// largeTable shows the start of each program beside very many Foos.
func largeTable(r *results.Results) string {
	var rows [][]string
	rest := 0.0
	for _, name := range contenders(r.Large.Starts) {
		start := r.Large.Starts[name]
		rest = start.Rest.Seconds
		rows = append(rows, []string{
			name, seconds(start.ReadySeconds), seconds(start.PassSeconds), seconds(start.CPUSeconds),
			number(start.PeakMiB), number(start.ResidentMiB),
			number(start.Rest.CPUMilliseconds / 1000), strconv.FormatFloat(results.Total(start.Rest.Calls), 'f', 0, 64),
		})
	}
	return table([]string{
		"", "s until a new Foo has converged", "s until each has been synced", "s of CPU until then", "peak MiB", "MiB at rest",
		fmt.Sprintf("s of CPU in the next %.0f s", rest), "calls in that time",
	}, rows)
}

// seconds formats a time, which is 0 if it was too long to be measured.
func seconds(s float64) string {
	if s == 0 {
		return "too long"
	}
	return number(s)
}

// componentsTable shows what very many Foos cost the API server and etcd.
func componentsTable(r *results.Results) string {
	cluster := r.Large.Cluster
	var rows [][]string
	for _, component := range []struct {
		name string
		of   results.Component
	}{{"API server", cluster.APIServer}, {"etcd", cluster.Etcd}} {
		rows = append(rows, []string{component.name, number(component.of.EmptyMiB), number(component.of.FullMiB), number(component.of.PeakMiB)})
	}
	return table([]string{"MiB of", "without Foos", fmt.Sprintf("with %d settled Foos", r.Large.Foos), "peak"}, rows)
}
