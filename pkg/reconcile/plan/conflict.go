// SPDX-License-Identifier: Apache-2.0

// Others who stand in an owner's way: who has the name that it wants, and who undoes its writes.

package plan

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
)

// judgeDeletion reports that the object with the name is being deleted. Its name becomes free by
// itself, whoever controls it.
func (s *Step) judgeDeletion() Readiness {
	then := "it will be recreated once it is gone"
	switch {
	case s.Owner.IsSuspended():
		then = "spec.suspend is true, so it will not be recreated"
	case !s.OwnerKind.IsControlledBy(s.Found, s.Owner):
		then = fmt.Sprintf("the %s gets its own once it is gone", s.OwnerKind.Name)
	}
	return NotReady(ReasonTerminating, "%s %q is being deleted; %s", s.Kind, Truncate(s.Found.GetName(), maxQuotedName), then)
}

// judgeConflict reports who owns the object that an owner wants.
func (s *Step) judgeConflict(outcome *Outcome) Readiness {
	taken, ref := s.Found, metav1.GetControllerOfNoCopy(s.Found)
	var otherName []string
	if s.NamedBy != "" {
		otherName = []string{"choose another " + s.NamedBy}
	}
	switch {
	case s.IsOfEarlierOwner():
		return s.judgeUncollected(outcome)
	case s.Releasing != nil && IsTerminating(s.Releasing):
		return NotReady(ReasonProgressing, "%s %q belongs to %s %q, which is being deleted",
			s.Kind, taken.GetName(), s.OwnerKind.Name, s.Releasing.GetName())
	case s.Releasing != nil:
		return NotReady(ReasonProgressing, "%s %q belongs to %s %q, which no longer wants it and deletes it once its new %s is ready",
			s.Kind, taken.GetName(), s.OwnerKind.Name, s.Releasing.GetName(), s.Kind)
	case ref != nil:
		return Stalled(s.Kind+SuffixConflict, "%s %q belongs to %q %q: %s",
			s.Kind, taken.GetName(), Truncate(ref.Kind, maxQuotedName), Truncate(ref.Name, maxQuotedName),
			strings.Join(append(otherName, "delete the owner"), ", or "))
	}
	overwrite := ""
	if _, named := taken.GetAnnotations()[s.OwnerKind.AdoptBy()]; named {
		overwrite = " --overwrite"
	}
	in := ""
	if taken.GetNamespace() != "" {
		in = " -n " + taken.GetNamespace()
	}
	handOver := fmt.Sprintf("or hand it over with 'kubectl annotate%s%s %s %s %s=%s'",
		overwrite, in, strings.ToLower(s.Kind), taken.GetName(), s.OwnerKind.AdoptBy(), s.OwnerKind.adoptValue(taken, s.Owner))
	return Stalled(s.Kind+SuffixConflict, "%s %q exists and has no controller: %s",
		s.Kind, taken.GetName(), strings.Join(append(otherName, "delete the "+s.Kind, handOver), ", "))
}

// IsOfEarlierOwner reports whether the object that an owner wants belongs to an earlier owner
// with the same name. A name belongs to one object at a time, so that owner is gone for certain, and
// the garbage collector deletes the object.
func (s *Step) IsOfEarlierOwner() bool {
	if s.Found == nil {
		return false
	}
	ref := s.OwnerKind.ControllerOf(s.Found)
	return ref != nil && ref.Name == s.Owner.GetName() && ref.UID != s.Owner.GetUID() && s.OwnerKind.reaches(s.Found, s.Owner)
}

// judgeUncollected reports that an object waits for the garbage collector. Kubernetes promises no
// time for that, so only a wait that lasts is a problem that someone has to solve.
func (s *Step) judgeUncollected(outcome *Outcome) Readiness {
	what := fmt.Sprintf("%s %q belongs to an earlier %s%s", s.Kind, Truncate(s.Found.GetName(), maxQuotedName), s.OwnerKind.Name, ofEarlier)
	if !outcome.Lasts && !s.saidStalled(s.Owner, s.Kind+SuffixConflict, ofEarlier) {
		return NotReady(ReasonProgressing, "%s, and waits for the garbage collector", what)
	}
	return Stalled(s.Kind+SuffixConflict, "%s, and the garbage collector has not deleted it: check that kube-controller-manager runs, or delete the %s", what, s.Kind)
}

// judgeDuplicate reports that an owner wants two children of a set with the same name, of which it gets one.
func (s *Step) judgeDuplicate() Readiness {
	remedy := ""
	if s.NamedBy != "" {
		remedy = ": change " + s.NamedBy
	}
	return Stalled(s.Kind+SuffixConflict, "The %s wants %s %q twice%s", s.OwnerKind.Name, s.Kind, Truncate(s.Duplicate, maxQuotedName), remedy)
}

// Fight is a series of writes that another client undoes each time.
type Fight struct {
	// Write is what is undone: ActionUpdate, ActionCreate, or ActionDelete.
	Write Action
	// Name is the name of the object.
	Name string
	// By is the other client, and Drift what it changed. Both are empty if they are unknown.
	By    Manager
	Drift string
}

// Describe returns who undoes what, and how to end that, for a condition or an Event.
func (fight *Fight) Describe(c *ChildKind) string {
	object := fmt.Sprintf("%s %q", c.Kind, Truncate(fight.Name, maxQuotedName))
	by := "most recently by " + fight.By.describe()
	switch fight.Write {
	case ActionCreate:
		return fmt.Sprintf("%s is deleted%screation. Stop the client that deletes it, or suspend or delete the %s", object, afterEach, c.OwnerKind.Name)
	case ActionDelete:
		return fmt.Sprintf("%s, which is no longer wanted, is created again%sdeletion, %s. Stop that client", object, afterEach, by)
	default:
		return fmt.Sprintf("%s is changed back%srepair, %s: %s. %s", object, afterEach, by, Truncate(fight.Drift, MaxQuote), fight.remedy(c))
	}
}

// remedy says how to end a fight over a field. An autoscaler writes to the scale subresource.
func (fight *Fight) remedy(c *ChildKind) string {
	if fight.By.Subresource == scaleSubresource && c.ScaledBy != "" {
		return fmt.Sprintf("If that is an autoscaler, omit %s or let it scale the %s; otherwise stop that client", c.ScaledBy, c.OwnerKind.Name)
	}
	return fmt.Sprintf("Stop that client, or change the %s to match", c.OwnerKind.Name)
}

// IsReleasing reports whether an owner is about to give up an object that it controls: it is being
// deleted, or it wants other names, and nothing keeps it from changing over. its are the objects
// that have these names. An owner of which a new name is taken, or that is stalled, for example
// because it is suspended, keeps the object. The status of an owner alone would not do: two that want
// each other's names would each be stalled whenever the other is not.
func (c *ChildKind) IsReleasing(holder Owner, object Object, its ...Object) bool {
	switch {
	case IsTerminating(holder):
		return true
	case c.Wants(holder, cache.MetaObjectToName(object)):
		return false
	case slices.ContainsFunc(its, func(its Object) bool { return !c.OwnerKind.IsControlledBy(its, holder) }):
		return false
	}
	was := meta.FindStatusCondition(holder.GetConditions(), ConditionStalled)
	return was == nil || was.Status != metav1.ConditionTrue || was.ObservedGeneration != holder.GetGeneration()
}
