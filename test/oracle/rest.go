// SPDX-License-Identifier: Apache-2.0

// What must be true when nothing happens any more.

package oracle

import (
	"cmp"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/sample-controller/test/footest"
)

// World is all that there is, at one time.
type World struct {
	Owner *footest.OwnerRow
	// Objects are the owners and all objects of the kinds of their children.
	Objects []footest.Object
	// Refused is true if somebody refuses each write of a child.
	Refused bool
}

// WrongAtRest says what is not right in a world that does not change any more: an owner that
// is neither as its spec asks, nor says in its status why not, and a child of nobody.
func (w World) WrongAtRest() []string {
	var wrong []string
	for _, object := range w.Objects {
		if w.Owner.Is(object) {
			if text := w.wrongWith(object); text != "" {
				wrong = append(wrong, fmt.Sprintf("%s %s %s", w.Owner, object.GetName(), text))
			}
		} else if object.GetDeletionTimestamp() == nil && metav1.GetControllerOf(object) != nil && w.OwnerOf(object) == nil {
			wrong = append(wrong, fmt.Sprintf("%s %s belongs to a deleted owner", footest.KindOf(object), object.GetName()))
		}
	}
	return wrong
}

// OwnerOf returns the living owner that controls a child, or nil.
func (w World) OwnerOf(child footest.Object) footest.Object {
	for _, object := range w.Objects {
		if w.Owner.Is(object) && metav1.IsControlledBy(child, object) {
			return object
		}
	}
	return nil
}

func (w World) wrongWith(foo footest.Object) string {
	obstacle, misreported := "", ""
	for _, kind := range w.Owner.Kinds {
		if !kind.Wanted(foo) {
			continue
		}
		reason, wrong := w.wrongChild(kind, foo)
		if wrong != "" {
			return wrong
		}
		obstacle = cmp.Or(obstacle, reason)
		if child := kind.Find(w.Objects, kind.Name(foo)); child != nil && metav1.IsControlledBy(child, foo) {
			misreported = cmp.Or(misreported, kind.Misreported(foo, child))
		}
		if obstacle != "" && kind.Blocks {
			break
		}
	}
	if obstacle != "" {
		return wrongStatus(foo, metav1.ConditionFalse, obstacle)
	}
	return cmp.Or(wrongStatus(foo, metav1.ConditionTrue, "Available"), misreported)
}

func wrongStatus(foo footest.Object, status metav1.ConditionStatus, reason string) string {
	switch ready := footest.ConditionOf(foo); {
	case ready == nil:
		return "has no condition Ready"
	case ready.Status != status || ready.Reason != reason:
		return fmt.Sprintf("has Ready=%s, %s (%s), want %s, %s", ready.Status, ready.Reason, ready.Message, status, reason)
	case ready.ObservedGeneration != foo.GetGeneration() || footest.ObservedGenerationOf(foo) != foo.GetGeneration():
		return fmt.Sprintf("has generation %d, but reports on %d", foo.GetGeneration(), footest.ObservedGenerationOf(foo))
	case IsStalled(foo) != isFinal(reason):
		return fmt.Sprintf("has Ready=%s, %s (%s), and Stalled is %t", ready.Status, ready.Reason, ready.Message, IsStalled(foo))
	}
	return ""
}

// IsStalled reports whether an owner says that nothing will happen without somebody else.
func IsStalled(foo footest.Object) bool {
	for _, condition := range footest.ConditionsOf(foo) {
		if condition.Type == "Stalled" {
			return condition.Status == metav1.ConditionTrue && condition.ObservedGeneration == foo.GetGeneration()
		}
	}
	return false
}

// isFinal reports whether a reason at rest is one that only somebody else can end.
func isFinal(reason string) bool {
	return strings.HasSuffix(reason, "Conflict") || strings.HasSuffix(reason, "Failed") || reason == "Suspended"
}

// wrongChild returns the reason that an owner's status must give for a child that is not as
// asked, or what is wrong if there is no reason for it.
func (w World) wrongChild(kind *footest.Kind, foo footest.Object) (reason, wrong string) {
	named, owned, serving := kind.Find(w.Objects, kind.Name(foo)), 0, 0
	for _, child := range w.Objects {
		if !kind.Is(child) || !metav1.IsControlledBy(child, foo) {
			continue
		}
		owned++
		if child != named && kind.Serves(child) {
			serving++
		}
	}
	isIts := named != nil && metav1.IsControlledBy(named, foo)
	switch {
	case named != nil && metav1.GetControllerOf(named) == nil && named.GetAnnotations()["samplecontroller.k8s.io/adopt-by"] != foo.GetName(),
		named != nil && metav1.GetControllerOf(named) != nil && !isIts:
		return kind.Kind + "Conflict", ""
	case named != nil && named.GetDeletionTimestamp() != nil:
		return "Terminating", ""
	case isIts && kind.Differs(named, foo) == "" && kind.Unready(named) != "" && owned == 1+serving:
		return "Progressing", ""
	case isIts && kind.Differs(named, foo) == "" && owned == 1:
		return "", ""
	case footest.IsSuspended(foo):
		return "Suspended", ""
	case w.Refused:
		return kind.Kind + "Failed", ""
	case named == nil:
		return "", fmt.Sprintf("has no %s %s", kind, kind.Name(foo))
	case !isIts:
		return "", fmt.Sprintf("has not adopted %s %s", kind, named.GetName())
	case owned > 1:
		return "", fmt.Sprintf("has %d %ss", owned, kind)
	}
	return "", fmt.Sprintf("has a %s that %s", kind, kind.Differs(named, foo))
}
