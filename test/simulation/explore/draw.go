// SPDX-License-Identifier: Apache-2.0

// The graph of the states of a small world, as text for Graphviz.

package explore

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// colors are those of the steps, by who takes them, and legend says so.
var colors = map[op]string{
	opAct: "orange", opControlPlane: "green3", opDeliver: "blue", opTell: "blue", opRelist: "blue", opSync: "purple",
	opResync: "purple", opCall: "gray20", opLate: "gray20", opTime: "gray75", opCrash: "red", opStart: "red",
}

const legend = "orange: users and others; green: control plane; blue: an event arrives; " +
	"purple: the controller begins a sync; black: a call is answered; gray: time passes; red: crash and start"

func writeGraph(t *testing.T, worlds []World, create New) {
	t.Helper()
	if len(worlds) != 1 {
		t.Fatalf("-explore=%s names %d worlds: one can be drawn", *size, len(worlds))
	}
	graph, err := graphOf(worlds[0], create)
	if err == nil {
		err = os.WriteFile(*drawTo, []byte(graph), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// graphOf explores a small world, and returns all of its states and steps in Graphviz's language.
func graphOf(w World, create New) (string, error) {
	s, err := newSearch(w, create, 1)
	if err != nil {
		return "", err
	}
	var nodes, edges strings.Builder
	titles := []string{explored{s.first, s.scene}.summary()}
	steps := 0
	s.find(explored{s.first, s.scene}.identity(), node{})
	for frontier := []frontierState{{0, s.first}}; len(frontier) > 0; frontier = frontier[1:] {
		from := frontier[0]
		taken := s.runners[0].expand(from.state)
		for _, found := range s.add(from, taken) {
			titles = append(titles, explored{found.state, s.scene}.summary())
			frontier = append(frontier, found)
		}
		for i, by := range taken.steps {
			fmt.Fprintf(&edges, "  %d -> %d [color=%s]\n", from.id, s.known[taken.identities[i]], colors[by.op])
			steps++
		}
	}
	rest := s.rests()
	for id, title := range titles {
		style := ""
		if rest.terminal[rest.component[id]] {
			style = ", style=filled, fillcolor=green3"
		}
		fmt.Fprintf(&nodes, "  %d [tooltip=%q%s]\n", id, title, style)
	}
	label := fmt.Sprintf("%s: %d states, %d steps. Those at rest are filled.\n%s", w.About, len(titles), steps, legend)
	return fmt.Sprintf(`digraph {
  rankdir=LR
  nodesep=0.05
  label=%q
  node [shape=circle, label="", width=0.1]
  edge [arrowsize=0.3]
%s%s}
`, label, &nodes, &edges), nil
}
