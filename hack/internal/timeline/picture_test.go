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

package timeline

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand"
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/sample-controller/hack/internal/audit"
)

// hostile are names as nobody should give them.
func hostile() []string {
	return []string{
		"", "web", "web-1", "<script>alert(1)</script>", `"quoted'&amp;`, "]]>", "a\x00b\x1f\x7f", "a\nb\tc", "\xff\xfe", "‮reversed‬",
		strings.Repeat("long-", 60), strings.Repeat("w", 253), "北京-上海-广州-深圳-杭州-南京", "👩‍👩‍👧‍👦", "e\u0301e\u0301", "system:serviceaccount:a:b",
		"system:serviceaccount:c:b", "system:node:", "system:", "kwok", "alice@example.com", "https://issuer.example.com/#alice",
	}
}

// randomLog is a log of anything.
func randomLog(random *rand.Rand) (*Log, []audit.Write) {
	pick := func(from ...string) string { return from[random.Intn(len(from))] }
	name := func() string { return pick(hostile()...) }
	var log Log
	if random.Intn(4) > 0 {
		log.Object = &Selection{}
	}
	var all []audit.Write
	at := noon
	people := 1 + random.Intn(30)
	for range 1 + random.Intn(120) {
		at = at.Add(time.Duration(random.ExpFloat64() * math.Pow(10, float64(random.Intn(13)))))
		w := audit.Write{
			Verb: pick("create", "update", "patch", "delete", "deletecollection", name()), Group: pick("", "apps", "samplecontroller.k8s.io", name()),
			Resource: pick("pods", "replicasets", "deployments", "foos", name()), Subresource: pick("", "", "status", "scale", "binding", name()),
			Namespace: pick("default", "default", "", name()), Name: name(), User: fmt.Sprint(name(), random.Intn(people)),
			Agent: pick("kubectl/v1", "kube-controller-manager/v1", name()), Code: []int{200, 201, 409, 0, 599, -7}[random.Intn(6)],
			Received: at.Add(-time.Duration(random.Intn(40)) * time.Millisecond), Done: at,
		}
		if random.Intn(5) == 0 {
			w.Body = &audit.Body{Kind: name(), GenerateName: name(), Note: name(), Owners: []audit.Owner{{Kind: name(), Name: name()}}}
		}
		all = append(all, w)
		log.Add(w)
	}
	return &log, all
}

// forRandomPictures calls check with pictures of random logs; the seed of a failure is the name of its test.
func forRandomPictures(t *testing.T, check func(*testing.T, *Log, *Picture)) {
	for seed := range int64(100) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			log, _ := randomLog(rand.New(rand.NewSource(seed)))
			picture, err := log.Picture()
			if errors.Is(err, errNoWrites) {
				t.Skip("nothing to draw")
			}
			if err != nil {
				t.Fatal(err)
			}
			check(t, log, picture)
		})
	}
	t.Run("a real one", func(t *testing.T) {
		log := lifeLog(t)
		picture, err := log.Picture()
		if err != nil {
			t.Fatal(err)
		}
		check(t, log, picture)
	})
}

// tolerance is what rounding may make of a place.
const tolerance = 0.05

func TestNoLabelCoversAnother(t *testing.T) {
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

func TestEverythingIsInThePicture(t *testing.T) {
	forRandomPictures(t, func(t *testing.T, _ *Log, p *Picture) {
		inside := func(what string, x1, y1, x2, y2 float64) {
			t.Helper()
			for _, f := range []float64{x1, y1, x2, y2} {
				if math.IsNaN(f) || math.IsInf(f, 0) {
					t.Fatalf("%s is nowhere", what)
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

func TestTimeRunsDown(t *testing.T) {
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
				t.Errorf("%s stands above %s", b.tip, a.tip)
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

func TestEachCauseHasATrackOfItsOwn(t *testing.T) {
	picture, err := lifeLog(t).Picture()
	if err != nil {
		t.Fatal(err)
	}
	for i, a := range picture.arrows {
		for _, b := range picture.arrows[:i] {
			same := a.fromX == b.fromX && a.fromY == b.fromY
			if !same && a.trackX == b.trackX && a.fromY < b.toY-tolerance && b.fromY < a.toY-tolerance {
				t.Errorf("two arrows run along %.0f: from %.0f to %.0f, and from %.0f to %.0f", a.trackX, a.fromY, a.toY, b.fromY, b.toY)
			}
		}
		for _, m := range picture.marks {
			if math.Abs(m.x-a.trackX) < radius && m.y > a.fromY && m.y < a.toY {
				t.Errorf("an arrow runs through the mark %s", m.tip)
			}
		}
	}
	if len(picture.arrows) < 40 {
		t.Errorf("there are but %d arrows", len(picture.arrows))
	}
}

func TestEachActorHasALane(t *testing.T) {
	forRandomPictures(t, func(t *testing.T, log *Log, p *Picture) {
		lanes := map[float64]bool{}
		for _, m := range p.marks {
			if m.colour != legendColour {
				lanes[m.x] = true
			}
		}
		if len(lanes) != len(p.actors) {
			t.Errorf("%d actors have %d lanes", len(p.actors), len(lanes))
		}
		for i, name := range p.actors {
			if name == "" || slices.Contains(p.actors[:i], name) {
				t.Errorf("an actor is called %q", name)
			}
		}
		for _, e := range p.entries {
			if !slices.Contains(p.actors, e.Actor) {
				t.Errorf("%q has no lane", e.Actor)
			}
		}
		if p.panels < maxPanels && log.Object != nil && len(p.entries) != len(log.writes) {
			t.Errorf("%d of %d writes are drawn", len(p.entries), len(log.writes))
		}
	})
}

func TestDocumentsAreWellFormedAndHarmless(t *testing.T) {
	forRandomPictures(t, func(t *testing.T, _ *Log, p *Picture) {
		var svg, page strings.Builder
		if err := errors.Join(p.WriteSVG(&svg), p.WriteHTML(&page)); err != nil {
			t.Fatal(err)
		}
		decoder := xml.NewDecoder(strings.NewReader(svg.String()))
		for {
			token, err := decoder.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			element, ok := token.(xml.StartElement)
			if !ok {
				continue
			}
			if !slices.Contains([]string{"svg", "title", "desc", "style", "rect", "path", "g", "circle", "text", "tspan"}, element.Name.Local) {
				t.Errorf("there is an element %s", element.Name.Local)
			}
			for _, attribute := range element.Attr {
				if strings.HasPrefix(attribute.Name.Local, "on") || strings.HasSuffix(attribute.Name.Local, "href") {
					t.Errorf("there is an attribute %s", attribute.Name.Local)
				}
			}
		}
		for _, document := range []string{svg.String(), page.String()} {
			if strings.Contains(document, "<script") || strings.Contains(document, "\u202e") {
				t.Error("a name got through unchanged")
			}
		}
	})
}

// luminance and contrast are those of the Web Content Accessibility Guidelines 2.
func luminance(t *testing.T, colour string) float64 {
	t.Helper()
	var channels [3]uint8
	if _, err := fmt.Sscanf(colour, "#%02x%02x%02x", &channels[0], &channels[1], &channels[2]); err != nil {
		t.Fatalf("%s: %v", colour, err)
	}
	sum := 0.0
	for i, weight := range []float64{0.2126, 0.7152, 0.0722} {
		c := float64(channels[i]) / 255
		if c <= 0.04045 {
			sum += weight * c / 12.92
		} else {
			sum += weight * math.Pow((c+0.055)/1.055, 2.4)
		}
	}
	return sum
}

func TestTextStandsOutFromItsGround(t *testing.T) {
	for name, p := range map[string]palette{"light": light(), "dark": dark()} {
		for _, ground := range []string{p.ground, p.panel} {
			for _, colour := range append([]string{p.text, p.dim, p.bad}, p.actors[:]...) {
				a, b := luminance(t, colour)+0.05, luminance(t, ground)+0.05
				if contrast := max(a, b) / min(a, b); contrast < 4.5 {
					t.Errorf("%s: %s on %s has a contrast of %.1f", name, colour, ground, contrast)
				}
			}
		}
	}
}
