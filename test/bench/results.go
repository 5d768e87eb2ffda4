// SPDX-License-Identifier: Apache-2.0

// The results of a run, and their file.

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// results are each single measurement of a run; the page has medians.
type results struct {
	Began time.Time
	// Machine describes the machine, and Versions what ran on it.
	Machine  string
	Versions map[string]string
	// Minutes is the duration of the run.
	Minutes float64
	// Quick is true if the run was too small for meaningful figures.
	Quick        bool
	Measurements []measurement
}

// measurement is what a program did and used after one start.
type measurement struct {
	Table, Contender string
	// Round is the round that it belongs to: the measurements of a round were made one after
	// the other, so that they can be compared.
	Round int
	// Objects are those that need nothing, when the program starts.
	Objects int
	// Of is the version of ours: parts of a run may be measured again, later.
	Of      string
	Figures figures
}

// figures are values by name. One that could not be measured, such as a time that is too long, is
// missing.
type figures map[string]float64

// The names of figures. Those of calls are "verb resource", per Foo, until the end of the measurement.
const (
	fooCount  = "Foos"   // that waited when the program started
	perSecond = "Foos/s" // the number of Foos through the time until the last has converged
	half      = "half"   // seconds from the start until half of the Foos have converged
	last      = "last"   // and until all have
	idle      = "idle"   // and until the program is idle: then it has synced each object once
	// Milliseconds of user and system time per Foo since the start: until the last has converged,
	// until each has an Event, too, until the program is idle, and after the rest.
	cpuConverged = "CPU converged"
	cpuEvents    = "CPU events"
	cpuIdle      = "CPU idle"
	cpuRested    = "CPU rested"
	peakMiB      = "peak MiB"     // maximum of resident memory
	residentMiB  = "resident MiB" // resident memory at the end
	writes       = "writes"       // per Foo; those for the Foo that shows full caches don't count
	refused      = "refused"      // those of them that the API server refused
	restCalls    = "rest calls"   // requests during the rest, reads too
	restCPU      = "rest CPU"     // milliseconds in that time
	waitHalf     = "half wait"    // milliseconds that half of a tenant's Foos waited at most
	waitMost     = "99% wait"     // and 99% of them
	waitLate     = "late"         // how many were given up
)

// add adds a measurement, and prints it.
func (r *results) add(table, contender string, round, objects int, found figures) {
	r.Measurements = append(r.Measurements, measurement{Table: table, Contender: contender, Round: round, Objects: objects, Of: r.Versions[ours], Figures: found})
	fmt.Printf("[%v] %s: round %d, %d objects, %s:", time.Since(r.Began).Round(time.Second), table, round, objects, contender)
	for _, name := range slices.Sorted(maps.Keys(found)) {
		fmt.Printf(" %s %.4g;", name, found[name])
	}
	fmt.Println()
}

// forget removes the measurements that are made again.
func (r *results) forget(again func(measurement) bool) {
	r.Measurements = slices.DeleteFunc(r.Measurements, again)
}

// readResults reads results from a file, or returns empty ones if it does not exist.
func readResults(path string) (*results, error) {
	r := &results{}
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

// write writes results to a file atomically.
func (r *results) write(path string) error {
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
