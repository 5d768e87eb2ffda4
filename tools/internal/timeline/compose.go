// SPDX-License-Identifier: Apache-2.0

// The layout of a picture.

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
