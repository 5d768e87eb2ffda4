// SPDX-License-Identifier: Apache-2.0

// What users and others do, and the control plane.

package explore

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/sample-controller/test/footest"
)

// act is a write of a user or of somebody else.
type act struct {
	name string
	// may reports whether the act makes sense in a state, and do carries it out.
	may func(x explored) bool
	do  func(x explored)
}

// newAct makes an act from its text: the verbs of ownerAct and childAct, and names.
func (s *scene) newAct(text string) (act, error) {
	words := append(strings.Fields(text), "", "", "")
	verb, name, more := words[0], words[1], words[2]
	if verb == "allow" {
		return act{text, func(x explored) bool { return x.refusing != Done }, func(x explored) { x.refusing = Done }}, nil
	}
	if at, known := s.slotNamed(s.kinds[0].Resource.Resource, name); known {
		if a, ok := s.ownerAct(at, verb, more); ok {
			a.name = text
			return a, nil
		}
	}
	for resource, kind := range s.kinds[1:] {
		at, known := s.slotNamed(kind.Resource.Resource, name)
		if !known || resource > 0 && more != "" && more != kind.Kind {
			continue
		}
		if a, ok := s.childAct(at, verb, more); ok {
			a.name = text
			return a, nil
		}
	}
	return act{}, fmt.Errorf("world %s: the act %q is unknown, or about an object that it has no name for", s.Name, text)
}

// deletions are the ways to delete an owner.
var deletions = map[string]metav1.DeletionPropagation{
	"": metav1.DeletePropagationBackground, "foreground": metav1.DeletePropagationForeground, "orphan": metav1.DeletePropagationOrphan,
}

// ownerAct returns an act on an owner: "create a web", "rename a api", "scale a", "suspend a",
// "resume a", "delete a", "delete a foreground", "delete a orphan".
func (s *scene) ownerAct(at slot, verb, more string) (act, bool) {
	exists := func(x explored) bool { return x.store[at] != nil }
	switch verb {
	case "create":
		return act{may: func(x explored) bool { return x.store[at] == nil }, do: func(x explored) {
			x.write(&request{verb: "create", slot: at, sent: s.Owner.Asking(s.names[at].name, more, map[bool]int32{false: 1}[s.Open])})
		}}, true
	case "rename":
		return s.change(at, func(foo footest.Object) { s.Owner.Rename(foo, more) }), true
	case "scale":
		return s.change(at, func(foo footest.Object) { s.Owner.Resize(foo, 1+int32(foo.GetGeneration()%2)) }), true
	case "suspend", "resume":
		return s.change(at, func(foo footest.Object) { footest.Suspend(foo, verb == "suspend") }), true
	case "delete":
		policy, known := deletions[more]
		return act{may: exists, do: func(x explored) {
			x.write(&request{verb: "delete", slot: at, sent: &metav1.DeleteOptions{PropagationPolicy: &policy}})
		}}, known
	}
	return act{}, false
}

// finalizer is that of somebody else, who may keep a child from being deleted.
const finalizer = "example.com/held"

// childAct returns an act on a child: "drift web", "undo web", which is a drift while nothing
// else is under way, "edit web", "tune web", "strip web", "take web", "remove web",
// "hand web a", "keep web", "release web".
func (s *scene) childAct(at slot, verb, more string) (act, bool) {
	kind := s.kindOf(at)
	switch verb {
	case "drift":
		return s.change(at, func(child footest.Object) { kind.Drift(child, nil) }), true
	case "undo":
		drift := s.change(at, func(child footest.Object) { kind.Drift(child, nil) })
		return act{may: func(x explored) bool { return x.isQuiet() && drift.may(x) }, do: drift.do}, true
	case "edit":
		return s.change(at, func(child footest.Object) { kind.Edit(child, "1") }), true
	case "tune":
		if kind.EditOptional == nil {
			return act{}, false
		}
		return s.change(at, kind.EditOptional), true
	case "strip":
		return s.change(at, func(child footest.Object) { child.SetOwnerReferences(nil) }), true
	case "keep":
		return s.change(at, func(child footest.Object) { child.SetFinalizers([]string{finalizer}) }), true
	case "release":
		return s.change(at, func(child footest.Object) { child.SetFinalizers(nil) }), true
	case "hand":
		return s.change(at, func(child footest.Object) {
			annotations := map[string]string{"samplecontroller.k8s.io/adopt-by": more}
			maps.Copy(annotations, child.GetAnnotations())
			child.SetAnnotations(annotations)
		}), true
	case "take":
		return act{may: func(x explored) bool { return x.store[at] == nil }, do: func(x explored) {
			x.write(&request{verb: "create", slot: at, sent: kind.ForeignNamed(s.names[at].name)})
		}}, true
	case "remove":
		return act{may: func(x explored) bool { return x.store[at] != nil }, do: func(x explored) { x.write(&request{verb: "delete", slot: at, sent: &metav1.DeleteOptions{}}) }}, true
	}
	return act{}, false
}

// change returns an act that changes an object.
func (s *scene) change(at slot, change func(footest.Object)) act {
	return act{
		may: func(x explored) bool {
			if x.store[at] == nil {
				return false
			}
			changed := copyOf(x.store[at].Object)
			change(changed)
			return fingerprintOf(changed).content != x.store[at].content
		},
		do: func(x explored) {
			changed := copyOf(x.store[at].Object)
			change(changed)
			x.write(&request{verb: "update", slot: at, sent: changed})
		},
	}
}

// write carries out a write that the API server must accept.
func (x explored) write(sent *request) {
	if _, err := x.serve(sent); err != nil {
		panic(fmt.Sprintf("%s: %v", sent.describe(x), err))
	}
}

// duty is a write that the control plane has to make.
type duty uint8

const (
	// collect is the deletion of a child whose owner is gone or in foreground deletion.
	collect duty = iota
	// orphan removes the owner from a child.
	orphan
	// finish removes the finalizer of an owner without children.
	finish
	// advance is a write of a child's status by its own controller.
	advance
)

var dutyNames = map[duty]string{collect: "deletes", orphan: "orphans", finish: "lets go of", advance: "reports the status of"}

func (x explored) describeControlPlane(s step) string {
	return dutyNames[duty(s.b)] + " " + x.describe(slot(s.a))
}

func (x explored) controlPlaneSteps(all []step) []step {
	for i, stored := range x.store {
		if stored == nil {
			continue
		}
		at := slot(i)
		add := func(d duty) { all = append(all, step{op: opControlPlane, a: uint8(at), b: uint8(d)}) }
		if x.names[at].resource == 0 {
			if x.isDeletedWithChildren(stored.Object) && !slices.ContainsFunc(x.store, func(child *object) bool {
				return child != nil && metav1.IsControlledBy(child, stored.Object)
			}) {
				add(finish)
			}
			continue
		}
		switch foo := x.ownerOf(stored.Object); {
		case stored.GetDeletionTimestamp() == nil && metav1.GetControllerOf(stored.Object) != nil && (foo == nil || hasFinalizer(foo, metav1.FinalizerDeleteDependents)):
			add(collect)
		case foo != nil && hasFinalizer(foo, metav1.FinalizerOrphanDependents):
			add(orphan)
		}
		if !slices.Contains(x.Stuck, stored.GetName()) && x.kindOf(at).Advance(copyOf(stored.Object)) {
			add(advance)
		}
	}
	return all
}

// ownerOf returns the living owner that controls a child, or nil.
func (x explored) ownerOf(child footest.Object) footest.Object {
	ref := metav1.GetControllerOf(child)
	if ref == nil {
		return nil
	}
	for _, at := range x.owners() {
		if x.store[at] != nil && x.store[at].GetUID() == ref.UID {
			return x.store[at].Object
		}
	}
	return nil
}

func hasFinalizer(object footest.Object, name string) bool {
	return object.GetDeletionTimestamp() != nil && slices.Contains(object.GetFinalizers(), name)
}

func (x explored) isDeletedWithChildren(foo footest.Object) bool {
	return hasFinalizer(foo, metav1.FinalizerDeleteDependents) || hasFinalizer(foo, metav1.FinalizerOrphanDependents)
}

func (x explored) controlPlane(s step) {
	at := slot(s.a)
	changed := copyOf(x.store[at].Object)
	switch duty(s.b) {
	case collect:
		x.write(&request{verb: "delete", slot: at, sent: &metav1.DeleteOptions{}})
		return
	case orphan:
		changed.SetOwnerReferences(nil)
	case finish:
		changed.SetFinalizers(nil)
	case advance:
		for x.kindOf(at).Advance(changed) {
			if x.Rollouts == OneWrite {
				continue
			}
			break
		}
		x.write(&request{verb: "update", subresource: "status", slot: at, sent: changed})
		return
	}
	x.write(&request{verb: "update", slot: at, sent: changed})
}
