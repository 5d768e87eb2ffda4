// SPDX-License-Identifier: Apache-2.0

// Panels: an act of a person, and the writes that it causes.

package timeline

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

const (
	// inARow is the longest time between two writes of a person that count as one act.
	inARow = 300 * time.Millisecond
	// quiet is the time without writes after which a write without a cause begins a
	// panel.
	quiet = 5 * time.Second
)

// panel is an act of a person with the steps that it causes.
type panel struct {
	title, subtitle string
	// steps are the indices of steps, ordered by time. The first is the act, at which the
	// panel's time begins.
	steps []int
	start time.Time
}

// panelsOf assigns each step to the panel of its cause.
func panelsOf(steps []step) []panel {
	var panels []panel
	place := make([]int, len(steps))
	var latest time.Time
	lastAct := none
	for i, s := range steps {
		at := len(panels) - 1
		switch {
		case s.cause != none:
			at = place[s.cause]
		case at < 0, s.acts && !sameAct(steps, lastAct, i), !s.acts && s.at.Sub(latest) > quiet:
			panels = append(panels, panel{})
			at++
		case s.acts:
			at = place[lastAct]
		}
		if s.acts {
			lastAct = i
		}
		place[i] = at
		panels[at].steps = append(panels[at].steps, i)
		if s.at.After(latest) {
			latest = s.at
		}
	}
	for i := range panels {
		panels[i].finish(steps)
	}
	return panels
}

// sameAct reports whether a write belongs to the same act as the one before: a person
// makes several in a row with kubectl apply -f, for example.
func sameAct(steps []step, last, i int) bool {
	if last == none {
		return false
	}
	a, b := steps[last], steps[i]
	return a.actor == b.actor && a.Verb == b.Verb && a.Subresource == b.Subresource && b.at.Sub(a.at) <= inARow
}

// finish orders a panel's steps by time and names it.
func (p *panel) finish(steps []step) {
	slices.SortStableFunc(p.steps, func(a, b int) int { return cmp.Or(steps[a].at.Compare(steps[b].at), cmp.Compare(a, b)) })
	first := steps[p.steps[0]]
	p.start = first.at
	roots := 0
	for _, i := range p.steps {
		if steps[i].cause == none && steps[i].actor == first.actor {
			roots++
		}
	}
	p.title = act(first) + " " + nameOf(first.object, first.kind)
	if roots > 1 {
		p.title += fmt.Sprintf(", and %s", count(roots-1, "more"))
	}
	last := steps[p.steps[len(p.steps)-1]]
	p.subtitle = fmt.Sprintf("%s in %s", count(len(p.steps), "write"), milliseconds(last.at.Sub(p.start)))
}

// act returns the verb for a write in a panel's title.
func act(s step) string {
	switch {
	case s.deletes():
		return "Delete"
	case s.Subresource == "scale":
		return "Scale"
	case s.creates():
		return "Create"
	case s.Verb == "create":
		return "Create " + s.Subresource + " of"
	}
	return "Change"
}

// nameOf returns the kind and name of an object.
func nameOf(k key, kind string) string {
	if k.name == "" {
		return kind + " (unnamed)"
	}
	return kind + " " + k.name
}

func count(n int, what string) string {
	if n == 1 || what == "more" {
		return fmt.Sprintf("%d %s", n, what)
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// milliseconds formats a time in ms, and a long one in seconds.
func milliseconds(d time.Duration) string {
	if d < 100*time.Second {
		return fmt.Sprintf("%d ms", d.Milliseconds())
	}
	return d.Round(time.Second).String()
}
