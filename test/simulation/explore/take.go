// SPDX-License-Identifier: Apache-2.0

// How a step makes the next state: of the controllers, of users and others, and of the control plane.

package explore

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"example.com/sample-controller/pkg/reconcile/reconciletest/model"
	"example.com/sample-controller/pkg/reconcile/reconciletest/rows"
	"example.com/sample-controller/pkg/reconcile/reconciletest/rules"
)

// take returns the state after a step.
func (r *runner) take(from *state, s step) *state {
	x := explored{from.clone(), r.scene}
	i := int(s.controller)
	r = r.of(from, i)
	switch s.op {
	case opAct:
		x.users--
		x.acts[s.a].do(x)
	case opControlPlane:
		x.controlPlane(s)
	case opDeliver:
		r.deliver(x, i, int(s.a))
	case opTell:
		v := &x.controller(i).views[s.a]
		told := v.told
		v.told = nil
		r.tell(x, i, int(s.a), told)
	case opRelist:
		x.faults--
		r.relist(x, i, int(s.a))
	case opSync:
		c := x.controller(i)
		c.queue.take(slot(s.a))
		began := moment{x.now, c.views, c.memory}
		r.run(x, i, slot(s.a), &syncing{began: began, seen: c.remembers(slot(s.a), x.now)})
	case opCall:
		r.answerCall(x, i, slot(s.a), Outcome(s.b))
	case opTime:
		x.judgePause(i)
		x.passTime(i)
	case opResync:
		object := x.controllers[i].views[0].objects[s.a]
		r.tell(x, i, 0, &notification{before: object, after: object})
	case opCrash:
		x.crashes--
		x.controllers[i] = r.newController()
		x.controllers[i].down = true
		x.keepForStart(from, i)
		clear(x.repairs) // no one remembers them
	case opStart:
		r.start(x, i, s)
	case opLate:
		sent := x.late
		x.late = nil
		_, _ = x.carryOut(sent)
	}
	x.forgetRepairs()
	x.trim()
	return x.state
}

// deliver gives a cache its next event.
func (r *runner) deliver(x explored, i, resource int) {
	v := &x.controller(i).views[resource]
	before := v.objects
	*v = x.viewAt(resource, v.position+1)
	changes := changesOf(before, v.objects)
	if x.HandlersLag && len(changes) > 0 {
		v.told = changes[0]
		return
	}
	r.tell(x, i, resource, changes...)
}

// relist gives a cache the newest list instead of the events.
func (r *runner) relist(x explored, i, resource int) {
	v := &x.controller(i).views[resource]
	before := v.objects
	*v = x.viewAt(resource, len(x.events[resource]))
	v.version = x.version
	changes := changesOf(before, v.objects)
	for _, change := range changes {
		change.unknown = change.after == nil
	}
	r.tell(x, i, resource, changes...)
}

// start starts a controller with the caches that a step says.
func (r *runner) start(x explored, i int, s step) {
	x.controllers[i] = r.newController()
	c := x.controller(i)
	for resource, position := range x.starts()[s.a] {
		c.views[resource] = x.viewAt(resource, position)
	}
	for resource := range c.views {
		listed := changesOf(make([]*object, len(x.store)), c.views[resource].objects)
		for _, object := range listed {
			object.initial = true
		}
		r.tell(x, i, resource, listed...)
	}
}

// viewAt returns what a cache has of a resource after a number of the events.
func (x explored) viewAt(resource, position int) view {
	v := view{position: position, version: x.baseVersions[resource], objects: make([]*object, len(x.store))}
	for _, at := range x.slotsOf(resource) {
		v.objects[at] = x.base[at]
	}
	for _, e := range x.events[resource][:position] {
		v.objects[e.object.slot], v.version = e.after(), e.version
	}
	return v
}

// after returns the object after an event, or nil.
func (e event) after() *object {
	if e.verb == watch.Deleted {
		return nil
	}
	return e.object
}

// changesOf returns what is to be told of a change of a cache.
func changesOf(before, after []*object) []*notification {
	var changes []*notification
	for at := range before {
		if before[at] != after[at] {
			changes = append(changes, &notification{before: before[at], after: after[at]})
		}
	}
	return changes
}

// keepForStart keeps the events that a controller had not had when it crashed, and some
// before them: the next may begin with any of them.
func (x explored) keepForStart(from *state, i int) {
	for resource := range x.events {
		x.controllers[i].views[resource].position = max(0, from.controllers[i].views[resource].position-x.Behind)
	}
}

// passTime moves the clock to when the next key is added, and adds it.
func (x explored) passTime(i int) {
	at, _ := x.nextTime(uint8(i))
	x.now = max(x.now, at)
	for j := range x.controllers {
		c := x.controller(j)
		for owner, after := range c.queue.after {
			if after > 0 && after <= x.now {
				c.queue.after[owner] = 0
				c.queue.add(slot(owner))
			}
		}
	}
}

// answerCall ends a call, and lets the sync go on up to the next one.
func (r *runner) answerCall(x explored, i int, key slot, outcome Outcome) {
	s := x.controllers[i].syncs[key]
	if outcome != Done {
		x.faults--
	}
	// A refused deletion is retried forever, after the reads that precede it.
	x.wrote = x.refusing == Done && (len(x.Undeletable) == 0 || s.pending.Verb != "get" && !x.refuses(s.pending))
	returned, err := x.answer(s.pending, outcome)
	c := &x.controllers[i]
	got := answer{moment: moment{x.now, c.views, c.memory}, err: err}
	seen := append(slices.Clip(s.seen), c.remembers(key, x.now)...)
	if err != nil {
		seen = append(seen, fingerprintOf(err))
	} else if returned != nil {
		got.object = returned
		seen = append(seen, fingerprintOf(returned))
	}
	r.run(x, i, key, &syncing{began: s.began, answers: append(slices.Clip(s.answers), got), seen: seen})
}

// carryOut does what a call asks of the API server, and checks that it may.
func (x explored) carryOut(sent *request) (runtime.Object, error) {
	if sent.Subresource == listed {
		return x.list(sent)
	}
	before := x.store[sent.slot]
	returned, err := x.serve(sent)
	if err == nil && sent.Verb != "get" {
		x.judgeStored(sent, before)
	}
	return returned, err
}

// act is a write of a user or of someone else.
type act struct {
	name string
	// may reports whether the act makes sense in a state, and do carries it out.
	may func(x explored) bool
	do  func(x explored)
}

// newAct makes an act from its text: one that model.Parse reads; "undo web", which is a drift
// while nothing else is in progress; "undo web 70s", which comes after 70 s of that; "collect web",
// which the garbage collector deletes if its owner is gone; "forge api a", where someone marks their own object as
// one of the owner a; or "allow", which lifts what refuses writes.
func (s *scene) newAct(text string) (act, error) {
	if text == "allow" {
		return act{text, func(x explored) bool { return x.refusing != Done }, func(x explored) { x.refusing = Done }}, nil
	}
	words := append(strings.Fields(text), "", "", "")
	if words[0] == "forge" {
		return s.forgery(text, words[1], words[2])
	}
	parsed, isUndo, isCollection, after := text, words[0] == "undo", words[0] == "collect", time.Duration(0)
	var err error
	if isUndo {
		parsed = "drift " + words[1]
		after, err = time.ParseDuration(cmp.Or(words[2], "0s"))
	} else if isCollection {
		parsed = "remove " + words[1]
	}
	a, ok := model.Parse(s.Owner, parsed, func(kind *rows.Kind, name string) bool {
		_, known := s.slotNamed(kind.Resource.Resource, name)
		return known
	})
	if !ok || err != nil {
		return act{}, fmt.Errorf("world %s: the act %q is unknown, or about an object that it has no name for", s.Name, text)
	}
	at, _ := s.slotNamed(a.Kind.Resource.Resource, a.Name)
	return act{
		name: text,
		may: func(x explored) bool {
			r, ok := a.Request(x.stored(at))
			isChange := ok && (a.Verb != "update" || fingerprintOf(r.Sent).content != x.store[at].content)
			return isChange && (!isUndo || x.isQuiet() && x.mayPass(x.now+after.Nanoseconds())) &&
				(!isCollection || x.world().OwnerOf(x.stored(at)) == nil)
		},
		do: func(x explored) {
			x.now += after.Nanoseconds()
			r, _ := a.Request(x.stored(at))
			x.mustServe(&request{r, at})
		},
	}, nil
}

// forgery is the act of someone who creates an object of their own, with the marks of an owner.
func (s *scene) forgery(text, name, owner string) (act, error) {
	a, err := s.newAct("take " + name)
	do := a.do
	a.name, a.do = text, func(x explored) {
		do(x)
		at := slices.IndexFunc(x.names, func(n slotName) bool { return n.resource > 0 && n.name == name })
		forged := copyOf(x.store[at])
		forged.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: "theirs", UID: "theirs", Controller: new(true)}})
		forged.SetLabels(map[string]string{x.Owner.OwnerLabel(): string(x.store[slices.Index(x.Owners, owner)].GetUID())})
		x.mustServe(x.request(slot(at), "update", forged))
	}
	may := a.may
	a.may = func(x explored) bool { return x.store[slices.Index(x.Owners, owner)] != nil && may(x) }
	return a, err
}

// mustServe carries out a write that the API server must accept.
func (x explored) mustServe(sent *request) {
	if _, err := x.serve(sent); err != nil {
		panic(fmt.Sprintf("%s: %v", sent, err))
	}
}

// world returns all that there is.
func (x explored) world() rules.World {
	w := rules.World{Owner: x.Owner, Refused: x.refusing != Done, Undeletable: x.Undeletable, CollectorAway: x.CollectorAway}
	for _, object := range x.store {
		if object != nil {
			w.Objects = append(w.Objects, object.Object)
		}
	}
	return w
}

func (x explored) controlPlaneSteps(all []step) []step {
	model.Duties(x.world(), func(duty model.Duty, object rows.Object) {
		if duty == model.Advance && slices.Contains(x.Stuck, object.GetName()) || duty == model.Collect && x.CollectorAway {
			return
		}
		at, _ := x.slotOf(object)
		all = append(all, step{op: opControlPlane, a: uint8(at), b: uint8(duty)})
	})
	return all
}

func (x explored) controlPlane(s step) {
	at, duty := slot(s.a), model.Duty(s.b)
	r := duty.Request(x.kindOf(at), x.store[at].Object)
	for duty == model.Advance && !x.EachWrite && r.Kind.Advance(r.Object()) {
	}
	x.mustServe(&request{r, at})
}
