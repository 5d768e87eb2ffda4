// SPDX-License-Identifier: Apache-2.0

// Tests of the SVG and HTML documents.

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
)

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
