// SPDX-License-Identifier: Apache-2.0

// Random walks through a world, with requests in between that are sent again.

package explore

import (
	"maps"
	"math/rand/v2"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/sample-controller/test/footest"
)

// walk takes random steps from the beginning of the world, at most as many as it may, and
// replays the requests that reach the API server.
func (r *runner) walk(random *rand.Rand, steps int, p *replay) error {
	current, err := r.begin()
	if err != nil {
		return err
	}
	for taken := 0; taken < steps && p.err == nil; taken++ {
		x := explored{current.clone(), r.scene}
		if sent := x.resend(random, p.versions); sent != nil && random.IntN(oneResent) == 0 {
			p.step = "somebody else"
			_, _ = x.serve(sent)
			x.trim()
			current = x.state
			continue
		}
		next, ok := x.choose(random)
		if !ok {
			break
		}
		p.step = x.describeStep(next)
		current = r.take(current, next)
	}
	return nil
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
		case s.op == opCrash && len(x.starts()) >= startsAtMost:
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

// resend returns a random request with an object as it was stored at some time, or nil if
// there was none yet.
func (x explored) resend(random *rand.Rand, versions []*object) *request {
	if len(versions) == 0 {
		return nil
	}
	was := versions[random.IntN(len(versions))]
	if newest := x.store[was.slot]; newest != nil && random.IntN(2) == 0 {
		was = newest
	}
	sent := x.request(was.slot, "update", "", copyOf(was.Object))
	switch random.IntN(8) {
	case 0: // as it was
	case 1:
		return x.ofStatus(sent)
	case 2:
		x.asNewest(sent.Object())
	case 3:
		if newest := x.store[was.slot]; newest != nil {
			sent.Sent = x.withSpecOfItsOwn(x.kindOf(was.slot).Updated(newest.Object, was.Object, "status"))
		}
		return x.ofStatus(sent)
	case 4:
		return x.request(was.slot, "delete", "", &metav1.DeleteOptions{
			Preconditions: &metav1.Preconditions{UID: new(was.GetUID()), ResourceVersion: new(was.GetResourceVersion())},
		})
	case 5:
		return x.request(was.slot, "delete", "", &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: new(was.GetUID())}})
	case 6:
		return x.request(was.slot, "create", "", x.example(x.names[was.slot].resource, x.names[was.slot].name))
	default:
		return x.request(was.slot, "get", "", nil)
	}
	if newest := x.store[was.slot]; newest != nil && x.isPending(was.slot, newest.Object) {
		return x.request(was.slot, "get", "", nil)
	}
	return sent
}

// isPending reports whether an owner has the status that the API server sets by default.
// Such an owner is only read: the default is stored with the first write, even with one that
// changes nothing, and the model does not know what is stored. No controller sends such a
// write.
func (x explored) isPending(at slot, object footest.Object) bool {
	return x.names[at].resource == 0 && footest.ConditionOf(object).Reason == "Pending"
}

// ofStatus makes an update one of the status.
func (x explored) ofStatus(sent *request) *request {
	if x.isPending(sent.slot, sent.Object()) {
		return x.request(sent.slot, "get", "", nil)
	}
	sent.Subresource = "status"
	return sent
}

// withSpecOfItsOwn changes the spec, which a write of the status must not store. The
// metadata stays: of a Deployment, the API server stores that with the status, and the model
// does not, but no controller changes it in such a write.
func (x explored) withSpecOfItsOwn(object footest.Object) footest.Object {
	if x.Owner.Is(object) {
		x.Owner.Resize(object, 7)
	} else {
		footest.KindOf(object).Drift(object, nil)
	}
	return object
}

// asNewest gives an older version of an object what the API server checks of the newest
// one. Of an earlier object of the name, it leaves the UID, which is refused, because that
// object's selector would be refused with another reason than the model has.
func (x explored) asNewest(object footest.Object) {
	at, _ := x.slotOf(object)
	newest := x.store[at]
	if newest == nil {
		return
	}
	object.SetResourceVersion(newest.GetResourceVersion())
	object.SetFinalizers(newest.GetFinalizers())
}
