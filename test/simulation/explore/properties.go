// SPDX-License-Identifier: Apache-2.0

// What must be true: of each write, of each state, and of the world at rest.

package explore

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/sample-controller/test/footest"
)

// judgeSent checks a write when it is sent, by what its sender could know: the state at
// this moment, which is that of its last live read, and the answers that this sync got.
func (x explored) judgeSent(s *syncing) {
	switch sent := s.pending; {
	case sent.verb == "get" || sent.subresource == "status":
	case !sent.isOfChild(x) && sent.verb == "update": // its fields are checked when it is stored
	case !sent.isOfChild(x):
		x.breaks("%s is sent, although %s belongs to users", sent.describe(x), x.describe(sent.slot))
	case sent.verb == "create":
		if ref := metav1.GetControllerOf(metaOf(sent.sent)); ref == nil || !x.Owner.IsOwned(ref) {
			x.breaks("%s is sent without a reference to the owner", sent.describe(x))
		}
		x.judgeInherited(sent)
	case sent.verb == "update" && (metaOf(sent.sent).GetUID() == "" || metaOf(sent.sent).GetResourceVersion() == ""):
		x.breaks("%s is sent without preconditions", sent.describe(x))
	case sent.verb == "update":
		switch owner := x.ownerOf(metaOf(sent.sent)); {
		case owner == nil:
			x.breaks("%s is sent, although its owner is gone", sent.describe(x))
		case footest.IsSuspended(owner):
			x.breaks("%s is sent, although its owner is suspended", sent.describe(x))
		}
	case sent.verb == "delete":
		x.judgeDelete(s)
	}
}

// judgeInherited checks that a child which is created in the place of earlier ones begins as
// one of them is, in what its owner leaves to others.
func (x explored) judgeInherited(sent *request) {
	kind, child, lacks := x.kindOf(sent.slot), metaOf(sent.sent), ""
	for i, earlier := range x.store {
		if earlier == nil || x.kindOf(slot(i)) != kind || earlier.GetDeletionTimestamp() != nil {
			continue
		}
		foo := x.ownerOf(earlier.Object)
		if foo == nil || !metav1.IsControlledBy(child, foo) {
			continue
		}
		text := kind.NotInherited(child, earlier.Object, foo)
		if text == "" {
			return
		}
		lacks = cmp.Or(lacks, text)
	}
	if lacks != "" {
		x.breaks("%s is sent, which %s", sent.describe(x), lacks)
	}
}

// judgeDelete checks that a child is deleted only if it is its owner's, the owner asks for
// another one, and has that.
func (x explored) judgeDelete(s *syncing) {
	sent := s.pending
	options, _ := sent.sent.(*metav1.DeleteOptions)
	if options == nil || options.Preconditions == nil || options.Preconditions.UID == nil || options.Preconditions.ResourceVersion == nil {
		x.breaks("%s is sent without preconditions", sent.describe(x))
		return
	}
	child := x.store[sent.slot]
	if child == nil || child.GetUID() != *options.Preconditions.UID || child.GetResourceVersion() != *options.Preconditions.ResourceVersion {
		return // it will be refused
	}
	foo := x.ownerOf(child.Object)
	if foo == nil {
		x.breaks("%s is sent, although no living owner controls it", sent.describe(x))
		return
	}
	if footest.IsSuspended(foo) {
		x.breaks("%s is sent, although its owner is suspended", sent.describe(x))
	}
	kind := x.kindOf(sent.slot)
	if !kind.Wanted(foo) {
		return
	}
	successor := kind.Name(foo)
	if successor == child.GetName() {
		x.breaks("%s is sent, although %s %s asks for it", sent.describe(x), x.Owner, foo.GetName())
	}
	switch seen := s.lastSeen(kind, successor); {
	case seen == nil || !metav1.IsControlledBy(seen, foo):
		x.breaks("%s is sent, although this sync has not seen that %s %s has %s", sent.describe(x), x.Owner, foo.GetName(), successor)
	case kind.Serves(child.Object) && cmp.Or(kind.Differs(seen, foo), kind.Unready(seen)) != "":
		x.breaks("%s is sent while it serves, although %s, as this sync has seen it, %s", sent.describe(x), successor, cmp.Or(kind.Differs(seen, foo), kind.Unready(seen)))
	}
}

// lastSeen returns an object as the last answer about it in a sync has it, or nil.
func (s *syncing) lastSeen(kind *footest.Kind, name string) footest.Object {
	for _, a := range slices.Backward(s.answers) {
		if seen, ok := a.object.(footest.Object); ok && kind.Is(a.object) && seen.GetName() == name {
			return seen
		}
	}
	return nil
}

// judgeStored checks a write when it is stored.
func (x explored) judgeStored(sent *request, before *object) {
	after := x.store[sent.slot]
	if sent.verb != "update" || before == nil || after == nil {
		return
	}
	if sent.subresource == "status" {
		x.judgeStatus(sent.slot)
		return
	}
	if taken := x.kindOf(sent.slot).DescribeTaken(before.Object, after.Object, nil); taken != "" {
		x.breaks("%s changes fields of others (-before +after):\n%s", sent.describe(x), taken)
	}
	if !sent.isOfChild(x) {
		return
	}
	was, is := metav1.GetControllerOf(before.Object), metav1.GetControllerOf(after.Object)
	switch {
	case is == nil:
		x.breaks("%s leaves it without an owner", sent.describe(x))
	case was == nil && before.GetAnnotations()["samplecontroller.k8s.io/adopt-by"] != is.Name:
		x.breaks("%s adopts it, although nobody has handed it over to %s", sent.describe(x), is.Name)
	case was != nil && was.UID != is.UID:
		x.breaks("%s takes it from %s", sent.describe(x), was.Name)
	}
}

// judgeStatus checks that a Foo does not report that it is ready before it ever was.
func (x explored) judgeStatus(at slot) {
	foo := x.store[at]
	if foo == nil || !claimsReady(foo.Object) || x.wasReady[at] {
		return
	}
	x.breaks("%s reports Ready for generation %d, which has not been ready yet", x.describe(at), foo.GetGeneration())
}

func claimsReady(foo footest.Object) bool {
	ready := footest.ConditionOf(foo)
	return ready != nil && ready.Status == metav1.ConditionTrue &&
		(ready.ObservedGeneration >= foo.GetGeneration() || footest.ObservedGenerationOf(foo) >= foo.GetGeneration())
}

// wrongAtRest says what is not as it must be in a state that does not change any more.
func (x explored) wrongAtRest() []string {
	var wrong []string
	for _, at := range x.owners() {
		if foo := x.store[at]; foo != nil {
			if text := x.wrongWith(foo.Object); text != "" {
				wrong = append(wrong, x.describe(at)+" "+text)
			}
		}
	}
	for i, child := range x.store {
		if child != nil && x.names[i].resource > 0 && child.GetDeletionTimestamp() == nil && metav1.GetControllerOf(child.Object) != nil && x.ownerOf(child.Object) == nil {
			wrong = append(wrong, fmt.Sprintf("%s belongs to a deleted owner", x.describe(slot(i))))
		}
	}
	return wrong
}

// wrongWith says what is wrong with an owner at rest: it is neither as its spec asks, nor
// does its status say why not.
func (x explored) wrongWith(foo footest.Object) string {
	obstacle, misreported := "", ""
	for _, kind := range x.Owner.Kinds {
		if !kind.Wanted(foo) {
			continue
		}
		reason, wrong := x.wrongChild(kind, foo)
		if wrong != "" {
			return wrong
		}
		obstacle = cmp.Or(obstacle, reason)
		if child := x.childOf(kind, foo); child != nil {
			misreported = cmp.Or(misreported, kind.Misreported(foo, child))
		}
		if obstacle != "" && kind.Blocks {
			break
		}
	}
	status, reason := metav1.ConditionTrue, "Available"
	if obstacle != "" {
		status, reason, misreported = metav1.ConditionFalse, obstacle, ""
	}
	switch ready := footest.ConditionOf(foo); {
	case ready == nil:
		return "has no condition Ready"
	case ready.Status != status || ready.Reason != reason:
		return fmt.Sprintf("has Ready=%s, %s (%s), want %s, %s", ready.Status, ready.Reason, ready.Message, status, reason)
	case ready.ObservedGeneration != foo.GetGeneration() || footest.ObservedGenerationOf(foo) != foo.GetGeneration():
		return fmt.Sprintf("has generation %d, but reports on %d", foo.GetGeneration(), footest.ObservedGenerationOf(foo))
	case isStalled(foo) != isFinal(reason):
		return fmt.Sprintf("has Ready=%s, %s (%s), and Stalled is %t", ready.Status, ready.Reason, ready.Message, isStalled(foo))
	}
	return misreported
}

// isFinal reports whether a reason at rest is one that only somebody else can end.
func isFinal(reason string) bool {
	return strings.HasSuffix(reason, "Conflict") || strings.HasSuffix(reason, "Failed") || reason == "Suspended"
}

// wrongChild returns the reason that an owner's status must give for a child that is not as
// asked, or what is wrong if there is no reason for it.
func (x explored) wrongChild(kind *footest.Kind, foo footest.Object) (reason, wrong string) {
	named, owned, serving := x.childNamed(kind, foo), 0, 0
	for i, child := range x.store {
		if child == nil || x.kindOf(slot(i)) != kind || !metav1.IsControlledBy(child, foo) {
			continue
		}
		owned++
		if child.GetName() != kind.Name(foo) && kind.Serves(child.Object) {
			serving++
		}
	}
	switch {
	case named != nil && metav1.GetControllerOf(named) == nil && named.GetAnnotations()["samplecontroller.k8s.io/adopt-by"] != foo.GetName(),
		named != nil && metav1.GetControllerOf(named) != nil && !metav1.IsControlledBy(named, foo):
		return kind.Kind + "Conflict", ""
	case named != nil && named.GetDeletionTimestamp() != nil:
		return "Terminating", ""
	case named != nil && metav1.IsControlledBy(named, foo) && kind.Differs(named, foo) == "" && kind.Unready(named) != "" && owned == 1+serving:
		return "Progressing", ""
	case named != nil && metav1.IsControlledBy(named, foo) && kind.Differs(named, foo) == "" && owned == 1:
		return "", ""
	case footest.IsSuspended(foo):
		return "Suspended", ""
	case x.refusing != Done:
		return kind.Kind + "Failed", ""
	case named == nil:
		return "", fmt.Sprintf("has no %s %s", kind, kind.Name(foo))
	case !metav1.IsControlledBy(named, foo):
		return "", fmt.Sprintf("has not adopted %s %s", kind, named.GetName())
	case owned > 1:
		return "", fmt.Sprintf("has %d %ss", owned, kind)
	}
	return "", fmt.Sprintf("has a %s that %s", kind, kind.Differs(named, foo))
}

// childNamed returns the object of the name that an owner asks for, or nil.
func (x explored) childNamed(kind *footest.Kind, foo footest.Object) footest.Object {
	at, known := x.slotNamed(kind.Resource.Resource, kind.Name(foo))
	if !known || x.store[at] == nil {
		return nil
	}
	return x.store[at].Object
}

// childOf returns the child that an owner asks for if it is its own, or nil.
func (x explored) childOf(kind *footest.Kind, foo footest.Object) footest.Object {
	if named := x.childNamed(kind, foo); named != nil && metav1.IsControlledBy(named, foo) {
		return named
	}
	return nil
}
