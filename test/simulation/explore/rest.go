// SPDX-License-Identifier: Apache-2.0

// The states of rest: the terminal components of the graph of the system's own steps. When
// users and faults have come to an end, the world ends in one of them, if each step that
// stays possible is taken sooner or later.

package explore

import "slices"

// graph holds the system's own steps, by the states from which they lead.
type graph struct {
	first   []uint32 // by state: the index of its first target; one more at the end
	targets []uint32
}

func (s *search) graph() graph {
	g := graph{first: make([]uint32, len(s.nodes)+1), targets: make([]uint32, len(s.edges))}
	for _, e := range s.edges {
		g.first[e.from+1]++
	}
	for i := 1; i < len(g.first); i++ {
		g.first[i] += g.first[i-1]
	}
	at := slices.Clone(g.first)
	for _, e := range s.edges {
		g.targets[at[e.from]] = e.to
		at[e.from]++
	}
	s.edges = nil
	return g
}

func (g graph) from(state uint32) []uint32 { return g.targets[g.first[state]:g.first[state+1]] }

// components returns the number of the strongly connected component of each state (Tarjan's
// algorithm), and how many there are.
func (g graph) components() (component []uint32, count uint32) {
	const unseen = ^uint32(0)
	component = slices.Repeat([]uint32{unseen}, len(g.first)-1)
	index, low := slices.Clone(component), slices.Clone(component)
	clock, stack := uint32(0), []uint32(nil)
	var visit func(v uint32)
	visit = func(v uint32) {
		index[v], low[v] = clock, clock
		clock++
		stack = append(stack, v)
		for _, to := range g.from(v) {
			to &^= noisy
			if index[to] == unseen {
				visit(to)
			}
			if component[to] == unseen {
				low[v] = min(low[v], low[to])
			}
		}
		if low[v] == index[v] {
			first := len(stack) - 1
			for stack[first] != v {
				first--
			}
			for _, member := range stack[first:] {
				component[member] = count
			}
			stack = stack[:first]
			count++
		}
	}
	for root := range component {
		if index[root] == unseen {
			visit(uint32(root))
		}
	}
	return component, count
}

// rests are the terminal components.
type rests struct {
	graph

	component []uint32 // by state
	terminal  []bool   // by component
}

func (s *search) rests() rests {
	r := rests{graph: s.graph()}
	component, count := r.components()
	r.component, r.terminal = component, slices.Repeat([]bool{true}, int(count))
	for v := range uint32(len(s.nodes)) {
		for _, to := range r.from(v) {
			if component[to&^noisy] != component[v] {
				r.terminal[component[v]] = false
			}
		}
	}
	return r
}

func (r rests) count() (n int) {
	for _, terminal := range r.terminal {
		if terminal {
			n++
		}
	}
	return n
}

// checkRests checks the states of rest, and returns how many components of them there are,
// and a violation with the shortest sequence to it. A state of rest is as it must be, and
// nothing makes a call in it, nor after a resync.
func (s *search) checkRests() (count int, broken *Violation) {
	r := s.rests()
	// In the order of their numbers, states are in that of their distance.
	for v := range uint32(len(s.nodes)) {
		if r.terminal[r.component[v]] && slices.ContainsFunc(r.from(v), func(to uint32) bool { return to&noisy != 0 }) {
			return r.count(), &Violation{Rules: []string{"the world comes to no rest: calls go on"}, path: s.pathTo(v)}
		}
	}
	for v := range uint32(len(s.nodes)) {
		if wrong := s.wrong[v]; wrong != "" && r.terminal[r.component[v]] {
			return r.count(), &Violation{Rules: []string{"at rest: " + wrong}, path: s.pathTo(v)}
		}
	}
	for _, resync := range s.resyncs {
		if r.terminal[r.component[resync.from]] && r.causesCall(resync.to) {
			return r.count(), &Violation{Rules: []string{"a resync at rest causes a call"}, path: append(s.pathTo(resync.from), step{op: opResync})}
		}
	}
	return r.count(), nil
}

// causesCall reports whether the system makes a call before it is at rest again.
func (r rests) causesCall(after uint32) bool {
	seen, next := map[uint32]bool{after: true}, []uint32{after}
	for len(next) > 0 {
		v := next[len(next)-1]
		next = next[:len(next)-1]
		for _, to := range r.from(v) {
			if to&noisy != 0 {
				return true
			}
			if !seen[to] {
				seen[to] = true
				next = append(next, to)
			}
		}
	}
	return false
}
