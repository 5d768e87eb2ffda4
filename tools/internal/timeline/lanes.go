// SPDX-License-Identifier: Apache-2.0

// The actors, as lanes, and each act of a person with its effects, as a panel.

package timeline

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"example.com/sample-controller/test/audit"
)

// lanes are the actors of a picture, or of a panel, from left to right.
type lanes struct {
	actors []audit.Actor
	names  []string
	index  map[audit.Actor]int
	// left is the left end of the first lane, and width the width of each.
	left, width float64
}

const (
	lanesWidth = 364.0 // of all lanes together, unless they would be narrower than leastLane
	widestLane = 64.0
	leastLane  = 16.0
	colours    = 8
	fewLanes   = 9 // above this number, a panel has only the lanes that it needs

	longestName = 500.0
)

// lanesOf orders the actors: people first, then other actors in the order of appearance,
// then the built-in controllers along the way from a Deployment to its Pods.
func lanesOf(steps []step, panels []panel, left float64) lanes {
	l := lanes{index: map[audit.Actor]int{}, left: left}
	var actors []audit.Actor
	rank := map[audit.Actor]int{}
	uses := map[string]int{}
	for _, p := range panels {
		for _, i := range p.steps {
			if a := steps[i].actor; rank[a] == 0 {
				actors = append(actors, a)
				rank[a] = rankOf(a, steps[i].acts)
				uses[a.Name]++
			}
		}
	}
	slices.SortStableFunc(actors, func(a, b audit.Actor) int { return cmp.Compare(rank[a], rank[b]) })
	for _, a := range actors {
		name := a.Name
		if uses[name] > 1 || name == "" {
			name = a.Full
		}
		name = short(name)
		for n := 2; slices.Contains(l.names, name); n++ {
			name = fmt.Sprintf("%s (%d)", short(a.Full), n)
		}
		l.add(a, name)
	}
	l.width = widthOf(len(actors))
	return l
}

func (l *lanes) add(a audit.Actor, name string) {
	l.index[a] = len(l.names)
	l.actors, l.names = append(l.actors, a), append(l.names, name)
}

// colour returns the colour of a lane's marks and name.
func colour(lane int) int { return lane % colours }

// widthOf returns the width of each of n lanes.
func widthOf(n int) float64 { return max(leastLane, min(widestLane, lanesWidth/float64(n))) }

// of returns the lanes of a panel. If there are few lanes, each panel has all of them, so
// that the panels look alike.
func (l lanes) of(steps []step, p panel) lanes {
	if len(l.names) <= fewLanes {
		return l
	}
	here := lanes{index: map[audit.Actor]int{}, left: l.left}
	for i, a := range l.actors {
		if slices.ContainsFunc(p.steps, func(n int) bool { return steps[n].actor == a }) {
			here.add(a, l.names[i])
		}
	}
	here.width = widthOf(len(here.names))
	return here
}

// short shortens a name to a readable length.
func short(name string) string { return shorten(clean(name), longestName, fontSize, monospaced) }

// rankOf returns an actor's position in the order of lanes, from 1 on.
func rankOf(a audit.Actor, acts bool) int {
	order := []string{"deployment-controller", "replicaset-controller", "kube-scheduler", audit.KwokKubelet, audit.Kubelet}
	switch i := slices.Index(order, a.Name); {
	case acts:
		return 1
	case i >= 0:
		return 3 + i
	case a.Name == "garbage-collector":
		return 3 + len(order)
	}
	return 2
}

func (l lanes) x(actor int) float64 { return l.left + (float64(actor)+0.5)*l.width }

func (l lanes) right() float64 { return l.left + float64(len(l.names))*l.width }

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

const (
	headerLine  = 14.0 // the height of a line of an actor's name
	headerSpace = 8.0  // between two names, and between a name and the line of another
	headerRoom  = 72.0 // the width from which on names are centred over their lanes, in several lines
	nameLines   = 3
)

// header is a line of an actor's name above the lanes. y is relative to the top of the
// headers. A line leads from the end of the name down to the lane.
type header struct {
	lane     int
	x, y     float64
	width    float64
	text     string
	toTheEnd bool // the last line of the name
}

// headers places the lanes' names so that none covers another name, or the line from
// another name to its lane. It returns the height of all names. to is the right end of
// the available space.
func (l lanes) headers(to float64) ([]header, float64) {
	if room := 2*l.width - headerSpace; room >= headerRoom {
		return l.broken(room)
	}
	return l.stairs(to)
}

// broken centres the names over their lanes, broken into lines. Every other name is above
// those of its neighbours. A name is narrower than two lanes, and so does not reach a
// neighbour's line.
func (l lanes) broken(room float64) (placed []header, height float64) {
	names := make([][]string, 0, len(l.names))
	alone := true
	var heights [2]float64
	for i, name := range l.names {
		names = append(names, breakName(clean(name), room))
		for _, text := range names[i] {
			alone = alone && monospaced(text, fontSize) <= l.width-headerSpace/2
		}
		heights[i%2] = max(heights[i%2], float64(len(names[i]))*headerLine)
	}
	if alone {
		heights = [2]float64{0, max(heights[0], heights[1])}
	}
	for i, texts := range names {
		bottom := heights[0] + heights[1]
		if i%2 == 0 && !alone {
			bottom = heights[0]
		}
		for n, text := range texts {
			width := monospaced(text, fontSize)
			y := bottom - float64(len(texts)-n)*headerLine
			placed = append(placed, header{i, l.x(i) - width/2, y, width, text, n == len(texts)-1})
		}
	}
	return placed, heights[0] + heights[1]
}

// stairs places each name at its lane, above the names of all lanes to the right.
func (l lanes) stairs(to float64) (placed []header, height float64) {
	for i, name := range l.names {
		x := l.x(i) - fontSize/2
		text := shorten(clean(name), to-x, fontSize, monospaced)
		placed = append(placed, header{i, x, float64(i) * headerLine, monospaced(text, fontSize), text, true})
	}
	return placed, float64(len(l.names)) * headerLine
}

// breakName breaks a name into lines that fit into room, if possible after hyphens and
// similar characters.
func breakName(name string, room float64) []string {
	fits := int(room / (cell * fontSize))
	var lines []string
	for rest := []rune(name); len(rest) > 0; {
		end := len(rest)
		if end > fits {
			end = max(1, fits/2) // Wide characters take twice the space.
			for n := min(fits, len(rest)) - 1; n > 0; n-- {
				if strings.ContainsRune("-_./@: ", rest[n]) && monospaced(string(rest[:n+1]), fontSize) <= room {
					end = n + 1
					break
				}
			}
		}
		lines, rest = append(lines, strings.TrimSpace(string(rest[:end]))), rest[end:]
	}
	if len(lines) > nameLines {
		last := strings.Join(lines[nameLines-1:], "")
		lines = append(slices.Clone(lines[:nameLines-1]), shorten(last, room, fontSize, monospaced))
	}
	for i := range lines {
		lines[i] = shorten(lines[i], room, fontSize, monospaced)
	}
	return lines
}
