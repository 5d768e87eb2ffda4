// SPDX-License-Identifier: Apache-2.0

// Finding the names of objects that the server named.

package timeline

import "strings"

// nameless identifies the objects that wait for a name: of a resource, in a namespace.
type nameless struct{ group, resource, namespace string }

// giveNames names the objects whose create has no name, because the server generated the
// name and the log has no bodies. Such an object gets the first name of its resource that
// appears in a later write and in no earlier one. If the log has bindings, the name of a
// Pod is taken from its binding.
func giveNames(steps []step) {
	seen := map[key]bool{}
	bindings := map[nameless]bool{}
	waiting := map[nameless][]int{}
	for _, s := range steps {
		if s.Subresource == "binding" {
			bindings[placeOf(s)] = true
		}
	}
	for i, s := range steps {
		place := placeOf(s)
		switch {
		case s.creates() && s.Name == "" && s.OK():
			waiting[place] = append(waiting[place], i)
			continue
		case s.Name == "" || seen[s.object] || !s.OK():
			continue
		}
		seen[s.object] = true
		if s.creates() || s.deletes() || bindings[place] && s.Subresource != "binding" {
			continue
		}
		for n, earlier := range waiting[place] {
			if body := steps[earlier].Body; body == nil || strings.HasPrefix(s.Name, body.GenerateName) {
				steps[earlier].Name, steps[earlier].object = s.Name, s.object
				waiting[place] = append(waiting[place][:n:n], waiting[place][n+1:]...)
				break
			}
		}
	}
}

func placeOf(s step) nameless { return nameless{s.object.group, s.object.resource, s.object.namespace} }
