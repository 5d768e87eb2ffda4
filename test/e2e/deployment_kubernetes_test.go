// SPDX-License-Identifier: Apache-2.0

// The cluster itself.

package e2e

import (
	"errors"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
)

// TestTheClusterRunsDeployments shows that the cluster is complete, if it is a development
// cluster: a Deployment makes a ReplicaSet, which makes Pods, which run on nodes.
func TestTheClusterRunsDeployments(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t)
	deployment := ns.createDeployment(t, "chain", 2)
	pods := ns.awaitReadyPods(t, "chain", 2)
	replicaSets, err := ns.replicaSets().List(t.Context(), ofWorkload("chain"))
	if err != nil || len(replicaSets.Items) != 1 {
		t.Fatalf("There are %d ReplicaSets (%v), want 1", len(replicaSets.Items), err)
	}
	expectController(t, &replicaSets.Items[0], deployment)
	for i := range pods {
		expectController(t, &pods[i], &replicaSets.Items[0])
	}
	awaitOne(t, "the Deployment reports its Pods", ns.deployments(), "chain", func(d *appsv1.Deployment) error {
		if d.Status.AvailableReplicas != 2 || d.Status.UpdatedReplicas != 2 {
			return errors.New("not all are available")
		}
		return nil
	})
}
