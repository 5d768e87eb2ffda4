// SPDX-License-Identifier: Apache-2.0

// Tests of the layout: nothing overlaps, whatever is drawn.

package timeline

import (
	"errors"
	"fmt"
	"math"
	"math/rand"
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/sample-controller/test/audit"
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

// hostile returns names that are unusual, or that would be harmful if they were not
// escaped.
func hostile() []string {
	return []string{
		"", "web", "web-1", "<script>alert(1)</script>", `"quoted'&amp;`, "]]>", "a\x00b\x1f\x7f", "a\nb\tc", "\xff\xfe", "\u202ereversed\u202c",
		strings.Repeat("long-", 60), strings.Repeat("w", 253), "北京-上海-广州-深圳-杭州-南京", "👩‍👩‍👧‍👦", "e\u0301e\u0301", "system:serviceaccount:a:b",
		"system:serviceaccount:c:b", "system:node:", "system:", "kwok", "alice@example.com", "https://issuer.example.com/#alice",
	}
}

// randomLog returns a log with random writes.
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

// forRandomPictures calls check with pictures of random logs, each in a subtest whose
// name is the seed.
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
	t.Run("the recorded log", func(t *testing.T) {
		log := lifeLog(t)
		picture, err := log.Picture()
		if err != nil {
			t.Fatal(err)
		}
		check(t, log, picture)
	})
}

// life returns the entries of testdata/life.log: panel, time in ms, actor, verb and
// object, and after < the cause.
func life() []string {
	return []string{
		"1: 0 devcluster-admin create Foo example-foo",
		"1: 17 sample-controller create Deployment example-foo < create Foo example-foo by devcluster-admin",
		"1: 31 sample-controller update Foo/status example-foo < create Foo example-foo by devcluster-admin",
		"1: 42 deployment-controller create ReplicaSet example-foo-694f5774b < create Deployment example-foo by sample-controller",
		"1: 59 deployment-controller update Deployment/status example-foo < create Deployment example-foo by sample-controller",
		"1: 66 deployment-controller update Deployment/status example-foo < create Deployment example-foo by sample-controller",
		"1: 78 replicaset-controller create Pod example-foo-694f5774b-sngkz < create ReplicaSet example-foo-694f5774b by deployment-controller",
		"1: 78 deployment-controller update Deployment/status example-foo < create Deployment example-foo by sample-controller",
		"1: 87 deployment-controller update Deployment/status example-foo < create Deployment example-foo by sample-controller",
		"1: 87 replicaset-controller update ReplicaSet/status example-foo-694f5774b < create ReplicaSet example-foo-694f5774b by deployment-controller",
		"1: 95 replicaset-controller update ReplicaSet/status example-foo-694f5774b < create ReplicaSet example-foo-694f5774b by deployment-controller",
		"1: 106 deployment-controller update Deployment/status example-foo < update ReplicaSet/status example-foo-694f5774b by replicaset-controller",
		"1: 110 kube-scheduler create Pod/binding example-foo-694f5774b-sngkz < create Pod example-foo-694f5774b-sngkz by replicaset-controller",
		"1: 132 kwok (as kubelet) patch Pod/status example-foo-694f5774b-sngkz < create Pod/binding example-foo-694f5774b-sngkz by kube-scheduler",
		"1: 139 replicaset-controller update ReplicaSet/status example-foo-694f5774b < patch Pod/status example-foo-694f5774b-sngkz by kwok (as kubelet)",
		"1: 145 deployment-controller update Deployment/status example-foo < update ReplicaSet/status example-foo-694f5774b by replicaset-controller",
		"1: 157 sample-controller update Foo/status example-foo < update Deployment/status example-foo by deployment-controller",
		"2: 0 devcluster-admin patch Foo/scale example-foo",
		"2: 13 sample-controller update Deployment example-foo < patch Foo/scale example-foo by devcluster-admin",
		"2: 28 deployment-controller update ReplicaSet example-foo-694f5774b < update Deployment example-foo by sample-controller",
		"2: 34 sample-controller update Foo/status example-foo < patch Foo/scale example-foo by devcluster-admin",
		"2: 44 replicaset-controller create Pod example-foo-694f5774b-k7wfr < update ReplicaSet example-foo-694f5774b by deployment-controller",
		"2: 53 deployment-controller update Deployment/status example-foo < update Deployment example-foo by sample-controller",
		"2: 56 kube-scheduler create Pod/binding example-foo-694f5774b-k7wfr < create Pod example-foo-694f5774b-k7wfr by replicaset-controller",
		"2: 58 replicaset-controller create Pod example-foo-694f5774b-pnt4n < update ReplicaSet example-foo-694f5774b by deployment-controller",
		"2: 66 deployment-controller update Deployment/status example-foo < update Deployment example-foo by sample-controller",
		"2: 87 kube-scheduler create Pod/binding example-foo-694f5774b-pnt4n < create Pod example-foo-694f5774b-pnt4n by replicaset-controller",
		"2: 88 replicaset-controller update ReplicaSet/status example-foo-694f5774b < create Pod/binding example-foo-694f5774b-pnt4n by kube-scheduler",
		"2: 93 kwok (as kubelet) patch Pod/status example-foo-694f5774b-k7wfr < create Pod/binding example-foo-694f5774b-k7wfr by kube-scheduler",
		"2: 112 kwok (as kubelet) patch Pod/status example-foo-694f5774b-pnt4n < create Pod/binding example-foo-694f5774b-pnt4n by kube-scheduler",
		"2: 120 replicaset-controller update ReplicaSet/status example-foo-694f5774b < patch Pod/status example-foo-694f5774b-pnt4n by kwok (as kubelet)",
		"2: 139 replicaset-controller update ReplicaSet/status example-foo-694f5774b < patch Pod/status example-foo-694f5774b-pnt4n by kwok (as kubelet)",
		"2: 144 deployment-controller update Deployment/status example-foo < update ReplicaSet/status example-foo-694f5774b by replicaset-controller",
		"2: 158 deployment-controller update Deployment/status example-foo < update ReplicaSet/status example-foo-694f5774b by replicaset-controller",
		"2: 206 sample-controller update Foo/status example-foo < update Deployment/status example-foo by deployment-controller",
		"3: 0 devcluster-admin delete Foo example-foo",
		"3: 11 garbage-collector delete Deployment example-foo < delete Foo example-foo by devcluster-admin",
		"3: 30 garbage-collector delete ReplicaSet example-foo-694f5774b < delete Deployment example-foo by garbage-collector",
		"3: 74 garbage-collector delete Pod example-foo-694f5774b-sngkz < delete ReplicaSet example-foo-694f5774b by garbage-collector",
		"3: 74 garbage-collector delete Pod example-foo-694f5774b-k7wfr < delete ReplicaSet example-foo-694f5774b by garbage-collector",
		"3: 108 garbage-collector delete Pod example-foo-694f5774b-pnt4n < delete ReplicaSet example-foo-694f5774b by garbage-collector",
		"3: 142 kwok (as kubelet) delete Pod example-foo-694f5774b-k7wfr < delete Pod example-foo-694f5774b-k7wfr by garbage-collector",
		"3: 142 kwok (as kubelet) delete Pod example-foo-694f5774b-sngkz < delete Pod example-foo-694f5774b-sngkz by garbage-collector",
		"3: 146 kwok (as kubelet) delete Pod example-foo-694f5774b-sngkz < delete Pod example-foo-694f5774b-sngkz by garbage-collector",
		"3: 146 kwok (as kubelet) delete Pod example-foo-694f5774b-k7wfr < delete Pod example-foo-694f5774b-k7wfr by garbage-collector",
		"3: 146 kwok (as kubelet) delete Pod example-foo-694f5774b-pnt4n < delete Pod example-foo-694f5774b-pnt4n by garbage-collector",
		"3: 153 kwok (as kubelet) delete Pod example-foo-694f5774b-pnt4n < delete Pod example-foo-694f5774b-pnt4n by garbage-collector",
	}
}
