// SPDX-License-Identifier: Apache-2.0

// The layout of a picture, and its tracks.

package timeline

import (
	"fmt"
	"slices"
	"time"
)

// The dimensions of a picture.
const (
	pictureWidth = 896.0
	margin       = 16.0
	gutter       = 64.0 // the right end of the column with the times
	lanesLeft    = 76.0
	rowHeight    = 18.0
	pauseHeight  = 20.0
	panelSpace   = 14.0
	radius       = 5.0
	textGap      = 10.0 // between the last lane and the column with the text
	textLeast    = 340.0
)

// composer places panels below one another.
type composer struct {
	*Picture

	steps []step
	// all are the picture's lanes, and lanes those of the panel that is being placed.
	all, lanes lanes
	// textX is where the column with verbs and objects begins.
	textX float64
	// most is the greatest number of entries.
	most int
	// scattered is true if the panel's objects are in several namespaces.
	scattered bool
}

// compose makes a picture of panels.
func compose(title string, steps []step, panels []panel, notes []string, entries int) *Picture {
	c := composer{Picture: &Picture{panels: len(panels)}, steps: steps, most: entries, all: lanesOf(steps, panels, lanesLeft)}
	c.actors = c.all.names
	c.textX = c.all.right() + textGap
	c.width = max(pictureWidth, c.textX+textLeast+margin)
	namespaces := namespacesOf(steps, panels)
	if len(namespaces) == 1 {
		title += " in " + namespaces[0]
	}
	c.title = clean(title)
	first := panels[0].start.UTC()
	when := first.Format("2006-01-02 15:04:05 MST")
	used := monospaced(when, fontSize)
	c.text(c.width-margin-used, margin+3, used, fontSize, "dim", when, monospaced)
	c.text(margin, margin, c.width-3*margin-used, titleSize, "title", title, proportional)
	c.height = margin + 2*titleSize
	for n, p := range panels {
		here := namespacesOf(steps, panels[n:n+1])
		if c.scattered = len(here) > 1; len(here) == 1 && len(namespaces) > 1 {
			p.title += " in " + here[0]
		}
		c.lanes = c.all.of(steps, p)
		c.panel(n, p, first)
	}
	c.footer(notes)
	return c.Picture
}

// namespacesOf returns the namespaces of the panels' objects, in the order of appearance.
func namespacesOf(steps []step, panels []panel) []string {
	var namespaces []string
	for _, p := range panels {
		for _, i := range p.steps {
			if n := steps[i].object.namespace; n != "" && !slices.Contains(namespaces, n) {
				namespaces = append(namespaces, n)
			}
		}
	}
	return namespaces
}

// panel places a panel below the existing parts.
func (c *composer) panel(n int, p panel, first time.Time) {
	top := c.height
	side := p.subtitle
	if n > 0 {
		side += fmt.Sprintf(", %s after the first act", pause(max(0, p.start.Sub(first))))
	}
	room := c.width - 2*margin
	used := min(monospaced(side, fontSize), room/2)
	y := top + 9
	c.text(c.width-2*margin-used, y+2, used, fontSize, "dim", side, monospaced)
	c.text(2*margin, y, room-3*margin-used, headSize, "title", p.title, proportional)
	y += 2 * headSize
	headers, height := c.lanes.headers(c.width - margin)
	lanesTop := y + height + 4
	rows := rowsOf(c.steps, p)
	ys, pauses := c.rowPlaces(rows, lanesTop+rowHeight/2)
	bottom := ys[len(ys)-1] + rowHeight/2 + 6
	c.rects = append(c.rects, rect{margin / 2, top, c.width - margin, bottom - top, "panel"})
	c.names(headers, y, lanesTop, bottom-4)
	c.arrowsOf(rows, ys)
	for i, r := range rows {
		if at, ok := pauses[i]; ok {
			c.pause(at, c.at(r).Sub(c.at(rows[i-1])))
		}
		c.row(p, r, ys[i])
	}
	c.table(n, p)
	c.height = bottom + panelSpace
}

// names places the actors' names and their lanes.
func (c *composer) names(headers []header, y, top, bottom float64) {
	for _, h := range headers {
		class := fmt.Sprintf("b c%d", colour(h.lane))
		c.labels = append(c.labels, label{h.x, y + h.y, h.width, headerLine, fontSize, []run{{h.text, class}}})
		if h.toTheEnd {
			x := c.lanes.x(h.lane)
			c.lines = append(c.lines, line{x, y + h.y + headerLine + 3, x, bottom, "lane"})
		}
	}
	c.lines = append(c.lines, line{margin, top - 2, c.width - margin, top - 2, "lane"})
}

// rowPlaces returns the height of each row. The distance between two rows grows with the
// time between them. From one second on, the gap shows the time; pauses has the height of
// such gaps, by the row after each.
func (c *composer) rowPlaces(rows []row, y float64) (ys []float64, pauses map[int]float64) {
	pauses = map[int]float64{}
	for i, r := range rows {
		if i > 0 {
			y += rowHeight
			switch gap := c.at(r).Sub(c.at(rows[i-1])); {
			case gap >= time.Second:
				pauses[i] = y
				y += pauseHeight
			default:
				y += min(12, float64(gap.Milliseconds())/8)
			}
		}
		ys = append(ys, y)
	}
	return ys, pauses
}

func (c *composer) at(r row) time.Time { return c.steps[r.steps[0]].at }

// pause places the length of a gap before a row.
func (c *composer) pause(y float64, d time.Duration) {
	c.text(c.textX, y-lineHeight(fontSize)/2, c.width-2*margin-c.textX, fontSize, "dim", pause(d)+" later", monospaced)
	c.lines = append(c.lines, line{margin, y, c.textX - textGap, y, "pause"})
}

// pause formats the length of a gap, without needless precision.
func pause(d time.Duration) string {
	if d < time.Minute {
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
	return d.Round(time.Second).String()
}

const (
	nearest = 13.0 // distance from the middle of a lane to its first track
	pitch   = 5.0  // distance between two tracks, if there is enough space
)

// trunk is the vertical line from a cause to the last of its effects, on one side of the
// cause's lane.
type trunk struct {
	cause, last int
	lane        int
	right       bool
	track       int
}

// arrowsOf places the arrows between a panel's rows. Each cause has its own track beside
// its lane, so that its arrows neither cross a mark nor overlap with the arrows of
// another cause.
func (c *composer) arrowsOf(rows []row, ys []float64) {
	trunks := c.trunks(rows)
	tracks := assign(trunks)
	for i, r := range rows {
		if r.cause == none {
			continue
		}
		from, to := c.laneOf(rows[r.cause]), c.laneOf(r)
		right := to >= from
		n := slices.IndexFunc(trunks, func(t trunk) bool { return t.cause == r.cause && t.right == right })
		c.arrows = append(c.arrows, arrow{
			fromX: c.lanes.x(from), fromY: ys[r.cause],
			trackX: c.lanes.x(from) + c.offset(trunks[n], tracks),
			toX:    c.lanes.x(to), toY: ys[i],
			colour: colour(from), guessed: r.guessed,
		})
	}
}

func (c *composer) laneOf(r row) int { return c.lanes.index[c.steps[r.steps[0]].actor] }

func (c *composer) trunks(rows []row) []trunk {
	var trunks []trunk
	for i, r := range rows {
		if r.cause == none {
			continue
		}
		lane := c.laneOf(rows[r.cause])
		right := c.laneOf(r) >= lane
		n := slices.IndexFunc(trunks, func(t trunk) bool { return t.cause == r.cause && t.right == right })
		if n < 0 {
			trunks = append(trunks, trunk{cause: r.cause, last: i, lane: lane, right: right})
			continue
		}
		trunks[n].last = i
	}
	return trunks
}

// side is the left or right side of a lane.
type side struct {
	lane  int
	right bool
}

// assign gives each trunk the nearest free track, and returns the number of tracks on
// each side.
func assign(trunks []trunk) map[side]int {
	order := make([]int, len(trunks))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return trunks[a].cause - trunks[b].cause })
	ends := map[side][]int{}
	count := map[side]int{}
	for _, i := range order {
		t := &trunks[i]
		at := side{t.lane, t.right}
		for t.track < len(ends[at]) && ends[at][t.track] > t.cause {
			t.track++
		}
		if t.track == len(ends[at]) {
			ends[at] = append(ends[at], 0)
		}
		ends[at][t.track] = t.last
		count[at] = max(count[at], t.track+1)
	}
	return count
}

// offset returns the distance of a trunk from the middle of its lane. It is within the
// lane for any number of tracks.
func (c *composer) offset(t trunk, tracks map[side]int) float64 {
	first := min(nearest, c.lanes.width/2-1)
	step := pitch
	if n := tracks[side{t.lane, t.right}]; n > 1 {
		step = min(pitch, (c.lanes.width/2-1-first)/float64(n-1))
	}
	away := first + float64(t.track)*step
	if !t.right {
		away = -away
	}
	return away
}

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
