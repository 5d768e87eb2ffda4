// SPDX-License-Identifier: Apache-2.0

// The search: breadth first, so that the first sequence found to a violation is a shortest
// one.

package explore

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// node is what is kept of a state: how it was reached.
type node struct {
	parent uint32
	by     step
}

// search is an exploration under way.
type search struct {
	*scene

	runners []*runner
	start   *state
	known   map[digest]uint32
	nodes   []node
	// targets are the states to which the system's own steps lead, in the order of the states from
	// which they do. The highest bit is set for a step that makes a call. first has for each state
	// that was expanded the index of its first target, and of the one after its last.
	targets, first []uint32
	// resyncs are the steps that are resyncs.
	resyncs []edge
	steps   int
	// wrong says of states that may be at rest what is not as it must be.
	wrong  map[uint32]string
	broken *Violation
	// onStep is called for each step, unless it is nil.
	onStep   func(from, to uint32, by step, reached *state)
	began    time.Time
	reported time.Time
}

// edge is a step between two states.
type edge struct{ from, to uint32 }

// noisy marks a target of a step that makes a call.
const noisy = 1 << 31

// from returns the targets of the system's own steps from a state.
func (s *search) from(state uint32) []uint32 { return s.targets[s.first[state]:s.first[state+1]] }

// frontierState is a state that has not been expanded yet.
type frontierState struct {
	id uint32
	*state
}

// Run explores a world.
func Run(w World, create New) (*Result, error) {
	s, err := newSearch(w, create, runtime.GOMAXPROCS(0))
	if err != nil {
		return nil, err
	}
	depth, complete := s.explore()
	result := &Result{World: w, States: len(s.nodes), Steps: s.steps, Depth: depth, Complete: complete, Violation: s.broken}
	if result.Violation == nil && complete {
		result.Rests, result.Violation = s.checkRests()
	}
	result.Elapsed = time.Since(s.began)
	if result.Violation != nil {
		result.Violation.tell(s)
	}
	return result, nil
}

// newSearch begins an exploration with a number of goroutines.
func newSearch(w World, create New, workers int) (*search, error) {
	sc, err := newScene(w)
	if err != nil {
		return nil, err
	}
	s := &search{
		scene: sc, began: time.Now(), reported: time.Now(),
		known: map[digest]uint32{}, wrong: map[uint32]string{}, first: []uint32{0},
	}
	for range workers {
		r, err := newRunner(sc, create)
		if err != nil {
			return nil, err
		}
		s.runners = append(s.runners, r)
	}
	s.start, err = s.runners[0].begin()
	return s, err
}

// begin returns the state in which an exploration begins: at rest after the acts of the
// world's start.
func (r *runner) begin() (*state, error) {
	x := explored{r.empty(), r.scene}
	for i := range x.controllers {
		r.start(x, i, step{op: opStart, controller: uint8(i)})
	}
	current := x.state
	for _, text := range r.Start {
		a, err := r.newAct(text)
		if err != nil {
			return nil, err
		}
		x := explored{current.clone(), r.scene}
		if !a.may(x) {
			return nil, fmt.Errorf("world %s: %q is not possible in its start", r.Name, text)
		}
		a.do(x)
		if current, err = r.rest(x.state); err != nil {
			return nil, fmt.Errorf("world %s: its start: %w", r.Name, err)
		}
	}
	current.users, current.faults, current.crashes = r.Users, r.Faults, r.Crashes
	return current, nil
}

// explore expands states until none is left, or a bound is met.
func (s *search) explore() (depth int, complete bool) {
	s.find(explored{s.start, s.scene}.identity(), node{})
	frontier := []frontierState{{0, s.start}}
	for ; len(frontier) > 0; depth++ {
		var next []frontierState
		for from := 0; from < len(frontier); from += batch {
			if s.broken != nil || s.beyond() {
				return depth, false
			}
			these := frontier[from:min(from+batch, len(frontier))]
			for i, taken := range s.expandAll(these) {
				next = append(next, s.add(these[i], taken)...)
				these[i].state = nil
			}
			s.report(len(frontier)-from+len(next), depth)
		}
		frontier = next
	}
	return depth - 1, s.broken == nil
}

// batch is how many states are expanded before what they lead to is added, in their order:
// an exploration finds the same in each run.
const batch = 1024

// expansion is what the steps of a state lead to.
type expansion struct {
	steps []step
	// reached are the states after the steps, and identities theirs.
	reached    []*state
	identities []digest
	// wrong says what is not as it must be if this is a state of rest.
	wrong string
}

// expandAll takes each step of some states, with all workers.
func (s *search) expandAll(states []frontierState) []expansion {
	all := make([]expansion, len(states))
	var next atomic.Int64
	var workers sync.WaitGroup
	for _, r := range s.runners {
		workers.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= len(states) {
					return
				}
				all[i] = r.expand(states[i].state)
			}
		})
	}
	workers.Wait()
	return all
}

// expand takes each step of a state.
func (r *runner) expand(from *state) expansion {
	x := explored{from, r.scene}
	taken := expansion{steps: x.steps()}
	for _, by := range taken.steps {
		reached := r.take(from, by)
		taken.reached = append(taken.reached, reached)
		taken.identities = append(taken.identities, explored{reached, r.scene}.identity())
	}
	if x.mayBeAtRest(taken.steps) {
		taken.wrong = strings.Join(x.world().WrongAtRest(), "; ")
	}
	return taken
}

// add adds what a state leads to, and returns the states that are new.
func (s *search) add(from frontierState, taken expansion) []frontierState {
	var found []frontierState
	for i, by := range taken.steps {
		reached := taken.reached[i]
		id, isNew := s.find(taken.identities[i], node{from.id, by})
		if isNew {
			found = append(found, frontierState{id, reached})
		}
		if len(reached.violations) > 0 && s.broken == nil {
			s.broken = &Violation{Rules: reached.violations, path: append(s.pathTo(from.id), by)}
		}
		if by.op == opResync {
			s.resyncs = append(s.resyncs, edge{from.id, id})
		}
		if by.bySystem() {
			to := id
			if reached.wrote {
				to |= noisy
			}
			s.targets = append(s.targets, to)
		}
		if s.onStep != nil {
			s.onStep(from.id, id, by, reached)
		}
	}
	s.first = append(s.first, uint32(len(s.targets)))
	s.steps += len(taken.steps)
	if taken.wrong != "" {
		s.wrong[from.id] = taken.wrong
	}
	return found
}

// mayBeAtRest reports whether a state may be one of those in which the system stays: no
// event is on its way, and the control plane has nothing to do.
func (x explored) mayBeAtRest(steps []step) bool {
	for _, s := range steps {
		switch s.op {
		case opDeliver, opTell, opControlPlane, opStart:
			return false
		default:
		}
	}
	return true
}

// find returns the number of a state, and whether it is new.
func (s *search) find(identity digest, n node) (id uint32, isNew bool) {
	if id, known := s.known[identity]; known {
		return id, false
	}
	id = uint32(len(s.nodes))
	s.nodes = append(s.nodes, n)
	s.known[identity] = id
	return id, true
}

// pathTo returns the steps to a state.
func (s *search) pathTo(id uint32) []step {
	var path []step
	for id != 0 {
		path = append(path, s.nodes[id].by)
		id = s.nodes[id].parent
	}
	slices.Reverse(path)
	return path
}
