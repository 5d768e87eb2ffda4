// SPDX-License-Identifier: Apache-2.0

// Package results defines the results of the benchmark and their file. It stores each
// single measurement; the report calculates medians.
package results

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// The tables of measurements. In the first three, Foos wait and nothing but the program and
// the API server runs.
const (
	Installed = "Installed" // each program as its installation runs it: GOMAXPROCS=1
	GoRun     = "GoRun"     // each program as with go run: it uses all cores
	Bare      = "Bare"      // beside a client without a controller
	Whole     = "Whole"     // Foos wait, with kube-controller-manager, scheduler and KWOK
	Restart   = "Restart"   // beside the Foos that the program itself has settled
	Settled   = "Settled"   // beside settled Foos and their Deployments
	Foreign   = "Foreign"   // beside Deployments unrelated to any Foo
	Peak      = "Peak"      // Foos wait, beside such
	Large     = "Large"     // beside very many settled Foos
)

// Parts are the parts that a run of the benchmark can be limited to, and tables the tables
// of each. The part "waits" has Waits.
var (
	Parts  = []string{"throughput", "whole", "waits", "memory", "large"}
	tables = map[string][]string{
		"throughput": {Installed, GoRun, Bare, Restart}, "whole": {Whole}, "memory": {Settled, Foreign, Peak}, "large": {Large},
	}
)

// Results are the results of one run of the benchmark.
type Results struct {
	Began time.Time
	// Machine describes the machine, and Versions what ran on it.
	Machine  string
	Versions map[string]string
	// Minutes is the duration of the run.
	Minutes float64
	// Quick is true if the run was too small for meaningful figures.
	Quick  bool
	Tables map[string]Table
	// Waits holds how long a tenant's Foos waited while another tenant attacked, by the name of
	// the attack and of the contender.
	Waits map[string]map[string][]Wait
}

// Wait is how long the Foos of a tenant waited until they had converged, in seconds: half of
// them at most P50, and all but one in a hundred at most P99. Late of them were given up then.
type Wait struct {
	Foos, Late int
	P50, P99   float64
}

// Table holds measurements by the name of the contender.
type Table map[string][]Run

// Run is what a program did and used after one start.
type Run struct {
	// Round is the round that the run belongs to: the runs of a round were made one after the
	// other, so that they can be compared.
	Round int
	// Foos waited when the program started, beside Objects that need nothing.
	Foos, Objects int
	// Seconds is the time from the program's start to the convergence of the last Foo,
	// FirstSeconds to that of the first, and HalfSeconds until half of them converged; 0 if
	// it took too long.
	Seconds, FirstSeconds, HalfSeconds float64
	// IdleSeconds is the time until the program was idle, which is when it had synced each
	// object once; 0 if it took too long.
	IdleSeconds float64
	// CPUConverged, CPUIdle and CPUSettled are milliseconds of user and system time from the
	// program's start to the last convergence, until it was idle, and to the end, which was
	// SettledSeconds after the convergence.
	CPUConverged, CPUIdle, CPUSettled, SettledSeconds float64
	// PeakMiB is the maximum of resident memory until then, and ResidentMiB what was
	// resident at the end.
	PeakMiB, ResidentMiB float64
	// Calls counts requests until then. Refused counts the writes among them that the API
	// server refused.
	Calls   Calls
	Refused int
	// Rest is what followed, without anything to do.
	Rest Rest
}

// PerSecond is the number of Foos that converged in a second.
func (r Run) PerSecond() float64 {
	if r.Seconds == 0 {
		return 0
	}
	return float64(r.Foos) / r.Seconds
}

// Rest is the result of a program with nothing to do: the requests in some time, and the CPU
// time used.
type Rest struct {
	Seconds         float64
	Calls           Calls
	CPUMilliseconds float64
}

// Calls counts writes by "verb resource", and "reads".
type Calls map[string]float64

// Total returns the number of calls.
func (c Calls) Total() (sum float64) {
	for _, n := range c {
		sum += n
	}
	return sum
}

// Writes returns the number of calls that are writes.
func (c Calls) Writes() (sum float64) {
	for kind, n := range c {
		switch verb, _, _ := strings.Cut(kind, " "); verb {
		case "create", "update", "patch", "delete", "deletecollection":
			sum += n
		}
	}
	return sum
}

// New returns empty results.
func New() *Results {
	r := &Results{Versions: map[string]string{}, Tables: map[string]Table{}, Waits: map[string]map[string][]Wait{}}
	for _, part := range Parts {
		r.Forget(part)
	}
	return r
}

// Forget removes the results of a part of a run.
func (r *Results) Forget(part string) {
	for _, name := range tables[part] {
		r.Tables[name] = Table{}
	}
	if part == "waits" {
		clear(r.Waits)
	}
}

// Read reads results from a file, or returns empty ones if it does not exist.
func Read(path string) (*Results, error) {
	r := New()
	content, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return r, nil
	}
	if err == nil {
		err = json.Unmarshal(content, r)
	}
	if err != nil {
		return nil, fmt.Errorf("reading results from %s: %w", path, err)
	}
	return r, nil
}

// Write writes results to a file atomically.
func (r *Results) Write(path string) error {
	content, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(path+".new", append(content, '\n'), 0o644); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}
