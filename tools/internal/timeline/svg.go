// SPDX-License-Identifier: Apache-2.0

// The picture as SVG: its style, names and footer.

package timeline

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"strings"
)

// WriteSVG writes the picture as a self-contained SVG document, without scripts and
// fonts. It follows the reader's preference for a dark or a light background.
func (p *Picture) WriteSVG(w io.Writer) error {
	s := &svg{}
	s.printf(`<svg xmlns="http://www.w3.org/2000/svg" width="%.0f" height="%.0f" viewBox="0 0 %.0f %.0f" role="img" aria-labelledby="t d">`+"\n",
		p.width, p.height, p.width, p.height)
	s.printf("<title id=\"t\">%s</title>\n<desc id=\"d\">%s</desc>\n", escape(p.title), escape(p.summary()))
	s.printf("<style>\n%s</style>\n", stylesheet())
	s.printf("<rect class=\"ground\" width=\"%.0f\" height=\"%.0f\"/>\n", p.width, p.height)
	for _, r := range p.rects {
		s.printf("<rect class=%q x=\"%s\" y=\"%s\" width=\"%s\" height=\"%s\" rx=\"6\"/>\n", r.class, num(r.x), num(r.y), num(r.width), num(r.height))
	}
	for _, l := range p.lines {
		s.printf("<path class=%q d=\"M%s %sL%s %s\"/>\n", l.class, num(l.x1), num(l.y1), num(l.x2), num(l.y2))
	}
	for _, a := range p.arrows {
		s.arrow(a)
	}
	for _, m := range p.marks {
		s.mark(m)
	}
	for _, l := range p.labels {
		s.label(l)
	}
	s.printf("</svg>\n")
	_, err := w.Write(s.Bytes())
	return err
}

// summary describes the picture in words.
func (p *Picture) summary() string {
	var b strings.Builder
	for i, e := range p.entries {
		if i == maxRows {
			fmt.Fprintf(&b, "And %d more.", p.writes-i)
			break
		}
		fmt.Fprintf(&b, "Panel %s, %s ms: %s: %s %s. ", e.Panel, e.Milliseconds, e.Actor, e.Verb, e.Object)
	}
	return strings.TrimSpace(b.String())
}

type svg struct{ bytes.Buffer }

func (s *svg) printf(format string, args ...any) { fmt.Fprintf(s, format, args...) }

// num formats a coordinate with at most one decimal place.
func num(f float64) string { return strings.TrimSuffix(fmt.Sprintf("%.1f", f), ".0") }

func escape(text string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(text)) // Writing to a Builder can't fail.
	return b.String()
}

func colourClass(colour int) string {
	if colour == legendColour {
		return "cx"
	}
	return fmt.Sprintf("c%d", colour)
}

const (
	bend     = 4.0
	headSpan = 6.0
)

// arrow draws an arrow from a cause to an effect.
func (s *svg) arrow(a arrow) {
	class := "arrow " + colourClass(a.colour)
	if a.guessed {
		class += " guessed"
	}
	sign := 1.0 // the direction of arrival
	if a.toX < a.trackX {
		sign = -1
	}
	tip := a.toX - sign*(radius+1.5)
	back := tip - sign*headSpan
	if (back-a.trackX)*sign < 0 {
		back = a.trackX
	}
	turn := a.trackX + sign*min(bend, (back-a.trackX)*sign)
	s.printf("<path class=%q d=\"M%s %sQ%s %s %s %sV%sQ%s %s %s %sH%s\"/>", class,
		num(a.fromX), num(a.fromY+radius), num(a.trackX), num(a.fromY+radius), num(a.trackX), num(a.fromY+radius+bend),
		num(a.toY-bend), num(a.trackX), num(a.toY), num(turn), num(a.toY), num(back))
	s.printf("<path class=\"head %s\" d=\"M%s %sL%s %sL%s %sz\"/>\n", colourClass(a.colour),
		num(tip), num(a.toY), num(back), num(a.toY-3.2), num(back), num(a.toY+3.2))
}

// mark draws a mark with its tooltip.
func (s *svg) mark(m mark) {
	class := "mark " + colourClass(m.colour)
	if m.refused {
		class = "mark refused"
	}
	s.printf("<g class=%q>", class)
	if m.tip != "" {
		s.printf("<title>%s</title>", escape(m.tip))
	}
	x, y, r := m.x, m.y, radius
	switch m.shape {
	case ended:
		if m.refused {
			s.printf("<circle cx=\"%s\" cy=\"%s\" r=\"%s\"/>", num(x), num(y), num(r))
			r = 2.5
		} else {
			r = 4
		}
		s.printf("<path class=\"cross\" d=\"M%s %sL%s %sM%s %sL%s %s\"/>", num(x-r), num(y-r), num(x+r), num(y+r), num(x-r), num(y+r), num(x+r), num(y-r))
	case made:
		s.printf("<circle cx=\"%s\" cy=\"%s\" r=\"%s\"/>", num(x), num(y), num(r))
	case altered:
		r++
		s.printf("<path d=\"M%s %sL%s %sL%s %sL%s %sz\"/>", num(x-r), num(y), num(x), num(y-r), num(x+r), num(y), num(x), num(y+r))
	case reported:
		if !m.refused {
			r = 3.2
		}
		s.printf("<circle cx=\"%s\" cy=\"%s\" r=\"%s\"/>", num(x), num(y), num(r))
	}
	s.printf("</g>\n")
}

// label draws text.
func (s *svg) label(l label) {
	class := "t"
	if l.size != fontSize {
		class = "h"
	}
	s.printf("<text class=%q x=\"%s\" y=\"%s\" font-size=\"%s\">", class, num(l.x), num(l.y+l.size), num(l.size))
	for _, r := range l.runs {
		switch {
		case r.text == "":
		case r.class == "":
			s.printf("%s", escape(r.text))
		default:
			s.printf("<tspan class=%q>%s</tspan>", r.class, escape(r.text))
		}
	}
	s.printf("</text>\n")
}

// palette is one set of colours.
type palette struct {
	ground, panel, lane, lead, text, dim, bad string
	// actors are the colours of the lanes, in order. Each has enough contrast to the
	// panel's background.
	actors [colours]string
}

func light() palette {
	return palette{
		ground: "#ffffff", panel: "#f6f8fa", lane: "#d1d9e0", lead: "#e4e8ec", text: "#1f2328", dim: "#59636e", bad: "#cf222e",
		actors: [colours]string{"#9a6700", "#0969da", "#8250df", "#1a7f37", "#bf3989", "#0b7285", "#bc4c00", "#57606a"},
	}
}

func dark() palette {
	return palette{
		ground: "#0d1117", panel: "#161b22", lane: "#3d444d", lead: "#262c36", text: "#f0f6fc", dim: "#9198a1", bad: "#ff7b72",
		actors: [colours]string{"#e3b341", "#58a6ff", "#bc8cff", "#3fb950", "#f778ba", "#39c5cf", "#f0883e", "#b1bac4"},
	}
}

// stylesheet returns the picture's stylesheet, with the light palette, and the dark one
// for readers who prefer it.
func stylesheet() string {
	return `.t{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono","Liberation Mono",monospace;white-space:pre}
.h{font-family:system-ui,-apple-system,"Segoe UI",Helvetica,Arial,"DejaVu Sans",sans-serif;font-weight:600}
.b{font-weight:600}
.arrow,.lane,.lead,.pause,.cross{fill:none}
.lane{stroke-width:1}
.lead{stroke-width:1}
.pause{stroke-width:1;stroke-dasharray:2 4}
.arrow{stroke-width:1.3}
.guessed{stroke-dasharray:4 3}
.mark{stroke-width:1.5}
.cross{stroke-width:2.6;stroke-linecap:round}
.refused .cross{stroke-width:1.5}
` + light().rules("") + "@media (prefers-color-scheme:dark){\n" + dark().rules("") + "}\n"
}

// rules returns the rules of the stylesheet that set colours.
func (p palette) rules(indent string) string {
	var b strings.Builder
	rule := func(format string, args ...any) { fmt.Fprintf(&b, indent+format+"\n", args...) }
	rule(".ground{fill:%s}", p.ground)
	rule(".panel{fill:%s;stroke:%s}", p.panel, p.lane)
	rule("text{fill:%s}", p.text)
	rule(".dim,.num{fill:%s}", p.dim)
	rule(".bad{fill:%s}", p.bad)
	rule(".lane,.pause{stroke:%s}", p.lane)
	rule(".lead{stroke:%s}", p.lead)
	paint := func(class, colour string) {
		rule("tspan.%s,.mark.%s,.head.%s{fill:%s}", class, class, class, colour)
		rule(".arrow.%s,.mark.%s .cross{stroke:%s}", class, class, colour)
	}
	for i, colour := range p.actors {
		paint(fmt.Sprintf("c%d", i), colour)
	}
	paint("cx", p.dim)
	rule(".refused{fill:%s;stroke:%s}", p.panel, p.bad)
	rule(".refused .cross{stroke:%s}", p.bad)
	return b.String()
}

// nameless identifies the objects that wait for a name: of a resource, in a namespace.
type nameless struct{ group, resource, namespace string }

// giveNames names the objects whose create has no name, because the server generated the
// name and the log has no bodies. Such an object gets the first name of its resource that
// appears in a later write and in no earlier one. If the log has bindings, the name of a
// Pod is taken from its binding.
func giveNames(steps []step) {
	seen := map[key]bool{}
	bindings := map[nameless]bool{}
	waiting := map[nameless][]int{}
	for _, s := range steps {
		if s.Subresource == "binding" {
			bindings[placeOf(s)] = true
		}
	}
	for i, s := range steps {
		place := placeOf(s)
		switch {
		case s.creates() && s.Name == "" && s.OK():
			waiting[place] = append(waiting[place], i)
			continue
		case s.Name == "" || seen[s.object] || !s.OK():
			continue
		}
		seen[s.object] = true
		if s.creates() || s.deletes() || bindings[place] && s.Subresource != "binding" {
			continue
		}
		for n, earlier := range waiting[place] {
			if body := steps[earlier].Body; body == nil || strings.HasPrefix(s.Name, body.GenerateName) {
				steps[earlier].Name, steps[earlier].object = s.Name, s.object
				waiting[place] = append(waiting[place][:n:n], waiting[place][n+1:]...)
				break
			}
		}
	}
}

func placeOf(s step) nameless { return nameless{s.object.group, s.object.resource, s.object.namespace} }

// footer places the legend, and notes about the writes that are not drawn.
func (c *composer) footer(notes []string) {
	x, y := 2*margin, c.height+rowHeight/2
	for _, item := range []struct {
		shape   shape
		refused bool
		text    string
	}{
		{made, false, "create"},
		{altered, false, "update, patch"},
		{reported, false, "status"},
		{ended, false, "delete"},
		{made, true, "refused"},
	} {
		c.marks = append(c.marks, mark{x, y, item.shape, legendColour, item.refused, "", none})
		x += 2 * radius
		x += c.text(x, y-lineHeight(fontSize)/2, c.width-margin-x, fontSize, "dim", item.text, monospaced) + 2*margin
	}
	for _, item := range []struct {
		guessed bool
		text    string
	}{{false, "cause to effect"}, {true, "guessed"}} {
		c.arrows = append(c.arrows, arrow{x - 4, y - 14, x - 4, x + 26, y, legendColour, item.guessed})
		x += 26
		x += c.text(x, y-lineHeight(fontSize)/2, c.width-margin-x, fontSize, "dim", item.text, monospaced) + 2*margin
	}
	y += rowHeight
	notes = append([]string{"Times are in ms since the first write of the panel, by the API server's clock."}, notes...)
	for _, note := range notes {
		for _, text := range wrapped(clean(note), c.width-3*margin, fontSize) {
			c.text(1.5*margin, y-lineHeight(fontSize)/2, c.width-3*margin, fontSize, "dim", text, monospaced)
			y += rowHeight
		}
	}
	c.height = y
}

// legendColour is the colour of marks in the legend, which belong to no actor.
const legendColour = -1
