/*
Copyright The Sample Controller Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

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

// longAgo is how far the controller looks back: its longest interval is that between two
// statuses of a rollout. Times before that are the same to it.
const longAgo = 6 * time.Second

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
			e.number(max(t.value-now, -int64(longAgo)) / int64(time.Second))
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
