// SPDX-License-Identifier: Apache-2.0

// Tests of the picture and the page.

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

func TestSimilarWritesShareRows(t *testing.T) {
	log := logOf("0 alice create foos/web", "1 x create deployments/web", "2 x create replicasets/web-1")
	for i := range 500 {
		log.Add(parseWrite(fmt.Sprintf("%d x create pods/web-1-%d", 10+3*i, i)))
		log.Add(parseWrite(fmt.Sprintf("%d scheduler create pods.binding/web-1-%d", 11+3*i, i)))
		log.Add(parseWrite(fmt.Sprintf("%d scheduler create pods.binding/web-1-%d 409", 12+3*i, i)))
	}
	timeline := of(t, log, "", "")
	var got []string
	for _, r := range timeline.picture().Drawn[0].Rows {
		got = append(got, fmt.Sprint(r.Since.Milliseconds(), " ", r.Object, " ", r.Note()))
	}
	want := []string{
		"0 foos web ", "1 deployments web ", "2 replicasets web-1 ",
		"10 pods web-1-0 and 499 more", "11 pods/binding web-1-0 and 499 more", "12 pods/binding web-1-0 409 Conflict, and 499 more",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if n := len(entriesOf(timeline)); n != 1503 {
		t.Errorf("the text has %d writes", n)
	}
}

func TestAPictureHasOnlyTheLastActs(t *testing.T) {
	var log Log
	for i := range 30 {
		log.Add(parseWrite(fmt.Sprintf("%d alice patch foos.scale/web", 1000*i)))
	}
	picture := of(t, &log, "", "").picture()
	first := picture.Drawn[0].Entries[0]
	if want := "0 other writes, and the first 18 of 30 panels"; len(picture.Drawn) != 12 || first.Panel != 19 || picture.Left() != want {
		t.Errorf("got %d panels, from the %dth on: %s", len(picture.Drawn), first.Panel, picture.Left())
	}
}

func TestCut(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "12345678": "12345678", "123456789": "12345…89", "北京-上海": "北…", "a-北京-b": "a-北…-b",
	} {
		if got := cut(8, text); got != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
}

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
	for _, panel := range timeline.picture().Drawn {
		if last := slices.Max(panel.Lanes); last > lanesLeft+lanesWidth {
			t.Errorf("the last of %d lanes is at %d", len(panel.Lanes), last)
		}
	}
	var svg, page, text strings.Builder
	if err := errors.Join(timeline.WriteSVG(&svg), timeline.WriteHTML(&page), timeline.WriteText(&text)); err != nil {
		t.Fatal(err)
	}
	for _, document := range []string{svg.String(), page.String(), text.String()} {
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
