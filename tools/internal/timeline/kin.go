// SPDX-License-Identifier: Apache-2.0

// Finding the owners of objects.

package timeline

import (
	"slices"
	"strings"
)

// kin holds the owner of each object.
type kin struct {
	parents map[key][]key
	// byName are the objects of the log, by namespace and name.
	byName map[[2]string][]key
}

// kinOf finds the owners of each object: by its owner references if the log has them,
// otherwise by its name, which begins with the owner's.
func kinOf(steps []step) *kin {
	k := &kin{parents: map[key][]key{}, byName: map[[2]string][]key{}}
	known := map[key]bool{}
	for _, s := range steps {
		if o := s.object; o.name != "" && !known[o] {
			known[o] = true
			k.byName[[2]string{o.namespace, o.name}] = append(k.byName[[2]string{o.namespace, o.name}], o)
		}
	}
	settled := map[key]bool{} // objects whose owners are known, or that have none
	for _, s := range steps {
		settled[s.object] = settled[s.object] || s.creates() && s.acts // The names that people choose say nothing about owners.
		if s.Body == nil || len(s.Body.Owners) == 0 || s.Name == "" {
			continue
		}
		settled[s.object] = true
		for _, owner := range s.Body.Owners {
			k.add(s.object, k.find(s.object.namespace, plural(owner.Kind), owner.Name))
		}
	}
	for object := range known {
		if !settled[object] {
			k.add(object, k.namesakes(object))
		}
	}
	return k
}

func (k *kin) add(child key, parents []key) {
	for _, parent := range parents {
		if parent != child && !slices.Contains(k.parents[child], parent) {
			k.parents[child] = append(k.parents[child], parent)
		}
	}
}

// find returns the objects with a name and a resource, in the namespace or
// cluster-scoped.
func (k *kin) find(namespace, resource, name string) []key {
	var found []key
	for _, place := range [][2]string{{namespace, name}, {"", name}} {
		for _, o := range k.byName[place] {
			if o.resource == resource && !slices.Contains(found, o) {
				found = append(found, o)
			}
		}
	}
	return found
}

// namesakes returns the objects that can own child and have the longest name that child's
// name begins with.
func (k *kin) namesakes(child key) []key {
	for name := child.name; name != ""; name = shorter(name) {
		var found, custom []key
		for _, o := range k.byName[[2]string{child.namespace, name}] {
			switch {
			case !canOwn(o, child):
			case builtIn(o):
				found = append(found, o)
			default:
				custom = append(custom, o)
			}
		}
		if len(found) > 0 {
			return found
		}
		if len(custom) > 0 && builtIn(child) {
			return custom
		}
	}
	return nil
}

// shorter returns a name without its last part.
func shorter(name string) string { return name[:max(0, strings.LastIndexAny(name, "-."))] }
