// SPDX-License-Identifier: Apache-2.0

// Titles of steps.

package main

import "strings"

// titleLength is the number of characters of a command in its title.
const titleLength = 90

// title describes a step in one line.
func (s step) title() string {
	lines := strings.Split(strings.TrimSpace(s.text), "\n")
	first := lines[0]
	if runes := []rune(first); len(runes) > titleLength {
		first = string(runes[:titleLength]) + "..."
	} else if len(lines) > 1 {
		first += " ..."
	}
	switch s.kind {
	case stepExpect:
		return "prints " + strings.Join(strings.Fields(first), " ")
	case stepFile:
		return "file " + s.path
	case stepPatch:
		return "patch"
	case stepAct:
		return s.act.title()
	}
	return first
}

func (a actOptions) title() string {
	switch {
	case a.nodes > 0 && a.interrupt:
		return "interrupt, then a cluster"
	case a.nodes > 0:
		return "a cluster"
	}
	return strings.TrimSpace("interrupt " + a.victim)
}
