// SPDX-License-Identifier: Apache-2.0

// The rules: what is wrong with a controller's write of a child, with the world at rest, and with
// the service of an owner that was ready.

package rules

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/cache"

	"example.com/sample-controller/pkg/reconcile/plan"
	"example.com/sample-controller/pkg/reconcile/reconciletest/rows"
)

// WrongWrite says what is wrong with a controller's write of an object by what there is, or "". stored is
// the object before it, nil for a create, and next the object after it, nil for a delete. known returns
// what the controller knows of a child of the same kind. That an update changes only what the controller
// owns, DescribeTaken checks.
func (w World) WrongWrite(stored, next rows.Object, known func(name string) rows.Object) string {
	switch isOwner := w.Owner.Is(cmp.Or(next, stored)); {
	case isOwner && (stored == nil || next == nil):
		return "which belongs to users"
	case isOwner:
		return ""
	case next == nil:
		return w.wrongDelete(stored, known)
	case stored == nil:
		if ref := metav1.GetControllerOf(next); ref == nil || !w.Owner.IsOwned(ref) {
			return "without a controller reference to a " + w.Owner.Kind.Kind
		}
		return ""
	}
	owner := w.OwnerOf(next)
	switch wrong := w.wrongOwner(stored, next); {
	case wrong != "":
		return wrong
	case owner == nil:
		return "although no living owner controls it"
	case rows.IsSuspended(owner):
		return "although its owner is suspended"
	}
	return ""
}

// WrongRequest says which precondition a controller's request lacks, or "": without one it could hit
// another object than the one that the controller read.
func WrongRequest(verb string, sent any, patch []byte) string {
	var names struct {
		Metadata struct {
			UID             *string
			ResourceVersion *string
		}
	}
	switch sent := sent.(type) {
	case *metav1.DeleteOptions:
		if verb == "delete" && (sent.Preconditions == nil || sent.Preconditions.UID == nil) {
			return "without the UID of what it deletes"
		}
		return ""
	case rows.Object:
		version := sent.GetResourceVersion()
		names.Metadata.ResourceVersion = &version
	}
	if patch != nil {
		names.Metadata.ResourceVersion = nil
		if err := json.Unmarshal(patch, &names); err != nil {
			return "of which the patch can't be read: " + err.Error()
		}
	}
	if version := names.Metadata.ResourceVersion; verb == "update" && (version == nil || *version == "") {
		return "without the resourceVersion that it was made from"
	}
	return ""
}

// WrongStatus says what is wrong with the conditions that a controller writes, or "". stored is the owner
// before the write.
func (w World) WrongStatus(stored, next rows.Object) string {
	seen := sets.New[string]()
	for _, condition := range rows.ConditionsOf(next) {
		switch {
		case seen.Has(condition.Type):
			return "with two conditions " + condition.Type
		case condition.Reason == "" || condition.LastTransitionTime.IsZero():
			return fmt.Sprintf("with the condition %s without a reason or a time", condition.Type)
		case utf8.RuneCountInString(condition.Message) > 32768 || !utf8.ValidString(condition.Message):
			return fmt.Sprintf("with a message of the condition %s that no API server stores", condition.Type)
		case condition.ObservedGeneration > stored.GetGeneration():
			return fmt.Sprintf("with the condition %s of generation %d, of %d", condition.Type, condition.ObservedGeneration, stored.GetGeneration())
		}
		seen.Insert(condition.Type)
	}
	was, is := rows.ConditionOf(stored), rows.ConditionOf(next)
	if was != nil && is != nil && is.ObservedGeneration < was.ObservedGeneration {
		return fmt.Sprintf("with Ready of generation %d, after that of %d", is.ObservedGeneration, was.ObservedGeneration)
	}
	return ""
}

// wrongOwner says what is wrong with the owner that an update leaves to a child, or "".
func (w World) wrongOwner(before, after rows.Object) string {
	was, is := metav1.GetControllerOf(before), metav1.GetControllerOf(after)
	switch {
	case is == nil:
		return "which leaves it without an owner"
	case was == nil && before.GetAnnotations()[w.Owner.AdoptBy()] != is.Name:
		return "which adopts it, although nobody has handed it over to " + is.Name
	case was != nil && was.UID != is.UID:
		return "which takes it from " + was.Name
	}
	return ""
}

// wrongDelete says what is wrong with the deletion of a child, or "": it must be its owner's, and the owner
// must ask for another one and have that.
func (w World) wrongDelete(child rows.Object, known func(name string) rows.Object) string {
	kind, owner := w.Owner.KindOf(child), w.OwnerOf(child)
	switch {
	case owner == nil:
		return "although no living owner controls it"
	case rows.IsSuspended(owner):
		return "although its owner is suspended"
	case !kind.Wanted(owner):
		return ""
	}
	name := kind.Name(owner)
	if name == child.GetName() {
		return fmt.Sprintf("although %s %s asks for it", w.Owner, owner.GetName())
	}
	successor := known(name)
	if successor == nil || !metav1.IsControlledBy(successor, owner) {
		return fmt.Sprintf("although %s %s is not seen to have %s", w.Owner, owner.GetName(), name)
	}
	if lacks := cmp.Or(w.differs(kind, successor, owner), kind.Unready(successor)); kind.Serves(child) && lacks != "" {
		return fmt.Sprintf("while it serves, although %s, as it was seen, %s", name, lacks)
	}
	return ""
}

// World is all that there is, at one time.
type World struct {
	Owner *rows.OwnerRow
	// Objects are the owners and all objects of the kinds of their children.
	Objects []rows.Object
	// Refused is true if someone refuses each write of a child.
	Refused bool
	// Undeletable are the names of children whose deletion someone refuses.
	Undeletable []string
	// CollectorAway is true if no one deletes the children of deleted owners.
	CollectorAway bool
}

// WrongAtRest says what is not right in a world that does not change any more: an owner that
// is neither as its spec asks, nor says in its status why not, and a child of no one.
func (w World) WrongAtRest() []string {
	var wrong []string
	for _, object := range w.Objects {
		if w.Owner.Is(object) {
			if text := w.wrongWith(object); text != "" {
				wrong = append(wrong, fmt.Sprintf("%s %s %s", w.Owner, object.GetName(), text))
			}
		} else if !w.CollectorAway && object.GetDeletionTimestamp() == nil && metav1.GetControllerOf(object) != nil && w.OwnerOf(object) == nil {
			wrong = append(wrong, fmt.Sprintf("%s %s belongs to a deleted owner", w.Owner.KindOf(object), object.GetName()))
		}
	}
	if w.Owner.AtRest != nil {
		wrong = append(wrong, w.Owner.AtRest(w.Objects)...)
	}
	return wrong
}

// differs says in which owned fields a child differs from what its owner asks for, or "".
func (w World) differs(kind *rows.Kind, child, foo rows.Object) string {
	if kind.DiffersIn == nil {
		return kind.Differs(child, foo)
	}
	return kind.DiffersIn(child, foo, func(earlier *rows.Kind) rows.Object { return earlier.Find(w.Objects, earlier.Name(foo)) })
}

// OwnerOf returns the living owner that controls a child, or nil.
func (w World) OwnerOf(child rows.Object) rows.Object {
	for _, object := range w.Objects {
		if w.Owner.Is(object) && metav1.IsControlledBy(child, object) {
			return object
		}
	}
	return nil
}

func (w World) wrongWith(foo rows.Object) string {
	obstacle, misreported := "", ""
	for _, kind := range w.Owner.Kinds {
		if !kind.Wanted(foo) {
			if left := w.unset(kind, foo); left != nil && !w.lacks(foo) && !w.Refused && !rows.IsSuspended(foo) {
				return fmt.Sprintf("still has %s %s, which it does not ask for", kind, left.GetName())
			}
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
	if asked := foo.GetAnnotations()[w.Owner.SyncRequested()]; asked != "" && rows.LastHandledSyncOf(foo) != asked {
		return fmt.Sprintf("has not answered the request %q for a sync, but %q", asked, rows.LastHandledSyncOf(foo))
	}
	if obstacle != "" {
		return wrongStatus(foo, metav1.ConditionFalse, obstacle)
	}
	return cmp.Or(wrongStatus(foo, metav1.ConditionTrue, plan.ReasonAvailable), misreported)
}

// unset returns a child of a kind that an owner controls, and that is not being deleted, or nil.
func (w World) unset(kind *rows.Kind, foo rows.Object) rows.Object {
	for _, child := range w.Objects {
		if kind.Is(child) && metav1.IsControlledBy(child, foo) && child.GetDeletionTimestamp() == nil {
			return child
		}
	}
	return nil
}

// lacks reports whether an owner has not all children that it asks for. Until it has, none of the
// others is deleted.
func (w World) lacks(foo rows.Object) bool {
	return slices.ContainsFunc(w.Owner.Kinds, func(kind *rows.Kind) bool {
		child := kind.Find(w.Objects, kind.Name(foo))
		return kind.Wanted(foo) && (child == nil || !metav1.IsControlledBy(child, foo) || child.GetDeletionTimestamp() != nil)
	})
}

func wrongStatus(foo rows.Object, status metav1.ConditionStatus, reason string) string {
	switch ready := rows.ConditionOf(foo); {
	case ready == nil:
		return "has no condition Ready"
	case ready.Status != status || ready.Reason != reason:
		return fmt.Sprintf("has Ready=%s, %s (%s), want %s, %s", ready.Status, ready.Reason, ready.Message, status, reason)
	case ready.ObservedGeneration != foo.GetGeneration() || rows.ObservedGenerationOf(foo) != foo.GetGeneration():
		return fmt.Sprintf("has generation %d, but reports on %d", foo.GetGeneration(), rows.ObservedGenerationOf(foo))
	case IsStalled(foo) != isFinal(reason):
		return fmt.Sprintf("has Ready=%s, %s (%s), and Stalled is %t", ready.Status, ready.Reason, ready.Message, IsStalled(foo))
	}
	return ""
}

// IsStalled reports whether an owner says that nothing will happen without someone else.
func IsStalled(foo rows.Object) bool {
	for _, condition := range rows.ConditionsOf(foo) {
		if condition.Type == plan.ConditionStalled {
			return condition.Status == metav1.ConditionTrue && condition.ObservedGeneration == foo.GetGeneration()
		}
	}
	return false
}

// isFinal reports whether a reason at rest is one that only someone else can end.
func isFinal(reason string) bool {
	return strings.HasSuffix(reason, plan.SuffixConflict) || strings.HasSuffix(reason, plan.SuffixFailed) || reason == plan.ReasonSuspended
}

// wrongChild returns the reason that an owner's status must give for a child that is not as
// asked, or what is wrong if there is no reason for it.
func (w World) wrongChild(kind *rows.Kind, foo rows.Object) (reason, wrong string) {
	named, owned, serving, undeletable := kind.Find(w.Objects, kind.Name(foo)), 0, 0, 0
	for _, child := range w.Objects {
		if !kind.Is(child) || !metav1.IsControlledBy(child, foo) {
			continue
		}
		if child != named && slices.Contains(w.Undeletable, child.GetName()) {
			undeletable++
			continue
		}
		owned++
		if child != named && kind.Serves(child) {
			serving++
		}
	}
	isIts := named != nil && metav1.IsControlledBy(named, foo)
	switch {
	case named != nil && metav1.GetControllerOf(named) == nil && named.GetAnnotations()[w.Owner.AdoptBy()] != foo.GetName(),
		named != nil && metav1.GetControllerOf(named) != nil && !isIts:
		return kind.Kind + plan.SuffixConflict, ""
	case named != nil && named.GetDeletionTimestamp() != nil:
		return plan.ReasonTerminating, ""
	case isIts && w.differs(kind, named, foo) == "" && kind.Unready(named) != "" && (owned == 1+serving || w.lacks(foo)):
		return plan.ReasonProgressing, ""
	case isIts && w.differs(kind, named, foo) == "" && owned == 1 && undeletable > 0:
		return kind.Kind + plan.SuffixFailed, ""
	case isIts && w.differs(kind, named, foo) == "" && (owned == 1 || w.lacks(foo)):
		return "", ""
	case rows.IsSuspended(foo):
		return plan.ReasonSuspended, ""
	case w.Refused:
		return kind.Kind + plan.SuffixFailed, ""
	case named == nil:
		return "", fmt.Sprintf("has no %s %s", kind, kind.Name(foo))
	case !isIts:
		return "", fmt.Sprintf("has not adopted %s %s", kind, named.GetName())
	case owned > 1:
		return "", fmt.Sprintf("has %d %ss", owned, kind)
	}
	return "", fmt.Sprintf("has a %s that %s", kind, w.differs(kind, named, foo))
}

// Interruptions returns a sentence for each time, from when an owner first reported Ready=True until
// its deletion, in which none of the children that it controlled was in service.
func (h *History) Interruptions(inService func(child rows.Object) bool) []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var sentences []string
	for _, states := range h.objects {
		if h.Owner.Is(states[0].object) {
			sentences = append(sentences, h.interruptionsOf(states, inService)...)
		}
	}
	return sentences
}

// span is the time from one version until another.
type span struct {
	from, until uint64
	child       string
}

// interruptionsOf checks the states of an owner. All must have one UID.
func (h *History) interruptionsOf(states []state, inService func(rows.Object) bool) []string {
	first := slices.IndexFunc(states, func(s state) bool { return ClaimsReady(s.object) })
	if first < 0 {
		return nil
	}
	foo, end := states[0].object, uint64(math.MaxUint64)
	if last := states[len(states)-1]; last.deleted {
		end = last.from
	}
	var sentences []string
	served := span{until: states[first].from}
	for _, next := range h.servedBy(foo, inService) {
		if next.from > served.until && served.until < end {
			sentences = append(sentences, fmt.Sprintf("%s %s had nothing in service from version %d, when %q ended, until version %d",
				h.Owner, cache.MetaObjectToName(foo), served.until, served.child, next.from))
		}
		if next.until > served.until {
			served = next
		}
	}
	if served.until < end {
		sentences = append(sentences, fmt.Sprintf("%s %s has nothing in service from version %d on", h.Owner, cache.MetaObjectToName(foo), served.until))
	}
	return sentences
}

// servedBy returns the times in which children that an owner controlled were in service, by
// their beginning.
func (h *History) servedBy(foo rows.Object, inService func(rows.Object) bool) []span {
	var spans []span
	for key, states := range h.objects {
		for i, s := range states {
			if s.deleted || !metav1.IsControlledBy(s.object, foo) || !inService(s.object) {
				continue
			}
			until := uint64(math.MaxUint64)
			if i+1 < len(states) {
				until = states[i+1].from
			}
			spans = append(spans, span{s.from, until, key.name.Name})
		}
	}
	slices.SortFunc(spans, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	return spans
}
