// SPDX-License-Identifier: Apache-2.0

// Worlds: what is explored, and up to which bounds.

package explore

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	"example.com/sample-controller/test/footest"
)

// World is what is explored, up to its bounds.
type World struct {
	Name, About string
	Owner       *footest.OwnerRow
	// Owners are the names of the owners, and Children those that they may ask for.
	Owners, Children []string
	// Start are users' acts before the exploration. It begins when the controller has come
	// to rest after them.
	Start []string
	// Acts are what users and others may do, each at any time.
	Acts []string
	// Users is how many of them come, Faults how many calls or events meet one, Crashes how
	// often a controller dies.
	Users, Faults, Crashes int8
	// Controllers is how many work at the same time.
	Controllers int
	// Outcomes are those of calls that count as faults.
	Outcomes []Outcome
	// Relists is true if a list may take the place of events. Each counts as a fault.
	Relists bool
	// Behind is how many events older than the newest that it had the cache of a controller
	// may begin after a crash.
	Behind int
	// Rollouts says how the controllers of children report.
	Rollouts Rollouts
	// Stuck are the names of children whose own controllers never report that they are ready,
	// as with an image that can't be pulled.
	Stuck []string
	// Open is true if owners leave to others what they may leave to them.
	Open bool
	// HandlersLag is true if a sync may come between a change of a cache and the event
	// handler that hears of it.
	HandlersLag bool
}

// Rollouts says how the controllers of children report.
type Rollouts bool

const (
	// OneWrite is one write when all is done.
	OneWrite Rollouts = false
	// EachWrite is each write of a rollout by itself.
	EachWrite Rollouts = true
)

// scene is a world with the slots of its names.
type scene struct {
	World

	acts []act
	// kinds are those of the owner and of its children; the resources have the same order.
	kinds []*footest.Kind
	names []slotName // by slot
	// served is called after each request that the API server has answered, unless it is
	// nil; before is the version before it.
	served func(x explored, sent *request, before int64, returned footest.Object, err error)

	objects *interned
}

// slotName is what a slot stands for.
type slotName struct {
	resource int
	name     string
}

func newScene(w World) (*scene, error) {
	w.Controllers = max(w.Controllers, 1)
	s := &scene{World: w, objects: &interned{byText: map[string]*object{}}, kinds: append([]*footest.Kind{w.Owner.Kind}, w.Owner.Kinds...)}
	for _, name := range w.Owners {
		s.names = append(s.names, slotName{0, name})
	}
	for i := range w.Owner.Kinds {
		for _, name := range s.childNames(w.Owner.Kinds[i]) {
			s.names = append(s.names, slotName{i + 1, name})
		}
	}
	for _, text := range w.Acts {
		a, err := s.newAct(text)
		if err != nil {
			return nil, err
		}
		s.acts = append(s.acts, a)
	}
	return s, nil
}

// childNames are the names of the children of a kind that owners may ask for.
func (s *scene) childNames(kind *footest.Kind) []string {
	var names []string
	for _, owner := range s.Owners {
		for _, child := range s.Children {
			names = append(names, kind.Name(s.Owner.Asking(owner, child, 1)))
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// slotOf returns the slot of an object.
func (s *scene) slotOf(object runtime.Object) (slot, bool) {
	return s.slotNamed(footest.KindOf(object).Resource.Resource, metaOf(object).GetName())
}

func (s *scene) slotNamed(resource, name string) (slot, bool) {
	i := slices.IndexFunc(s.names, func(n slotName) bool { return s.kinds[n.resource].Resource.Resource == resource && n.name == name })
	return slot(i), i >= 0
}

func (s *scene) kindOf(at slot) *footest.Kind { return s.kinds[s.names[at].resource] }

// describe names an object.
func (s *scene) describe(at slot) string {
	return fmt.Sprintf("%s %s", s.kindOf(at), s.names[at].name)
}

// owners are the slots of the owners.
func (s *scene) owners() []slot { return s.slotsOf(0) }

func (s *scene) slotsOf(resource int) []slot {
	var slots []slot
	for i, n := range s.names {
		if n.resource == resource {
			slots = append(slots, slot(i))
		}
	}
	return slots
}

func (s *scene) key(owner slot) cache.ObjectName {
	return cache.ObjectName{Namespace: footest.Namespace, Name: s.names[owner].name}
}

// owner returns the slot of the owner of a key.
func (s *scene) owner(key cache.ObjectName) slot { return slot(slices.Index(s.Owners, key.Name)) }

// empty is the state before anything has happened.
func (s *scene) empty() *state {
	first := &state{
		store: make([]*object, len(s.names)), events: make([][]event, len(s.kinds)), wasReady: make([]bool, len(s.Owners)),
		base: make([]*object, len(s.names)), baseVersions: make([]int64, len(s.kinds)), repairs: make([]repairs, len(s.names)),
	}
	for range s.Controllers {
		first.controllers = append(first.controllers, s.newController())
	}
	return first
}

func (s *scene) newController() controller {
	c := controller{
		views: make([]view, len(s.kinds)), queue: keys{after: make([]int64, len(s.Owners))},
		memory: make([]*memo, len(s.Owners)), syncs: make([]*syncing, len(s.Owners)),
	}
	for i := range c.views {
		c.views[i].objects = make([]*object, len(s.names))
	}
	return c
}

func metaOf(object runtime.Object) footest.Object {
	return object.(footest.Object) //nolint:forcetypeassert // each object that is explored has metadata
}
