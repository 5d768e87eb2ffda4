// SPDX-License-Identifier: Apache-2.0

// Tests of the cluster itself.

package e2e

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestTheClusterBehavesLikeKubernetes checks the behavior that controllers depend on. On
// a development cluster it shows that the cluster is complete; on any other cluster it
// shows that the checks are right.
func TestTheClusterBehavesLikeKubernetes(t *testing.T) {
	t.Parallel()
	checkAll(t, newNamespace(t), []scenario{
		{"a Node whose heartbeats stop goes NotReady", checkNodeHeartbeats}, // the longest first
		{"a ReplicationController keeps its number of Pods", checkReplicationController},
		{"a Job of 5 completions runs no more than 2 Pods at once", checkJob},
		{"a StatefulSet scaled from 1 to 2 has ordered names", checkStatefulSet},
		{"a DaemonSet has a Pod on each node, and a ControllerRevision", checkDaemonSet},
		{"a Lease is held by a component, and renewed", checkLease},
	})
}

// awaitReadyPods waits until a workload has exactly the wanted number of Pods, all bound
// to nodes and ready.
func (ns *namespace) awaitReadyPods(t *testing.T, workload string, want int) []corev1.Pod {
	t.Helper()
	return ns.awaitPods(t, ofWorkload(workload), want)
}

// awaitPods does the same for Pods of a selection.
func (ns *namespace) awaitPods(t *testing.T, of metav1.ListOptions, want int) []corev1.Pod {
	t.Helper()
	list := awaitList(t, fmt.Sprintf("%d Pods of %s are ready", want, of.LabelSelector), ns.pods(), of,
		func(pods *corev1.PodList) error {
			if len(pods.Items) != want {
				return fmt.Errorf("%d Pods, want %d", len(pods.Items), want)
			}
			for i := range pods.Items {
				if err := podReady(&pods.Items[i]); err != nil {
					return err
				}
			}
			return nil
		})
	return list.Items
}

// expectController checks that owner controls an object.
func expectController(t *testing.T, object, owner metav1.Object) {
	t.Helper()
	if !metav1.IsControlledBy(object, owner) {
		t.Errorf("%s is owned by %v, want %s as its controller", object.GetName(), object.GetOwnerReferences(), owner.GetName())
	}
}

func checkReplicationController(t *testing.T, ns *namespace) {
	template := templateOf("replicated")
	controllers := cluster.kube.CoreV1().ReplicationControllers(ns.name)
	created, err := controllers.Create(t.Context(), &corev1.ReplicationController{
		ObjectMeta: metav1.ObjectMeta{Name: "replicated"},
		Spec:       corev1.ReplicationControllerSpec{Replicas: new(int32(2)), Selector: labelsOf("replicated"), Template: &template},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, pod := range ns.awaitReadyPods(t, "replicated", 2) {
		expectController(t, &pod, created)
	}
	mergePatch(t, controllers, "replicated", `{"spec":{"replicas":1}}`)
	ns.awaitReadyPods(t, "replicated", 1)
}
