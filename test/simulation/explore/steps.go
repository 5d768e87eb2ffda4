// SPDX-License-Identifier: Apache-2.0

// The steps and the outcomes of calls: what can happen next in a state, and what the state
// is then.

package explore

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"

	"example.com/sample-controller/pkg/reconcile/reconciletest/model"
)

// op is a kind of step.
type op uint8

const (
	// opAct is an act of a user or of someone else who writes.
	opAct op = iota
	// opControlPlane is a write of the garbage collector or of a controller of children.
	opControlPlane
	// opDeliver is the arrival of the next event of a resource in a cache, opTell the
	// handlers' hearing of it if that comes later, and opRelist that of a list instead of
	// the events.
	opDeliver
	opTell
	opRelist
	// opSync is the begin of a sync, up to its first call.
	opSync
	// opCall is the answer to a call, and what the sync does up to its next call.
	opCall
	// opTime is the passing of the time until the next key is added.
	opTime
	// opResync is the informer's resync of an owner at rest.
	opResync
	// opCrash is the end of a controller, and opStart the start of another in its place.
	opCrash
	opStart
	// opLate is the arrival of a write whose sender has given up.
	opLate
)

// step is a step. a and b say which, by its op.
type step struct {
	op         op
	controller uint8
	a, b       uint8
}

// bySystem reports whether a step happens by itself, and soon. All others are those of
// users, or faults, which may never come, or a resync, which is hours away: no one must
// have to wait for it.
func (s step) bySystem() bool {
	switch s.op {
	case opAct, opRelist, opCrash, opLate, opResync:
		return false
	case opCall:
		return Outcome(s.b) == Done
	default:
		return true
	}
}

// Outcome is how a call ends.
type Outcome uint8

// The outcomes of calls. All but Done are faults.
const (
	// Done is that of a call that the API server carries out, if its preconditions hold.
	Done Outcome = iota
	Conflict
	Lost
	// Late is that of a call that may be carried out at any time later.
	Late
	Refused
	ServerError
	ServerErrorDone
	// RefusedFromNow is Refused, and so is each write of a child until someone lifts that.
	RefusedFromNow
	// Denied409, Denied404 and Denied418 are like RefusedFromNow, by an admission webhook: it
	// chooses the code, and gives no reason.
	Denied409
	Denied404
	Denied418
	// Mutated is the creation of a child that an admission webhook changes. It leaves updates
	// alone.
	Mutated
)

var outcomes = map[Outcome]struct {
	name string
	// code is that of a webhook's denial.
	code int32
}{
	Done: {name: "done"}, Conflict: {name: "conflict"}, Lost: {name: "done, but the answer is lost"}, Late: {name: "given up, still under way"},
	Refused: {name: "refused"}, ServerError: {name: "error 500"}, ServerErrorDone: {name: "done, but error 500"},
	RefusedFromNow: {name: "refused from now on"},
	Denied409:      {"denied with 409 from now on", http.StatusConflict},
	Denied404:      {"denied with 404 from now on", http.StatusNotFound},
	Denied418:      {"denied with 418 from now on", http.StatusTeapot},
	Mutated:        {name: "done, otherwise than sent"},
}

// String returns the name.
func (o Outcome) String() string { return outcomes[o].name }

// steps returns what can happen next.
func (x explored) steps() []step {
	var all []step
	for i := range x.acts {
		if x.users > 0 && x.acts[i].may(x) {
			all = append(all, step{op: opAct, a: uint8(i)})
		}
	}
	if x.late != nil {
		all = append(all, step{op: opLate})
	}
	all = x.controlPlaneSteps(all)
	for i := range x.controllers {
		all = x.controllerSteps(all, uint8(i))
	}
	return all
}

func (x explored) controllerSteps(all []step, i uint8) []step {
	c := &x.controllers[i]
	if c.down {
		for start := range x.starts() {
			all = append(all, step{op: opStart, controller: i, a: uint8(start)})
		}
		return all
	}
	for resource := range c.views {
		all = x.cacheSteps(all, i, uint8(resource))
	}
	for owner := range x.Owners {
		at := slot(owner)
		switch {
		case c.syncs[at] != nil:
			all = x.callSteps(all, i, at)
		case c.queue.has(at):
			all = append(all, step{op: opSync, controller: i, a: uint8(at)})
		}
	}
	if x.atRest(i) {
		for owner := range x.Owners {
			if c.views[0].objects[owner] != nil {
				all = append(all, step{op: opResync, controller: i, a: uint8(owner)})
			}
		}
	}
	if at, ok := x.nextTime(i); ok && x.mayPass(at) {
		all = append(all, step{op: opTime, controller: i})
	}
	if x.crashes > 0 {
		all = append(all, step{op: opCrash, controller: i})
	}
	return all
}

// atRest reports whether a controller has nothing to do. A resync at other times is like an
// addition of the key, which the other steps make.
func (x explored) atRest(i uint8) bool {
	c := &x.controllers[i]
	for resource := range c.views {
		if c.views[resource].position < len(x.events[resource]) || c.views[resource].told != nil {
			return false
		}
	}
	return c.queue.dirty == 0 && !slices.ContainsFunc(c.syncs, func(s *syncing) bool { return s != nil })
}

// isQuiet reports whether nothing is in progress but the waiting for a time.
func (x explored) isQuiet() bool {
	for i := range x.controllers {
		if !x.atRest(uint8(i)) {
			return false
		}
	}
	return len(x.controlPlaneSteps(nil)) == 0
}

// cacheSteps adds the steps that change a cache.
func (x explored) cacheSteps(all []step, i, resource uint8) []step {
	v := &x.controllers[i].views[resource]
	if v.told != nil {
		return append(all, step{op: opTell, controller: i, a: resource})
	}
	unread := len(x.events[resource]) - v.position
	if unread > 0 {
		all = append(all, step{op: opDeliver, controller: i, a: resource})
	}
	// A list instead of one event differs from it by a deletion without a last state.
	if x.Relists && x.faults > 0 && unread > 0 {
		all = append(all, step{op: opRelist, controller: i, a: resource})
	}
	return all
}

// callSteps adds the outcomes of a call.
func (x explored) callSteps(all []step, i uint8, at slot) []step {
	pending := x.controllers[i].syncs[at].pending
	all = append(all, step{op: opCall, controller: i, a: uint8(at)})
	if x.faults == 0 {
		return all
	}
	for _, outcome := range x.Outcomes {
		if pending.mayEndAs(outcome, x) {
			all = append(all, step{op: opCall, controller: i, a: uint8(at), b: uint8(outcome)})
		}
	}
	return all
}

// mayEndAs reports whether an outcome makes a difference. A read that was carried out and
// one that was not are the same without an answer.
func (r *request) mayEndAs(outcome Outcome, x explored) bool {
	switch outcome {
	case Conflict, Lost, ServerErrorDone:
		return r.Verb != "get"
	case Late:
		return x.late == nil
	case RefusedFromNow, Denied409, Denied404, Denied418:
		return x.refusing == Done && r.isOfChild(x) && r.Verb != "get"
	case Mutated:
		return r.isOfChild(x) && r.Verb == "create"
	default:
		return true
	}
}

func (r *request) isOfChild(x explored) bool { return slices.Contains(x.Owner.Kinds, r.Kind) }

// nextTime returns when the next key of a controller is added.
func (x explored) nextTime(i uint8) (at int64, ok bool) {
	for _, after := range x.controllers[i].queue.after {
		if after > 0 && (!ok || after < at) {
			at, ok = after, true
		}
	}
	return at, ok
}

// mayPass reports whether the clock can reach a time now: no other key is added before, and
// a call ends within its deadline.
func (x explored) mayPass(at int64) bool {
	for i := range x.controllers {
		if x.controllers[i].down {
			continue
		}
		if next, ok := x.nextTime(uint8(i)); ok && next < at {
			return false
		}
		if at-x.now >= CallTimeout.Nanoseconds() && slices.ContainsFunc(x.controllers[i].syncs, func(s *syncing) bool { return s != nil }) {
			return false
		}
	}
	return true
}

// starts are the positions of the caches with which a controller may start: all combinations.
func (x explored) starts() [][]int {
	all := [][]int{nil}
	for resource := range x.kinds {
		var with [][]int
		for position := range len(x.events[resource]) + 1 {
			for _, others := range all {
				with = append(with, append(slices.Clone(others), position))
			}
		}
		all = with
	}
	return all
}

var errNoAnswer = fmt.Errorf("the connection was lost: %w", context.DeadlineExceeded)

// answer carries out a call, unless its outcome prevents that, and returns its answer.
func (x explored) answer(sent *request, outcome Outcome) (runtime.Object, error) {
	resource, name := x.kindOf(sent.slot).Resource.GroupResource(), x.names[sent.slot].name
	internal := apierrors.NewInternalError(errors.New("etcd has no leader"))
	switch outcome {
	case Conflict:
		return nil, apierrors.NewConflict(resource, name, errors.New("the object has been modified"))
	case Lost:
		_, _ = x.carryOut(sent)
		return nil, errNoAnswer
	case Late:
		if sent.Verb != "get" {
			x.late = sent
		}
		return nil, errNoAnswer
	case Refused:
		return nil, x.refusal(sent, Refused)
	case RefusedFromNow, Denied409, Denied404, Denied418:
		x.refusing = outcome
	case ServerError:
		return nil, internal
	case ServerErrorDone:
		_, _ = x.carryOut(sent)
		return nil, internal
	case Mutated:
		return x.carryOut(x.mutated(sent))
	default:
	}
	if x.refuses(sent) {
		return nil, x.refusal(sent, x.refusing)
	}
	returned, err := x.carryOut(sent)
	if err == nil && sent.Verb == "update" && sent.isOfChild(x) {
		x.countRepair(sent.slot)
	}
	return returned, err
}

// refuses reports whether a call is refused now.
func (x explored) refuses(sent *request) bool {
	return x.refusing != Done && sent.Verb != "get" && sent.isOfChild(x) ||
		sent.Verb == "delete" && slices.Contains(x.Undeletable, x.names[sent.slot].name)
}

// refusal returns the answer to a write that is refused.
func (x explored) refusal(sent *request, how Outcome) error {
	if code := outcomes[how].code; code != 0 {
		return model.Denial(code)
	}
	return apierrors.NewForbidden(x.kindOf(sent.slot).Resource.GroupResource(), x.names[sent.slot].name, errors.New("a policy is against it"))
}

// mutated returns the creation of a child with other values in the fields that its owner
// owns.
func (x explored) mutated(sent *request) *request {
	changed := copyOf(sent.Sent)
	x.kindOf(sent.slot).Drift(changed, nil)
	return x.request(sent.slot, sent.Verb, changed)
}
