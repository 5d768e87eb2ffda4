/*
Copyright The Sample Controller Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

// Tests of the status and its condition.

package plan

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/sample-controller/internal/footest"
	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

func TestJudge(t *testing.T) {
	available := Verdict{metav1.ConditionTrue, "Available", `Deployment "web" has 2 of 2 Pods available`}
	heldBack := Verdict{metav1.ConditionFalse, "Progressing", `Deployment "web" is paused and has something to roll out: ` +
		`let it with 'kubectl rollout resume -n team-a deployment web'`}
	rollingOut := func(message string) Verdict {
		return Verdict{metav1.ConditionFalse, "Progressing", `Deployment "web" is rolling out: ` + message}
	}
	for name, row := range map[string]struct {
		foo    *samplev1alpha1.Foo
		result result
		want   Verdict
	}{
		"all Pods available": {footest.Foo("a"), result{ActionNone, nil, footest.Deployment("a"), "", nil}, available},
		"scaled to 0 by others": {
			footest.Foo("a", footest.WithoutReplicas), result{ActionNone, nil, footest.Deployment("a", footest.ScaledTo(0), withCounts(0, 0, 0)), "", nil},
			Verdict{metav1.ConditionTrue, "Available", `Deployment "web" has 0 of 0 Pods available`},
		},
		"some Pods available": {footest.Foo("a"), result{ActionNone, nil, footest.Deployment("a", withCounts(2, 2, 1)), "", nil}, rollingOut("1 available of 2 wanted Pods")},
		"Pods of an old template remain": {
			footest.Foo("a"), result{ActionNone, nil, footest.Deployment("a", withCounts(3, 2, 3)), "", nil}, rollingOut("3 available of 2 wanted Pods"),
		},
		"an unavailable old Pod remains": {
			footest.Foo("a"), result{ActionNone, nil, footest.Deployment("a", withCounts(3, 2, 2)), "", nil}, rollingOut("2 available of 2 wanted Pods"),
		},
		"Pods of the new template missing": {
			footest.Foo("a"), result{ActionNone, nil, footest.Deployment("a", withCounts(2, 1, 2)), "", nil}, rollingOut("2 available of 2 wanted Pods"),
		},
		"the Deployment's status is of an older spec": {
			footest.Foo("a"), result{ActionNone, nil, footest.Deployment("a", footest.AtGeneration(2)), "", nil}, rollingOut("2 available of 2 wanted Pods"),
		},
		"the ReplicaSet can't create Pods": {
			footest.Foo("a"), result{ActionNone, nil, footest.Deployment("a", withReplicaFailure("exceeded quota: pods=0")), "", nil},
			Verdict{metav1.ConditionFalse, "DeploymentFailed", `Deployment "web" cannot create its Pods: exceeded quota: pods=0`},
		},
		"the ReplicaSet can't be created, or the rollout makes no progress": {
			footest.Foo("a"), result{ActionNone, nil, footest.Deployment("a", func(deployment *appsv1.Deployment) {
				deployment.Status.Conditions = []appsv1.DeploymentCondition{
					{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionFalse, Message: "minimum availability"},
					{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionFalse, Message: "the name is too long"},
				}
			}), "", nil},
			Verdict{metav1.ConditionFalse, "DeploymentFailed", `Deployment "web" does not roll out: the name is too long`},
		},
		"a failure that is over": {
			footest.Foo("a"), result{ActionNone, nil, footest.Deployment("a", withReplicaFailure("old news"), func(deployment *appsv1.Deployment) {
				deployment.Status.Conditions[0].Status = corev1.ConditionFalse
			}), "", nil}, available,
		},
		"the API server refuses": {
			footest.Foo("a"), result{ActionUpdate, nil, footest.Deployment("a"), "", apierrors.NewBadRequest("no")},
			Verdict{metav1.ConditionFalse, "DeploymentFailed", "The API server refused: no"},
		},
		"the API server fails": {
			footest.Foo("a"), result{ActionUpdate, nil, footest.Deployment("a"), "", failedTo("updated", apierrors.NewInternalError(errors.New("a webhook is down")))},
			Verdict{metav1.ConditionFalse, "Progressing", `Deployment "web" could not be updated yet: Internal error occurred: a webhook is down`},
		},
		"the API server hangs": {
			footest.Foo("a"), result{ActionCreate, nil, nil, "", failedTo("created", fmt.Errorf("Post: %w", context.DeadlineExceeded))},
			Verdict{metav1.ConditionFalse, "Progressing", `Deployment "web" could not be created yet: the API server did not answer in time`},
		},
		"the API server is unreachable after the Foo was read": {
			footest.Foo("a"), result{ActionUpdate, nil, footest.Deployment("a"), "", errors.New("reading the Foo: read tcp 127.0.0.1:49152: connection reset")},
			Verdict{metav1.ConditionFalse, "Progressing", `Deployment "web" could not be updated yet: the API server could not be reached`},
		},
		"an earlier Deployment can't be deleted": {
			footest.Foo("a"), result{ActionNone, nil, footest.Deployment("a"), "", &WriteError{Doing: "deleting the earlier", Done: "deleted", Kind: "Deployment", Name: "old", Err: apierrors.NewInternalError(errors.New("no"))}},
			Verdict{metav1.ConditionFalse, "Progressing", `Deployment "old" could not be deleted yet: Internal error occurred: no`},
		},
		"an outage after a refusal of the same spec": {
			footest.Foo("a", footest.WithStatus(footest.RefusedStatus())), result{ActionUpdate, nil, footest.Deployment("a"), "", errors.New("down")},
			Verdict{metav1.ConditionFalse, "DeploymentFailed", "The API server refused: exceeded quota"},
		},
		"an outage after a refusal of an older spec": {
			footest.Foo("a", footest.WithGeneration(2), footest.WithStatus(footest.RefusedStatus())), result{ActionUpdate, nil, footest.Deployment("a"), "", errors.New("down")},
			Verdict{metav1.ConditionFalse, "Progressing", `Deployment "web" could not be updated yet: the API server could not be reached`},
		},
		"another number of Pods is stored than wanted": {
			footest.Foo("a", footest.WithReplicas(5)), result{ActionUpdate, nil, footest.Deployment("a"), "", nil},
			Verdict{metav1.ConditionFalse, "DeploymentFailed", `The API server stored Deployment "web" otherwise than asked: spec.replicas is 2, not 5`},
		},
		"another image and label are stored than wanted": {
			footest.Foo("a"), result{ActionNone, nil, footest.Deployment("a", footest.WithImage("mirror/nginx"), footest.WithTemplateLabel("app", "x")), "", nil},
			Verdict{metav1.ConditionFalse, "DeploymentFailed", `The API server stored Deployment "web" otherwise than asked: ` +
				`spec.template.metadata.labels.app is "x", not "nginx"; spec.template.spec.containers[nginx].image is "mirror/nginx", not "nginx:latest"`},
		},
		"no container and no number of Pods are stored": {
			footest.Foo("a"), result{ActionNone, nil, footest.Deployment("a", func(deployment *appsv1.Deployment) {
				deployment.Spec.Replicas, deployment.Spec.Template.Spec.Containers = nil, nil
			}), "", nil},
			Verdict{metav1.ConditionFalse, "DeploymentFailed", `The API server stored Deployment "web" otherwise than asked: ` +
				`spec.replicas is missing, not 2; spec.template.spec.containers[nginx] is missing`},
		},
		"the owner was not stored": {
			footest.Foo("a"), result{ActionAdopt, nil, footest.Deployment("a", footest.WithoutOwner), "", nil},
			Verdict{metav1.ConditionFalse, "DeploymentFailed", `The API server stored Deployment "web" otherwise than asked: this Foo is not its controller`},
		},
		"paused, with Pods of an old template": {
			footest.Foo("a"), result{ActionNone, nil, footest.Deployment("a", withCounts(3, 1, 3), paused), "", nil}, heldBack,
		},
		"paused before there was a Pod": {
			footest.Foo("a"), result{ActionNone, nil, footest.Deployment("a", withCounts(0, 0, 0), paused), "", nil}, heldBack,
		},
		"paused, and scaled": {
			footest.Foo("a"), result{ActionNone, nil, footest.Deployment("a", withCounts(2, 2, 1), paused), "", nil}, rollingOut("1 available of 2 wanted Pods"),
		},
		"paused with nothing to do": {footest.Foo("a"), result{ActionNone, nil, footest.Deployment("a", paused), "", nil}, available},
		"not created yet": {
			footest.Foo("a"), result{ActionCreate, nil, nil, "", nil},
			Verdict{metav1.ConditionFalse, "Progressing", `Deployment "web" is being created`},
		},
		"another Foo controls the Deployment": {
			footest.Foo("a"), result{ActionLeave, footest.Deployment("b"), nil, "", nil}, Verdict{metav1.ConditionFalse, "DeploymentConflict", footest.ConflictWithB},
		},
		"the Deployment is an orphan": {
			footest.Foo("a"), result{ActionLeave, footest.Deployment("a", footest.WithoutOwner), nil, "", nil},
			Verdict{metav1.ConditionFalse, "DeploymentConflict", footest.ConflictWithNobody},
		},
		"the Deployment is being deleted": {
			footest.Foo("a"), result{ActionWait, nil, footest.Deployment("a", footest.Terminating), "", nil},
			Verdict{metav1.ConditionFalse, "Terminating", `Deployment "web" is being deleted; it is created again once it is gone`},
		},
		"the Foo is being deleted, which takes precedence": {
			footest.Foo("a", footest.BeingDeleted), result{ActionWait, nil, footest.Deployment("a", withReplicaFailure("quota")), "", nil},
			Verdict{metav1.ConditionFalse, "Terminating", "The Foo is being deleted"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := verdictAfter(row.foo, row.result); got != row.want {
				t.Errorf("judge returned %+v, not %+v", got, row.want)
			}
		})
	}
}

// What keeps a Foo from being ready need not be a child.
func TestTheFirstObstacleSaysWhatHoldsUpADeletion(t *testing.T) {
	foo, deployment := footest.Foo("a", footest.BeingDeleted), Outcome{Ready: terminating}
	for reason, outcomes := range map[string][]Outcome{
		"Terminating":     nil,
		"TakingBackFails": {{Ready: Verdict{metav1.ConditionFalse, "TakingBackFails", "503"}}, deployment},
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
	status := statusAfter(source, result{ActionLeave, footest.Deployment("b"), nil, "", nil}, footest.Now)

	footest.ExpectEqual(t, "another's condition", others, status.Conditions[1])
	if status.Selector != "" || status.Replicas != 0 || status.AvailableReplicas != 0 {
		t.Errorf("the status of a Foo without a Deployment still counts Pods: %+v", status)
	}
	footest.ExpectEqual(t, "the Foo's own status", before, source.Status)
}

func TestLastTransitionTimeMovesWithTheConditionsStatusOnly(t *testing.T) {
	for name, row := range map[string]struct {
		foo    *samplev1alpha1.Foo
		result result
		want   metav1.Time
	}{
		"still ready":                   {footest.Foo("a", footest.WithStatus(footest.Settled("a"))), result{ActionNone, nil, footest.Deployment("a"), "", nil}, footest.Earlier},
		"no longer ready":               {footest.Foo("a", footest.WithStatus(footest.Settled("a"))), result{ActionLeave, footest.Deployment("b"), nil, "", nil}, footest.Now},
		"a new generation, still ready": {footest.Foo("a", footest.WithGeneration(2), footest.WithStatus(footest.Settled("a"))), result{ActionNone, nil, footest.Deployment("a"), "", nil}, footest.Earlier},
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

func failedTo(done string, err error) error { return &WriteError{"", done, "Deployment", "web", err} }

func paused(deployment *appsv1.Deployment) { deployment.Spec.Paused = true }

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

func TestLongServerMessagesAreTruncated(t *testing.T) {
	ready := verdictAfter(footest.Foo("a"), result{ActionCreate, nil, nil, "", apierrors.NewBadRequest(strings.Repeat("x", 100_000))})
	if len(ready.Message) > 1000 {
		t.Errorf("a condition's message has %d bytes", len(ready.Message))
	}
}

// withCounts sets the numbers of Pods in a Deployment's status: all, those of the newest
// template, and available ones.
func withCounts(replicas, updated, available int32) footest.DeploymentOption {
	return func(deployment *appsv1.Deployment) {
		deployment.Status.Replicas, deployment.Status.UpdatedReplicas, deployment.Status.AvailableReplicas = replicas, updated, available
	}
}

func withReplicaFailure(message string) footest.DeploymentOption {
	return func(deployment *appsv1.Deployment) {
		deployment.Status.Conditions = []appsv1.DeploymentCondition{{
			Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue, Message: message,
		}}
	}
}

func TestCountByReady(t *testing.T) {
	var foos []*samplev1alpha1.Foo
	for name, status := range map[string]metav1.ConditionStatus{
		"new": "", "a": "True", "b": "True", "c": "False", "d": "Unknown", "e": "made up", "changed": "True",
	} {
		foo := footest.Foo(name)
		if status != "" {
			foo.Status.Conditions = []metav1.Condition{{Type: "Other", Status: "True"}, {Type: samplev1alpha1.ConditionReady, Status: status, ObservedGeneration: 1}}
		}
		if name == "changed" {
			foo.Generation = 2
		}
		foos = append(foos, foo)
	}
	want := map[metav1.ConditionStatus]int{metav1.ConditionTrue: 2, metav1.ConditionFalse: 1, metav1.ConditionUnknown: 4}
	footest.ExpectEqual(t, "the counts", want, CountByReady(foos))
}
