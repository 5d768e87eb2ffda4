// SPDX-License-Identifier: Apache-2.0

// Package explore runs a controller of Foos in every order in which a small world can go
// on, and checks each state. It is bounded model checking of the code itself.
//
// A test passes a function that makes the controller of the parts that it gets:
//
//	func TestExplore(t *testing.T) { explore.Test(t, footest.FooOwner, newExplored) }
//
// Read model.go (a state), steps.go and take.go (what can happen, and what it leads to),
// subject.go (how the controller is put into a state), fingerprint.go (when two states are
// the same), search.go (the search), and properties.go
// (what must be true). worlds.go has what is explored. walk.go, replay.go and conformance.go
// compare the API server of this model with a real one.
//
// This file has the entry point for tests, and the bounds of an exploration.
package explore

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"example.com/sample-controller/test/footest"
)

var (
	size     = flag.String("explore", "tiny", "which worlds to explore: tiny, small, medium, large, or part of a name")
	minutes  = flag.Int("explore.minutes", 0, "end the exploration of a world after so many minutes; 0 means never")
	drawTo   = flag.String("explore.draw", "", "write the graph of the world of -explore to this file, for Graphviz, if it is a small one")
	repeated = flag.String("explore.steps", "", "repeat these steps of the world of -explore, as a violation prints them")
	memory   = flag.Uint64("explore.gigabytes", 7, "end the exploration of a world at so much memory")
)

// Test explores each of the worlds, and fails if a rule is broken in one, or if a bound ends
// an exploration before it is complete.
func Test(t *testing.T, owner *footest.OwnerRow, create New) {
	t.Helper()
	worlds := chosen(owner)
	if len(worlds) == 0 {
		t.Fatalf("-explore=%s is no size, and in no name of a world in test/simulation/explore/worlds.go", *size)
	}
	if *drawTo != "" {
		writeGraph(t, worlds, create)
		return
	}
	states, steps, began := 0, 0, time.Now()
	for _, world := range worlds {
		t.Run(world.Name, func(t *testing.T) {
			if *repeated != "" {
				if err := repeat(world, create, *repeated); err != nil {
					t.Error(err)
				}
				return
			}
			result, err := Run(world, create)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Printf("explore: %s\n", result)
			states, steps = states+result.States, steps+result.Steps
			switch {
			case result.Violation != nil:
				fmt.Printf("explore: broken after %d steps: %s\n", len(result.Violation.path), result.Violation.Rules[0])
				t.Error(result.Violation)
			case !result.Complete:
				t.Errorf("%s: a bound ended the exploration before it was complete, so that it shows nothing", world.Name)
			}
		})
	}
	fmt.Printf("explore: %d worlds, %d states, %d steps, %s\n", len(worlds), states, steps, time.Since(began).Round(time.Second))
}

func chosen(owner *footest.OwnerRow) []World {
	sizes := map[string]func(*footest.OwnerRow) []World{"small": Small, "medium": Medium, "large": Large}
	if worldsOf, ok := sizes[*size]; ok {
		return worldsOf(owner)
	}
	var worlds []World
	for _, w := range Large(owner) {
		if w.Name == *size {
			return []World{w}
		}
		if strings.Contains(w.Name, *size) {
			worlds = append(worlds, w)
		}
	}
	return worlds
}

// String describes a result in a line.
func (r *Result) String() string {
	return fmt.Sprintf("%-24s %9d states %10d steps, depth %4d, %4d rests, %s", r.World.Name, r.States, r.Steps, r.Depth, r.Rests, r.Elapsed.Round(100*time.Millisecond))
}

// Result is what an exploration found.
type Result struct {
	World World
	// States and Steps are how many distinct ones there are, and Depth is the length of the
	// longest of the shortest sequences to a state.
	States, Steps, Depth int
	// Rests are how many ways there are to be at rest: the terminal components of the
	// system's own steps.
	Rests   int
	Elapsed time.Duration
	// Complete is true if no bound ended the exploration.
	Complete bool
	// Violation is the shortest one, or nil.
	Violation *Violation
}

// heap returns how many bytes the heap has.
func heap() uint64 {
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	return memory.HeapAlloc
}

// beyond reports whether a bound is met.
func (s *search) beyond() bool {
	return heap() >= *memory<<30 || *minutes > 0 && time.Since(s.began) >= time.Duration(*minutes)*time.Minute
}

// report prints, every five seconds, how far the exploration is.
func (s *search) report(frontier, depth int) {
	if time.Since(s.reported) < 5*time.Second {
		return
	}
	s.reported = time.Now()
	fmt.Fprintf(os.Stderr, "explore: %s: %d states, %d at the frontier, depth %d, %.0f states/s, %d MiB\n",
		s.Name, len(s.nodes), frontier, depth, float64(len(s.nodes))/time.Since(s.began).Seconds(), heap()>>20)
}
