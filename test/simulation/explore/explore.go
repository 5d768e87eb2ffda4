// SPDX-License-Identifier: Apache-2.0

// Package explore runs a controller of Foos in every order in which a small world can go
// on, and checks each state. It is bounded model checking of the code itself.
//
// A test passes a function that makes the controller of the parts that it gets:
//
//	func TestExplore(t *testing.T) { explore.Test(t, explore.Explored{Owner: footest.FooOwner, New: newExplored}) }
//
// Read model.go (a state), steps.go and take.go (what can happen, and what it leads to),
// subject.go (how the controller is put into a state), state.go (how a test describes what it
// remembers), fingerprint.go (when two states are the same), and properties.go (what must be
// true). worlds.go has what is explored. replay.go and conformance.go compare the API server of
// this model with a real one.
//
// This file has the entry point for tests, the bounds of an exploration, and the search: breadth
// first, so that the first sequence found to a violation is a shortest one.
package explore

import (
	"context"
	"flag"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/util/workqueue"

	"example.com/sample-controller/pkg/reconcile/reconciletest/rows"
)

var (
	size     = flag.String("explore", "tiny", "which worlds to explore: tiny, small, medium, large, or part of a name")
	minutes  = flag.Int("explore.minutes", 0, "end the exploration of a world after so many minutes; 0 means never")
	repeated = flag.String("explore.steps", "", "repeat these steps of the world of -explore, as a violation prints them, and explore only what follows from them")
	memory   = flag.Uint64("explore.gigabytes", 7, "end the exploration of a world at so much memory")
)

// Explored is a controller, and the kind of its owners.
type Explored struct {
	// Name is that in World.Of.
	Name  string
	Owner *rows.OwnerRow
	New   New
}

// Test explores each of the worlds of these controllers, and fails if a rule is broken in one, or if a bound ends
// an exploration before it is complete.
func Test(t *testing.T, controllers ...Explored) {
	t.Helper()
	worlds := chosen()
	if len(worlds) == 0 {
		t.Fatalf("-explore=%s is no size, and in no name of a world in test/simulation/explore/worlds.go", *size)
	}
	states, steps, began := 0, 0, time.Now()
	for _, world := range worlds {
		t.Run(world.Name, func(t *testing.T) {
			of := slices.IndexFunc(controllers, func(of Explored) bool { return of.Name == world.Of })
			result, err := Run(complete(controllers[of].Owner, world)[0], controllers[of].New, *repeated)
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

func chosen() []World {
	all := slices.Concat(small, medium, large)
	sizes := map[string]int{"small": len(small), "medium": len(small) + len(medium), "large": len(all)}
	if many, isSize := sizes[*size]; isSize {
		return all[:many]
	}
	isNamed := func(w World) bool { return w.Name == *size }
	if !slices.ContainsFunc(all, isNamed) {
		isNamed = func(w World) bool { return strings.Contains(w.Name, *size) }
	}
	return slices.DeleteFunc(all, func(w World) bool { return !isNamed(w) })
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
	if heap() >= *memory<<30 {
		runtime.GC() // it counts garbage, too, as that of an earlier world
	}
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

// node is what is kept of a state: how it was reached.
type node struct {
	parent uint32
	by     step
}

// search is an exploration in progress.
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
	wrong    map[uint32]string
	broken   *Violation
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

// Run explores a world, or after the steps that a violation prints, what follows from them.
func Run(w World, create New, steps string) (*Result, error) {
	s, err := newSearch(w, create)
	if err == nil && steps != "" {
		err = s.repeat(steps)
	}
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

// newSearch begins an exploration, with a goroutine for each processor.
func newSearch(w World, create New) (*search, error) {
	sc, err := newScene(w)
	if err != nil {
		return nil, err
	}
	s := &search{
		scene: sc, began: time.Now(), reported: time.Now(),
		known: map[digest]uint32{}, wrong: map[uint32]string{}, first: []uint32{0},
	}
	for range runtime.GOMAXPROCS(0) {
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
	x.crashes = r.Crashes // none happens at the start
	for i := range x.controllers {
		r.of(x.state, i).start(x, i, step{op: opStart, controller: uint8(i)})
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
	for len(current.controllers) < r.Controllers {
		later := r.newController()
		later.down = true
		current = current.clone()
		current.controllers = append(current.controllers, later)
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
	all, free := make([]expansion, len(states)), make(chan *runner, len(s.runners))
	for _, r := range s.runners {
		free <- r
	}
	workqueue.ParallelizeUntil(context.Background(), len(s.runners), len(states), func(i int) {
		r := <-free
		all[i] = r.expand(states[i].state)
		free <- r
	})
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
		taken.wrong = strings.Join(append(x.world().WrongAtRest(), x.oldReferences()...), "; ")
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
