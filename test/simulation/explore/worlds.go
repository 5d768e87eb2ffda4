// SPDX-License-Identifier: Apache-2.0

// The worlds that are explored.

package explore

import (
	"fmt"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	"example.com/sample-controller/pkg/reconcile/reconciletest/rows"
)

var allOutcomes = []Outcome{Conflict, Lost, Late, Refused, ServerError, ServerErrorDone}

// lostRaces are those that each write may meet, and denials those of a webhook.
var (
	lostRaces = []Outcome{Conflict, Lost}
	denials   = []Outcome{Denied409, Denied404, Denied418}
)

// settled is the start with a Foo at rest.
var settled = []string{"create a web"}

var (
	ofOwner   = []string{"scale a", "rename a api", "rename a web"}
	deletes   = []string{"delete a", "delete a foreground", "delete a orphan"}
	ofOthers  = []string{"drift web", "edit web", "strip web", "remove web", "hand web a", "take web"}
	allOfThem = append(append(append([]string{"create a web"}, ofOwner...), deletes...), ofOthers...)
)

// small are the worlds of each test run. docs/verification.md says what they are about.
var small = []World{
	{Name: "create", Acts: []string{"create a web"}, Users: 1, Faults: 1, Outcomes: allOutcomes, Relists: true},
	{Name: "create, crash", Acts: []string{"create a web"}, Users: 1, Crashes: 1, Behind: 1},
	{Name: "change", Start: settled, Acts: allOfThem, Users: 1, HandlersLag: true},
	{Name: "rename", Start: settled, Acts: []string{"rename a api"}, Users: 1, Faults: 1, Outcomes: lostRaces, Relists: true},
	{Name: "scale", Start: settled, Acts: []string{"scale a"}, Users: 1, Faults: 1, Outcomes: []Outcome{ServerError, Refused}},
	{Name: "recreate", Start: settled, Acts: append([]string{"create a web"}, deletes...), Users: 2},
	{Name: "policy",
		Start: settled, Acts: []string{"rename a api", "allow"}, Users: 2, Faults: 1, Outcomes: []Outcome{RefusedFromNow}},
	{Name: "rival", Owners: []string{"a", "b"}, Start: settled, Acts: []string{"create b web", "delete a"}, Users: 1},
	{Name: "tiny", Start: []string{"take web", "create a web"}, Acts: []string{"remove web"}, Users: 1},
	{Name: "taken",
		Start: []string{"take web", "create a web"}, Acts: []string{"remove web", "hand web a", "edit web", "drift web", "rename a api"}, Users: 1},
	{Name: "denied", Start: settled, Acts: []string{"rename a api", "drift web"}, Users: 1, Faults: 1, Outcomes: denials},
	{Name: "mutated", Acts: []string{"create a web"}, Users: 1, Faults: 1, Outcomes: []Outcome{Mutated}},
	{Name: "suspended",
		Start: []string{"create a web", "suspend a"}, Acts: []string{"resume a", "drift web", "rename a api"}, Users: 2},
	{Name: "in service", Start: []string{"create a web", "scale a"}, Acts: []string{"rename a api"}, Users: 1, EachWrite: true},
	{Name: "stuck",
		Start: settled, Acts: []string{"rename a api", "rename a web", "remove web"}, Users: 2, Stuck: []string{"api"}},
	{Name: "deletion refused",
		Start: []string{"create a api", "rename a db"}, Acts: []string{"rename a web"}, Users: 1, Children: []string{"web", "api", "db"}, Undeletable: []string{"api"}},
	{Name: "sync asked for", Start: settled, Acts: []string{"sync a"}, Users: 1, Faults: 1, Outcomes: []Outcome{Lost, Refused}},
	{Name: "shrink, last not ready",
		Of: "set", Start: []string{"create a web 2"}, Acts: []string{"scale a 1"}, Users: 1, Faults: 1, Outcomes: lostRaces, Children: []string{"web"}, Stuck: []string{"web-2"}},
	{Name: "grow, one at a time", Of: "set", Start: settled, Acts: []string{"scale a 2"}, Users: 1, Children: []string{"web"}},
	{Name: "reference changed",
		Of: "named", Start: []string{"offer Secret/web", "create a web"}, Acts: []string{"amend Secret/web"}, Users: 1, Children: []string{"web"}},
	{Name: "finalizer, crash", Of: "elsewhere", Acts: []string{"create a web", "delete a"}, Users: 2, Crashes: 1, Children: []string{"web"}},
	{Name: "forged mark", Of: "elsewhere", Start: []string{"create a web", "forge api a"}, Acts: []string{"rename a api", "delete a"}, Users: 2},
	{Name: "collector away", Start: settled, Acts: []string{"delete a", "create a web", "collect web"}, Users: 3, CollectorAway: true},
}

// medium are those that show the mutants, with the small ones before them: a mutant's exploration
// ends with the first world that takes too long.
var medium = []World{
	{Name: "suspending", Start: settled, Acts: []string{"suspend a", "rename a api"}, Users: 2},
	{Name: "rename, any fault",
		Start: settled, Acts: []string{"rename a api"}, Users: 1, Faults: 1, Outcomes: allOutcomes, Relists: true},
	{Name: "fight", Start: settled, Acts: []string{"undo web"}, Users: 4},
	{Name: "regular opponent", Start: settled, Acts: []string{"undo web 70s"}, Users: 6},
	{Name: "rename, new one lost",
		Start: settled, Acts: []string{"rename a api", "strip api"}, Users: 2, Faults: 1, Outcomes: []Outcome{ServerError}},
	{Name: "open", Start: []string{"create a web 0"}, Acts: []string{"rename a api", "tune web"}, Users: 2},
	{Name: "changes", Start: settled, Acts: ofOwner, Users: 2},
	{Name: "drift, any fault", Start: settled, Acts: ofOthers, Users: 1, Faults: 1, Outcomes: allOutcomes, Relists: true},
	{Name: "in service, drift", Start: settled, Acts: []string{"rename a api", "drift api"}, Users: 2},
	{Name: "rival, deletion", Owners: []string{"a", "b"}, Start: settled, Acts: []string{"create b web", "delete a"}, Users: 2},
	{Name: "repair", Start: settled, Acts: []string{"drift web", "edit web"}, Users: 2},
	{Name: "held",
		Start: []string{"create a web", "keep web"}, Acts: []string{"remove web", "drift web", "release web"}, Users: 2},
	{Name: "reference, new spec",
		Of: "named", Start: []string{"offer Secret/web", "create a web"}, Acts: []string{"amend Secret/web", "scale a 4"}, Users: 2, Children: []string{"web"}},
	{Name: "in service, third name",
		Start: settled, Acts: []string{"rename a api", "rename a db"}, Users: 2, Children: []string{"web", "api", "db"}},
}

// large are, with all others, the worlds of an hour or two.
var large = []World{
	{Name: "life", Acts: append(append([]string{"create a web"}, ofOwner...), deletes...), Users: 2},
	{Name: "scale, two faults",
		Start: settled, Acts: []string{"scale a"}, Users: 1, Faults: 2, Outcomes: []Outcome{Conflict, Lost, ServerError}, Relists: true},
	{Name: "rename, two faults",
		Start: settled, Acts: []string{"rename a api"}, Users: 1, Faults: 2, Outcomes: []Outcome{Conflict, Lost, ServerError}, Relists: true},
	{Name: "recreate, any fault",
		Start: settled, Acts: append([]string{"create a web"}, deletes...), Users: 2, Faults: 1, Outcomes: allOutcomes, Relists: true},
	{Name: "change, crash", Start: settled, Acts: allOfThem, Users: 1, Crashes: 1, Behind: 2},
	{Name: "changes, crash", Start: settled, Acts: []string{"scale a", "rename a api"}, Users: 2, Crashes: 1},
	{Name: "taken, twice", Start: []string{"take web", "create a web"}, Acts: []string{"remove web", "rename a api"}, Users: 2},
	{Name: "rollouts", Start: settled, Acts: append([]string{"drift web"}, ofOwner...), Users: 1, EachWrite: true},
	{Name: "handlers late", Start: settled, Acts: ofOwner, Users: 1, Faults: 1, Outcomes: lostRaces, HandlersLag: true},
	{Name: "create, two controllers", Acts: []string{"create a web"}, Users: 1, Controllers: 2},
	{Name: "change, upgrade", Start: settled, Acts: allOfThem, Users: 1, Crashes: 1, Behind: 1, Releases: releases},
	{Name: "change, rollback",
		Start: settled, Acts: allOfThem, Users: 1, Crashes: 1, Behind: 1, Releases: []string{releases[1], releases[0]}},
	{Name: "two releases", Start: settled, Faults: 1, Outcomes: lostRaces, Controllers: 2, Releases: releases},
	{Name: "in service, crash",
		Start: []string{"create a web", "scale a"}, Acts: []string{"rename a api"}, Users: 1, Crashes: 1, Behind: 1, EachWrite: true},
	{Name: "in service, deletion", Start: settled, Acts: []string{"rename a api", "delete a"}, Users: 2, EachWrite: true},
	{Name: "in service, refusal",
		Start: settled, Acts: []string{"rename a api", "allow"}, Users: 2, Faults: 1, Outcomes: []Outcome{RefusedFromNow, Denied404}, EachWrite: true},
	{Name: "sync of what is refused", Acts: []string{"create a web", "sync a"}, Users: 2, Faults: 1, Outcomes: []Outcome{RefusedFromNow}},
	{Name: "denied, lifted", Acts: []string{"create a web", "allow"}, Users: 2, Faults: 1, Outcomes: denials},
	{Name: "stuck, crash",
		Start: settled, Acts: []string{"rename a api", "rename a web"}, Users: 2, Crashes: 1, Stuck: []string{"api"}},
	{Name: "long fight", Start: settled, Acts: []string{"undo web"}, Users: 8},
}

// releases are the versions of the API that an earlier release and this one use.
var releases = []string{"v0alpha1", "v1alpha1"}

// complete returns worlds of a kind of owners, with what is the same in each.
func complete(owner *rows.OwnerRow, worlds ...World) []World {
	worlds = slices.Clone(worlds)
	for i := range worlds {
		w := &worlds[i]
		w.Owner = owner
		if w.Children == nil {
			w.Children = []string{"web", "api"}
		}
		if w.Owners == nil {
			w.Owners = []string{"a"}
		}
	}
	return worlds
}

// World is what is explored, up to its bounds.
type World struct {
	Name  string
	Owner *rows.OwnerRow
	// Of names the controller, of those that Test gets; "" is the program's own.
	Of string
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
	// Controllers is how many work at the same time. Releases are the versions of the owners' API
	// that they use, or that one uses after each crash, if they are of several releases. Only
	// the first works at the start.
	Controllers int
	Releases    []string
	// Outcomes are those of calls that count as faults.
	Outcomes []Outcome
	// Relists is true if a list may take the place of events. Each counts as a fault.
	Relists bool
	// Behind is how many events older than the newest that it had the cache of a controller
	// may begin after a crash.
	Behind int
	// EachWrite is true if the controllers of children report each step of a rollout, and not only its
	// end.
	EachWrite bool
	// Stuck are the names of children whose own controllers never report that they are ready,
	// as with an image that can't be pulled.
	Stuck []string
	// Undeletable are the names of children whose deletion by a controller is refused.
	Undeletable []string
	// CollectorAway is true if the garbage collector deletes only what an act names.
	CollectorAway bool
	// HandlersLag is true if a sync may come between a change of a cache and the event
	// handler that hears of it.
	HandlersLag bool
}

// largestSet is the size of the owners that ask for the most children.
const largestSet = 2

// scene is a world with the slots of its names.
type scene struct {
	World

	acts []act
	// kinds are those of the owner, of its children and of what it names; the resources have the same order.
	kinds []*rows.Kind
	names []slotName // by slot
	// real compares the API server with a real one, unless it is nil.
	real *replay

	// objects are those that were ever stored, by their content.
	objects sync.Map
}

// slotName is what a slot stands for.
type slotName struct {
	resource int
	name     string
}

func newScene(w World) (*scene, error) {
	w.Controllers = max(w.Controllers, 1)
	if w.Releases == nil {
		w.Releases = []string{""}
	}
	s := &scene{World: w, kinds: w.Owner.All()}
	for _, name := range w.Owners {
		s.names = append(s.names, slotName{0, name})
	}
	for i := range w.Owner.Kinds {
		for _, name := range s.childNames(w.Owner.Kinds[i]) {
			s.names = append(s.names, slotName{i + 1, name})
		}
	}
	for i, reference := range w.Owner.References {
		for _, child := range s.Children {
			for _, name := range reference.Names(s.Owner.Asking(s.Owners[0], child, 1)) {
				s.names = append(s.names, slotName{len(w.Owner.Kinds) + 1 + i, name})
			}
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
func (s *scene) childNames(kind *rows.Kind) []string {
	var names []string
	for _, owner := range s.Owners {
		for _, child := range s.Children {
			asking := s.Owner.Asking(owner, child, 1)
			names = append(names, kind.Name(asking))
			if kind.IsSet() {
				names = append(names, kind.Names(s.Owner.Asking(owner, child, largestSet))...)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// slotOf returns the slot of an object.
func (s *scene) slotOf(object runtime.Object) (slot, bool) {
	return s.slotNamed(s.Owner.KindOf(object).Resource.Resource, metaOf(object).GetName())
}

func (s *scene) slotNamed(resource, name string) (slot, bool) {
	i := slices.IndexFunc(s.names, func(n slotName) bool { return s.kinds[n.resource].Resource.Resource == resource && n.name == name })
	return slot(i), i >= 0
}

func (s *scene) kindOf(at slot) *rows.Kind { return s.kinds[s.names[at].resource] }

// describe names an object.
func (s *scene) describe(at slot) string {
	return fmt.Sprintf("%s %s", s.kindOf(at), s.names[at].name)
}

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
	return cache.ObjectName{Namespace: rows.Namespace, Name: s.names[owner].name}
}

// owner returns the slot of the owner of a key.
func (s *scene) owner(key cache.ObjectName) slot { return slot(slices.Index(s.Owners, key.Name)) }

// empty is the state before anything has happened.
func (s *scene) empty() *state {
	first := &state{
		store: make([]*object, len(s.names)), events: make([][]event, len(s.kinds)), wasReady: make([]bool, len(s.Owners)), named: make([][]*object, len(s.Owners)),
		base: make([]*object, len(s.names)), baseVersions: make([]int64, len(s.kinds)), repairs: make([]repairs, len(s.names)),
	}
	for i := range s.Controllers {
		if i == 0 || len(s.Releases) == 1 {
			first.controllers = append(first.controllers, s.newController())
		}
	}
	return first
}

func (s *scene) newController() controller {
	c := controller{
		views: make([]view, len(s.kinds)), queue: keys{after: make([]int64, len(s.Owners))},
		memory: make([]*memo, len(s.Owners)+1), syncs: make([]*syncing, len(s.Owners)),
	}
	for i := range c.views {
		c.views[i].objects = make([]*object, len(s.names))
	}
	return c
}

func metaOf(object runtime.Object) rows.Object {
	return object.(rows.Object) //nolint:forcetypeassert // each object that is explored has metadata
}
