// SPDX-License-Identifier: Apache-2.0

// How the cluster makes Pods for Deployments and ReplicationControllers.

package e2e

import (
	"errors"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestTheClusterRunsDeployments checks what TestTheClusterBehavesLikeKubernetes does, of
// Deployments.
func TestTheClusterRunsDeployments(t *testing.T) {
	t.Parallel()
	checkAll(t, newNamespace(t), []scenario{
		{"a Deployment makes a ReplicaSet, which makes Pods, which run on nodes", checkDeploymentChain},
		{"a killed Pod is replaced", checkPodReplaced},
		{"a deletion in the background also deletes the children", checkDeletedInBackground},
		{"a deletion in the foreground waits for the children", checkDeletedInForeground},
		{"a deletion that orphans leaves the children", checkDeletedWithOrphans},
		{"a deleted namespace takes its contents with it", checkNamespaceDeleted},
	})
}

func checkDeploymentChain(t *testing.T, ns *namespace) {
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

func checkPodReplaced(t *testing.T, ns *namespace) {
	ns.createDeployment(t, "mortal", 1)
	victim := ns.awaitReadyPods(t, "mortal", 1)[0]
	if err := ns.pods().Delete(t.Context(), victim.Name, *metav1.NewDeleteOptions(0)); err != nil {
		t.Fatal(err)
	}
	awaitGone(t, ns.pods(), victim.Name)
	if successor := ns.awaitReadyPods(t, "mortal", 1)[0]; successor.UID == victim.UID {
		t.Error("The Pod was not replaced")
	}
}
