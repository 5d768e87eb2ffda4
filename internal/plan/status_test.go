// SPDX-License-Identifier: Apache-2.0

// Tests of the status and its condition, and of the shipped rows.

package plan

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/test/footest"
)

// What keeps a Foo from being ready need not be a child.
func TestTheFirstObstacleSaysWhatHoldsUpADeletion(t *testing.T) {
	foo, deployment := footest.Foo("a", footest.BeingDeleted), Outcome{Ready: terminating}
	for reason, outcomes := range map[string][]Outcome{
		"Terminating":     nil,
		"TakingBackFails": {{Ready: Verdict{Status: metav1.ConditionFalse, Reason: "TakingBackFails", Message: "503"}}, deployment},
	} {
		footest.ExpectEqual(t, "reason", reason, footest.ReadyOf(CalculateStatus(foo, outcomes, footest.Now)).Reason)
	}
}

func TestAConditionOfAnOutcomeComesAfterReady(t *testing.T) {
	registered := metav1.Condition{Type: "Registered", Status: metav1.ConditionTrue}
	status := CalculateStatus(footest.Foo("a"), []Outcome{{Ready: Verdict{Status: metav1.ConditionTrue}, Report: func(status *samplev1alpha1.FooStatus) {
		status.Conditions = append(status.Conditions, registered)
	}}}, footest.Now)
	if len(status.Conditions) != 2 || status.Conditions[0].Type != "Ready" || status.Conditions[1].Type != "Registered" {
		t.Errorf("the conditions are %v", status.Conditions)
	}
}

func TestCalculateStatusKeepsWhatItDoesNotOwn(t *testing.T) {
	others := metav1.Condition{Type: "Audited", Status: metav1.ConditionTrue, Reason: "ByOthers", LastTransitionTime: footest.Earlier}
	before := footest.Settled("a")
	before.Conditions = append(before.Conditions, others)
	source := footest.Foo("a", footest.WithStatus(before))
	status := statusAfter(source, result{Action: ActionLeave, Named: child("b")}, footest.Now)

	footest.ExpectEqual(t, "another's condition", others, status.Conditions[1])
	if status.Selector != "" || status.Replicas != 0 || status.AvailableReplicas != 0 {
		t.Errorf("the status of a Foo without a child still counts Pods: %+v", status)
	}
	footest.ExpectEqual(t, "the Foo's own status", before, source.Status)
}

func TestLastTransitionTimeMovesWithTheConditionsStatusOnly(t *testing.T) {
	for name, row := range map[string]struct {
		foo    *samplev1alpha1.Foo
		result result
		want   metav1.Time
	}{
		"still ready":                   {footest.Foo("a", footest.WithStatus(footest.Settled("a"))), result{Action: ActionNone, Child: child("a")}, footest.Earlier},
		"no longer ready":               {footest.Foo("a", footest.WithStatus(footest.Settled("a"))), result{Action: ActionLeave, Named: child("b")}, footest.Now},
		"a new generation, still ready": {footest.Foo("a", footest.WithGeneration(2), footest.WithStatus(footest.Settled("a"))), result{Action: ActionNone, Child: child("a")}, footest.Earlier},
	} {
		t.Run(name, func(t *testing.T) {
			status := statusAfter(row.foo, row.result, footest.Now)
			footest.ExpectEqual(t, "lastTransitionTime", row.want, status.Conditions[0].LastTransitionTime)
			if status.ObservedGeneration != row.foo.Generation || status.Conditions[0].ObservedGeneration != row.foo.Generation {
				t.Errorf("the status is not of generation %d", row.foo.Generation)
			}
		})
	}
}

// A row without Judge has no words of its own, and the condition needs some.
func TestReadySaysSomethingWhenNoChildDoes(t *testing.T) {
	foo := footest.Foo("a")
	silent := Outcome{Ready: Verdict{Status: metav1.ConditionTrue}}
	ready := meta.FindStatusCondition(CalculateStatus(foo, []Outcome{silent, silent}, footest.Now).Conditions, samplev1alpha1.ConditionReady)
	footest.ExpectEqual(t, "the message", "All that the Foo asks for is there", ready.Message)
}

func TestLongServerMessagesAreTruncated(t *testing.T) {
	ready := verdictAfter(footest.Foo("a"), result{Action: ActionCreate, Failure: apierrors.NewBadRequest(strings.Repeat("x", 100_000))})
	if len(ready.Message) > 1000 {
		t.Errorf("a condition's message has %d bytes", len(ready.Message))
	}
}

func TestCountByReady(t *testing.T) {
	var foos []*samplev1alpha1.Foo
	for name, status := range map[string]metav1.ConditionStatus{
		"new": "", "a": "True", "b": "True", "c": "False", "d": "Unknown", "e": "made up", "changed": "True", "pending": "default",
	} {
		foo := footest.Foo(name)
		switch status {
		case "":
		case "default":
			footest.Pending(foo)
		default:
			foo.Status.Conditions = []metav1.Condition{{Type: "Other", Status: "True"}, {Type: samplev1alpha1.ConditionReady, Status: status, ObservedGeneration: 1}}
		}
		if name == "changed" {
			foo.Generation = 2
		}
		foos = append(foos, foo)
	}
	want := map[metav1.ConditionStatus]int{metav1.ConditionTrue: 2, metav1.ConditionFalse: 1, metav1.ConditionUnknown: 5}
	footest.ExpectEqual(t, "the counts", want, CountByReady(foos))
}

// primary is the type of the children in tests that are about no kind in particular, that
// of footest.Primary, and shipped is its row with the default configuration.
type primary = *appsv1.Deployment

var shipped = Deployment(footest.DefaultImage)

type result = Result[primary]

// child is footest.Child with its type.
func child(owner string, options ...footest.ChildOption) primary {
	return footest.Child(owner, options...).(primary)
}

func newChild(foo *samplev1alpha1.Foo) primary { return shipped.Desired(foo, nil) }

func verdictAfter(foo *samplev1alpha1.Foo, result result) Verdict {
	return firstObstacle(foo, []Outcome{outcomeAfter(foo, result)})
}

func statusAfter(foo *samplev1alpha1.Foo, result result, now metav1.Time) samplev1alpha1.FooStatus {
	return CalculateStatus(foo, []Outcome{outcomeAfter(foo, result)}, now)
}

func outcomeAfter(foo *samplev1alpha1.Foo, result result) Outcome {
	if result.Child != nil {
		result.Drift = shipped.DescribeDrift(result.Child, foo, nil)
	}
	return shipped.Outcome(foo, result)
}

// transform is the transformer of both informers.
func transform(object any) (any, error) {
	if foo, ok := object.(*samplev1alpha1.Foo); ok {
		return TransformFoo(foo)
	}
	return shipped.Transform(object)
}

func trimmedCopy[T interface{ DeepCopy() T }](t *testing.T, object T) T {
	t.Helper()
	trimmed, err := transform(object.DeepCopy())
	footest.Must(t, err)
	return trimmed.(T)
}
