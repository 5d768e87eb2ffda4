// SPDX-License-Identifier: Apache-2.0

// The rules for each write of a controller. They judge a write by the state at its
// commit, not by what its sender could know.

package simulation

import (
	"cmp"
	"fmt"
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"example.com/sample-controller/test/footest"
)

// inspect returns the inspector of a controller's writes. The API server is locked while
// it runs.
func (c *connection) inspect(verb string) inspector {
	return func(stored, next runtime.Object) {
		c.inspectLate(stored, next)
		if stored != nil && next != nil && !c.stale && !c.cluster.mutatesWrites() && equality.Semantic.DeepEqual(stored, next) {
			c.cluster.violationf("%s sent a write of %s that changes nothing", c.name, idOf(next))
		}
		switch id := idOf(cmp.Or(next, stored)); {
		case verb == "update-status":
		case id.kind() == c.cluster.owner.Kind && verb == "update": // inspectLate has checked its fields
		case id.kind() == c.cluster.owner.Kind:
			c.cluster.violationf("%s sent %s of %s, which belongs to users", c.name, verb, id)
		case verb == "create":
			c.inspectCreate(metaOf(next))
		case verb == "update":
			c.inspectUpdate(metaOf(stored), metaOf(next))
		case verb == "delete":
			c.inspectDelete(metaOf(stored))
		}
	}
}

// inspectLate checks the rule that holds even for a write that arrives after its sender
// gave up: it does not change fields of others.
func (c *connection) inspectLate(stored, next runtime.Object) {
	if stored == nil || next == nil {
		return
	}
	if footest.IsOwner(stored) && isTransition(metaOf(stored), metaOf(next)) {
		ready, _ := readinessOf(next)
		c.pendingEvents[ready.uid]++
		c.transitions[ready.uid] = ready
	}
	if taken := idOf(next).kind().DescribeTaken(metaOf(stored), metaOf(next), nil); taken != "" {
		c.cluster.violationf("%s changed fields of others in %s (-before +after):\n%s", c.name, idOf(next), taken)
	}
}

// inspectRefused checks that a write was not refused because the controller forgot what it
// last wrote for the same Foo: for some time, it waits until its cache has that.
func (c *connection) inspectRefused(r *request, err error) {
	own, ok := c.own[r.id]
	if !ok || c.lossy || time.Since(own.at) >= CallTimeout || r.sent == nil || !reflect.DeepEqual(metaOf(r.sent).GetOwnerReferences(), own.owners) {
		return
	}
	stored, getErr := c.cluster.api.get(r.id)
	if getErr != nil || metaOf(stored).GetUID() != own.uid {
		return
	}
	reason := apierrors.ReasonForError(err) // a webhook may deny with the code alone
	if reason == metav1.StatusReasonAlreadyExists || reason == metav1.StatusReasonConflict && metaOf(stored).GetResourceVersion() == own.version {
		c.cluster.violationf("%s sent %s of %s although its own write %s ago was not in its cache yet", c.name, r.verb, r.id, time.Since(own.at))
	}
}

func (c *connection) inspectCreate(next footest.Object) {
	ref := controllerOf(next)
	if ref == nil {
		c.cluster.violationf("%s created %s without a controller reference to a %s", c.name, idOf(next), c.cluster.owner)
		return
	}
	if c.stale {
		return
	}
	if foo := c.liveFoo(ref.Name); foo != nil && c.cluster.removed[idOf(next)] == generationOf(foo) {
		c.cluster.violationf("%s recreated %s, which a controller had deleted for the same generation of the %s", c.name, idOf(next), c.cluster.owner)
	}
}

func (c *connection) inspectUpdate(stored, next footest.Object) {
	switch ref, nextRef := controllerOf(stored), controllerOf(next); {
	case ref != nil && c.isLive(ref):
		if nextRef == nil || nextRef.UID != ref.UID {
			c.cluster.violationf("%s changed the owner of %s", c.name, idOf(next))
		}
	case metav1.GetControllerOf(stored) == nil && nextRef != nil && c.isLive(nextRef) &&
		stored.GetAnnotations()["samplecontroller.k8s.io/adopt-by"] == nextRef.Name:
		// An adoption to which the owner consented.
	default:
		c.cluster.violationf("%s wrote to %s, which no live %s controls (owners: %v)", c.name, idOf(next), c.cluster.owner, stored.GetOwnerReferences())
	}
}

func (c *connection) inspectDelete(stored footest.Object) {
	ref := controllerOf(stored)
	if ref == nil || !c.isLive(ref) {
		c.cluster.violationf("%s deleted %s, which no live %s controls (owners: %v)", c.name, idOf(stored), c.cluster.owner, stored.GetOwnerReferences())
		return
	}
	foo, kind := c.liveFoo(ref.Name), idOf(stored).kind()
	if kind.Wanted(foo) {
		name := kind.Name(foo)
		if name == stored.GetName() {
			c.cluster.violationf("%s deleted %s, which its %s asks for", c.name, idOf(stored), c.cluster.owner)
		}
		wanted := c.cluster.api.objects[idIn(kind, name)]
		if wanted == nil || controllerOf(metaOf(wanted)) == nil || controllerOf(metaOf(wanted)).UID != foo.GetUID() {
			c.cluster.violationf("%s deleted %s before the %s controlled %s", c.name, idOf(stored), c.cluster.owner, name)
		} else if lacks := cmp.Or(kind.Differs(metaOf(wanted), foo), kind.Unready(metaOf(wanted))); kind.Serves(stored) && lacks != "" {
			c.cluster.violationf("%s deleted %s, which served, although %s %s", c.name, idOf(stored), name, lacks)
		}
	}
	c.cluster.removed[idOf(stored)] = generationOf(foo)
}

// generationOf identifies a Foo and its generation.
func generationOf(foo footest.Object) string {
	return fmt.Sprintf("%s, generation %d", foo.GetUID(), foo.GetGeneration())
}

// liveFoo returns a Foo, or nil. Only inspectors may call it, because they hold the API
// server's lock.
func (c *connection) liveFoo(name string) footest.Object {
	if foo := c.cluster.api.objects[c.cluster.ownerID(name)]; foo != nil {
		return metaOf(foo)
	}
	return nil
}

func (c *connection) isLive(ref *metav1.OwnerReference) bool {
	foo := c.liveFoo(ref.Name)
	return foo != nil && foo.GetUID() == ref.UID
}
