// SPDX-License-Identifier: Apache-2.0

// The mark, time and text of a row.

package timeline

import (
	"fmt"
	"net/http"
	"strings"
	"time"
)

// row places the mark of a row, its time and its text.
func (c *composer) row(p panel, r row, y float64) {
	s := c.steps[r.steps[0]]
	lane := c.lanes.index[s.actor]
	x := c.lanes.x(lane)
	c.lines = append(c.lines, line{x, y, c.textX - 4, y, "lead"})
	c.marks = append(c.marks, mark{x, y, shapeOf(s), colour(lane), !s.OK(), c.tip(p, r), c.all.index[s.actor]})
	passed := elapsed(s.at.Sub(p.start))
	width := monospaced(passed, fontSize)
	top := y - lineHeight(fontSize)/2
	c.labels = append(c.labels, label{gutter - width, top, width, lineHeight(fontSize), fontSize, []run{{passed, "num"}}})
	room := c.width - 1.5*margin - c.textX
	runs := c.describe(r, room)
	width = 0
	for _, part := range runs {
		width += monospaced(part.text, fontSize)
	}
	c.labels = append(c.labels, label{c.textX, top, width, lineHeight(fontSize), fontSize, runs})
}

// describe returns the text of a row, shortened to fit into room: verb, kind, name, and
// result.
func (c *composer) describe(r row, room float64) []run {
	s := c.steps[r.steps[0]]
	fit := func(text string, room float64) string { return shorten(clean(text), room, fontSize, monospaced) }
	verb := run{fit(s.Verb, room/4), fmt.Sprintf("b c%d", colour(c.lanes.index[s.actor]))}
	kind := " " + kindAndPart(s)
	if len(r.steps) > 1 {
		kind += fmt.Sprintf(" ×%d", len(r.steps))
	}
	note := run{class: "dim"}
	switch {
	case !s.OK():
		note = run{" " + outcome(s), "bad"}
	case s.Body != nil && len(r.steps) == 1 && s.Body.Note != "":
		note.text = " " + s.Body.Note
	}
	name := c.nameOf(r)
	if name != "" {
		name = " " + name
	}
	// Shorten the name first, but keep a part of it.
	note.text = fit(note.text, max(room/3, room-monospaced(verb.text+kind+name, fontSize)))
	left := room - monospaced(verb.text+note.text, fontSize)
	kind = fit(kind, left-min(monospaced(name, fontSize), room/4))
	name = fit(name, left-monospaced(kind, fontSize))
	return []run{verb, {kind, "b"}, {name, ""}, note}
}

// kindAndPart returns the kind of a step's object, and the subresource.
func kindAndPart(s step) string {
	if s.Subresource == "" {
		return s.kind
	}
	return s.kind + "/" + s.Subresource
}

// nameOf returns the name of a row's object, or the common prefix of the names of its
// objects.
func (c *composer) nameOf(r row) string {
	first := c.steps[r.steps[0]].object
	name, same := c.qualified(first), true
	for _, i := range r.steps[1:] {
		if o := c.steps[i].object; o != first {
			name, same = commonPrefix(name, c.qualified(o)), false
		}
	}
	if !same {
		return name + ellipsis
	}
	return name
}

// qualified returns an object's name, with its namespace if the panel has several.
func (c *composer) qualified(o key) string {
	if c.scattered && o.namespace != "" {
		return o.namespace + "/" + o.name
	}
	return o.name
}

func commonPrefix(a, b string) string {
	x, y := []rune(a), []rune(b)
	n := 0
	for n < len(x) && n < len(y) && x[n] == y[n] {
		n++
	}
	return string(x[:n])
}

// outcome returns the code of the response and its meaning.
func outcome(s step) string {
	if text := http.StatusText(s.Code); text != "" {
		return fmt.Sprintf("%d %s", s.Code, text)
	}
	return strings.TrimSpace(fmt.Sprintf("%d %s", s.Code, s.Reason))
}

// elapsed formats the time since a panel's beginning so that it fits into the gutter.
func elapsed(d time.Duration) string {
	switch {
	case d < 100*time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < 100*time.Hour:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	}
	return fmt.Sprintf("%d h", int(d.Hours()))
}

func shapeOf(s step) shape {
	switch {
	case s.deletes():
		return ended
	case s.creates():
		return made
	case s.reports():
		return reported
	}
	return altered
}

// tip returns the tooltip of a row, with all that is known about it.
func (c *composer) tip(p panel, r row) string {
	e := c.entry(0, p, r.steps[0])
	text := fmt.Sprintf("%s ms: %s: %s %s: %s", e.Milliseconds, e.Actor, e.Verb, e.Object, e.Result)
	if n := len(r.steps); n > 1 {
		last := c.steps[r.steps[n-1]].at.Sub(p.start).Milliseconds()
		text += fmt.Sprintf("; and %s until %d ms", count(n-1, "more"), last)
	}
	if e.Cause != "" {
		text += "; after: " + e.Cause
	}
	return clean(text)
}

// maxEntries is the greatest number of writes in the table of a picture.
const maxEntries = 2000

// table adds a panel's writes to the entries.
func (c *composer) table(n int, p panel) {
	c.writes += len(p.steps)
	for _, i := range p.steps[:min(len(p.steps), max(0, c.most-len(c.entries)))] {
		c.entries = append(c.entries, c.entry(n, p, i))
	}
}

func (c *composer) entry(n int, p panel, i int) Entry {
	s := c.steps[i]
	e := Entry{
		At:    s.at,
		Panel: fmt.Sprint(n + 1), Milliseconds: fmt.Sprint(s.at.Sub(p.start).Milliseconds()),
		Actor: c.lanes.names[c.lanes.index[s.actor]], Verb: clean(s.Verb), Object: clean(c.objectOf(s)),
		Result: clean(outcome(s)),
	}
	if s.Body != nil && s.Body.Note != "" && s.OK() {
		e.Result += ", " + clean(s.Body.Note)
	}
	if s.cause != none {
		cause := c.steps[s.cause]
		e.Cause = clean(cause.Verb + " " + c.objectOf(cause) + " by " + cause.actor.Name)
		if s.guessed {
			e.Cause += " (guessed)"
		}
	}
	return e
}

func (c *composer) objectOf(s step) string {
	if s.Name == "" {
		return kindAndPart(s)
	}
	return kindAndPart(s) + " " + c.qualified(s.object)
}
