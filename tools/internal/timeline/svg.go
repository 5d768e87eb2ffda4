// SPDX-License-Identifier: Apache-2.0

// The picture as SVG.

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
