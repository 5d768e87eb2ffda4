// SPDX-License-Identifier: Apache-2.0

// Fingerprints, and the identity of a state: when two states count as the same.

package explore

import (
	"reflect"
	"slices"
	"time"
)

// digest identifies a state. Two of ten million different ones share one of these 128 bits
// with a probability of 1 in 10^24.
type digest [16]byte

// tokenKind is a kind of values of which only equality and order mean something to a
// controller, not the values themselves.
type tokenKind uint8

const (
	// versionToken is a resourceVersion.
	versionToken tokenKind = iota
	// uidToken is a UID.
	uidToken
	// dateToken is the time of a condition's transition, in seconds.
	dateToken
	// deadlineToken is a time until which the controller waits, and sinceToken one from
	// which it counts, both in nanoseconds.
	deadlineToken
	sinceToken
	// orderToken is a deadline of which only the order matters.
	orderToken
	tokenKinds
)

type token struct {
	kind  tokenKind
	value int64
}

// fingerprint is the content of a value, with its tokens apart. It never changes.
type fingerprint struct {
	content digest
	tokens  []token
}

// lookBacks are how far the controller looks back: 5 s to the last status of a rollout, 30 s
// to the first refusal and to the last message, a minute to the last repair. A time counts to
// the second within the first of them and shortly before each, and otherwise by those that
// have passed: what waits for the others has a deadline in the queue, or a count of failures.
// So a sync that is repeated each second, while an event is late, does not make a new state
// each time. Shortly before a bound it has to: the retry may be what the queue holds, so that
// a state that waits for the bound would look like the one a second later.
var lookBacks = []time.Duration{6 * time.Second, 30 * time.Second, time.Minute}

// nearBound is several times as long as the retry while a cache is behind.
const nearBound = 6 * time.Second

// age encodes how long ago something was.
func (e *encoder) age(since, now int64) {
	ago := time.Duration(now - since)
	for _, bound := range slices.Backward(lookBacks) {
		if ago >= bound {
			ago = bound
			break
		}
		if ago >= bound-nearBound {
			break
		}
	}
	e.number(int64(ago / time.Second))
}

// isRelative reports whether a token counts by its distance from the present.
func (t token) isRelative() bool { return t.kind == deadlineToken || t.kind == sinceToken }

// at returns a fingerprint whose times are relative to the present, and no tokens any more.
// A deadline that has passed is one, whenever it was.
func (f *fingerprint) at(now int64) *fingerprint {
	if f == nil || !slices.ContainsFunc(f.tokens, token.isRelative) {
		return f
	}
	e := &encoder{}
	e.text(string(f.content[:]))
	for _, t := range f.tokens {
		switch t.kind {
		case deadlineToken:
			e.deadline(t.value, now)
		case sinceToken:
			e.age(t.value, now)
		default:
			e.tokens = append(e.tokens, t)
		}
	}
	return e.fingerprint()
}

// deadline encodes how much time is left until a deadline, to the second if it is more than
// the shortest back-offs: calls take no time here, so more digits would mean nothing.
// Which of two deadlines comes first counts anyway.
func (e *encoder) deadline(until, now int64) {
	switch left := until - now; {
	case left <= 0:
		e.number(0)
	case left <= int64(100*time.Millisecond):
		e.number(left)
	default:
		e.number((left + int64(time.Second) - 1) / int64(time.Second) * int64(time.Second))
		e.tokens = append(e.tokens, token{orderToken, until})
	}
}

// fingerprintOf returns the fingerprint of a value of any type.
func fingerprintOf(value any) *fingerprint {
	e := &encoder{}
	e.value(reflect.ValueOf(value))
	return e.fingerprint()
}

// ranks replaces tokens by their ranks among those of their kind, so that two states are
// equal if their versions, UIDs and dates are in the same order.
func ranks(tokens []token, out []byte) []byte {
	var values [tokenKinds][]int64
	for _, t := range tokens {
		values[t.kind] = append(values[t.kind], t.value)
	}
	for kind := range values {
		slices.Sort(values[kind])
		values[kind] = slices.Compact(values[kind])
	}
	for _, t := range tokens {
		rank, _ := slices.BinarySearch(values[t.kind], t.value)
		out = append(out, byte(rank))
	}
	return out
}

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
			e.number(int64(len(x.named[i])))
			for _, named := range x.named[i] {
				e.print(named.stored())
			}
		}
		series := x.repairs[i]
		e.number(int64(series.count))
		if series.count > 0 {
			e.age(series.last, x.now)
		}
	}
	for resource, events := range x.events {
		if x.mayRestart() {
			for _, base := range x.slotsOf(resource) {
				e.print(x.base[base].stored())
			}
		}
		for _, event := range events {
			e.text(string(event.verb))
			e.print(event.object.stored())
			e.tokens = append(e.tokens, token{versionToken, event.version})
		}
	}
	if x.late != nil {
		e.number(int64(x.late.slot))
		e.text(x.late.Verb + x.late.Subresource)
		e.print(fingerprintOf(x.late.Sent))
	}
	for i := range x.controllers {
		x.encodeController(e, &x.controllers[i])
	}
	e.tokens = append(e.tokens, token{dateToken, x.now/1e9 + epoch.Unix()})
	e.out = ranks(e.tokens, e.out)
	return e.fingerprint().content
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

func (x explored) encodeController(e *encoder, c *controller) {
	e.flag(c.down)
	for resource := range c.views {
		v := &c.views[resource]
		e.number(int64(v.position))
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
	if shared := c.memory[len(c.memory)-1]; shared != nil {
		e.print(shared.at(x.now))
	}
}

// remembers identifies what a controller remembers that a sync of an owner can read.
func (c *controller) remembers(owner slot, now int64) []*fingerprint {
	seen := []*fingerprint{c.memory[owner].at(now)}
	if shared := c.memory[len(c.memory)-1]; shared != nil {
		seen = append(seen, shared.at(now))
	}
	return seen
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
