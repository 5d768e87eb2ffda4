// SPDX-License-Identifier: Apache-2.0

// A picture of a small graph of states: from left to right by their distance from the
// first, with the steps between them.

package explore

import (
	"cmp"
	"fmt"
	"html"
	"slices"
	"strings"
)

const (
	columnWidth = 34
	rowHeight   = 13
	margin      = 24
	legendRoom  = 64
)

// colors are those of the steps, by who takes them.
var colors = []struct {
	name, color string
	ops         []op
}{
	{"users and others", "#d9730d", []op{opAct}},
	{"control plane", "#2e7d32", []op{opControlPlane}},
	{"an event arrives", "#1565c0", []op{opDeliver, opTell, opRelist}},
	{"the controller begins a sync", "#6a1b9a", []op{opSync, opResync}},
	{"a call is answered", "#37474f", []op{opCall, opLate}},
	{"time passes", "#bdbdbd", []op{opTime}},
	{"crash and start", "#c62828", []op{opCrash, opStart}},
}

// drawnEdge is a step in a picture.
type drawnEdge struct {
	from, to uint32
	op       op
}

// Draw explores a small world and returns a picture of all of its states, as SVG.
func Draw(w World, create New) (string, error) {
	s, err := newSearch(w, create, Bounds{Workers: 1})
	if err != nil {
		return "", err
	}
	p := &picture{search: s, titles: map[uint32]string{}}
	p.explore()
	p.place()
	return p.svg(), nil
}

type picture struct {
	*search

	edges   []drawnEdge
	titles  map[uint32]string
	column  []int
	row     []float64
	resting []bool
}

func (p *picture) explore() {
	s := p.search
	s.find(explored{s.first, s.scene}.identity(), node{})
	frontier := []frontierState{{0, s.first}}
	p.column = []int{0}
	for depth := 1; len(frontier) > 0; depth++ {
		var next []frontierState
		for _, from := range frontier {
			p.titles[from.id] = explored{from.state, s.scene}.summary()
			taken := s.runners[0].expand(from.state)
			found := s.add(from, taken)
			for range found {
				p.column = append(p.column, depth)
			}
			for i, by := range taken.steps {
				p.edges = append(p.edges, drawnEdge{from.id, s.known[taken.identities[i]], by.op})
			}
			next = append(next, found...)
		}
		frontier = next
	}
	rest := s.rests()
	for v := range uint32(len(s.nodes)) {
		p.resting = append(p.resting, rest.terminal[rest.component[v]])
	}
}

// place gives each state a row, near those that lead to it.
func (p *picture) place() {
	p.row = make([]float64, len(p.column))
	columns := make([][]uint32, slices.Max(p.column)+1)
	for id, c := range p.column {
		columns[c] = append(columns[c], uint32(id))
	}
	for range 4 {
		for _, states := range columns {
			wish := p.wishes(states)
			slices.SortStableFunc(states, func(a, b uint32) int { return cmp.Compare(wish[a], wish[b]) })
			for i, id := range states {
				p.row[id] = float64(i) - float64(len(states)-1)/2
			}
		}
	}
}

// wishes returns the middle of the rows of those that lead to each of a column's states.
func (p *picture) wishes(states []uint32) map[uint32]float64 {
	sums, counts := map[uint32]float64{}, map[uint32]float64{}
	for _, e := range p.edges {
		if p.column[e.from] < p.column[e.to] {
			sums[e.to] += p.row[e.from]
			counts[e.to]++
		}
	}
	wish := map[uint32]float64{}
	for _, id := range states {
		wish[id] = sums[id] / max(counts[id], 1)
	}
	return wish
}

func (p *picture) at(id uint32) (x, y int) {
	lowest := slices.Min(p.row)
	return margin + p.column[id]*columnWidth, margin + legendRoom + int((p.row[id]-lowest)*rowHeight)
}

// curve returns a step as a part of a path.
func (p *picture) curve(e drawnEdge) string {
	x1, y1 := p.at(e.from)
	x2, y2 := p.at(e.to)
	bend := 0
	if x2 <= x1 {
		bend = 10 + (x1-x2)/8 // a step back
	}
	return fmt.Sprintf("M%d %dC%d %d %d %d %d %d", x1, y1, x1+columnWidth/2, y1+bend, x2-columnWidth/2, y2+bend, x2, y2)
}

func (p *picture) svg() string {
	width := margin*2 + slices.Max(p.column)*columnWidth
	height := margin*2 + legendRoom + int((slices.Max(p.row)-slices.Min(p.row))*rowHeight)
	var out strings.Builder
	fmt.Fprintf(&out, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\" font-family=\"sans-serif\" font-size=\"11\">\n", width, height, width, height)
	fmt.Fprintf(&out, "<rect width=\"%d\" height=\"%d\" fill=\"white\"/>\n", width, height)
	fmt.Fprintf(&out, "<text x=\"%d\" y=\"20\" font-size=\"13\">%s: %d states, %d steps. Those at rest are filled.</text>\n", margin, html.EscapeString(p.About), len(p.nodes), len(p.edges))
	x := margin
	for _, c := range colors {
		if !slices.ContainsFunc(p.edges, func(e drawnEdge) bool { return slices.Contains(c.ops, e.op) }) {
			continue
		}
		fmt.Fprintf(&out, "<line x1=\"%d\" y1=\"40\" x2=\"%d\" y2=\"40\" stroke=\"%s\" stroke-width=\"2\"/><text x=\"%d\" y=\"44\">%s</text>\n", x, x+18, c.color, x+22, c.name)
		x += 34 + 6*len(c.name)
	}
	for _, c := range colors {
		var lines strings.Builder
		for _, e := range p.edges {
			if e.from != e.to && slices.Contains(c.ops, e.op) {
				lines.WriteString(p.curve(e))
			}
		}
		if lines.Len() > 0 {
			fmt.Fprintf(&out, "<path d=\"%s\" fill=\"none\" stroke=\"%s\" opacity=\"0.75\"/>\n", lines.String(), c.color)
		}
	}
	out.WriteString("<g stroke=\"#37474f\" fill=\"white\">\n")
	for id := range p.column {
		x, y := p.at(uint32(id))
		if p.resting[id] {
			fmt.Fprintf(&out, "<circle cx=\"%d\" cy=\"%d\" r=\"4\" fill=\"#2e7d32\"><title>%s</title></circle>\n", x, y, html.EscapeString(p.titles[uint32(id)]))
		} else {
			fmt.Fprintf(&out, "<circle cx=\"%d\" cy=\"%d\" r=\"4\"/>\n", x, y)
		}
	}
	out.WriteString("</g>\n")
	out.WriteString("</svg>\n")
	return out.String()
}
