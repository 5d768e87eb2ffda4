// SPDX-License-Identifier: Apache-2.0

// The elements of a picture.

package timeline

import (
	"fmt"
	"time"
)

// Picture holds the elements to draw. Its units are chosen so that it fits a width of 800
// pixels.
type Picture struct {
	title         string
	width, height float64
	panels        int
	writes        int
	actors        []string // of the lanes, from left to right
	rects         []rect
	lines         []line
	arrows        []arrow
	marks         []mark
	labels        []label
	// entries are the writes of the table; of a large log, only the first.
	entries []Entry
}

// rect is the background of a panel.
type rect struct {
	x, y, width, height float64
	class               string
}

// line is a straight line.
type line struct {
	x1, y1, x2, y2 float64
	class          string
}

// arrow leads from the mark of the cause down a track beside its lane, and across to the
// mark of the effect.
type arrow struct {
	fromX, fromY, trackX, toX, toY float64
	colour                         int
	guessed                        bool
}

// shape is the shape of a mark.
type shape int

const (
	made shape = iota
	altered
	reported
	ended
)

// mark stands for a write, or for several similar ones.
type mark struct {
	x, y    float64
	shape   shape
	colour  int
	refused bool
	// tip is the tooltip.
	tip string
	// actor is the index of the actor.
	actor int
}

// label is text on one line. x and y are the upper left corner of its box.
type label struct {
	x, y, width, height float64
	size                float64
	runs                []run
}

// run is text in one style.
type run struct{ text, class string }

// Entry is a write as text. Panel is the number of the act that it belongs to, and
// Milliseconds the time since that began.
type Entry struct {
	At                                                      time.Time
	Panel, Milliseconds, Actor, Verb, Object, Result, Cause string
}

// Size describes the number of writes and panels.
func (p *Picture) Size() string {
	return fmt.Sprintf("%s in %s", count(p.writes, "write"), count(p.panels, "panel"))
}

// text adds a label, shortened to fit into room, and returns its width.
func (p *Picture) text(x, y, room, size float64, class, text string, measure func(string, float64) float64) float64 {
	text = shorten(clean(text), room, size, measure)
	width := measure(text, size)
	p.labels = append(p.labels, label{x, y, width, lineHeight(size), size, []run{{text, class}}})
	return width
}

func lineHeight(size float64) float64 { return size * 1.3 }
