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

// The printed lines.

package main

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// line is what is printed of one change.
type line struct {
	at   time.Time
	who  string
	did  string
	kind string
	// name has the namespace in front unless that is "default".
	name string
	note string
}

// lineOf says in a line what happened. It returns false for what is not worth one.
func lineOf(e entry, self string) (line, bool) {
	did, note := describe(e.change)
	if did == "" {
		return line{}, false
	}
	object := e.object()
	name := object.GetName()
	if namespace := object.GetNamespace(); namespace != metav1.NamespaceDefault {
		name = namespace + "/" + name
	}
	return line{at: e.at, who: whoDid(e, self), did: did, kind: e.kind, name: name, note: note}, true
}

// whoDid names who made a change. Without a record there is only the name that the writer gave itself.
func whoDid(e entry, self string) string {
	if e.by != nil {
		return actorOf(*e.by, self)
	}
	if writers := writers(e.change); len(writers) > 0 {
		return writers[0].Manager + " (?)"
	}
	return "?"
}

// pause is the quiet time after which a change of yours restarts the clock.
const pause = 300 * time.Millisecond

// stopwatch counts from your last change, or from the first of some that you made in a row.
type stopwatch struct{ start, last time.Time }

// read returns the milliseconds at which a line happened, and whether it started the clock.
func (s *stopwatch) read(l line) (milliseconds int64, started bool) {
	if s.start.IsZero() || isYou(l.who) && l.at.Sub(s.last) > pause {
		s.start, started = l.at, true
	}
	s.last = l.at
	return l.at.Sub(s.start).Milliseconds(), started
}

// style is how lines look.
type style struct {
	// columns is the width of the terminal; 0 where there is none.
	columns int
	colour  bool
}

// wide is the width from which all parts of a line stand in columns.
const wide = 100

const (
	dim    = "2"
	green  = "32"
	yellow = "33"
	cyan   = "36"
)

func (s style) paint(colour, text string) string {
	if !s.colour || colour == "" {
		return text
	}
	return "\x1b[" + colour + "m" + text + "\x1b[0m"
}

func (s style) header() string {
	return s.paint(dim, fmt.Sprintf("%5s %-21s  %s", "ms", "who", "what"))
}

func (s style) format(l line, milliseconds int64) string {
	ms, who := fmt.Sprintf("%5d", milliseconds), fmt.Sprintf("%-21s", l.who)
	head := s.paint(dim, ms) + " " + s.paint(actorColour(l.who), who) + "  "
	what, gap := fmt.Sprintf("%-8s %-32s", l.did, l.kind+" "+l.name), "  "
	if s.columns > 0 && s.columns < wide {
		what, gap = l.did+" "+l.kind+" "+l.name, " "
	}
	indent := len(ms) + len(who) + 3
	switch {
	case l.note == "":
		return head + strings.TrimRight(what, " ")
	case s.columns > 0 && indent+len(what)+len(gap)+len(l.note) > s.columns:
		margin := "\n" + strings.Repeat(" ", indent+2)
		note := wrap(l.note, s.columns-indent-2)
		return head + strings.TrimRight(what, " ") + margin + strings.ReplaceAll(s.paintNote(note), "\n", margin)
	}
	return head + what + gap + s.paintNote(l.note)
}

func (s style) paintNote(note string) string {
	if endsWith(note, ready) {
		return s.paint(green, note)
	}
	return note
}

// wrap breaks text into lines of at most the given number of columns, except where a word is longer.
func wrap(text string, columns int) string {
	var b strings.Builder
	used := 0
	for i, word := range strings.Fields(text) {
		switch {
		case i == 0:
		case used+1+len(word) > columns:
			b.WriteByte('\n')
			used = 0
		default:
			b.WriteByte(' ')
			used++
		}
		b.WriteString(word)
		used += len(word)
	}
	return b.String()
}

// endsWith reports whether part is the last of a note's parts.
func endsWith(note, part string) bool { return note == part || strings.HasSuffix(note, ", "+part) }

// actorColour sets apart the two whom a reader looks for.
func actorColour(who string) string {
	switch {
	case isYou(who):
		return yellow
	case who == sampleController:
		return cyan
	}
	return ""
}
