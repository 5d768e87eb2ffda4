// SPDX-License-Identifier: Apache-2.0

// Finding the owners of objects, and the cause of each write.

package timeline

import (
	"slices"
	"strings"
	"time"

	"example.com/sample-controller/test/audit"
)

const (
	// patience is the longest time between a cause and its effect. For deletions by the
	// garbage collector there is no limit.
	patience = time.Minute
	// guessable is the same limit for causes that are guessed from times and kinds only.
	guessable = 5 * time.Second
	// lookBack is the number of earlier writes that may be a cause.
	lookBack = 200
)

// causes finds the cause of each step: the last write of another actor to the same
// object, to its owner, or to an object that it owns.
type causes struct {
	steps []step
	kin   *kin
	// on are the successful writes on each object, below those on the objects that it
	// owns, and all are those in each namespace.
	on, below map[key][]int
	all       map[string][]int
	// taken are the pairs of an owner and a resource for which an object was already
	// guessed.
	taken map[[2]key]bool
}

// findCauses sets the cause of each step.
func findCauses(steps []step, k *kin) {
	c := &causes{
		steps: steps, kin: k,
		on: map[key][]int{}, below: map[key][]int{}, all: map[string][]int{}, taken: map[[2]key]bool{},
	}
	for i := range steps {
		if s := &steps[i]; !s.acts {
			s.cause = c.of(i)
			if s.cause == none && s.creates() {
				s.cause, s.guessed = c.guess(i)
			}
		}
		c.record(i)
	}
}

func (c *causes) record(i int) {
	s := c.steps[i]
	if !s.OK() {
		return // It changed nothing, so it has no effects.
	}
	c.on[s.object] = append(c.on[s.object], i)
	for _, parent := range c.kin.parents[s.object] {
		c.below[parent] = append(c.below[parent], i)
	}
	c.all[s.object.namespace] = append(c.all[s.object.namespace], i)
}

// of returns the cause of a step, or none.
func (c *causes) of(i int) int {
	s := c.steps[i]
	others := func(before step) bool { return before.actor != s.actor && within(before, s, patience) }
	own := c.own(s, others)
	if reactsToItsObjectOnly(s.actor) {
		return own
	}
	deletions := func(before step) bool { return before.deletes() }
	orders := func(before step) bool { return !before.reports() && others(before) }
	lost := func(before step) bool {
		return before.deletes() && before.object.resource == s.object.resource && others(before)
	}
	best := own
	if s.deletes() {
		for _, parent := range slices.Concat(c.kin.parents[s.object], []key{namespaceOf(s.object)}) {
			best = max(best, c.last(c.on[parent], deletions))
		}
	}
	for _, parent := range c.kin.parents[s.object] {
		best = max(best, c.last(c.on[parent], orders))
		if s.creates() {
			best = max(best, c.last(c.below[parent], lost)) // It may replace a deleted one.
		}
	}
	return max(best, c.last(c.below[s.object], others))
}

// own returns the last write of other actors on a step's object itself, or on all objects
// of its kind.
func (c *causes) own(s step, others func(step) bool) int {
	if s.Name == "" {
		return none
	}
	ofAll := func(before step) bool { return before.Verb == "deletecollection" && others(before) }
	return max(c.last(c.on[s.object], others), c.last(c.on[collection(s.object)], ofAll))
}

// guess returns the cause of an object whose owner is not known. It is the first create
// of an object that can own it and that owns none of that resource yet, or else the last
// write on an object that can own it. From then on, that object counts as the owner.
func (c *causes) guess(i int) (cause int, guessed bool) {
	s := c.steps[i]
	owners := ownersFor(s.actor)
	fits := func(before step) bool {
		return before.actor != s.actor && !before.reports() && !before.deletes() && canOwn(before.object, s.object) &&
			(owners == "" || owners == before.object.resource) && within(before, s, guessable)
	}
	untaken := func(before step) bool { return fits(before) && !c.taken[[2]key{before.object, resourceOf(s.object)}] }
	near := c.all[s.object.namespace]
	best := none
	for n := len(near) - 1; n >= max(0, len(near)-lookBack); n-- {
		if before := c.steps[near[n]]; before.creates() && untaken(before) {
			best = near[n]
		}
	}
	for _, accept := range []func(step) bool{untaken, fits} {
		if best == none {
			best = c.last(near, accept)
		}
	}
	if best == none {
		return none, false
	}
	owner := c.steps[best].object
	c.taken[[2]key{owner, resourceOf(s.object)}] = true
	if s.Name != "" {
		c.kin.add(s.object, []key{owner})
	}
	return best, true
}

// ownersFor returns the resource that a built-in controller reconciles, or "" if its name
// does not contain a resource.
func ownersFor(actor audit.Actor) string {
	name := plural(strings.ReplaceAll(strings.TrimSuffix(actor.Name, "-controller"), "-", ""))
	for _, resources := range makers() {
		if strings.Contains(resources, " "+name+" ") {
			return name
		}
	}
	return ""
}

// last returns the last of the steps that is accepted, or none.
func (c *causes) last(indices []int, accept func(step) bool) int {
	for n := len(indices) - 1; n >= max(0, len(indices)-lookBack); n-- {
		if accept(c.steps[indices[n]]) {
			return indices[n]
		}
	}
	return none
}

func within(before, after step, limit time.Duration) bool {
	return after.Received.Sub(before.Received) <= limit
}

// reactsToItsObjectOnly reports whether an actor only reacts to changes of the object
// that it writes.
func reactsToItsObjectOnly(actor audit.Actor) bool {
	switch actor.Name {
	case "kube-scheduler", audit.Kubelet, audit.KwokKubelet:
		return true
	}
	return false
}

// collection returns the key of a deletecollection, which stands for all objects of a
// resource in a namespace.
func collection(k key) key { return key{group: k.group, resource: k.resource, namespace: k.namespace} }

// resourceOf returns a key that stands for a resource.
func resourceOf(k key) key { return key{group: k.group, resource: k.resource} }

func namespaceOf(k key) key { return key{resource: "namespaces", name: k.namespace} }

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
