// SPDX-License-Identifier: Apache-2.0

// Fingerprints: when two states count as the same.

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
	e.bytes(f.content[:])
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
// Which of two deadlines comes first counts nevertheless.
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
