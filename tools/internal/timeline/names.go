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
