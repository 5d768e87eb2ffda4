// SPDX-License-Identifier: Apache-2.0

// The verdicts on a Foo at each moment of its life.

package waiters

import (
	"maps"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
)

// fooWith returns a Foo of a generation, with a status.
func fooWith(generation int64, status mapping) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: mapping{
		"apiVersion": "samplecontroller.k8s.io/v1alpha1", "kind": "Foo",
		"metadata": mapping{"name": "a", "namespace": "n", "generation": generation},
		"spec":     mapping{"deploymentName": "web", "replicas": int64(2)},
		"status":   status,
	}}
}

// reported returns a status of a generation with the condition Ready, and with the
// conditions of other types that have the same reason and message.
func reported(generation int64, ready, reason string, others ...string) mapping {
	conditions := []any{condition("Ready", ready, reason, generation)}
	for _, other := range others {
		conditions = append(conditions, condition(other, "True", reason, generation))
	}
	return mapping{"observedGeneration": generation, "availableReplicas": int64(0), "conditions": conditions}
}

func condition(kind, status, reason string, generation int64) mapping {
	return mapping{
		"type": kind, "status": status, "reason": reason, "message": "because of " + reason,
		"observedGeneration": generation, "lastTransitionTime": "2026-11-21T12:00:00Z",
	}
}

// byDefault returns the status that the API server sets, with more fields.
func byDefault(t *testing.T, more mapping) mapping {
	t.Helper()
	status := mapping{"conditions": definitionOf(t).Spec.Versions[0].Schema.OpenAPIV3Schema.Properties.Status.Properties.Conditions.Default}
	maps.Copy(status, more)
	return status
}

func TestVerdicts(t *testing.T) {
	check := loadHealthCheck(t)
	waiting := health{"Progressing", "Waiting for the controller"}
	unseen := health{"Progressing", "Waiting for the controller to see the newest spec"}
	for what, row := range map[string]struct {
		foo     *unstructured.Unstructured
		kstatus status.Status
		health  health
	}{
		"just created, no controller has seen it":        {fooWith(1, byDefault(t, nil)), status.InProgressStatus, waiting},
		"created and changed, no controller has seen it": {fooWith(2, byDefault(t, nil)), status.InProgressStatus, waiting},
		"upstream's controller left a status":            {fooWith(1, byDefault(t, mapping{"availableReplicas": int64(2)})), status.InProgressStatus, waiting},
		"the spec was changed, not seen yet":             {fooWith(2, reported(1, "True", "Available")), status.InProgressStatus, unseen},
		"stalled, and the spec was changed":              {fooWith(2, reported(1, "False", "DeploymentConflict", "Stalled")), status.InProgressStatus, unseen},
		"rolling out":                                    {fooWith(2, reported(2, "False", "Progressing")), status.InProgressStatus, health{"Progressing", "because of Progressing"}},
		"ready":                                          {fooWith(2, reported(2, "True", "Available")), status.CurrentStatus, health{"Healthy", "because of Available"}},
		"refused a moment ago":                           {fooWith(1, reported(1, "False", "DeploymentFailed")), status.InProgressStatus, health{"Progressing", "because of DeploymentFailed"}},
		"a quota refuses it":                             {fooWith(1, reported(1, "False", "DeploymentFailed", "Stalled")), status.FailedStatus, health{"Degraded", "because of DeploymentFailed"}},
		"the name is taken":                              {fooWith(1, reported(1, "False", "DeploymentConflict", "Stalled")), status.FailedStatus, health{"Degraded", "because of DeploymentConflict"}},
		"a paused rollout":                               {fooWith(1, reported(1, "False", "Progressing", "Stalled")), status.FailedStatus, health{"Degraded", "because of Progressing"}},
		"suspended, with something to do":                {fooWith(1, reported(1, "False", "Suspended", "Stalled", "Suspended")), status.FailedStatus, health{"Suspended", "because of Suspended"}},
		"suspended and ready":                            {fooWith(1, reported(1, "True", "Available", "Suspended")), status.CurrentStatus, health{"Suspended", "because of Available"}},
		"ready, with a condition of others":              {fooWith(1, reported(1, "True", "Available", "Audited")), status.CurrentStatus, health{"Healthy", "because of Available"}},
	} {
		t.Run(what, func(t *testing.T) {
			if got := kstatusOf(t, row.foo); got != row.kstatus {
				t.Errorf("kstatus says %s, want %s", got, row.kstatus)
			}
			if got := check.healthOf(t, row.foo); got != row.health {
				t.Errorf("Argo CD says %v, want %v", got, row.health)
			}
		})
	}
}

func TestADeletedFooIsNotReady(t *testing.T) {
	foo := fooWith(2, reported(1, "True", "Available"))
	must(t, unstructured.SetNestedField(foo.Object, "2026-11-21T12:00:00Z", "metadata", "deletionTimestamp"))
	if got := kstatusOf(t, foo); got != status.TerminatingStatus {
		t.Errorf("kstatus says %s", got)
	}
	if got := loadHealthCheck(t).healthOf(t, foo); got.status != "Progressing" {
		t.Errorf("Argo CD says %v", got)
	}
}
