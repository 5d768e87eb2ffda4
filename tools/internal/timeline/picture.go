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

// The elements of a picture.

package timeline

import "fmt"

// Picture is what is to be drawn, in units of which it is wide enough for 800 pixels.
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
	// entries are the writes that are drawn, or the first of them, for a table.
	entries []entry
}

// rect is a ground on which other things stand.
type rect struct {
	x, y, width, height float64
	class               string
}

// line is straight.
type line struct {
	x1, y1, x2, y2 float64
	class          string
}

// arrow leads from the mark of a cause down a track beside its lane, and across to the mark of the effect.
type arrow struct {
	fromX, fromY, trackX, toX, toY float64
	colour                         int
	guessed                        bool
}

// shape is what a mark looks like.
type shape int

const (
	made shape = iota
	altered
	told
	ended
)

// mark is a write, or some of the same sort.
type mark struct {
	x, y    float64
	shape   shape
	colour  int
	refused bool
	// tip is shown by browsers when one points at it.
	tip string
	// actor is the index of whose it is.
	actor int
}

// label is text on one line. Its box is measured: x and y are its upper left corner.
type label struct {
	x, y, width, height float64
	size                float64
	runs                []run
}

// run is text of one look.
type run struct{ text, class string }

// entry is a write as a table has it.
type entry struct{ Panel, Milliseconds, Actor, Verb, Object, Result, Cause string }

// Size says how much there is to see.
func (p *Picture) Size() string {
	return fmt.Sprintf("%s in %s", count(p.writes, "write"), count(p.panels, "panel"))
}

// text adds a label, no wider than given, and returns its width.
func (p *Picture) text(x, y, room, size float64, class, text string, measure func(string, float64) float64) float64 {
	text = shorten(clean(text), room, size, measure)
	width := measure(text, size)
	p.labels = append(p.labels, label{x, y, width, lineHeight(size), size, []run{{text, class}}})
	return width
}

func lineHeight(size float64) float64 { return size * 1.3 }
