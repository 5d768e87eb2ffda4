// SPDX-License-Identifier: Apache-2.0

// Requests that the steps of a world make seldom or never: those of clients that send what
// they read long ago, or that change nothing.

package explore

import (
	"math/rand/v2"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/sample-controller/test/footest"
)

// resend returns a random request with an object as it was stored at some time, or nil if
// there was none yet.
func (x explored) resend(random *rand.Rand, path []exchange) *request {
	var versions []*object
	for i := range path {
		if path[i].stored != nil {
			versions = append(versions, path[i].stored)
		}
	}
	if len(versions) == 0 {
		return nil
	}
	was := versions[random.IntN(len(versions))]
	if newest := x.store[was.slot]; newest != nil && random.IntN(2) == 0 {
		was = newest
	}
	sent := &request{verb: "update", slot: was.slot, sent: copyOf(was.Object)}
	switch random.IntN(8) {
	case 0: // as it was
	case 1:
		return x.ofStatus(sent)
	case 2:
		x.asNewest(metaOf(sent.sent))
	case 3:
		if newest := x.store[was.slot]; newest != nil {
			sent.sent = x.withSpecOfItsOwn(x.kindOf(was.slot).Updated(newest.Object, was.Object, "status"))
		}
		return x.ofStatus(sent)
	case 4:
		return &request{verb: "delete", slot: was.slot, sent: &metav1.DeleteOptions{
			Preconditions: &metav1.Preconditions{UID: new(was.GetUID()), ResourceVersion: new(was.GetResourceVersion())},
		}}
	case 5:
		return &request{verb: "delete", slot: was.slot, sent: &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: new(was.GetUID())}}}
	case 6:
		return &request{verb: "create", slot: was.slot, sent: x.fresh(was.slot)}
	default:
		return &request{verb: "get", slot: was.slot}
	}
	if newest := x.store[was.slot]; newest != nil && x.isPending(was.slot, newest.Object) {
		return &request{verb: "get", slot: was.slot}
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
	if x.isPending(sent.slot, metaOf(sent.sent)) {
		return &request{verb: "get", slot: sent.slot}
	}
	sent.subresource = "status"
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

// fresh returns an object of a slot's name as somebody creates it.
func (x explored) fresh(at slot) footest.Object {
	if x.names[at].resource == 0 {
		return x.Owner.Asking(x.names[at].name, x.Children[0], 1)
	}
	return x.kindOf(at).ForeignNamed(x.names[at].name)
}
