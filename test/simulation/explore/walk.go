// SPDX-License-Identifier: Apache-2.0

// Random walks: sequences of steps far longer than those that a search reaches, for the
// comparison with a real API server.

package explore

import (
	"maps"
	"math/rand/v2"
	"slices"

	"example.com/sample-controller/test/footest"
)

// exchange is a request that has reached the API server, with what it did.
type exchange struct {
	*request

	// who sent it, and in which step.
	who, step string
	// returned and err are the answer.
	returned footest.Object
	err      error
	// events are those of the request, and stored is the object after it, or nil.
	events []event
	stored *object
}

// walk takes random steps from the beginning of the world, at most as many as it may, and
// returns the requests that reached the API server.
func (r *runner) walk(random *rand.Rand, steps int) ([]exchange, error) {
	var path []exchange
	who, step := "the start", "the start"
	r.served = func(x explored, sent *request, before int64, returned footest.Object, err error) {
		done := x.exchange(sent, before, returned, err)
		done.who, done.step = who, step
		path = append(path, done)
	}
	defer func() { r.served = nil }()
	current, err := r.begin()
	if err != nil {
		return nil, err
	}
	for range steps {
		x := explored{current.clone(), r.scene}
		if sent := x.resend(random, path); sent != nil && random.IntN(oneResent) == 0 {
			who, step = "somebody else", "somebody else"
			_, _ = x.serve(sent)
			x.trim()
			current = x.state
			continue
		}
		next, ok := x.choose(random)
		if !ok {
			break
		}
		who, step = next.sender(), x.describeStep(next)
		current = r.take(current, next)
	}
	return path, nil
}

// sender says who sends requests in a step.
func (s step) sender() string {
	switch s.op {
	case opAct:
		return "user"
	case opControlPlane:
		return "control plane"
	default:
		return "controller"
	}
}

// exchange returns what a request did.
func (x explored) exchange(sent *request, before int64, returned footest.Object, err error) exchange {
	kept := *sent
	if sent.sent != nil {
		kept.sent = sent.sent.DeepCopyObject()
	}
	done := exchange{request: &kept, err: err, stored: x.store[sent.slot]}
	if err == nil && returned != nil {
		done.returned = copyOf(returned)
	}
	for _, events := range x.events {
		for _, e := range events {
			if e.version > before {
				done.events = append(done.events, e)
			}
		}
	}
	return done
}

// oneResent is how many steps there are for one request of resend.
const oneResent = 12

// startsAtMost is how many starts a step can tell apart.
const startsAtMost = 1 << 8

// choose returns a random step: first what kind of step, so that the many outcomes of a
// call don't crowd out the rest. Users and faults are rare, so that the controller comes to
// something between them.
func (x explored) choose(random *rand.Rand) (chosen step, ok bool) {
	bySystem, others := map[op][]step{}, map[op][]step{}
	for _, s := range x.steps() {
		switch {
		case s.op == opStart:
			// At once, before further events make more starts than a step can tell apart.
			return s, true
		case s.op == opCrash && x.starts() >= startsAtMost:
		case s.bySystem():
			bySystem[s.op] = append(bySystem[s.op], s)
		default:
			others[s.op] = append(others[s.op], s)
		}
	}
	from := bySystem
	if len(bySystem) == 0 || len(others) > 0 && random.IntN(6) == 0 {
		from = others
	}
	if len(from) == 0 {
		return step{}, false
	}
	kinds := slices.Sorted(maps.Keys(from))
	among := from[kinds[random.IntN(len(kinds))]]
	return among[random.IntN(len(among))], true
}

// starts is how many ways to start there are after a crash now.
func (x explored) starts() int {
	starts := 1
	for resource := range x.events {
		starts *= len(x.events[resource]) + 1
	}
	return starts
}
