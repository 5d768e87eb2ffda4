// SPDX-License-Identifier: Apache-2.0

// Tests of a Foo's report about its Deployment.

package kinds

import (
	"context"
	"errors"
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/pkg/reconcile/failure"
	"example.com/sample-controller/pkg/reconcile/plan"
	"example.com/sample-controller/test/footest"
)

// readyStatus returns a status with a condition Ready, and Stalled if that is so.
func readyStatus(status metav1.ConditionStatus, reason, message string, isStalled bool) samplev1alpha1.FooStatus {
	ready := metav1.Condition{Type: "Ready", Status: status, Reason: reason, Message: message, ObservedGeneration: 1}
	stalled := ready
	stalled.Type, stalled.Status = "Stalled", metav1.ConditionTrue
	conditions := []metav1.Condition{ready}
	if isStalled {
		conditions = append(conditions, stalled)
	}
	return samplev1alpha1.FooStatus{ObservedGeneration: 1, Conditions: conditions}
}

// stalledStatus returns the status of a Foo whose Deployment was refused for a long time.
func stalledStatus(generation int64) samplev1alpha1.FooStatus {
	status := footest.RefusedStatus()
	status.Conditions = append(status.Conditions, metav1.Condition{
		Type: "Stalled", Status: metav1.ConditionTrue, Reason: "DeploymentFailed", Message: "The API server refused: exceeded quota", ObservedGeneration: generation,
	})
	return status
}

func TestJudge(t *testing.T) {
	no := func(reason, message string) plan.Readiness {
		return plan.Readiness{Status: metav1.ConditionFalse, Reason: reason, Message: message}
	}
	failed := func(message string) plan.Readiness { return no("DeploymentFailed", message) }
	rollingOut := func(message string) plan.Readiness {
		return no("Progressing", `Deployment "web" is rolling out: `+message)
	}
	couldNotBe := func(message string) plan.Readiness {
		return no("Progressing", `Deployment "web" could not be `+message)
	}
	otherwise := func(message string) plan.Readiness {
		return failed(`The API server stored Deployment "web" with different values than requested: ` + message)
	}
	suspended := func(message string) plan.Readiness { return no("Suspended", "spec.suspend is true, so "+message) }
	available := func(pods string) plan.Readiness {
		return plan.Readiness{Status: metav1.ConditionTrue, Reason: "Available", Message: `Deployment "web" has ` + pods + " Pods available"}
	}
	heldBack := no("Progressing", `Deployment "web" is paused with changes to roll out: `+
		`resume it with 'kubectl rollout resume -n team-a deployment web'`)
	wasStalled, wasRefused := footest.WithStatus(stalledStatus(1)), footest.WithStatus(footest.RefusedStatus())
	wasReady, wasUnavailable := footest.WithStatus(footest.Settled("a")), footest.WithStatus(readyStatus("False", "Unavailable", "", false))
	stuckStatus := readyStatus("False", "DeploymentFailed", `Deployment "web" does not roll out: no`, true)
	const notCollected = `Deployment "web" belongs to an earlier Foo of this name, which is gone, and the garbage collector has not deleted it: ` +
		`check that kube-controller-manager runs, or delete the Deployment`
	uncollected, conflictOfEarlier := no("DeploymentConflict", notCollected), readyStatus("False", "DeploymentConflict", notCollected, true)
	ofEarlier := footest.Deployment("a", footest.WithOwner("samplecontroller.k8s.io/v1alpha1", "Foo", "uid-earlier"))
	autoscaler := plan.Manager{Name: "kube-controller-manager", Subresource: "scale"}
	newer, refused, down := footest.WithGeneration(2), apierrors.NewBadRequest("no"), errors.New("down")
	for end, rows := range map[bool]map[string]struct {
		foo    *samplev1alpha1.Foo
		result result
		want   plan.Readiness
	}{
		false: { // it may change by itself
			"all Pods available": {a(), has(), available("2 of 2")},
			"scaled to 0 by others": {
				a(footest.WithoutReplicas), has(footest.ScaledTo(0), withCounts(0, 0, 0)), available("0 of 0")},
			"suspended, and nothing to do":     {a(footest.Suspended), has(), available("2 of 2")},
			"paused with nothing to do":        {a(), has(paused), available("2 of 2")},
			"a failure that is over":           {a(), has(withFailure("ReplicaFailure", "False", "old news")), available("2 of 2")},
			"some Pods available":              {a(), has(withCounts(2, 2, 1)), rollingOut("1 of 2 Pods available")},
			"Pods of an old template remain":   {a(), has(withCounts(3, 2, 3)), rollingOut("3 of 2 Pods available")},
			"an unavailable old Pod remains":   {a(), has(withCounts(3, 2, 2)), rollingOut("2 of 2 Pods available")},
			"Pods of the new template missing": {a(), has(withCounts(2, 1, 2)), rollingOut("2 of 2 Pods available")},
			"the status is of an older spec":   {a(), has(footest.AtGeneration(2)), rollingOut("2 of 2 Pods available")},
			"paused, and scaled":               {a(), has(withCounts(2, 2, 1), paused), rollingOut("1 of 2 Pods available")},
			"the ReplicaSet can't create Pods": {a(), has(withFailure("ReplicaFailure", "True", "exceeded quota: pods=0")),
				failed(`Deployment "web" cannot create its Pods: exceeded quota: pods=0`)},
			"an earlier one stays in service": {
				a(), result{Action: plan.ActionNone, Current: footest.Deployment("a", withCounts(2, 2, 1)), InService: []plan.Object{footest.Deployment("a", footest.Named("old"))}},
				rollingOut(`1 of 2 Pods available; Deployment "old" stays in service until then`)},
			"not created yet": {a(), result{Action: plan.ActionCreate}, no("Progressing", `Deployment "web" is being created`)},
			"a cache that is stale says nothing": {
				a(), result{Action: plan.ActionCreate, Failure: errors.New("stale"), Stale: true},
				plan.Readiness{Status: metav1.ConditionTrue, Reason: "Available", Message: "Everything that the Foo specifies exists"}},
			"the API server refuses": {a(), failing(&failure.CallError{Doing: "creating", Done: "created", Kind: "Deployment", Name: "web", Err: refused}),
				failed(`The API server refused: creating Deployment "web": no`)},
			"the API server refuses a new spec of what was stalled": {
				a(newer, wasStalled), failing(refused), failed("The API server refused: no")},
			"the API server fails": {
				a(), failing(failedTo("updated", internalError("no"))), couldNotBe("updated yet: Internal error occurred: no")},
			"an answer that is not UTF-8": {a(), failing(failedTo("updated", internalError("verf\xfcgbar"))),
				couldNotBe("updated yet: Internal error occurred: verf\uFFFDgbar")},
			"the API server hangs": {a(), failing(failedTo("created", fmt.Errorf("Post: %w", context.DeadlineExceeded))),
				couldNotBe("created yet: the API server did not answer in time")},
			"the API server is unreachable after a read": {
				a(), failing(errors.New("reading the Foo: read tcp 127.0.0.1:49152")),
				couldNotBe("updated yet: the API server could not be reached")},
			"an earlier Deployment can't be deleted": {
				a(), failing(&failure.CallError{Done: "deleted", Kind: "Deployment", Name: "old", Err: internalError("no")}),
				no("Progressing", `Deployment "old" could not be deleted yet: Internal error occurred: no`)},
			"an outage after a refusal of the same spec": {a(wasRefused), failing(down),
				failed("The API server refused: exceeded quota")},
			"an outage after a refusal of an older spec": {a(newer, wasRefused), failing(down),
				couldNotBe("updated yet: the API server could not be reached")},
			"another number of Pods is stored than wanted": {
				a(footest.WithReplicas(5)), has(), otherwise("spec.replicas is 2, not 5")},
			"no container and no number of Pods are stored": {a(), has(withNothing),
				otherwise("spec.replicas is unset, not 2; spec.template.spec.containers[nginx] is missing")},
			"another image and label are stored than wanted": {
				a(), has(footest.WithImage("mirror/nginx"), footest.WithTemplateLabel("app", "x")),
				otherwise(`spec.template.metadata.labels.app is "x", not "nginx"; spec.template.spec.containers[nginx].image is "mirror/nginx", not "nginx:latest"`)},
			"the owner was not stored": {a(), has(footest.WithoutOwner), otherwise("this Foo is not its controller")},
			"the Deployment is being deleted": {a(), result{Action: plan.ActionWait, Named: footest.Deployment("a")},
				no("Terminating", `Deployment "web" is being deleted; it will be recreated once it is gone`)},
			"the Deployment of another is being deleted": {a(), result{Action: plan.ActionWait, Named: footest.Deployment("b")},
				no("Terminating", `Deployment "web" is being deleted; the Foo gets its own once it is gone`)},
			"the Deployment is being deleted, suspended": {a(footest.Suspended), result{Action: plan.ActionWait, Named: footest.Deployment("a")},
				no("Terminating", `Deployment "web" is being deleted; spec.suspend is true, so it will not be recreated`)},
			"an earlier Foo's Deployment waits for its collection": {a(), result{Action: plan.ActionLeave, Named: ofEarlier},
				no("Progressing", `Deployment "web" belongs to an earlier Foo of this name, which is gone, and waits for the garbage collector`)},
			"the name will be released": {a(), result{Action: plan.ActionLeave, Named: footest.Deployment("b"), Releasing: footest.Foo("b")},
				no("Progressing", `Deployment "web" belongs to Foo "b", which no longer wants it and deletes it once its new Deployment is ready`)},
			"its owner is being deleted": {a(), result{Action: plan.ActionLeave, Named: footest.Deployment("b"), Releasing: footest.Foo("b", footest.BeingDeleted)},
				no("Progressing", `Deployment "web" belongs to Foo "b", which is being deleted`)},
			"some Pods of a finished rollout": {a(), has(withCounts(2, 2, 1), rolledOut), no("Progressing", `Deployment "web" has 1 of 2 Pods available`)},
			"some Pods lost":                  {a(wasReady), has(withCounts(2, 2, 1), rolledOut), no("Degraded", `Deployment "web" has lost Pods: 1 of 2 available`)},
			"all Pods lost":                   {a(wasReady), has(withCounts(2, 2, 0), rolledOut), no("Unavailable", `Deployment "web" has lost Pods: 0 of 2 available`)},
			"one Pod of none came back":       {a(wasUnavailable), has(withCounts(2, 2, 1), rolledOut), no("Degraded", `Deployment "web" has lost Pods: 1 of 2 available`)},
			"Pods lost during a rollout":      {a(wasReady), has(withCounts(2, 2, 1)), rollingOut("1 of 2 Pods available")},
			"ready with an older spec":        {a(wasReady, newer), has(withCounts(2, 2, 1), rolledOut), no("Progressing", `Deployment "web" has 1 of 2 Pods available`)},
			"scaled by others":                {a(wasReady), has(withCounts(1, 1, 1), rolledOut), no("Progressing", `Deployment "web" has 1 of 2 Pods available`)},
			"paused, and scaled from none":    {a(), has(withCounts(0, 0, 0), paused, hadReplicaSet), rollingOut("0 of 2 Pods available")},
			"an outage after a failed rollout": {a(footest.WithStatus(stuckStatus)), failing(down),
				couldNotBe("updated yet: the API server could not be reached")},
			"a refusal after a failed rollout": {a(footest.WithStatus(stuckStatus)), failing(refused), failed("The API server refused: no")},
			"a live read fails": {a(), failing(&failure.CallError{Doing: "reading", Kind: "Deployment", Name: "web", Err: down}),
				couldNotBe("updated yet: the API server could not be reached")},
			"a live read of an earlier Deployment fails": {a(), failing(&failure.CallError{Doing: "reading", Kind: "Deployment", Name: "old", Err: down}),
				no("Progressing", `Deployment "old" could not be checked yet: the API server could not be reached`)},
			"the Foo is being deleted as well": {a(footest.BeingDeleted),
				result{Action: plan.ActionWait, Current: footest.Deployment("a", withFailure("ReplicaFailure", "True", "quota"))},
				no("Terminating", "The Foo is being deleted")},
		},
		true: { // someone has to act
			"suspended before its creation": {a(footest.Suspended), result{Action: plan.ActionSuspend, Pending: plan.ActionCreate},
				suspended(`Deployment "web" is not created`)},
			"suspended and drifted": {a(footest.Suspended),
				result{Action: plan.ActionSuspend, Pending: plan.ActionUpdate, Current: footest.Deployment("a", footest.ScaledTo(5))},
				suspended(`Deployment "web" is not updated: spec.replicas is 5, not 2`)},
			"suspended after a rename": {
				a(footest.Suspended), result{Action: plan.ActionSuspend, Pending: plan.ActionNone, Current: footest.Deployment("a")},
				suspended("no Deployment with an earlier name is deleted")},
			"the rollout makes no progress": {a(), has(withFailure("Progressing", "False", "the name is too long")),
				failed(`Deployment "web" does not roll out: the name is too long`)},
			"the API server has refused for long": {a(), result{Action: plan.ActionUpdate, Failure: refused, Lasts: true},
				failed("The API server refused: no")},
			"a refusal that stalled before a start": {a(wasStalled), failing(refused), failed("The API server refused: no")},
			"an outage of what was stalled":         {a(wasStalled), failing(down), failed("The API server refused: exceeded quota")},
			"an update is stored otherwise": {
				a(footest.WithReplicas(5)), result{Action: plan.ActionUpdate, Current: footest.Deployment("a"), Recurs: true},
				otherwise("spec.replicas is 2, not 5")},
			"another client changes it back": {
				a(), fought(plan.Fight{Write: plan.ActionUpdate, Name: "web", By: plan.Manager{Name: "scaler"}, Drift: "spec.replicas is 9, not 2"}),
				failed(`Deployment "web" is changed back after each repair, most recently by "scaler": spec.replicas is 9, not 2. ` +
					`Stop that client, or change the Foo to match`)},
			"an autoscaler changes it back": {
				a(), fought(plan.Fight{Write: plan.ActionUpdate, Name: "web", By: autoscaler, Drift: "spec.replicas is 3, not 2"}),
				failed(`Deployment "web" is changed back after each repair, most recently by "kube-controller-manager" through the subresource "scale": ` +
					`spec.replicas is 3, not 2. If that is an autoscaler, omit spec.replicas or let it scale the Foo; otherwise stop that client`)},
			"another client deletes it": {
				a(), fought(plan.Fight{Write: plan.ActionCreate, Name: "web"}),
				failed(`Deployment "web" is deleted after each creation. Stop the client that deletes it, or suspend or delete the Foo`)},
			"another client creates an earlier one again": {
				a(), fought(plan.Fight{Write: plan.ActionDelete, Name: "old", By: plan.Manager{Name: "restore"}}),
				failed(`Deployment "old", which is no longer wanted, is created again after each deletion, most recently by "restore". Stop that client`)},
			"nobody collects what an earlier Foo had": {
				a(), result{Action: plan.ActionLeave, Named: ofEarlier, Lasts: true}, uncollected},
			"nobody has collected what an earlier Foo had, before a start": {
				a(footest.WithStatus(conflictOfEarlier)), result{Action: plan.ActionLeave, Named: ofEarlier}, uncollected},
			"paused after its deadline":            {a(), has(withCounts(3, 1, 3), paused, withCondition("Progressing", "False", "too late", "")), heldBack},
			"paused, with Pods of an old template": {a(), has(withCounts(3, 1, 3), paused), heldBack},
			"paused before there was a Pod":        {a(), has(withCounts(0, 0, 0), paused), heldBack},
			"another Foo controls the Deployment": {a(), result{Action: plan.ActionLeave, Named: footest.Deployment("b")},
				no("DeploymentConflict", footest.ConflictWithB)},
			"the Deployment is an orphan": {
				a(), result{Action: plan.ActionLeave, Named: footest.Deployment("a", footest.WithoutOwner)},
				no("DeploymentConflict", footest.ConflictWithNobody)},
		},
	} {
		for name, row := range rows {
			t.Run(name, func(t *testing.T) {
				row.want.Stalled = end
				footest.ExpectEqual(t, "the readiness", row.want, readinessAfter(row.foo, row.result))
			})
		}
	}
}

func a(options ...footest.FooOption) *samplev1alpha1.Foo { return footest.Foo("a", options...) }

// has returns a child that a sync leaves unchanged.
func has(options ...footest.ChildOption) result {
	return result{Action: plan.ActionNone, Current: footest.Deployment("a", options...)}
}

// fought returns a child that another client changes each time.
func fought(fight plan.Fight) result {
	return result{Action: plan.ActionNone, Current: footest.Deployment("a"), Fight: &fight}
}

// failing returns a child whose update failed.
func failing(err error) result {
	return result{Action: plan.ActionUpdate, Current: footest.Deployment("a"), Failure: err}
}

func internalError(text string) error { return apierrors.NewInternalError(errors.New(text)) }

// withNothing removes from a Deployment the fields that its Foo owns.
func withNothing(child footest.Object) {
	deployment := child.(*appsv1.Deployment)
	deployment.Spec.Replicas, deployment.Spec.Template.Spec.Containers = nil, nil
}

func failedTo(done string, err error) error {
	return &failure.CallError{Done: done, Kind: "Deployment", Name: "web", Err: err}
}

var paused = footest.Changed(func(deployment *appsv1.Deployment) { deployment.Spec.Paused = true })

// withCounts sets the numbers of Pods in a Deployment's status: all Pods, those with the newest
// template, and the available ones.
func withCounts(replicas, updated, available int32) footest.ChildOption {
	return footest.Changed(func(deployment *appsv1.Deployment) {
		deployment.Status.Replicas, deployment.Status.UpdatedReplicas, deployment.Status.AvailableReplicas = replicas, updated, available
	})
}

var (
	rolledOut     = withCondition("Progressing", "True", "", newReplicaSetAvailable)
	hadReplicaSet = footest.Changed(func(deployment *appsv1.Deployment) { deployment.Annotations = withRevision })
)

// withFailure adds conditions to a Deployment's status, one of which is about its rollout.
func withFailure(about, status, message string) footest.ChildOption {
	return withCondition(about, status, message, "")
}

func withCondition(about, status, message, reason string) footest.ChildOption {
	return footest.Changed(func(deployment *appsv1.Deployment) {
		deployment.Status.Conditions = []appsv1.DeploymentCondition{
			{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionFalse, Message: "minimum availability"},
			{Type: appsv1.DeploymentConditionType(about), Status: corev1.ConditionStatus(status), Message: message, Reason: reason},
		}
	})
}

// Where users can't choose the name, the remedies differ.
func TestConflictOfAChildWhoseNameIsFixed(t *testing.T) {
	row := *shipped
	row.NamedBy = ""
	for want, taken := range map[string]*appsv1.Deployment{
		`Deployment "web" belongs to "Foo" "b": delete the owner`: footest.Deployment("b"),
		// The API server accepts any kind and name of an owner.
		`Deployment "web" belongs to "\x1b\r\n\u009b" "\u202e": delete the owner`: footest.Deployment("b", footest.Changed(func(deployment *appsv1.Deployment) {
			deployment.OwnerReferences[0].Kind, deployment.OwnerReferences[0].Name = "\x1b\r\n\u009b", "\u202e"
		})),
		`Deployment "web" exists and has no controller: delete the Deployment, or hand it over with ` +
			`'kubectl annotate -n team-a deployment web samplecontroller.k8s.io/adopt-by=a'`: footest.Deployment("a", footest.WithoutOwner),
	} {
		step, outcome := result{Action: plan.ActionLeave, Named: taken}.of(&row, footest.Foo("a"))
		footest.ExpectEqual(t, "the message", want, step.Readiness(&outcome).Message)
	}
}
