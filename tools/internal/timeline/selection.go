// SPDX-License-Identifier: Apache-2.0

// The selection of objects to draw.

package timeline

import (
	"fmt"
	"strings"
)

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
