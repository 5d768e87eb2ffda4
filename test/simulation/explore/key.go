// SPDX-License-Identifier: Apache-2.0

// The identity of a state.

package explore

import "crypto/sha256"

// identity returns what makes a state the same as another one: equal content, with
// versions, UIDs and dates in the same order.
func (x explored) identity() digest {
	e := &encoder{out: make([]byte, 0, 1024), tokens: make([]token, 0, 64)}
	e.number(int64(x.users)<<16 | int64(x.faults)<<8 | int64(x.crashes))
	e.number(int64(x.refusing))
	for i, object := range x.store {
		e.print(object.stored())
		if i < len(x.wasReady) {
			e.flag(x.wasReady[i])
		}
		series := x.repairs[i]
		e.number(int64(series.count))
		if series.count > 0 {
			e.age(series.last, x.now)
		}
	}
	first := x.oldestNeeded()
	for resource, events := range x.events {
		if x.mayRestart() {
			for _, base := range x.slotsOf(resource) {
				e.print(x.base[base].stored())
			}
		}
		for _, event := range events[first[resource]:] {
			e.text(string(event.verb))
			e.print(event.object.stored())
			e.tokens = append(e.tokens, token{versionToken, event.version})
		}
	}
	if x.late != nil {
		e.number(int64(x.late.slot))
		e.text(x.late.verb + x.late.subresource)
		e.print(fingerprintOf(x.late.sent))
	}
	for i := range x.controllers {
		x.encodeController(e, &x.controllers[i], first)
	}
	e.tokens = append(e.tokens, token{dateToken, x.now/1e9 + epoch.Unix()})
	e.out = ranks(e.tokens, e.out)
	sum := sha256.Sum256(e.out)
	return digest(sum[:16])
}

// mayRestart reports whether events that all caches have had may matter again.
func (x explored) mayRestart() bool {
	for i := range x.controllers {
		if x.controllers[i].down {
			return true
		}
	}
	return x.crashes > 0
}

// oldestNeeded returns the positions of the oldest events that may matter.
func (x explored) oldestNeeded() []int {
	first := make([]int, len(x.events))
	if x.mayRestart() {
		return first
	}
	for resource := range first {
		first[resource] = len(x.events[resource])
		for i := range x.controllers {
			first[resource] = min(first[resource], x.controllers[i].views[resource].position)
		}
	}
	return first
}

func (x explored) encodeController(e *encoder, c *controller, first []int) {
	e.flag(c.down)
	for resource := range c.views {
		v := &c.views[resource]
		e.number(int64(v.position - first[resource]))
		e.tokens = append(e.tokens, token{versionToken, v.version})
		for _, at := range x.slotsOf(resource) {
			e.print(v.objects[at].stored())
		}
		e.flag(v.told != nil)
		if v.told != nil {
			e.print(v.told.before.stored())
			e.print(v.told.after.stored())
		}
	}
	e.number(int64(c.queue.dirty))
	for owner, after := range c.queue.after {
		if after == 0 {
			e.number(-1)
		} else {
			e.deadline(after, x.now)
		}
		if memory := c.memory[owner]; memory != nil {
			e.print(memory.at(x.now))
		} else {
			e.print(nil)
		}
		s := c.syncs[owner]
		e.flag(s != nil)
		if s != nil {
			e.number(int64(len(s.seen)))
			for _, seen := range s.seen {
				e.print(seen)
			}
		}
	}
}

func (e *encoder) flag(b bool) {
	if b {
		e.out = append(e.out, 1)
	} else {
		e.out = append(e.out, 0)
	}
}

// print encodes a fingerprint, or that there is none.
func (e *encoder) print(f *fingerprint) {
	e.flag(f != nil)
	if f != nil {
		e.out = append(e.out, f.content[:]...)
		e.tokens = append(e.tokens, f.tokens...)
	}
}

// stored returns the fingerprint of an object, or nil.
func (o *object) stored() *fingerprint {
	if o == nil {
		return nil
	}
	return o.fingerprint
}
