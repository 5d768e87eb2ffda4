// SPDX-License-Identifier: Apache-2.0

// Tests of the picture.

package timeline

import (
	"encoding/xml"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"example.com/sample-controller/test/audit"
)

// hostile are names that would be harmful if they were not escaped.
var hostile = []string{
	"<script>alert(1)</script>", `"onload='alert(1)'`, "&amp;]]>", "{{.}}", "a\x00b\x1f\x7f", "a\nb\tc", "\xff\xfe", "\u202ereversed\u202c",
	strings.Repeat("w", 300), "北京-上海-广州-深圳-杭州-南京", "👩‍👩‍👧‍👦", "",
}

// TestDocumentsAreWellFormedAndSafe also has more actors than lanes of full width.
func TestDocumentsAreWellFormedAndSafe(t *testing.T) {
	var log Log
	for i, name := range hostile {
		for n := range 20 {
			w := parseWrite(fmt.Sprintf("%d x patch foos.status/web", 100*i+n))
			w.Subresource, w.Name, w.User, w.Agent = name, name, fmt.Sprint(name, n), name
			w.Response = &audit.Object{Spec: map[string]any{"replicas": name}}
			log.Add(w)
		}
	}
	timeline := of(t, &log, "", "")
	lanes := timeline.picture().Lanes
	if last := slices.Max(lanes); last > lanesLeft+lanesWidth {
		t.Errorf("the last of %d lanes is at %d", len(lanes), last)
	}
	var svg, text strings.Builder
	if err := errors.Join(timeline.WriteSVG(&svg), timeline.WriteText(&text)); err != nil {
		t.Fatal(err)
	}
	for _, document := range []string{svg.String(), text.String()} {
		isMarkup := document != text.String()
		if strings.ContainsAny(document, "\u202e\x00\x1f\x7f") || !utf8.ValidString(document) ||
			isMarkup && (strings.Contains(document, "<script") || strings.Contains(document, `"onload`)) {
			t.Errorf("a name is not escaped in %s", document)
		}
	}
	if lines := strings.Count(text.String(), "\n"); lines != 3+20*len(hostile) {
		t.Errorf("the text has %d lines", lines)
	}
	if err := xml.Unmarshal([]byte(svg.String()), &struct{}{}); err != nil {
		t.Error(err)
	}
}
