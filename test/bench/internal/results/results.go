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
	"slices"
	"strings"
	"time"
)

// Parts are the parts that a run can be limited to.
var Parts = []string{"throughput", "whole", "memory", "large"}

// Results are the results of one run. The keys of the maps are names of contenders.
type Results struct {
	Began    time.Time
	Machine  Machine
	Versions map[string]string
	// Minutes is the duration of the run.
	Minutes float64
	// Quick is true if the run was too small for meaningful figures.
	Quick bool

	// Isolated and Whole are trials with Foos that wait when the program starts, without
	// and with kube-controller-manager, scheduler and KWOK.
	Isolated map[string][]Trial
	Whole    map[string][]Trial
	Rest     map[string]Rest
	Restart  map[string]Restart
	Memory   Memory
	Large    Large
}

// Calls counts requests by "verb resource".
type Calls map[string]float64

// Machine describes the machine.
type Machine struct {
	CPU       string
	Cores     int
	MemoryGiB float64
	OS        string
}

// Trial is the result of one program that makes waiting Foos converge.
type Trial struct {
	Foos int
	// Seconds is the time from the program's start to the convergence of the last Foo,
	// FirstSeconds to that of the first, and HalfSeconds until half of them converged.
	Seconds, FirstSeconds, HalfSeconds float64
	// PerSecond is Foos divided by Seconds.
	PerSecond float64
	// PerSecondEvents is the same with the time until each Foo also has an event; 0 if
	// some had none while it was measured.
	PerSecondEvents float64
	// CPUConverged and CPUSettled are milliseconds of CPU per Foo, from the program's
	// start to the last convergence, and to SettledSeconds later. If that is one second,
	// it is until a second has passed without a write.
	CPUConverged, CPUSettled, SettledSeconds float64
	// PeakMiB is the maximum of resident memory.
	PeakMiB float64
	// Calls counts requests per Foo until then. Refused counts the writes among them that
	// the API server refused.
	Calls   Calls
	Refused float64
}

// Rest is the result of a program with nothing to do.
type Rest struct {
	Seconds float64
	// Calls counts requests in that time.
	Calls Calls
	// CPUMilliseconds is the CPU time used.
	CPUMilliseconds float64
}

// CPUSeconds is the CPU time used.
func (r Rest) CPUSeconds() float64 { return r.CPUMilliseconds / 1000 }

// Restart is the result of a program that starts when all Foos have converged.
type Restart struct {
	Foos int
	// ReadySeconds is the time from the program's start until a Foo has converged that
	// was created before.
	ReadySeconds float64
	// Seconds is how long calls were counted.
	Seconds float64
	// Calls counts the requests for all other Foos.
	Calls Calls
}

// Memory is the memory of the programs.
type Memory struct {
	// Foos is with settled Foos and their Deployments, Foreign with Deployments unrelated
	// to any Foo.
	Foos, Foreign map[string][]Holding
	// Peak is with Foos that converge beside foreign Deployments.
	Peak map[string][]Trial
}

// Holding is the memory of a program that has started with a number of objects.
type Holding struct {
	Objects              int
	PeakMiB, ResidentMiB float64
}

// Large is what very many settled Foos cost, by program.
type Large struct {
	Foos   int
	Starts map[string]Start
}

// Start is the start of a program when all Foos but one are settled.
type Start struct {
	// ReadySeconds is the time until that one has converged, which is when the caches are
	// full, and PassSeconds that until the program is idle, which is when each Foo has been
	// synced once. Each is 0 if it took too long.
	ReadySeconds, PassSeconds float64
	// CPUSeconds is the CPU time until each Foo has been synced once.
	CPUSeconds float64
	// Rest is what follows.
	Rest Rest
	Holding
}

// New returns empty results.
func New() *Results {
	return &Results{
		Versions: map[string]string{},
		Isolated: map[string][]Trial{}, Whole: map[string][]Trial{},
		Rest: map[string]Rest{}, Restart: map[string]Restart{},
		Memory: Memory{Foos: map[string][]Holding{}, Foreign: map[string][]Holding{}, Peak: map[string][]Trial{}},
		Large:  Large{Starts: map[string]Start{}},
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

// Total returns the number of calls.
func (c Calls) Total() float64 { return c.total("") }

// Writes returns the number of calls that are writes.
func (c Calls) Writes() float64 {
	return c.total("create ") + c.total("update ") + c.total("patch ") + c.total("delete ") + c.total("deletecollection ")
}

// total returns the number of calls whose kinds begin with some text.
func (c Calls) total(prefix string) float64 {
	sum := 0.0
	for kind, n := range c {
		if strings.HasPrefix(kind, prefix) {
			sum += n
		}
	}
	return sum
}

// Forget removes the results of some parts of a run, or of all parts if none is given.
func (r *Results) Forget(parts []string) {
	all := map[string]func(){
		"throughput": func() { clear(r.Isolated); clear(r.Rest); clear(r.Restart) },
		"whole":      func() { clear(r.Whole) },
		"memory":     func() { clear(r.Memory.Foos); clear(r.Memory.Foreign); clear(r.Memory.Peak) },
		"large":      func() { r.Large.Foos = 0; clear(r.Large.Starts) },
	}
	for part, forget := range all {
		if len(parts) == 0 || slices.Contains(parts, part) {
			forget()
		}
	}
}
