// SPDX-License-Identifier: Apache-2.0

// The state of the explored system: an API server, and controllers with their caches,
// queues and memories. A state never changes; a step makes another. A write changes the store as
// in the simulation and in a real API server, which conformance.go compares.

package explore

import (
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"example.com/sample-controller/pkg/reconcile/reconciletest/model"
	"example.com/sample-controller/pkg/reconcile/reconciletest/rows"
)

// epoch is when each exploration begins.
var epoch = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

const (
	// firstVersion is the resourceVersion of an empty store. All versions have as many
	// digits.
	firstVersion = 10_000_000
	uidPrefix    = "uid-"
)

func versionText(version int64) string { return strconv.FormatInt(firstVersion+version, 10) }

// parseVersion returns the version of a text, if it is one.
func parseVersion(text string) (version int64, ok bool) {
	if len(text) != len(versionText(0)) {
		return 0, false
	}
	n, err := strconv.ParseInt(text, 10, 64)
	return n - firstVersion, err == nil && n >= firstVersion && n < 2*firstVersion
}

func uidText(n int64) types.UID { return types.UID(fmt.Sprintf("%s%d", uidPrefix, n)) }

// slot is the place of a name in a world: the owners first, then the children of each kind, then what owners name.
type slot int

// object is a version of an object. It never changes.
type object struct {
	rows.Object

	slot slot
	*fingerprint

	// kept is what a cache keeps of it.
	once            sync.Once
	kept            runtime.Object
	keptFingerprint *fingerprint
}

func newObject(at slot, stored rows.Object) *object {
	return &object{Object: stored, slot: at, fingerprint: fingerprintOf(stored)}
}

// intern returns the one object of all that are equal, so that millions of states share it.
func (s *scene) intern(o *object) *object {
	e := &encoder{out: append([]byte{byte(o.slot)}, o.content[:]...)}
	for _, t := range o.tokens {
		e.number(t.value)
	}
	known, _ := s.objects.LoadOrStore(string(e.out), o)
	return known.(*object) //nolint:forcetypeassert // it holds nothing else
}

// cached returns what a cache keeps of an object.
func (o *object) cached(transform cache.TransformFunc) runtime.Object {
	o.once.Do(func() {
		var kept any = o.DeepCopyObject()
		if transform != nil {
			transformed, err := transform(kept)
			if err != nil {
				panic(fmt.Sprintf("the transform of the informer failed: %v", err))
			}
			kept = transformed
		}
		o.kept = kept.(runtime.Object) //nolint:forcetypeassert // informers hold objects
		o.keptFingerprint = fingerprintOf(o.kept)
	})
	return o.kept
}

// event is a change of an object, on its way to the caches.
type event struct {
	verb    watch.EventType
	object  *object
	version int64
}

// state is a state of the system. It never changes.
type state struct {
	// now is the time since the epoch, in nanoseconds.
	now int64
	// version is that of the newest change, and created counts the UIDs.
	version, created int64
	store            []*object // by slot
	// events are those of each resource that a cache has not had yet, and some before them.
	// base are the objects as they were before them, and baseVersions their versions.
	events       [][]event
	base         []*object
	baseVersions []int64
	// controllers are those that run, or will be started.
	controllers []controller
	// late is a write whose sender has given up, and that may still arrive.
	late *request
	// refusing says how a policy or a webhook refuses the writes of children, or is Done.
	refusing Outcome
	// wasReady is true for a Foo that had what its generation asks for, ready, at some
	// moment of this generation. named are the states in this generation of the objects that owners
	// name: at that moment, the Foo's controller need not have known the newest.
	wasReady []bool
	named    [][]*object
	// repairs are those of each child in a row, by slot.
	repairs []repairs
	// users, faults and crashes are how many may still come.
	users, faults, crashes int8
	// violations are the rules that the step to this state broke.
	violations []string
	// wrote is true if a controller sent a write or recorded an event in the step to this
	// state.
	wrote bool
}

// controller is a controller between two of its steps.
type controller struct {
	down  bool
	views []view // by resource
	queue keys
	// memory and syncs are by the slots of the owners; a sync is nil if none is in progress. The last of memory is
	// what is remembered for all owners, or nil if nothing is.
	memory []*memo
	syncs  []*syncing
}

// view is what an informer has of a resource.
type view struct {
	// position is how many of the state's events it has had, and version the newest.
	position int
	version  int64
	objects  []*object // by slot
	// told is the change that the event handlers have not heard of yet, or nil.
	told *notification
}

// notification is a change of a cache. For an addition before is nil, for a deletion after.
type notification struct {
	before, after *object
	// initial is true for the objects of the first list, and unknown for a deletion that a
	// list has shown.
	initial, unknown bool
}

// keys is a work queue. Its order is not part of it: a world has as many workers as keys,
// so that each key that waits can come next.
type keys struct {
	// dirty are those that wait, or will when their sync ends.
	dirty uint8
	// after are the times, in nanoseconds since the epoch, at which keys are added; 0 is
	// none.
	after []int64
}

func (q *keys) has(key slot) bool { return q.dirty&(1<<key) != 0 }
func (q *keys) add(key slot)      { q.dirty |= 1 << key }
func (q *keys) take(key slot)     { q.dirty &^= 1 << key }

// syncing is a sync that waits for the answer to a call. It never changes.
type syncing struct {
	// began is where the sync began, and answers are what it got since.
	began   moment
	answers []answer
	pending *request
	// seen identifies what the sync has seen, and so its local variables.
	seen []*fingerprint
}

// moment is what of a controller a piece of a sync can read.
type moment struct {
	now    int64
	views  []view
	memory []*memo
}

// answer is what a call returned, and when.
type answer struct {
	moment

	object runtime.Object
	err    error
}

// request is a request, with the slot of its object.
type request struct {
	model.Request

	slot slot
}

// request returns a request about the object of a slot.
func (s *scene) request(at slot, verb string, sent runtime.Object) *request {
	r := model.Request{Verb: verb, Kind: s.kindOf(at), Name: s.names[at].name, Sent: sent}
	return &request{r, at}
}

// located returns a request with its slot.
func (s *scene) located(r model.Request) *request {
	at, known := s.slotNamed(r.Kind.Resource.Resource, r.Name)
	if !known {
		panic(fmt.Sprintf("the world has no place for %s %s", r.Kind, r.Name))
	}
	return &request{r, at}
}

// clone returns a copy whose slices may be changed.
func (s *state) clone() *state {
	next := *s
	next.store, next.events = slices.Clone(s.store), slices.Clone(s.events)
	next.base, next.baseVersions = slices.Clone(s.base), slices.Clone(s.baseVersions)
	next.controllers, next.wasReady, next.named = slices.Clone(s.controllers), slices.Clone(s.wasReady), slices.Clone(s.named)
	next.repairs = slices.Clone(s.repairs)
	next.violations, next.wrote = nil, false
	return &next
}

// controller returns a controller of a state that was cloned, for changes.
func (s *state) controller(i int) *controller {
	c := &s.controllers[i]
	c.views, c.memory, c.syncs = slices.Clone(c.views), slices.Clone(c.memory), slices.Clone(c.syncs)
	c.queue.after = slices.Clone(c.queue.after)
	return c
}

func (s *state) breaks(format string, args ...any) {
	s.violations = append(s.violations, fmt.Sprintf(format, args...))
}

// explored is a state that a step is making, with what the step needs to know.
type explored struct {
	*state
	*scene
}

// serve answers a request. Everything that reaches the API server comes this way.
func (x explored) serve(sent *request) (rows.Object, error) {
	if x.real != nil {
		return x.real.serve(x, sent)
	}
	return x.process(sent)
}

// process returns the answer to a request. The caller must not change an object that it read.
func (x explored) process(sent *request) (rows.Object, error) {
	stored := x.stored(sent.slot)
	switch {
	case sent.Verb != "get":
		return x.write(sent, stored)
	case stored == nil:
		return nil, apierrors.NewNotFound(sent.Kind.Resource.GroupResource(), sent.Name)
	}
	return stored, nil
}

func (x explored) write(sent *request, stored rows.Object) (rows.Object, error) {
	change, err := sent.Write(stored, metav1.Time{Time: epoch})
	if err != nil {
		return nil, err
	}
	if change.Event == watch.Added {
		x.created++
		change.Object.SetUID(uidText(x.created))
		if x.CollectorAway { // elsewhere, the dates would only make more states
			change.Object.SetCreationTimestamp(metav1.NewTime(epoch.Add(time.Duration(x.now))))
		}
	}
	return x.commit(sent.slot, change), nil
}

func copyOf(object runtime.Object) rows.Object { return metaOf(object.DeepCopyObject()) }

// stored returns an object, or nil.
func (x explored) stored(at slot) rows.Object {
	if stored := x.store[at]; stored != nil {
		return stored.Object
	}
	return nil
}

// commit stores a change, and returns the answer.
func (x explored) commit(at slot, change rows.Change) rows.Object {
	if change.Event == "" {
		return change.Answer
	}
	x.version++
	change.Object.SetResourceVersion(versionText(x.version))
	if x.real != nil {
		x.real.adopt(x, at, change)
	}
	was, changed := x.store[at], x.intern(newObject(at, change.Object))
	resource := x.names[at].resource
	x.events[resource] = append(slices.Clip(x.events[resource]), event{change.Event, changed, x.version})
	x.store[at] = changed
	if change.Event == watch.Deleted {
		x.store[at] = nil
	}
	x.remember(at, was)
	if change.Answer == change.Object {
		return changed.Object
	}
	return change.Answer
}

// remember notes which Foos had what they ask for, ready.
func (x explored) remember(at slot, was *object) {
	for _, owner := range x.slotsOf(0) {
		foo := x.store[owner]
		isNew := at == owner && (foo == nil || was == nil || was.GetGeneration() != foo.GetGeneration() || was.GetUID() != foo.GetUID())
		if isNew {
			x.wasReady[owner], x.named[owner] = false, nil
		}
		for _, named := range x.store {
			if named != nil && x.Owner.IsReferenced(named.Object) && (isNew || named.slot == at) {
				x.named[owner] = append(slices.Clip(x.named[owner]), named)
			}
		}
		x.wasReady[owner] = x.wasReady[owner] || foo != nil && x.isReady(foo)
	}
}

// isReady reports whether a Foo has all that it asks for, ready, by any state of what it names.
func (x explored) isReady(foo *object) bool {
	if len(x.Owner.References) == 0 {
		return x.world().IsInPlace(foo.Object)
	}
	return slices.ContainsFunc(x.named[foo.slot], func(named *object) bool {
		then := x.clone()
		then.store[named.slot] = named
		return explored{then, x.scene}.world().IsInPlace(foo.Object)
	})
}

// trim forgets the events that no cache needs any more.
func (x explored) trim() {
	for resource, events := range x.events {
		unread := len(events)
		for i := range x.controllers {
			unread = min(unread, x.controllers[i].views[resource].position)
		}
		if x.crashes > 0 {
			unread = max(0, unread-x.Behind)
		}
		if unread == 0 {
			continue
		}
		for _, forgotten := range events[:unread] {
			x.base[forgotten.object.slot], x.baseVersions[resource] = forgotten.after(), forgotten.version
		}
		x.events[resource] = events[unread:]
		for i := range x.controllers {
			c := x.controller(i)
			c.views[resource].position -= unread
		}
	}
}
