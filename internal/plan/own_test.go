// SPDX-License-Identifier: Apache-2.0

// Tests of the condition that a row gives to its child.

package plan

import (
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/sample-controller/test/footest"
)

// exposed returns a kind whose one row has a condition of its own.
func exposed() *ChildKind {
	row := Deployment(footest.DefaultImage)
	row.Condition = "Exposed"
	kind := Foos(footest.DefaultImage)
	kind.Children = []*ChildKind{row.Of(kind)}
	return kind.Children[0]
}

func TestAConditionOfAChild(t *testing.T) {
	had := footest.Foo("a", footest.WithStatus(footest.Settled("a")))
	had.Status.Conditions = append(had.Status.Conditions, metav1.Condition{
		Type: "Exposed", Status: metav1.ConditionTrue, Reason: "Available", LastTransitionTime: footest.Earlier,
	})
	refused := apierrors.NewForbidden(footest.ChildGR, "web", errors.New("exceeded quota"))
	for what, row := range map[string]struct {
		foo    Owner
		child  Child
		status metav1.ConditionStatus // "" for none
		since  metav1.Time
	}{
		"the child is ready":       {footest.Foo("a"), Child{Action: ActionNone, Current: child("a")}, metav1.ConditionTrue, footest.Now},
		"it still is":              {had, Child{Action: ActionNone, Current: child("a")}, metav1.ConditionTrue, footest.Earlier},
		"it is no longer as asked": {had, Child{Action: ActionUpdate, Current: child("a"), Failure: refused}, metav1.ConditionFalse, footest.Now},
		"it is gone":               {had, Child{Action: ActionCreate}, "", metav1.Time{}},
		"the Foo asks for none":    {footest.Foo("a"), Child{Action: ActionNone}, "", metav1.Time{}},
		"it is somebody else's":    {had, Child{Action: ActionLeave, Named: child("b")}, "", metav1.Time{}},
		"the sync knows nothing":   {had, Child{Action: ActionNone, Stale: true}, metav1.ConditionTrue, footest.Earlier},
	} {
		kind := exposed()
		after := kind.OwnerKind.WithStatus(row.foo, []Outcome{row.child.of(kind, row.foo).Outcome()}, footest.Now)
		own := meta.FindStatusCondition(*after.GetConditions(), "Exposed")
		if (own == nil) != (row.status == "") || own != nil && (own.Status != row.status || own.Reason == "" || !own.LastTransitionTime.Equal(&row.since)) {
			t.Errorf("%s: the condition is %+v", what, own)
		}
		changes := len(kind.OwnerKind.OwnChanged(row.foo, after))
		if wants := own != nil && own.LastTransitionTime.Equal(&footest.Now); (changes == 1) != wants {
			t.Errorf("%s: %d conditions have changed", what, changes)
		}
	}
}
