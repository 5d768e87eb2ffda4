// SPDX-License-Identifier: Apache-2.0

// Tests of what is right at rest: right worlds, and wrong ones, each refused by name.

package oracle

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/test/footest"
)

// settled returns the Foo "a" with a child "web", and a status that says so.
func settled(options ...footest.FooOption) footest.Object {
	return footest.Foo("a", append([]footest.FooOption{footest.WithStatus(footest.Settled("a"))}, options...)...)
}

// saying returns a Foo whose condition Ready has another status and reason.
func saying(status metav1.ConditionStatus, reason string, options ...footest.FooOption) footest.Object {
	conditions := footest.Ready(status, reason, "", footest.Earlier)
	if isFinal(reason) {
		conditions = footest.Stalled(conditions)
	}
	return settled(append(options, func(foo *samplev1alpha1.Foo) { foo.Status.Conditions = conditions })...)
}

func TestAtRest(t *testing.T) {
	kind := footest.Primary.Kind
	conflict := saying(metav1.ConditionFalse, kind+"Conflict")
	for _, tt := range []struct {
		what    string
		objects []footest.Object
		refused bool
		// wrong is what is said of the world, or "" if it is right.
		wrong string
	}{
		{"all is as asked", []footest.Object{settled(), footest.Child("a")}, false, ""},
		{"no child", []footest.Object{settled()}, false, "Foo a has no " + kind + " web"},
		{"two children", []footest.Object{settled(), footest.Child("a"), footest.Child("a", footest.Named("old"))}, false, "Foo a has 2 "},
		{"a child that differs", []footest.Object{settled(), footest.Child("a", footest.Drifted)}, false, "Foo a has a " + kind + " that has "},
		{"a child that differs, and writes are refused", []footest.Object{saying(metav1.ConditionFalse, kind+"Failed"), footest.Child("a", footest.Drifted)}, true, ""},
		{"a refusal that is not told", []footest.Object{settled(), footest.Child("a", footest.Drifted)}, true, "want False, " + kind + "Failed"},
		{"a child that is not adopted", []footest.Object{settled(), footest.Child("a", footest.WithoutOwner, footest.WithAdoptBy("a"))}, false, "Foo a has not adopted " + kind + " web"},
		{"a name that is taken", []footest.Object{conflict, footest.Child("a", footest.WithoutOwner)}, false, ""},
		{"a name that is taken, not told", []footest.Object{settled(), footest.Child("a", footest.WithoutOwner)}, false, "want False, " + kind + "Conflict"},
		{"a conflict that is over", []footest.Object{conflict, footest.Child("a")}, false, "Foo a has Ready=False, " + kind + "Conflict (), want True, Available"},
		{"a final reason that is not stalled", []footest.Object{settled(func(foo *samplev1alpha1.Foo) { foo.Status.Conditions = conflictConditions() }), footest.Child("a", footest.WithoutOwner)}, false, "Stalled is false"},
		{"a child that goes", []footest.Object{saying(metav1.ConditionFalse, "Terminating"), footest.Child("a", footest.Terminating)}, false, ""},
		{"a suspended Foo", []footest.Object{saying(metav1.ConditionFalse, "Suspended", footest.Suspended)}, false, ""},
		{"an older status", []footest.Object{settled(footest.WithGeneration(2)), footest.Child("a")}, false, "Foo a has generation 2, but reports on 1"},
		{"no condition", []footest.Object{footest.Foo("a"), footest.Child("a")}, false, "Foo a has no condition Ready"},
		{"a child of nobody", []footest.Object{footest.Child("b")}, false, kind + " web belongs to a deleted owner"},
	} {
		t.Run(tt.what, func(t *testing.T) {
			wrong := strings.Join(World{footest.FooOwner, tt.objects, tt.refused}.WrongAtRest(), "; ")
			if tt.wrong == "" && wrong != "" || !strings.Contains(wrong, tt.wrong) || tt.wrong != "" && wrong == "" {
				t.Errorf("it says %q, want %q", wrong, tt.wrong)
			}
		})
	}
}

// conflictConditions are those of a conflict that its Foo does not call final.
func conflictConditions() []metav1.Condition {
	return footest.Ready(metav1.ConditionFalse, footest.Primary.Kind+"Conflict", "", footest.Earlier)
}
