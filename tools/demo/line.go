// SPDX-License-Identifier: Apache-2.0

// The printed lines: their clock and their format.

package main

import (
	"fmt"
	"strings"
	"time"
)

// line is the description of a write.
type line struct {
	at   time.Time
	who  string
	did  string
	kind string
	// name begins with the namespace, unless that is "default".
	name string
	note string
}

// pause is the time without a change after which a change by the user restarts the clock.
const pause = 300 * time.Millisecond

// stopwatch measures from the user's last change, or from the first of several changes
// without a pause.
type stopwatch struct{ start, last time.Time }

// read returns the milliseconds of a line, and whether the line started the clock.
func (s *stopwatch) read(l line) (milliseconds int64, started bool) {
	if s.start.IsZero() || isYou(l.who) && l.at.Sub(s.last) > pause {
		s.start, started = l.at, true
	}
	s.last = l.at
	return l.at.Sub(s.start).Milliseconds(), started
}

// style is the format of lines.
type style struct {
	// columns is the width of the terminal; 0 without a terminal.
	columns int
	colour  bool
}

// wide is the smallest width at which the parts of a line are aligned in columns.
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

// wrap breaks text into lines of at most the given number of columns, unless a word is
// longer.
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

// endsWith reports whether part is the last part of a note.
func endsWith(note, part string) bool { return note == part || strings.HasSuffix(note, ", "+part) }

// actorColour highlights the user and the controller.
func actorColour(who string) string {
	switch {
	case isYou(who):
		return yellow
	case who == sampleController:
		return cyan
	}
	return ""
}
