// SPDX-License-Identifier: Apache-2.0

// Tests of the rules for writes, and of what is right at rest: right worlds, and wrong ones, each
// refused by name.

package oracle

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/test/footest"
)

func TestWrongWrite(t *testing.T) {
	old, child, unowned := footest.Child("a", footest.Named("old")), footest.Child("a"), footest.Child("a", footest.WithoutOwner)
	handedOver := footest.Child("a", footest.WithoutOwner, footest.WithAdoptBy("a"))
	serves := "while it serves"
	if !footest.Primary.Serves(old) {
		serves = ""
	}
	for what, tt := range map[string]struct {
		foo, stored, next, known footest.Object
		says                     string
	}{
		"a creation":                          {settled(), nil, child, nil, ""},
		"a creation without an owner":         {settled(), nil, unowned, nil, "without a controller reference to a Foo"},
		"the creation of a Foo":               {settled(), nil, settled(), nil, "belongs to users"},
		"the deletion of a Foo":               {settled(), settled(), nil, nil, "belongs to users"},
		"an update of a Foo":                  {settled(), settled(), settled(), nil, ""},
		"an update that keeps the owner":      {settled(), child, footest.Child("a", footest.WithTeam), nil, ""},
		"the owner is suspended":              {settled(footest.Suspended), child, child, nil, "is suspended"},
		"the owner is gone":                   {settled(footest.WithFooUID("uid-new")), child, child, nil, "no living owner"},
		"an adoption of what is handed over":  {settled(), handedOver, child, nil, ""},
		"it is handed over to another":        {settled(), handedOver, footest.Child("b"), nil, "nobody has handed it over to b"},
		"nobody has handed it over":           {settled(), unowned, child, nil, "nobody has handed it over to a"},
		"it belongs to another":               {settled(), footest.Child("b"), child, nil, "takes it from b"},
		"it loses its owner":                  {settled(), child, unowned, nil, "without an owner"},
		"the successor is ready":              {settled(), old, nil, child, ""},
		"the successor differs":               {settled(), old, nil, footest.Child("a", footest.Drifted), serves},
		"the successor is not there":          {settled(), old, nil, nil, "is not seen to have web"},
		"the successor is nobody's":           {settled(), old, nil, unowned, "is not seen to have web"},
		"the deleted one is asked for":        {settled(), child, nil, child, "Foo a asks for it"},
		"the deleted one is nobody's":         {settled(), unowned, nil, nil, "no living owner"},
		"its owner has another UID":           {settled(footest.WithFooUID("uid-new")), old, nil, child, "no living owner"},
		"nothing is to be done for the owner": {settled(footest.Suspended), old, nil, child, "is suspended"},
	} {
		w := World{Owner: footest.FooOwner, Objects: []footest.Object{tt.foo}}
		wrong := w.WrongWrite(tt.stored, tt.next, func(string) footest.Object { return tt.known })
		if tt.says == "" && wrong != "" || !strings.Contains(wrong, tt.says) {
			t.Errorf("%s: it says %q, want %q", what, wrong, tt.says)
		}
	}
}

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
