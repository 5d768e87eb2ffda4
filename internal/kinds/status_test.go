// SPDX-License-Identifier: Apache-2.0

// Tests of the status and its conditions, and of the shipped rows.

package kinds

import (
	"errors"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/pkg/reconcile/plan"
	testrows "example.com/sample-controller/pkg/reconcile/reconciletest/rows"
	"example.com/sample-controller/test/footest"
)

func TestTheFirstObstacleDecides(t *testing.T) {
	rollingOut, conflict := has(withCounts(2, 2, 1)), result{Action: plan.ActionLeave, Named: child("b")}
	for name, row := range map[string]struct {
		foo     *samplev1alpha1.Foo
		results []result
		reason  string
	}{
		"a deletion without children": {a(footest.BeingDeleted), nil, "Terminating"},
		"a deletion":                  {a(footest.BeingDeleted), []result{rollingOut, conflict}, "Terminating"},
		"the first of two":            {a(), []result{rollingOut, conflict}, "Progressing"},
		"the second of two":           {a(), []result{has(), conflict}, "DeploymentConflict"},
	} {
		footest.ExpectEqual(t, name, row.reason, testrows.ConditionOf(reported(shipped, row.foo, footest.Now, row.results...)).Reason)
	}
}

func TestAConditionOfAChildComesAfterReady(t *testing.T) {
	row := deployment(Options{Image: footest.DefaultImage})
	row.Report = func(foo *samplev1alpha1.Foo, _ *appsv1.Deployment) {
		foo.Status.Conditions = append(foo.Status.Conditions, metav1.Condition{Type: "Registered", Status: metav1.ConditionTrue})
	}
	foo := reported(row.Of(shipped.OwnerKind), a(), footest.Now, has())
	if conditions := foo.GetConditions(); len(conditions) != 2 || conditions[0].Type != "Ready" || conditions[1].Type != "Registered" {
		t.Errorf("the conditions are %v", conditions)
	}
}

func TestTheStatusKeepsWhatItDoesNotOwn(t *testing.T) {
	others := metav1.Condition{Type: "Audited", Status: metav1.ConditionTrue, Reason: "ByOthers", LastTransitionTime: footest.Earlier}
	before := footest.Settled("a")
	before.Conditions = append(before.Conditions, others)
	source := footest.Foo("a", footest.WithStatus(before))
	status := statusAfter(source, result{Action: plan.ActionLeave, Named: child("b")}, footest.Now)

	footest.ExpectEqual(t, "another's condition", others, status.Conditions[1])
	if status.Selector != "" || status.Replicas != 0 || status.AvailableReplicas != 0 {
		t.Errorf("the status of a Foo without a child still counts Pods: %+v", status)
	}
	footest.ExpectEqual(t, "the Foo's own status", before, source.Status)
}

func TestASuspensionIsAConditionUntilItEnds(t *testing.T) {
	status := statusAfter(a(footest.Suspended), result{Action: plan.ActionSuspend, Pending: plan.ActionCreate}, footest.Now)
	if !meta.IsStatusConditionTrue(status.Conditions, "Suspended") || !meta.IsStatusConditionTrue(status.Conditions, "Stalled") {
		t.Errorf("the status does not say that the Foo is suspended: %+v", status.Conditions)
	}
	status = statusAfter(a(footest.WithStatus(status)), has(), footest.Now)
	if len(status.Conditions) != 1 || status.Conditions[0].Type != "Ready" {
		t.Errorf("the conditions left are %+v", status.Conditions)
	}
}

func TestLastTransitionTimeMovesWithTheConditionsStatusOnly(t *testing.T) {
	for name, row := range map[string]struct {
		foo    *samplev1alpha1.Foo
		result result
		want   metav1.Time
	}{
		"still ready":                   {footest.Foo("a", footest.WithStatus(footest.Settled("a"))), result{Action: plan.ActionNone, Current: child("a")}, footest.Earlier},
		"no longer ready":               {footest.Foo("a", footest.WithStatus(footest.Settled("a"))), result{Action: plan.ActionLeave, Named: child("b")}, footest.Now},
		"a new generation, still ready": {footest.Foo("a", footest.WithGeneration(2), footest.WithStatus(footest.Settled("a"))), result{Action: plan.ActionNone, Current: child("a")}, footest.Earlier},
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

// exposed returns a kind whose only row has a condition.
func exposed() *plan.ChildKind {
	row := deployment(Options{Image: footest.DefaultImage})
	row.Condition = "Exposed"
	kind := declared(footest.DefaultImage)
	kind.Children = []*plan.ChildKind{row.Of(kind)}
	return kind.Children[0]
}

func TestAConditionOfAChild(t *testing.T) {
	had := footest.Foo("a", footest.WithStatus(footest.Settled("a")))
	had.Status.Conditions = append(had.Status.Conditions, metav1.Condition{
		Type: "Exposed", Status: metav1.ConditionTrue, Reason: "Available", LastTransitionTime: footest.Earlier,
	})
	refused := apierrors.NewForbidden(footest.ChildGR, "web", errors.New("exceeded quota"))
	for what, row := range map[string]struct {
		foo    plan.Owner
		child  result
		status metav1.ConditionStatus // "" for none
		since  metav1.Time
	}{
		"the child is ready":         {footest.Foo("a"), result{Action: plan.ActionNone, Current: child("a")}, metav1.ConditionTrue, footest.Now},
		"it still is":                {had, result{Action: plan.ActionNone, Current: child("a")}, metav1.ConditionTrue, footest.Earlier},
		"it is no longer as desired": {had, result{Action: plan.ActionUpdate, Current: child("a"), Failure: refused}, metav1.ConditionFalse, footest.Now},
		"it is gone":                 {had, result{Action: plan.ActionCreate}, "", metav1.Time{}},
		"the Foo wants none":         {footest.Foo("a"), result{Action: plan.ActionNone}, "", metav1.Time{}},
		"it is someone else's":       {had, result{Action: plan.ActionLeave, Named: child("b")}, "", metav1.Time{}},
		"the sync knows nothing":     {had, result{Action: plan.ActionNone, Stale: true}, metav1.ConditionTrue, footest.Earlier},
	} {
		kind := exposed()
		after := reported(kind, row.foo, footest.Now, row.child)
		own := meta.FindStatusCondition(after.GetConditions(), "Exposed")
		if (own == nil) != (row.status == "") || own != nil && (own.Status != row.status || own.Reason == "" || !own.LastTransitionTime.Equal(&row.since)) {
			t.Errorf("%s: the condition is %+v", what, own)
		}
		changes := len(kind.OwnerKind.OwnChanged(row.foo, after))
		if wants := own != nil && own.LastTransitionTime.Equal(&footest.Now); (changes == 1) != wants {
			t.Errorf("%s: %d conditions have changed", what, changes)
		}
	}
}

// The API package, which clients import, has constants of its own for what the controller writes.
func TestTheAPINamesWhatTheControllerWrites(t *testing.T) {
	footest.ExpectEqual(t, "the types of conditions",
		[]string{samplev1alpha1.ConditionReady, samplev1alpha1.ConditionStalled, samplev1alpha1.ConditionSuspended},
		[]string{plan.ConditionReady, plan.ConditionStalled, plan.ConditionSuspended})
	footest.ExpectEqual(t, "the reasons", []string{
		samplev1alpha1.ReasonAvailable, samplev1alpha1.ReasonProgressing, samplev1alpha1.ReasonDegraded, samplev1alpha1.ReasonUnavailable,
		samplev1alpha1.ReasonTerminating, samplev1alpha1.ReasonSuspended, samplev1alpha1.ReasonRepairsUndone,
		samplev1alpha1.ReasonDeploymentConflict, samplev1alpha1.ReasonDeploymentFailed,
	}, []string{
		plan.ReasonAvailable, plan.ReasonProgressing, plan.ReasonDegraded, plan.ReasonUnavailable,
		plan.ReasonTerminating, plan.ReasonSuspended, plan.ReasonRepairsUndone,
		"Deployment" + plan.SuffixConflict, "Deployment" + plan.SuffixFailed,
	})
	footest.ExpectEqual(t, "the annotation", samplev1alpha1.AnnotationAdoptBy, shipped.OwnerKind.AdoptBy())
}

// A row without Judge returns no message, but the condition needs one.
func TestReadySaysSomethingWhenNoChildDoes(t *testing.T) {
	row := deployment(Options{Image: footest.DefaultImage})
	row.Judge = nil
	ready := testrows.ConditionOf(reported(row.Of(shipped.OwnerKind), a(), footest.Now, has(), has()))
	footest.ExpectEqual(t, "the message", "Everything that the Foo specifies exists", ready.Message)
}

func TestCountByReady(t *testing.T) {
	var foos []any
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
	footest.ExpectEqual(t, "the counts", want, plan.CountByReady(foos))
}

// shipped is the row of footest.Primary, the kind of the children in tests that are not
// specific to a kind, with the default configuration.
var shipped = declared(footest.DefaultImage).Children[0]

func child(owner string, options ...footest.ChildOption) plan.Object {
	return footest.Child(owner, options...)
}

func newChild(foo *samplev1alpha1.Foo) plan.Object { return shipped.Desired(foo, nil, nil) }

func declared(image string) *plan.Kind { return Declared(Options{Image: image})[0] }

// result is a step of a sync and what came of it.
type result struct {
	Action, Pending             plan.Action
	Named, Current              plan.Object // with the name that the Foo wants, and what the Foo has
	CurrentDrift                string
	Obsolete, InService         []plan.Object
	Failure                     error
	Lasts, Recurs, Paced, Stale bool
	Releasing                   plan.Owner
	Fight                       *plan.Fight
}

// of returns the step of a Foo, and its outcome.
func (r result) of(kind *plan.ChildKind, foo plan.Owner) (*plan.Step, plan.Outcome) {
	return &plan.Step{
			ChildKind: kind, Owner: foo, View: &plan.View{}, Part: kind.Kind, Unwanted: !kind.Wanted(foo), Action: r.Action, Pending: r.Pending,
			Key:   cache.ObjectName{Namespace: foo.GetNamespace(), Name: kind.Name(foo)},
			Found: r.Named, Obsolete: r.Obsolete, InService: r.InService, Releasing: r.Releasing,
		}, plan.Outcome{
			Child: r.Current, Drift: r.CurrentDrift, Err: r.Failure, Lasts: r.Lasts, Recurs: r.Recurs, Paced: r.Paced, Stale: r.Stale, Fight: r.Fight,
		}
}

// reported returns a Foo with its status after a sync with these results.
func reported(kind *plan.ChildKind, foo plan.Owner, now metav1.Time, results ...result) plan.Owner {
	steps, outcomes := make([]*plan.Step, len(results)), make([]plan.Outcome, len(results))
	for i, result := range results {
		steps[i], outcomes[i] = result.of(kind, foo)
	}
	return kind.OwnerKind.WithStatus(foo, steps, outcomes, now)
}

// readinessAfter returns what a Foo reports about its readiness after a sync.
func readinessAfter(foo *samplev1alpha1.Foo, result result) plan.Readiness {
	status := statusAfter(foo, result, footest.Now)
	ready := footest.ReadyOf(status)
	return plan.Readiness{
		Status: ready.Status, Reason: ready.Reason, Message: ready.Message, Stalled: meta.IsStatusConditionTrue(status.Conditions, "Stalled"),
	}
}

func statusAfter(foo *samplev1alpha1.Foo, result result, now metav1.Time) samplev1alpha1.FooStatus {
	if result.Current != nil {
		result.CurrentDrift = shipped.DescribeDrift(result.Current, foo, nil)
	}
	return reported(shipped, foo, now, result).(*samplev1alpha1.Foo).Status
}

// transform is the transformer of both informers.
func transform(object any) (any, error) {
	if foo, ok := object.(*samplev1alpha1.Foo); ok {
		return shipped.OwnerKind.Transform(foo)
	}
	return shipped.Transform(object)
}

func trimmedCopy[T interface{ DeepCopy() T }](t *testing.T, object T) T {
	t.Helper()
	trimmed, err := transform(object.DeepCopy())
	footest.Must(t, err)
	return trimmed.(T)
}

// A condition whose time could not be decoded has none, but the API server requires one.
func TestEveryConditionHasATime(t *testing.T) {
	before := footest.Settled("a")
	before.Conditions = append(before.Conditions, metav1.Condition{Type: "Audited", Status: metav1.ConditionTrue, Reason: "ByOthers"})
	before.Conditions[0].LastTransitionTime = metav1.Time{}
	after := declared(footest.DefaultImage).WithStatus(footest.Foo("a", footest.WithStatus(before)), nil, nil, footest.Now)
	for _, condition := range after.GetConditions() {
		footest.ExpectEqual(t, "the time of "+condition.Type, footest.Now, condition.LastTransitionTime)
	}
}

// TestSelectorText compares with what the API server makes of a selector.
func TestSelectorText(t *testing.T) {
	long := strings.Repeat("a", 64)
	for _, values := range []map[string]string{
		{}, {labelApp: "nginx"}, {labelApp: ""}, {labelApp: "nginx", labelController: "a-b_c.d9"}, {labelController: "A"}, {labelController: "9"},
		{labelApp: "nginx", "other": "x"}, {"example.com/other": "x"}, {"-": "x"}, {labelApp: "a,b=c"}, {labelApp: "a b"}, {labelApp: "ä"},
		{labelApp: "-a"}, {labelApp: "a."}, {labelApp: "_"}, {labelApp: long[1:]}, {labelApp: long}, {labelApp: "a/b"}, {labelApp: "a\x00"},
	} {
		for _, expressions := range [][]metav1.LabelSelectorRequirement{nil, {{Key: "other", Operator: metav1.LabelSelectorOpExists}}} {
			selector := &metav1.LabelSelector{MatchLabels: values, MatchExpressions: expressions}
			want := ""
			if parsed, err := metav1.LabelSelectorAsSelector(selector); err == nil {
				want = parsed.String()
			}
			if got := selectorText(selector); got != want {
				t.Errorf("%v: %q, want %q", selector, got, want)
			}
		}
	}
}
