// SPDX-License-Identifier: Apache-2.0

// The bounds of an exploration, its progress and its result.

package explore

import (
	"runtime"
	"time"
)

// Bounds end an exploration early. Zero values mean no bound.
type Bounds struct {
	// States is how many states are explored, Memory how many bytes the heap may have, and
	// Time how long it takes.
	States int
	Memory uint64
	Time   time.Duration
	// Workers is how many goroutines explore; 0 means one for each processor.
	Workers int
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

// Progress is how far an exploration is.
type Progress struct {
	World                          string
	States, Steps, Frontier, Depth int
	Elapsed                        time.Duration
	Heap                           uint64
}

func (s *search) beyond() bool {
	var memory runtime.MemStats
	if s.bounds.Memory > 0 {
		runtime.ReadMemStats(&memory)
	}
	return s.bounds.States > 0 && len(s.nodes) >= s.bounds.States ||
		s.bounds.Memory > 0 && memory.HeapAlloc >= s.bounds.Memory ||
		s.bounds.Time > 0 && time.Since(s.began) >= s.bounds.Time
}

func (s *search) report(frontier, depth int) {
	if s.progress == nil || time.Since(s.reported) < 5*time.Second {
		return
	}
	s.reported = time.Now()
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	s.progress(Progress{s.Name, len(s.nodes), s.steps, frontier, depth, time.Since(s.began), memory.HeapAlloc})
}
