// SPDX-License-Identifier: Apache-2.0

// How a step makes the next state.

package explore

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
)

// take returns the state after a step.
func (r *runner) take(from *state, s step) *state {
	x := explored{from.clone(), r.scene}
	i := int(s.controller)
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
		r.run(x, i, slot(s.a), &syncing{began: began, seen: []*fingerprint{c.memory[s.a].at(x.now)}})
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
		clear(x.repairs) // nobody remembers them
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
	c := x.controller(i)
	v := &c.views[resource]
	next := x.events[resource][v.position]
	v.position++
	v.version = next.version
	change := v.put(next.object.slot, next.after())
	if change == nil {
		return
	}
	if x.HandlersLag {
		v.told = change
		return
	}
	r.tell(x, i, resource, change)
}

// after returns the object after an event, or nil.
func (e event) after() *object {
	if e.verb == "DELETED" {
		return nil
	}
	return e.object
}

// put changes an object of a cache, and returns the notification. It returns nil if there
// is nothing to tell.
func (v *view) put(at slot, next *object) *notification {
	before := v.objects[at]
	if before == nil && next == nil {
		return nil
	}
	v.objects = slices.Clone(v.objects)
	v.objects[at] = next
	return &notification{before: before, after: next}
}

// relist gives a cache the newest list in place of the events.
func (r *runner) relist(x explored, i, resource int) {
	c := x.controller(i)
	v := &c.views[resource]
	v.position = len(x.events[resource])
	v.version = x.version
	var changes []*notification
	for _, at := range r.slotsOf(resource) {
		if v.objects[at] == x.store[at] {
			continue
		}
		if change := v.put(at, x.store[at]); change != nil {
			change.unknown = change.after == nil
			changes = append(changes, change)
		}
	}
	r.tell(x, i, resource, changes...)
}

// start starts a controller with the caches that a step says.
func (r *runner) start(x explored, i int, s step) {
	positions := x.starts()[s.a]
	x.controllers[i] = r.newController()
	c := x.controller(i)
	for resource, position := range positions {
		v := &c.views[resource]
		v.position, v.version = position, x.baseVersions[resource]
		for _, at := range r.slotsOf(resource) {
			v.objects[at] = x.base[at]
		}
		for _, e := range x.events[resource][:position] {
			v.objects[e.object.slot], v.version = e.after(), e.version
		}
	}
	for resource := range positions {
		var listed []*notification
		for _, at := range r.slotsOf(resource) {
			if object := x.controllers[i].views[resource].objects[at]; object != nil {
				listed = append(listed, &notification{after: object, initial: true})
			}
		}
		r.tell(x, i, resource, listed...)
	}
}

func (x explored) startVersions(s step) []int64 {
	versions := slices.Clone(x.baseVersions)
	for resource, position := range x.starts()[s.a] {
		if position > 0 {
			versions[resource] = x.events[resource][position-1].version
		}
	}
	return versions
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
	x.wrote = x.refusing == Done
	returned, err := x.answer(s.pending, outcome)
	c := &x.controllers[i]
	got := answer{moment: moment{x.now, c.views, c.memory}, err: err}
	seen := append(slices.Clip(s.seen), c.memory[key].at(x.now))
	if err != nil {
		e := &encoder{}
		e.failure(err)
		seen = append(seen, e.fingerprint())
	} else if returned != nil {
		got.object = returned
		seen = append(seen, fingerprintOf(returned))
	}
	r.run(x, i, key, &syncing{began: s.began, answers: append(slices.Clip(s.answers), got), seen: seen})
}

// carryOut does what a call asks of the API server, and checks that it may.
func (x explored) carryOut(sent *request) (runtime.Object, error) {
	before := x.store[sent.slot]
	returned, err := x.serve(sent)
	if err == nil && sent.Verb != "get" {
		x.judgeStored(sent, before)
	}
	return returned, err
}
