// SPDX-License-Identifier: Apache-2.0

// Collecting the writes of a log, and drawing them.

package timeline

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"example.com/sample-controller/test/audit"
)

// maxPanels is the greatest number of panels in a picture.
const maxPanels = 12

// Log collects the writes of an audit log, in any order.
type Log struct {
	// Namespace is the namespace whose writes are drawn; "" means all.
	Namespace string
	// Object selects the writes to draw; nil selects Foos, or everything if the log has
	// no Foos.
	Object *Selection
	// You is the user whom the picture calls "you"; "" means nobody.
	You string

	writes      []audit.Write
	left        map[string]int
	elsewhere   int
	controllers map[string]bool
	texts       map[string]string
}

// Add adds a write.
func (l *Log) Add(w audit.Write) {
	if l.left == nil {
		l.left, l.controllers = map[string]int{}, map[string]bool{}
	}
	if controls(w) {
		l.controllers[audit.ActorOf(w).Full] = true
	}
	switch what := noise(w); {
	case what != "":
		l.left[what]++
	case l.Namespace != "" && w.Namespace != l.Namespace:
		l.elsewhere++
	default:
		l.writes = append(l.writes, l.compact(w))
	}
}

// compact keeps only the fields that the picture needs and makes equal texts share
// memory, because a large log has few different ones.
func (l *Log) compact(w audit.Write) audit.Write {
	if l.texts == nil {
		l.texts = map[string]string{}
	}
	w.Replaces, w.Manager, w.Request, w.Response = "", "", nil, nil
	for _, text := range []*string{
		&w.Verb, &w.Group, &w.Resource, &w.Subresource, &w.Namespace, &w.Name, &w.User, &w.Agent, &w.Reason,
	} {
		known, ok := l.texts[*text]
		if !ok {
			known = *text
			l.texts[known] = known
		}
		*text = known
	}
	return w
}

// Of returns a log with what this one has of a namespace, to draw a selection of it.
func (l *Log) Of(namespace string, selection Selection) *Log {
	part := &Log{Namespace: namespace, Object: &selection, You: l.You, left: l.left, elsewhere: l.elsewhere, controllers: l.controllers}
	for _, w := range l.writes {
		if w.Namespace == namespace {
			part.writes = append(part.writes, w)
		} else {
			part.elsewhere++
		}
	}
	return part
}

// acts reports whether an actor is a person, or a program that does not react to other
// writes.
func (l *Log) acts(a audit.Actor) bool {
	return a.ByHand || !a.System && !l.controllers[a.Full] && !strings.Contains(a.Name, "controller")
}

// errNoWrites is the error for a log with nothing to draw.
var errNoWrites = errors.New("no write to draw")

// Picture draws the log.
func (l *Log) Picture() (*Picture, error) { return l.draw(maxEntries) }

// draw draws the log, with at most so many writes as text.
func (l *Log) draw(entries int) (*Picture, error) {
	steps := stepsOf(l.writes, l.acts)
	giveNames(steps)
	kin := kinOf(steps)
	findCauses(steps, kin)
	selection := usualSelection(steps)
	if l.Object != nil {
		selection = *l.Object
	}
	chosen := choose(steps, kin, selection)
	others := l.elsewhere + len(steps) - len(chosen)
	if len(chosen) == 0 {
		return nil, fmt.Errorf("%w, but these: %s", errNoWrites, l.leftOut(others))
	}
	tighten(chosen)
	l.nameYou(chosen)
	panels := panelsOf(chosen)
	notes := []string{"Not drawn: " + l.leftOut(others) + "."}
	if more := len(panels) - maxPanels; more > 0 {
		notes = append(notes, fmt.Sprintf("The log has %d acts, of which the last %d are drawn.", len(panels), maxPanels))
		panels = panels[more:]
	}
	return compose(titleOf(chosen, selection), chosen, panels, notes, entries), nil
}

// Entries returns all writes that Picture draws, as text. If there are none, it returns nil.
func (l *Log) Entries() []Entry {
	picture, err := l.draw(math.MaxInt)
	if err != nil {
		return nil
	}
	return picture.entries
}

// titleOf returns the title of the picture.
func titleOf(steps []step, selection Selection) string {
	objects := map[key]string{}
	for _, s := range steps {
		if !selection.all() && s.Name != "" && selection.matches(s.object) {
			objects[s.object] = s.kind
		}
	}
	switch len(objects) {
	case 0:
		return "Writes to the API server"
	case 1:
		for object, kind := range objects {
			return "The life of " + nameOf(object, kind)
		}
	}
	return fmt.Sprintf("The lives of %d %s", len(objects), selection.resource)
}

// nameYou renames the user at the terminal to "you".
func (l *Log) nameYou(steps []step) {
	for i := range steps {
		if a := &steps[i].actor; l.You != "" && steps[i].User == l.You && a.ByHand {
			a.Name, a.Full = "you", "you"
		}
	}
}

// leftOut describes the writes that are not in the picture.
func (l *Log) leftOut(others int) string {
	var parts []string
	for _, what := range slices.Sorted(maps.Keys(l.left)) {
		parts = append(parts, fmt.Sprintf("%s (%d)", what, l.left[what]))
	}
	if others > 0 {
		parts = append(parts, fmt.Sprintf("writes on other objects (%d)", others))
	}
	if len(parts) == 0 {
		return "nothing"
	}
	return strings.Join(parts, ", ")
}
