// SPDX-License-Identifier: Apache-2.0

// Tests of what a Foo reports of its Deployment.

package plan

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"unicode/utf8"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/test/footest"
)

// stalledStatus is that of a Foo whose Deployment was refused for long.
func stalledStatus(generation int64) samplev1alpha1.FooStatus {
	status := footest.RefusedStatus()
	status.Conditions = append(status.Conditions, metav1.Condition{
		Type: "Stalled", Status: metav1.ConditionTrue, Reason: "DeploymentFailed", Message: "The API server refused: exceeded quota", ObservedGeneration: generation,
	})
	return status
}

func TestJudge(t *testing.T) {
	available := Verdict{Status: metav1.ConditionTrue, Reason: "Available", Message: `Deployment "web" has 2 of 2 Pods available`}
	heldBack := Verdict{Status: metav1.ConditionFalse, Reason: "Progressing", Message: `Deployment "web" is paused and has something to roll out: ` +
		`let it with 'kubectl rollout resume -n team-a deployment web'`, Stalled: true}
	rollingOut := func(message string) Verdict {
		return Verdict{Status: metav1.ConditionFalse, Reason: "Progressing", Message: `Deployment "web" is rolling out: ` + message}
	}
	for name, row := range map[string]struct {
		foo    *samplev1alpha1.Foo
		result Child
		want   Verdict
	}{
		"all Pods available": {footest.Foo("a"), Child{Action: ActionNone, Current: footest.Deployment("a")}, available},
		"scaled to 0 by others": {
			footest.Foo("a", footest.WithoutReplicas), Child{Action: ActionNone, Current: footest.Deployment("a", footest.ScaledTo(0), withCounts(0, 0, 0))},
			Verdict{Status: metav1.ConditionTrue, Reason: "Available", Message: `Deployment "web" has 0 of 0 Pods available`},
		},
		"suspended before its creation": {
			footest.Foo("a", footest.Suspended), Child{Action: ActionSuspend, Pending: ActionCreate},
			Verdict{Status: metav1.ConditionFalse, Reason: "Suspended", Message: `spec.suspend is true, so Deployment "web" is not created`, Stalled: true},
		},
		"suspended and drifted": {
			footest.Foo("a", footest.Suspended), Child{Action: ActionSuspend, Pending: ActionUpdate, Current: footest.Deployment("a", footest.ScaledTo(5))},
			Verdict{Status: metav1.ConditionFalse, Reason: "Suspended", Message: `spec.suspend is true, so Deployment "web" is not updated: spec.replicas is 5, not 2`, Stalled: true},
		},
		"suspended after a rename": {
			footest.Foo("a", footest.Suspended), Child{Action: ActionSuspend, Pending: ActionNone, Current: footest.Deployment("a")},
			Verdict{Status: metav1.ConditionFalse, Reason: "Suspended", Message: `spec.suspend is true, so each Deployment of an earlier name stays`, Stalled: true},
		},
		"suspended, and nothing to do": {footest.Foo("a", footest.Suspended), Child{Action: ActionNone, Current: footest.Deployment("a")}, available},
		"some Pods available":          {footest.Foo("a"), Child{Action: ActionNone, Current: footest.Deployment("a", withCounts(2, 2, 1))}, rollingOut("1 available of 2 wanted Pods")},
		"Pods of an old template remain": {
			footest.Foo("a"), Child{Action: ActionNone, Current: footest.Deployment("a", withCounts(3, 2, 3))}, rollingOut("3 available of 2 wanted Pods"),
		},
		"an unavailable old Pod remains": {
			footest.Foo("a"), Child{Action: ActionNone, Current: footest.Deployment("a", withCounts(3, 2, 2))}, rollingOut("2 available of 2 wanted Pods"),
		},
		"Pods of the new template missing": {
			footest.Foo("a"), Child{Action: ActionNone, Current: footest.Deployment("a", withCounts(2, 1, 2))}, rollingOut("2 available of 2 wanted Pods"),
		},
		"the Deployment's status is of an older spec": {
			footest.Foo("a"), Child{Action: ActionNone, Current: footest.Deployment("a", footest.AtGeneration(2))}, rollingOut("2 available of 2 wanted Pods"),
		},
		"the ReplicaSet can't create Pods": {
			footest.Foo("a"), Child{Action: ActionNone, Current: footest.Deployment("a", withReplicaFailure("exceeded quota: pods=0"))},
			Verdict{Status: metav1.ConditionFalse, Reason: "DeploymentFailed", Message: `Deployment "web" cannot create its Pods: exceeded quota: pods=0`},
		},
		"the ReplicaSet can't be created, or the rollout makes no progress": {
			footest.Foo("a"), Child{Action: ActionNone, Current: footest.Deployment("a", footest.Changed(func(deployment *appsv1.Deployment) {
				deployment.Status.Conditions = []appsv1.DeploymentCondition{
					{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionFalse, Message: "minimum availability"},
					{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionFalse, Message: "the name is too long"},
				}
			}))},
			Verdict{Status: metav1.ConditionFalse, Reason: "DeploymentFailed", Message: `Deployment "web" does not roll out: the name is too long`, Stalled: true},
		},
		"a failure that is over": {
			footest.Foo("a"), Child{Action: ActionNone, Current: footest.Deployment("a", withReplicaFailure("old news"), footest.Changed(func(deployment *appsv1.Deployment) {
				deployment.Status.Conditions[0].Status = corev1.ConditionFalse
			}))}, available,
		},
		"the API server refuses": {
			footest.Foo("a"), Child{Action: ActionUpdate, Current: footest.Deployment("a"), Failure: apierrors.NewBadRequest("no")},
			Verdict{Status: metav1.ConditionFalse, Reason: "DeploymentFailed", Message: "The API server refused: no"},
		},
		"the API server has refused for long": {
			footest.Foo("a"), Child{Action: ActionUpdate, Current: footest.Deployment("a"), Failure: apierrors.NewBadRequest("no"), Refused: true},
			Verdict{Status: metav1.ConditionFalse, Reason: "DeploymentFailed", Message: "The API server refused: no", Stalled: true},
		},
		"the API server refuses what was stalled before a restart": {
			footest.Foo("a", footest.WithStatus(stalledStatus(1))), Child{Action: ActionUpdate, Current: footest.Deployment("a"), Failure: apierrors.NewBadRequest("no")},
			Verdict{Status: metav1.ConditionFalse, Reason: "DeploymentFailed", Message: "The API server refused: no", Stalled: true},
		},
		"the API server refuses a new spec of what was stalled": {
			footest.Foo("a", footest.WithGeneration(2), footest.WithStatus(stalledStatus(1))), Child{Action: ActionUpdate, Current: footest.Deployment("a"), Failure: apierrors.NewBadRequest("no")},
			Verdict{Status: metav1.ConditionFalse, Reason: "DeploymentFailed", Message: "The API server refused: no"},
		},
		"an outage of what was stalled": {
			footest.Foo("a", footest.WithStatus(stalledStatus(1))), Child{Action: ActionUpdate, Current: footest.Deployment("a"), Failure: errors.New("down")},
			Verdict{Status: metav1.ConditionFalse, Reason: "DeploymentFailed", Message: "The API server refused: exceeded quota", Stalled: true},
		},
		"an update is stored otherwise": {
			footest.Foo("a", footest.WithReplicas(5)), Child{Action: ActionUpdate, Current: footest.Deployment("a"), Recurs: true},
			Verdict{Status: metav1.ConditionFalse, Reason: "DeploymentFailed", Message: `The API server stored Deployment "web" otherwise than asked: spec.replicas is 2, not 5`, Stalled: true},
		},
		"somebody changes it back": {
			footest.Foo("a"), Child{Action: ActionNone, Current: footest.Deployment("a"), Opponent: "scaler", ChangedBack: "spec.replicas is 9, not 2"},
			Verdict{Status: metav1.ConditionFalse, Reason: "DeploymentFailed", Message: `Deployment "web" is changed back after each repair, last by "scaler": ` +
				`spec.replicas is 9, not 2. Stop whoever does it, or make the Foo ask for the same`, Stalled: true},
		},
		"an answer that is not UTF-8": {
			footest.Foo("a"), Child{Action: ActionCreate, Failure: failedTo("created", apierrors.NewInternalError(errors.New("nicht verf\xfcgbar")))},
			Verdict{Status: metav1.ConditionFalse, Reason: "Progressing", Message: "Deployment \"web\" could not be created yet: Internal error occurred: nicht verf\uFFFDgbar"},
		},
		"an earlier one stays in service": {
			footest.Foo("a"), Child{Action: ActionNone, Current: footest.Deployment("a", withCounts(2, 2, 1)), InService: []Object{footest.Deployment("a", footest.Named("old"))}},
			rollingOut(`1 available of 2 wanted Pods; Deployment "old" stays in service until then`),
		},
		"a cache that is stale says nothing": {footest.Foo("a"), Child{Action: ActionCreate, Failure: errors.New("stale"), Stale: true}, Verdict{Status: metav1.ConditionTrue, Reason: "Available", Message: "All that the Foo asks for is there"}},
		"the API server fails": {
			footest.Foo("a"), Child{Action: ActionUpdate, Current: footest.Deployment("a"), Failure: failedTo("updated", apierrors.NewInternalError(errors.New("a webhook is down")))},
			Verdict{Status: metav1.ConditionFalse, Reason: "Progressing", Message: `Deployment "web" could not be updated yet: Internal error occurred: a webhook is down`},
		},
		"the API server hangs": {
			footest.Foo("a"), Child{Action: ActionCreate, Failure: failedTo("created", fmt.Errorf("Post: %w", context.DeadlineExceeded))},
			Verdict{Status: metav1.ConditionFalse, Reason: "Progressing", Message: `Deployment "web" could not be created yet: the API server did not answer in time`},
		},
		"the API server is unreachable after the Foo was read": {
			footest.Foo("a"), Child{Action: ActionUpdate, Current: footest.Deployment("a"), Failure: errors.New("reading the Foo: read tcp 127.0.0.1:49152: connection reset")},
			Verdict{Status: metav1.ConditionFalse, Reason: "Progressing", Message: `Deployment "web" could not be updated yet: the API server could not be reached`},
		},
		"an earlier Deployment can't be deleted": {
			footest.Foo("a"), Child{Action: ActionNone, Current: footest.Deployment("a"), Failure: &WriteError{Doing: "deleting the earlier", Done: "deleted", Kind: "Deployment", Name: "old", Err: apierrors.NewInternalError(errors.New("no"))}},
			Verdict{Status: metav1.ConditionFalse, Reason: "Progressing", Message: `Deployment "old" could not be deleted yet: Internal error occurred: no`},
		},
		"an outage after a refusal of the same spec": {
			footest.Foo("a", footest.WithStatus(footest.RefusedStatus())), Child{Action: ActionUpdate, Current: footest.Deployment("a"), Failure: errors.New("down")},
			Verdict{Status: metav1.ConditionFalse, Reason: "DeploymentFailed", Message: "The API server refused: exceeded quota"},
		},
		"an outage after a refusal of an older spec": {
			footest.Foo("a", footest.WithGeneration(2), footest.WithStatus(footest.RefusedStatus())), Child{Action: ActionUpdate, Current: footest.Deployment("a"), Failure: errors.New("down")},
			Verdict{Status: metav1.ConditionFalse, Reason: "Progressing", Message: `Deployment "web" could not be updated yet: the API server could not be reached`},
		},
		"another number of Pods is stored than wanted": {
			footest.Foo("a", footest.WithReplicas(5)), Child{Action: ActionUpdate, Current: footest.Deployment("a")},
			Verdict{Status: metav1.ConditionFalse, Reason: "DeploymentFailed", Message: `The API server stored Deployment "web" otherwise than asked: spec.replicas is 2, not 5`},
		},
		"another image and label are stored than wanted": {
			footest.Foo("a"), Child{Action: ActionNone, Current: footest.Deployment("a", footest.WithImage("mirror/nginx"), footest.WithTemplateLabel("app", "x"))},
			Verdict{Status: metav1.ConditionFalse, Reason: "DeploymentFailed", Message: `The API server stored Deployment "web" otherwise than asked: ` +
				`spec.template.metadata.labels.app is "x", not "nginx"; spec.template.spec.containers[nginx].image is "mirror/nginx", not "nginx:latest"`},
		},
		"no container and no number of Pods are stored": {
			footest.Foo("a"), Child{Action: ActionNone, Current: footest.Deployment("a", footest.Changed(func(deployment *appsv1.Deployment) {
				deployment.Spec.Replicas, deployment.Spec.Template.Spec.Containers = nil, nil
			}))},
			Verdict{Status: metav1.ConditionFalse, Reason: "DeploymentFailed", Message: `The API server stored Deployment "web" otherwise than asked: ` +
				`spec.replicas is missing, not 2; spec.template.spec.containers[nginx] is missing`},
		},
		"the owner was not stored": {
			footest.Foo("a"), Child{Action: ActionAdopt, Current: footest.Deployment("a", footest.WithoutOwner)},
			Verdict{Status: metav1.ConditionFalse, Reason: "DeploymentFailed", Message: `The API server stored Deployment "web" otherwise than asked: this Foo is not its controller`},
		},
		"paused, with Pods of an old template": {
			footest.Foo("a"), Child{Action: ActionNone, Current: footest.Deployment("a", withCounts(3, 1, 3), paused)}, heldBack,
		},
		"paused before there was a Pod": {
			footest.Foo("a"), Child{Action: ActionNone, Current: footest.Deployment("a", withCounts(0, 0, 0), paused)}, heldBack,
		},
		"paused, and scaled": {
			footest.Foo("a"), Child{Action: ActionNone, Current: footest.Deployment("a", withCounts(2, 2, 1), paused)}, rollingOut("1 available of 2 wanted Pods"),
		},
		"paused with nothing to do": {footest.Foo("a"), Child{Action: ActionNone, Current: footest.Deployment("a", paused)}, available},
		"not created yet": {
			footest.Foo("a"), Child{Action: ActionCreate},
			Verdict{Status: metav1.ConditionFalse, Reason: "Progressing", Message: `Deployment "web" is being created`},
		},
		"another Foo controls the Deployment": {
			footest.Foo("a"), Child{Action: ActionLeave, Named: footest.Deployment("b")}, Verdict{Status: metav1.ConditionFalse, Reason: "DeploymentConflict", Message: footest.ConflictWithB, Stalled: true},
		},
		"the Deployment is an orphan": {
			footest.Foo("a"), Child{Action: ActionLeave, Named: footest.Deployment("a", footest.WithoutOwner)},
			Verdict{Status: metav1.ConditionFalse, Reason: "DeploymentConflict", Message: footest.ConflictWithNobody, Stalled: true},
		},
		"the Deployment is being deleted": {
			footest.Foo("a"), Child{Action: ActionWait, Current: footest.Deployment("a", footest.Terminating)},
			Verdict{Status: metav1.ConditionFalse, Reason: "Terminating", Message: `Deployment "web" is being deleted; it is created again once it is gone`},
		},
		"the Foo is being deleted, which takes precedence": {
			footest.Foo("a", footest.BeingDeleted), Child{Action: ActionWait, Current: footest.Deployment("a", withReplicaFailure("quota"))},
			Verdict{Status: metav1.ConditionFalse, Reason: "Terminating", Message: "The Foo is being deleted"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := verdictAfter(row.foo, row.result); got != row.want {
				t.Errorf("judge returned %+v, not %+v", got, row.want)
			}
		})
	}
}

func failedTo(done string, err error) error { return &WriteError{"", done, "Deployment", "web", err} }

var paused = footest.Changed(func(deployment *appsv1.Deployment) { deployment.Spec.Paused = true })

func TestTruncate(t *testing.T) {
	for name, row := range map[string]struct {
		text string
		want string
	}{
		"short enough":              {"12345678", "12345678"},
		"too long":                  {"123456789", "12345..."},
		"a character at the border": {"1234ééé", "1234..."},
	} {
		t.Run(name, func(t *testing.T) {
			got := truncate(row.text, 8)
			if got != row.want || !utf8.ValidString(got) {
				t.Errorf("truncate(%q) = %q, not %q", row.text, got, row.want)
			}
		})
	}
}

// withCounts sets the numbers of Pods in a Deployment's status: all, those of the newest
// template, and available ones.
func withCounts(replicas, updated, available int32) footest.ChildOption {
	return footest.Changed(func(deployment *appsv1.Deployment) {
		deployment.Status.Replicas, deployment.Status.UpdatedReplicas, deployment.Status.AvailableReplicas = replicas, updated, available
	})
}

func withReplicaFailure(message string) footest.ChildOption {
	return footest.Changed(func(deployment *appsv1.Deployment) {
		deployment.Status.Conditions = []appsv1.DeploymentCondition{{
			Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue, Message: message,
		}}
	})
}

// Where users can't choose the name, the remedies are others.
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
		footest.ExpectEqual(t, "the message", want, row.judgeConflict(footest.Foo("a"), taken).Message)
	}
}
