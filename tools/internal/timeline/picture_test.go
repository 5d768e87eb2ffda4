// SPDX-License-Identifier: Apache-2.0

// Tests of the layout: nothing overlaps.

package timeline

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
)

// tolerance allows for rounding of coordinates.
const tolerance = 0.05

func TestLabelsDoNotOverlap(t *testing.T) {
	forRandomPictures(t, func(t *testing.T, _ *Log, p *Picture) {
		for i, a := range p.labels {
			if text := textOf(a); monospaced(text, a.size) > a.width+tolerance && proportional(text, a.size) > a.width+tolerance {
				t.Errorf("%q is wider than its box of %.0f", text, a.width)
			}
			for _, b := range p.labels[:i] {
				if a.x+tolerance < b.x+b.width && b.x+tolerance < a.x+a.width && a.y+tolerance < b.y+b.height && b.y+tolerance < a.y+a.height {
					t.Errorf("%q at %.0f,%.0f covers %q at %.0f,%.0f", textOf(a), a.x, a.y, textOf(b), b.x, b.y)
				}
			}
			for _, l := range p.lines {
				if l.x1 == l.x2 && l.x1 > a.x && l.x1 < a.x+a.width && l.y1 < a.y+a.height-tolerance && l.y2 > a.y+tolerance {
					t.Errorf("a lane at %.0f runs through %q", l.x1, textOf(a))
				}
			}
			for _, arrow := range p.arrows {
				if arrow.colour != legendColour && a.x+tolerance < max(arrow.fromX, arrow.toX, arrow.trackX) && a.y > arrow.fromY && a.y < arrow.toY && a.x > lanesLeft {
					t.Errorf("an arrow runs through %q", textOf(a))
				}
			}
		}
	})
}

func textOf(l label) string {
	var b strings.Builder
	for _, r := range l.runs {
		b.WriteString(r.text)
	}
	return b.String()
}

func TestElementsAreWithinThePicture(t *testing.T) {
	forRandomPictures(t, func(t *testing.T, _ *Log, p *Picture) {
		inside := func(what string, x1, y1, x2, y2 float64) {
			t.Helper()
			for _, f := range []float64{x1, y1, x2, y2} {
				if math.IsNaN(f) || math.IsInf(f, 0) {
					t.Fatalf("%s has invalid coordinates", what)
				}
			}
			if x1 < 0 || y1 < 0 || x2 > p.width+tolerance || y2 > p.height+tolerance || x1 > x2 || y1 > y2 {
				t.Errorf("%s at %.0f,%.0f-%.0f,%.0f is not within %.0fx%.0f", what, x1, y1, x2, y2, p.width, p.height)
			}
		}
		for _, l := range p.labels {
			inside(textOf(l), l.x, l.y, l.x+l.width, l.y+l.height)
		}
		for _, m := range p.marks {
			inside("the mark "+m.tip, m.x-radius, m.y-radius, m.x+radius, m.y+radius)
		}
		for _, r := range p.rects {
			inside("a ground", r.x, r.y, r.x+r.width, r.y+r.height)
		}
		for _, l := range p.lines {
			inside("a line", l.x1, l.y1, l.x2, l.y2)
		}
		for _, a := range p.arrows {
			inside("an arrow", min(a.fromX, a.toX, a.trackX), a.fromY, max(a.fromX, a.toX, a.trackX), a.toY)
		}
	})
}

func TestTimeRunsDownwards(t *testing.T) {
	forRandomPictures(t, func(t *testing.T, _ *Log, p *Picture) {
		last, panel := 0, ""
		for _, e := range p.entries {
			ms := number(t, e.Milliseconds)
			if e.Panel == panel && ms < last || ms < 0 {
				t.Errorf("panel %s: %d ms comes after %d ms", e.Panel, ms, last)
			}
			last, panel = ms, e.Panel
		}
		for i := 1; i < len(p.marks); i++ {
			if a, b := p.marks[i-1], p.marks[i]; b.colour != legendColour && b.y < a.y+rowHeight-tolerance {
				t.Errorf("%s overlaps %s, or is above it", b.tip, a.tip)
			}
		}
		for _, a := range p.arrows {
			if a.colour != legendColour && a.toY < a.fromY+rowHeight-tolerance {
				t.Errorf("an arrow from %.0f,%.0f to %.0f,%.0f leads back in time", a.fromX, a.fromY, a.toX, a.toY)
			}
		}
	})
}

func number(t *testing.T, text string) int {
	t.Helper()
	var n int
	if _, err := fmt.Sscan(text, &n); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestEachCauseHasItsOwnTrack(t *testing.T) {
	picture, err := lifeLog(t).Picture()
	if err != nil {
		t.Fatal(err)
	}
	for i, a := range picture.arrows {
		for _, b := range picture.arrows[:i] {
			same := a.fromX == b.fromX && a.fromY == b.fromY
			if !same && a.trackX == b.trackX && a.fromY < b.toY-tolerance && b.fromY < a.toY-tolerance {
				t.Errorf("two arrows share the track at %.0f: from %.0f to %.0f, and from %.0f to %.0f", a.trackX, a.fromY, a.toY, b.fromY, b.toY)
			}
		}
		for _, m := range picture.marks {
			if math.Abs(m.x-a.trackX) < radius && m.y > a.fromY && m.y < a.toY {
				t.Errorf("an arrow runs through the mark %s", m.tip)
			}
		}
	}
	if len(picture.arrows) < 40 {
		t.Errorf("got only %d arrows", len(picture.arrows))
	}
}

func TestEachActorHasALane(t *testing.T) {
	forRandomPictures(t, func(t *testing.T, log *Log, p *Picture) {
		all := map[int]bool{}
		for _, panel := range p.rects {
			byX, byActor := map[float64]int{}, map[int]float64{}
			for _, m := range p.marks {
				if m.y < panel.y || m.y > panel.y+panel.height {
					continue
				}
				all[m.actor] = true
				if actor, ok := byX[m.x]; ok && actor != m.actor {
					t.Errorf("%q and %q share the lane at %.0f", p.actors[actor], p.actors[m.actor], m.x)
				}
				if x, ok := byActor[m.actor]; ok && x != m.x {
					t.Errorf("%q has lanes at %.0f and %.0f", p.actors[m.actor], x, m.x)
				}
				byX[m.x], byActor[m.actor] = m.actor, m.x
			}
		}
		if len(all) != len(p.actors) {
			t.Errorf("%d of %d actors have marks", len(all), len(p.actors))
		}
		for i, name := range p.actors {
			if name == "" || slices.Contains(p.actors[:i], name) {
				t.Errorf("the name %q of an actor is empty or not unique", name)
			}
		}
		for _, e := range p.entries {
			if !slices.Contains(p.actors, e.Actor) {
				t.Errorf("%q has no lane", e.Actor)
			}
		}
		if p.panels < maxPanels && log.Object != nil && p.writes != len(log.writes) {
			t.Errorf("%d of %d writes are drawn", p.writes, len(log.writes))
		}
	})
}
