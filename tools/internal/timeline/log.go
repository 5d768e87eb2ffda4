// SPDX-License-Identifier: Apache-2.0

// Collecting the writes of a log without noise, selecting some, and drawing them.

package timeline

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
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

// ReadLog calls add with each write of an audit log. The path "-" means stdin. What it
// skips, it says in messages.
func ReadLog(path string, stdin io.Reader, add func(audit.Write), messages io.Writer) error {
	name, source := "standard input", stdin
	if path != "-" {
		file, err := os.Open(path)
		if err != nil {
			return err
		}
		defer file.Close()
		name, source = path, file
	}
	count, err := audit.Read(source, add)
	switch {
	case err != nil:
		return fmt.Errorf("reading %s: %w", name, err)
	case count.Lines == 0:
		return fmt.Errorf("%s is empty", name)
	case count.Good == 0:
		return fmt.Errorf("%s is not an audit log: none of its lines is an event of audit.k8s.io as JSON", name)
	}
	if count.Bad > 0 {
		fmt.Fprintf(messages, "%s: skipped %d of %d lines, which are not audit events\n", name, count.Bad, count.Lines)
	}
	if count.Cut {
		fmt.Fprintf(messages, "%s: skipped the last line, which is incomplete\n", name)
	}
	return nil
}

// noise returns a word for a write that is part of the constant background or changes no
// object, and "" for all others.
func noise(w audit.Write) string {
	switch w.Resource {
	case "leases":
		return "leases"
	case "events":
		return "events"
	case "nodes":
		if w.Subresource == "status" {
			return "heartbeats"
		}
	case "serviceaccounts":
		if w.Subresource == "token" {
			return "tokens"
		}
	case "pods":
		switch w.Subresource {
		case "exec", "attach", "portforward", "proxy":
			return "sessions in Pods"
		}
	}
	if strings.HasSuffix(w.Resource, "reviews") && strings.HasPrefix(w.Group, "auth") {
		return "reviews"
	}
	return ""
}

// controls reports whether a write is of a kind that only controllers make.
func controls(w audit.Write) bool {
	return w.Subresource == "status" || w.Resource == "events" || w.Resource == "leases"
}

// Everything is the selection of all objects.
const Everything = "all"

// usual is the resource that is selected by default, if the log has any of its objects.
const usual = "foos"

// Selection selects the writes to draw: those on an object and on the objects that it
// owns, and all writes that they cause.
type Selection struct {
	// resource is "" for everything; name is "" for all objects of the resource.
	resource, name string
}

// ParseSelection parses a selection in the format of kubectl, such as foo/example-foo or
// foos, or the word all.
func ParseSelection(text string) (Selection, error) {
	if text == Everything {
		return Selection{}, nil
	}
	resource, name, named := strings.Cut(text, "/")
	if resource == "" || named && name == "" || strings.Contains(name, "/") {
		return Selection{}, fmt.Errorf("%q: must be RESOURCE/NAME, RESOURCE or %s", text, Everything)
	}
	return Selection{strings.ToLower(resource), name}, nil
}

func (s Selection) all() bool { return s.resource == "" }

func (s Selection) matches(k key) bool {
	resource, group, qualified := strings.Cut(s.resource, ".")
	fits := resource == k.resource || plural(resource) == k.resource || resource == singular(k.resource)
	return fits && (!qualified || group == k.group) && (s.name == "" || s.name == k.name)
}

// usualSelection selects the Foos if there are any, and otherwise everything.
func usualSelection(steps []step) Selection {
	foos := Selection{resource: usual}
	for _, s := range steps {
		if foos.matches(s.object) {
			return foos
		}
	}
	return Selection{}
}

// choose returns the selected steps, and adjusts the indices of their causes. It reuses
// the memory of steps.
func choose(steps []step, k *kin, selection Selection) []step {
	if selection.all() {
		return steps
	}
	objects := map[key]bool{}
	chosen := make([]int, len(steps))
	kept := steps[:0] // Each step is read before it is overwritten.
	for i, s := range steps {
		chosen[i] = none
		follows := s.cause != none && chosen[s.cause] != none
		if !follows && !k.belongs(s.object, selection, objects) {
			continue
		}
		objects[s.object] = s.Name != ""
		chosen[i] = len(kept)
		if s.cause != none {
			s.cause = chosen[s.cause]
		}
		kept = append(kept, s)
	}
	return kept
}

// belongs reports whether an object or one of its direct or indirect owners is selected,
// or known to be selected. It stops at cycles of owners.
func (k *kin) belongs(object key, selection Selection, known map[key]bool) bool {
	queue, seen := []key{object}, map[key]bool{object: true}
	for len(queue) > 0 {
		next := queue[0]
		queue = queue[1:]
		if selection.matches(next) || known[next] {
			return true
		}
		for _, parent := range k.parents[next] {
			if !seen[parent] {
				seen[parent] = true
				queue = append(queue, parent)
			}
		}
	}
	return false
}
