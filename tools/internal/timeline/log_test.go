// SPDX-License-Identifier: Apache-2.0

// Tests of pictures of whole logs.

package timeline

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/sample-controller/test/audit"
)

func TestPictureOfAFoo(t *testing.T) {
	picture, err := lifeLog(t).Picture()
	if err != nil {
		t.Fatal(err)
	}
	if want := "The life of Foo example-foo in default"; picture.title != want {
		t.Errorf("the title is %q, want %q", picture.title, want)
	}
	if got := entriesOf(picture); !slices.Equal(got, life()) {
		t.Errorf("got\n%s", strings.Join(got, "\n"))
	}
	if got, want := picture.Size(), "47 writes in 3 panels"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	var all []string
	for _, l := range picture.labels {
		all = append(all, textOf(l))
	}
	for _, want := range []string{
		"The life of Foo example-foo in default", "Create Foo example-foo", "Scale Foo example-foo", "Delete Foo example-foo",
		"2026-11-21 23:15:18 UTC", "17 writes in 157 ms", "18 writes in 206 ms, 1.5 s after the first act", "12 writes in 153 ms, 29.2 s after the first act",
		"devcluster-", "admin",
	} {
		if !slices.Contains(all, want) {
			t.Errorf("the picture lacks %q", want)
		}
	}
	// The names in between are shortened if they are long.
	for _, want := range [][2]string{{"create Foo exam", ""}, {"update Deployment/status exam", " 409 Conflict"}, {"delete Pod exam", " 404 Not Found"}} {
		if !slices.ContainsFunc(all, func(text string) bool { return strings.HasPrefix(text, want[0]) && strings.HasSuffix(text, want[1]) }) {
			t.Errorf("the picture lacks %s...%s", want[0], want[1])
		}
	}
}

func titles(t *testing.T, log *Log) []string {
	t.Helper()
	picture, err := log.Picture()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, l := range picture.labels {
		if l.size == headSize {
			got = append(got, textOf(l))
		}
	}
	return got
}

func TestPanels(t *testing.T) {
	tests := map[string]struct {
		writes []string
		want   []string
	}{
		"an act before the last effect of another": {[]string{
			"0 alice create foos/web", "400 web-controller create deployments/web", "401 alice patch foos.scale/web",
			"402 deployment-controller create replicasets/web-1", "410 web-controller update deployments/web",
		}, []string{"Create Foo web", "Scale Foo web"}},
		"several within 300 ms are one act": {[]string{
			"0 alice create foos/a", "100 alice create foos/b", "300 alice create foos/c",
		}, []string{"Create Foo a, and 2 more"}},
		"two people":    {[]string{"0 alice create foos/a", "1 bob create foos/b"}, []string{"Create Foo a", "Create Foo b"}},
		"another verb":  {[]string{"0 alice create foos/a", "1 alice delete foos/a"}, []string{"Create Foo a", "Delete Foo a"}},
		"nobody's act":  {[]string{"0 x update foos.status/a"}, []string{"Change Foo a"}},
		"after a while": {[]string{"0 x update foos.status/a", "100 x update foos.status/a", "9000 x update foos.status/a"}, []string{"Change Foo a, and 1 more", "Change Foo a"}},
		"an eviction":   {[]string{"0 alice create pods.eviction/a"}, []string{"Delete Pod a"}},
	}
	for name, test := range tests {
		if got := titles(t, logOf(test.writes...)); !slices.Equal(got, test.want) {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}

func TestPictureHasOnlyTheLastActs(t *testing.T) {
	var log Log
	for i := range 30 {
		log.Add(parseWrite(fmt.Sprintf("%d alice patch foos.scale/web", 1000*i)))
	}
	if got := titles(t, &log); len(got) != maxPanels {
		t.Errorf("%d panels", len(got))
	}
}

func TestSelection(t *testing.T) {
	writes := []string{
		"0 alice create foos/web",
		"5 web-controller create deployments/web",
		"8 deployment-controller create replicasets/web-1",
		"10 bob create foos/b:web",
		"12 web-controller create deployments/b:web",
		"20 alice create deployments/other",
		"25 deployment-controller create replicasets/other-1",
		"30 alice patch deployments/web",
		"35 alice create deployments/web-2",
		"40 gc patch leases/x", "41 gc create events/x", "42 kubelet patch nodes.status/n", "43 x create serviceaccounts.token/x",
	}
	tests := map[string]struct {
		object, namespace string
		want              []int
		left              string
	}{
		"the default":              {"", "", []int{0, 1, 2, 3, 4, 7}, "events (1), heartbeats (1), leases (1), tokens (1), writes on other objects (3)"},
		"a namespace":              {"", "b", []int{3, 4}, "events (1), heartbeats (1), leases (1), tokens (1), writes on other objects (7)"},
		"everything":               {"all", "", []int{0, 1, 2, 3, 4, 5, 6, 7, 8}, "events (1), heartbeats (1), leases (1), tokens (1)"},
		"an object":                {"deployment/other", "", []int{5, 6}, "events (1), heartbeats (1), leases (1), tokens (1), writes on other objects (7)"},
		"a resource in the plural": {"Replicasets", "", []int{2, 6}, "events (1), heartbeats (1), leases (1), tokens (1), writes on other objects (7)"},
		"a resource with a group":  {"foos.samplecontroller.k8s.io", "default", []int{0, 1, 2, 7}, "events (1), heartbeats (1), leases (1), tokens (1), writes on other objects (5)"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			log := &Log{Namespace: test.namespace}
			if test.object != "" {
				selection, err := ParseSelection(test.object)
				if err != nil {
					t.Fatal(err)
				}
				log.Object = &selection
			}
			for _, text := range writes {
				log.Add(parseWrite(text))
			}
			picture, err := log.Picture()
			if err != nil {
				t.Fatal(err)
			}
			var want []string
			for _, i := range test.want {
				w := parseWrite(writes[i])
				want = append(want, w.Verb+" "+w.Resource+" "+w.Name)
			}
			var got []string
			for _, e := range picture.entries {
				kind, name, _ := strings.Cut(e.Object, " ")
				got = append(got, e.Verb+" "+plural(kind)+" "+name[strings.LastIndex(name, "/")+1:])
			}
			slices.Sort(got)
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Errorf("got %q, want %q", got, want)
			}
			if !slices.ContainsFunc(picture.labels, func(l label) bool { return textOf(l) == "Not drawn: "+test.left+"." }) {
				t.Errorf("the picture does not note that %s are not drawn", test.left)
			}
		})
	}
	for _, text := range []string{"", "/", "foo/", "/web", "foo/a/b"} {
		if _, err := ParseSelection(text); err == nil {
			t.Errorf("no error for %q", text)
		}
	}
}

func TestErrorForALogWithoutWrites(t *testing.T) {
	for _, log := range []*Log{{}, logOf("0 gc patch leases/x", "1 gc patch leases/x")} {
		_, err := log.Picture()
		if !errors.Is(err, errNoWrites) || len(log.left) > 0 && !strings.Contains(err.Error(), "leases (2)") {
			t.Errorf("got %v", err)
		}
	}
}

func TestYou(t *testing.T) {
	log := logOf("0 alice create foos/web", "1 bob create foos/b")
	log.You = "alice"
	picture, err := log.Picture()
	if err != nil {
		t.Fatal(err)
	}
	if got, want := entriesOf(picture), []string{"1: 0 you create Foo web", "2: 0 bob create Foo b"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestSimilarWritesShareRows(t *testing.T) {
	for name, gap := range map[string]int{"close together": 1, "far apart": 1000} {
		var log Log
		log.Add(parseWrite("0 alice create foos/web"))
		for i := range 500 {
			log.Add(parseWrite(fmt.Sprintf("%d x create pods/web-%d", 10+i*gap, i)))
			log.Add(parseWrite(fmt.Sprintf("%d scheduler create pods.binding/web-%d", 11+i*gap, i)))
			log.Add(parseWrite(fmt.Sprintf("%d x delete pods/gone-%d 404", 12+i*gap, i)))
		}
		log.Object = &Selection{}
		picture, err := log.Picture()
		if err != nil {
			t.Fatal(err)
		}
		rows, writes := 0, 0
		for _, m := range picture.marks {
			if m.colour != legendColour {
				rows++
			}
		}
		for _, l := range picture.labels {
			text := textOf(l)
			if _, times, ok := strings.Cut(text, "×"); ok {
				writes += number(t, times)
			} else if strings.HasPrefix(text, "create Pod") || strings.HasPrefix(text, "delete Pod") || strings.HasPrefix(text, "create Foo") {
				writes++
			}
		}
		if rows > 40 || writes != 1501 || picture.writes != 1501 {
			t.Errorf("%s: %d rows contain %d writes of %d", name, rows, writes, picture.writes)
		}
	}
}

func TestCauseIsNotLaterThanItsEffect(t *testing.T) {
	log := logOf("0 alice create foos/web", "10 web-controller create deployments/web", "15 deployment-controller create replicasets/web-1")
	log.writes[1].Done = noon.Add(time.Second) // The response was slow, but the object existed long before.
	picture, err := log.Picture()
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"1: 0 alice create Foo web",
		"1: 15 web-controller create Deployment web < create Foo web by alice",
		"1: 15 deployment-controller create ReplicaSet web-1 < create Deployment web by web-controller",
	}
	if got := entriesOf(picture); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestManyActorsWithTheSameName(t *testing.T) {
	var log Log
	for i := range 60 {
		w := parseWrite(fmt.Sprintf("%d x patch foos/web", i))
		w.User = fmt.Sprintf("system:serviceaccount:n%d:controller", i)
		log.Add(w)
	}
	picture, err := log.Picture()
	if err != nil {
		t.Fatal(err)
	}
	if got := picture.entries[7].Actor; got != "n7/controller" {
		t.Errorf("the actor is called %q", got)
	}
	if picture.width < 60*leastLane {
		t.Errorf("60 lanes are %.0f wide", picture.width)
	}
}

func TestNotesAreWholeIfThereIsRoom(t *testing.T) {
	w := parseWrite("0 web-controller update foos.status/example-foo")
	w.Response, w.Body = &audit.Object{}, &audit.Body{Kind: "Foo", Note: "0/3 available, ProgressDeadlineExceeded"}
	var log Log
	log.Add(w)
	if log.writes[0].Response != nil {
		t.Error("the log keeps an object, which may be large")
	}
	picture, err := log.Picture()
	if err != nil {
		t.Fatal(err)
	}
	var document strings.Builder
	if err := picture.WriteSVG(&document); err != nil || !strings.Contains(document.String(), "> "+w.Body.Note+"<") {
		t.Errorf("not in the picture: %s: %v", w.Body.Note, err)
	}
}

func TestElapsedFitsTheGutter(t *testing.T) {
	for d, want := range map[int64]string{0: "0 ms", 99999: "99999 ms", 100000: "100 s", 360000000: "100 h"} {
		got := elapsed(time.Duration(d) * time.Millisecond)
		if got != want || monospaced(got, fontSize) > gutter {
			t.Errorf("%d ms: got %q, want %q", d, got, want)
		}
	}
}

func TestDocumentsAreWellFormedAndSafe(t *testing.T) {
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
				t.Errorf("unexpected element %s", element.Name.Local)
			}
			for _, attribute := range element.Attr {
				if strings.HasPrefix(attribute.Name.Local, "on") || strings.HasSuffix(attribute.Name.Local, "href") {
					t.Errorf("unexpected attribute %s", attribute.Name.Local)
				}
			}
		}
		for _, document := range []string{svg.String(), page.String()} {
			if strings.Contains(document, "<script") || strings.Contains(document, "\u202e") {
				t.Error("a name was not escaped")
			}
		}
	})
}

// luminance returns the relative luminance of a colour, by the Web Content Accessibility
// Guidelines 2.
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

func TestTextHasEnoughContrast(t *testing.T) {
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
