// SPDX-License-Identifier: Apache-2.0

// Others who stand in a Foo's way: who has the name that it wants, and who undoes its writes.

package plan

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// judgeDeletion reports that the object with the name is being deleted. Its name becomes free by
// itself, whoever controls it.
func (c *Child) judgeDeletion() Verdict {
	then := "it will be recreated once it is gone"
	switch {
	case c.Owner.IsSuspended():
		then = "spec.suspend is true, so it will not be recreated"
	case !c.OwnerKind.IsControlledBy(c.Named, c.Owner):
		then = fmt.Sprintf("the %s gets its own once it is gone", c.OwnerKind.Kind)
	}
	return notReady(samplev1alpha1.ReasonTerminating, "%s %q is being deleted; %s", c.Kind, truncate(c.Named.GetName(), maxQuotedName), then)
}

// judgeConflict reports who owns the object that a Foo wants.
func (c *Child) judgeConflict() Verdict {
	taken, ref := c.Named, metav1.GetControllerOfNoCopy(c.Named)
	var otherName []string
	if c.NamedBy != "" {
		otherName = []string{"choose another " + c.NamedBy}
	}
	switch {
	case c.IsOfEarlierOwner():
		return c.judgeUncollected()
	case c.Releasing != nil && IsTerminating(c.Releasing):
		return notReady(samplev1alpha1.ReasonProgressing, "%s %q belongs to %s %q, which is being deleted",
			c.Kind, taken.GetName(), c.OwnerKind.Kind, c.Releasing.GetName())
	case c.Releasing != nil:
		return notReady(samplev1alpha1.ReasonProgressing, "%s %q belongs to %s %q, which no longer wants it and deletes it once its new %s is ready",
			c.Kind, taken.GetName(), c.OwnerKind.Kind, c.Releasing.GetName(), c.Kind)
	case ref != nil:
		return stalled(c.Kind+conflict, "%s %q belongs to %q %q: %s",
			c.Kind, taken.GetName(), truncate(ref.Kind, maxQuotedName), truncate(ref.Name, maxQuotedName),
			strings.Join(append(otherName, "delete the owner"), ", or "))
	}
	overwrite := ""
	if _, named := taken.GetAnnotations()[samplev1alpha1.AnnotationAdoptBy]; named {
		overwrite = " --overwrite"
	}
	handOver := fmt.Sprintf("or hand it over with 'kubectl annotate%s -n %s %s %s %s=%s'",
		overwrite, taken.GetNamespace(), strings.ToLower(c.Kind), taken.GetName(), samplev1alpha1.AnnotationAdoptBy, c.Owner.GetName())
	return stalled(c.Kind+conflict, "%s %q exists and has no controller: %s",
		c.Kind, taken.GetName(), strings.Join(append(otherName, "delete the "+c.Kind, handOver), ", "))
}

// IsOfEarlierOwner reports whether the object that a Foo wants belongs to an earlier Foo with
// this Foo's name. A name belongs to one object at a time, so that Foo is gone for certain, and
// the garbage collector deletes the object.
func (c *Child) IsOfEarlierOwner() bool {
	if c.Named == nil {
		return false
	}
	ref := c.OwnerKind.ControllerOf(c.Named)
	return ref != nil && ref.Name == c.Owner.GetName() && ref.UID != c.Owner.GetUID() && c.Named.GetNamespace() == c.Owner.GetNamespace()
}

// judgeUncollected reports that an object waits for the garbage collector. Kubernetes promises no
// time for that, so only a wait that lasts is a problem that someone has to solve.
func (c *Child) judgeUncollected() Verdict {
	what := fmt.Sprintf("%s %q belongs to an earlier %s%s", c.Kind, truncate(c.Named.GetName(), maxQuotedName), c.OwnerKind.Kind, ofEarlier)
	if !c.Lasts && !c.saidStalled(c.Owner, c.Kind+conflict, ofEarlier) {
		return notReady(samplev1alpha1.ReasonProgressing, "%s, and waits for the garbage collector", what)
	}
	return stalled(c.Kind+conflict, "%s, and the garbage collector has not deleted it: check that kube-controller-manager runs, or delete the %s", what, c.Kind)
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

// judgeFight reports who undoes each write, and how to end that.
func (c *Child) judgeFight() Verdict {
	return stalled(c.Kind+failed, "%s", c.Fight.Describe(c.ChildKind))
}

// Describe returns who undoes what, and how to end that, for a condition or an Event.
func (fight *Fight) Describe(c *ChildKind) string {
	object := fmt.Sprintf("%s %q", c.Kind, truncate(fight.Name, maxQuotedName))
	by := "most recently by " + fight.By.describe()
	switch fight.Write {
	case ActionCreate:
		return fmt.Sprintf("%s is deleted%screation. Stop the client that deletes it, or suspend or delete the %s", object, afterEach, c.OwnerKind.Kind)
	case ActionDelete:
		return fmt.Sprintf("%s, which is no longer wanted, is created again%sdeletion, %s. Stop that client", object, afterEach, by)
	default:
		return fmt.Sprintf("%s is changed back%srepair, %s: %s. %s", object, afterEach, by, truncate(fight.Drift, maxServerWords), fight.remedy(c))
	}
}

// remedy says how to end a fight over a field. An autoscaler writes to the scale subresource.
func (fight *Fight) remedy(c *ChildKind) string {
	if fight.By.Subresource == scaleSubresource && c.ScaledBy != "" {
		return fmt.Sprintf("If that is an autoscaler, omit %s or let it scale the %s; otherwise stop that client", c.ScaledBy, c.OwnerKind.Kind)
	}
	return fmt.Sprintf("Stop that client, or change the %s to match", c.OwnerKind.Kind)
}

// IsReleasing reports whether an owner is about to give up an object that it controls: it is being
// deleted, or it wants another name, and nothing keeps it from changing over. its is the object
// with that name, or nil. An owner whose new name is taken, or that is stalled, for example because
// it is suspended, keeps the object.
func (c *ChildKind) IsReleasing(holder Owner, object, its Object) bool {
	switch {
	case IsTerminating(holder):
		return true
	case c.Wanted(holder) && c.Name(holder) == object.GetName():
		return false
	case its != nil && c.Wanted(holder) && !c.OwnerKind.IsControlledBy(its, holder):
		return false
	}
	was := meta.FindStatusCondition(*holder.GetConditions(), samplev1alpha1.ConditionStalled)
	return was == nil || was.Status != metav1.ConditionTrue || was.ObservedGeneration != holder.GetGeneration()
}
