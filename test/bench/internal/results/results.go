/*
Copyright The Sample Controller Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

// Package results is what the benchmark has measured, as it is kept in a file:
// each single measurement, from which the report makes medians.
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

	"example.com/sample-controller/test/bench/internal/stats"
)

// Results are those of one run. Maps go by the contender's name.
type Results struct {
	Began    time.Time
	Machine  Machine
	Versions map[string]string
	// Minutes is how long the run took.
	Minutes float64
	// Quick tells that there was too little of everything for the figures to say much.
	Quick bool

	// Isolated and Whole are Foos that wait when the program starts, without and
	// with kube-controller-manager, scheduler and KWOK.
	Isolated map[string][]Trial
	Whole    map[string][]Trial
	// Sweep is like Isolated, by contender and its number of goroutines.
	Sweep    map[string]map[int][]Trial
	Rest     map[string]Rest
	Restart  map[string]Restart
	Latency  map[string][]Load
	Memory   map[string]Memory
	Fairness map[string]Fairness
	Profile  map[string]Profile
}

// Machine is where it was measured.
type Machine struct {
	CPU       string
	Cores     int
	MemoryGiB float64
	OS        string
}

// Trial is one program that makes waiting Foos converge.
type Trial struct {
	Foos    int
	Foreign int `json:",omitempty"`
	// Seconds are from the program's start to the convergence of the last Foo,
	// FirstSeconds to that of the first, and HalfSeconds until half of them have
	// converged.
	Seconds, FirstSeconds, HalfSeconds float64
	// PerSecond is Foos by Seconds.
	PerSecond float64
	// PerSecondEvents is the same until each Foo has an event, too; 0 if not all
	// had one as long as it was watched.
	PerSecondEvents float64
	// CPUConverged and CPUSettled are milliseconds of CPU per Foo, from the
	// program's start to the last convergence, and to SettledSeconds later; where
	// that is one second, until nothing more was written in one.
	CPUConverged, CPUSettled, SettledSeconds float64
	// PeakMiB is the most memory that was resident, ever.
	PeakMiB float64
	// Calls are requests per Foo, by "verb resource", until settled. Refused are
	// the writes among them that the API server turned down.
	Calls   map[string]float64
	Refused float64
	// OthersWrites are the writes per Foo of everybody else in that time, refused
	// ones included.
	OthersWrites float64
}

// Rest is a program with nothing to do.
type Rest struct {
	Seconds float64
	// Calls are requests in that time, by "verb resource".
	Calls map[string]float64
	// CPUMilliseconds is what it cost.
	CPUMilliseconds float64
}

// Restart is a program that starts where all has converged.
type Restart struct {
	Foos int
	// ReadySeconds are from the program's start until a Foo has converged that
	// was created before it.
	ReadySeconds float64
	// Seconds is how long its calls were counted.
	Seconds float64
	// Calls are requests for all Foos but that one.
	Calls map[string]float64
}

// Load is a program, or the bare client, while Foos arrive by the clock.
type Load struct {
	// Share is of the bare loop's limit, and PerSecond the rate of arrivals.
	Share, PerSecond float64
	Foos             int
	// Created and Status are from the acknowledgement of a Foo to its Deployment's
	// creation and to its first status.
	Created, Status stats.Latency
	// Missing had no status when the measurement was given up.
	Missing int
	// LateMilliseconds is how late the latest Foo was sent: it should be next to nothing.
	LateMilliseconds float64
}

// Memory is what a program holds.
type Memory struct {
	// Foos and Foreign are for settled Foos, with their Deployments, and for
	// Deployments that no Foo has to do with.
	Foos, Foreign []Holding
	// Peak is for Foos that converge beside foreign Deployments.
	Peak []Trial
}

// Holding is a program that has started where there are that many objects.
type Holding struct {
	Objects              int
	PeakMiB, ResidentMiB float64
}

// Fairness is how long single Foos of one namespace take, while the program has
// nothing else to do, and while another namespace's Foos wait.
type Fairness struct {
	Backlog    int
	PerSecond  float64
	Idle, Busy stats.Latency
}

// Profile is what a program's CPU and memory go to, while Foos converge beside
// Foreign Deployments: CPU in the first Seconds, memory at the end.
type Profile struct {
	Settled, Waiting, Foreign int
	Seconds                   float64
	CPUPercent, HeapMiB       []Share
}

// Share is what one use of something takes of it.
type Share struct {
	What   string
	Amount float64
}

// New returns results that can be added to.
func New() *Results {
	return &Results{
		Versions: map[string]string{},
		Isolated: map[string][]Trial{}, Whole: map[string][]Trial{}, Sweep: map[string]map[int][]Trial{},
		Rest: map[string]Rest{}, Restart: map[string]Restart{},
		Latency: map[string][]Load{}, Memory: map[string]Memory{}, Fairness: map[string]Fairness{},
		Profile: map[string]Profile{},
	}
}

// Read reads results from a file; new ones if there is none.
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

// Write writes results to a file, whole or not at all.
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

// Total is the number of calls.
func Total(calls map[string]float64) float64 {
	total := 0.0
	for _, n := range calls {
		total += n
	}
	return total
}

// Writes is the number of those calls that are to change something.
func Writes(calls map[string]float64) float64 {
	return total(calls, func(verb, _ string) bool { return isWrite(verb) })
}

// WritesOf is the number of writes of a kind of object: "foos/status", for example.
func WritesOf(calls map[string]float64, resource string) float64 {
	return total(calls, func(verb, of string) bool { return isWrite(verb) && of == resource })
}

func isWrite(verb string) bool {
	switch verb {
	case "create", "update", "patch", "delete", "deletecollection":
		return true
	}
	return false
}

func total(calls map[string]float64, counted func(verb, resource string) bool) float64 {
	sum := 0.0
	for kind, n := range calls {
		if verb, resource, _ := strings.Cut(kind, " "); counted(verb, resource) {
			sum += n
		}
	}
	return sum
}

// Forget drops what is there of some parts of a run; of all if none is named.
func (r *Results) Forget(parts []string) {
	all := map[string]func(){
		"throughput": func() { clear(r.Isolated); clear(r.Rest); clear(r.Restart) },
		"whole":      func() { clear(r.Whole) },
		"sweep":      func() { clear(r.Sweep) },
		"latency":    func() { clear(r.Latency) },
		"memory":     func() { clear(r.Memory) },
		"fairness":   func() { clear(r.Fairness) },
		"profile":    func() { clear(r.Profile) },
	}
	for part, forget := range all {
		if len(parts) == 0 || slices.Contains(parts, part) {
			forget()
		}
	}
}
