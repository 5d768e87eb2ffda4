// SPDX-License-Identifier: Apache-2.0

// How the cluster deletes objects with children.

package e2e

import (
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// deleteDeployment creates a Deployment with a Pod and deletes it with a propagation
// policy.
func deleteDeployment(t *testing.T, ns *namespace, name string, how metav1.DeletionPropagation) {
	t.Helper()
	ns.createDeployment(t, name, 1)
	ns.awaitReadyPods(t, name, 1)
	if err := ns.deployments().Delete(t.Context(), name, metav1.DeleteOptions{PropagationPolicy: &how}); err != nil {
		t.Fatal(err)
	}
}

// owned returns the numbers of a Deployment's ReplicaSets and Pods.
func owned(t *testing.T, ns *namespace, name string) (replicaSets, pods int) {
	t.Helper()
	replicaSetList, err := ns.replicaSets().List(t.Context(), ofWorkload(name))
	if err != nil {
		t.Fatal(err)
	}
	podList, err := ns.pods().List(t.Context(), ofWorkload(name))
	if err != nil {
		t.Fatal(err)
	}
	return len(replicaSetList.Items), len(podList.Items)
}

func checkDeletedInBackground(t *testing.T, ns *namespace) {
	deleteDeployment(t, ns, "background", metav1.DeletePropagationBackground)
	awaitGone(t, ns.deployments(), "background")
	awaitList(t, "the ReplicaSet is gone", ns.replicaSets(), ofWorkload("background"), func(list *appsv1.ReplicaSetList) error {
		return isEmpty(len(list.Items))
	})
	awaitList(t, "the Pod is gone", ns.pods(), ofWorkload("background"), func(list *corev1.PodList) error {
		return isEmpty(len(list.Items))
	})
}

func checkDeletedInForeground(t *testing.T, ns *namespace) {
	deleteDeployment(t, ns, "foreground", metav1.DeletePropagationForeground)
	awaitGone(t, ns.deployments(), "foreground")
	if replicaSets, pods := owned(t, ns, "foreground"); replicaSets+pods > 0 {
		t.Errorf("The Deployment was deleted before its %d ReplicaSets and %d Pods", replicaSets, pods)
	}
}

func checkDeletedWithOrphans(t *testing.T, ns *namespace) {
	deleteDeployment(t, ns, "orphaned", metav1.DeletePropagationOrphan)
	awaitGone(t, ns.deployments(), "orphaned")
	left := awaitList(t, "the ReplicaSet has no owner", ns.replicaSets(), ofWorkload("orphaned"), func(list *appsv1.ReplicaSetList) error {
		if len(list.Items) != 1 || len(list.Items[0].OwnerReferences) > 0 {
			return fmt.Errorf("%d ReplicaSets, want one without an owner", len(list.Items))
		}
		return nil
	})
	for _, pod := range ns.awaitReadyPods(t, "orphaned", 1) {
		expectController(t, &pod, &left.Items[0])
	}
}

func checkNamespaceDeleted(t *testing.T, _ *namespace) {
	doomed := newNamespace(t)
	doomed.createDeployment(t, "web", 2)
	doomed.createFoo(t, newFoo("foo"))
	_, err := cluster.kube.CoreV1().ConfigMaps(doomed.name).Create(t.Context(),
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "settings"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	doomed.awaitReadyPods(t, "web", 2)
	if err := cluster.kube.CoreV1().Namespaces().Delete(t.Context(), doomed.name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}

	awaitGone(t, cluster.kube.CoreV1().Namespaces(), doomed.name)
	awaitGone(t, doomed.deployments(), "web")
	awaitGone(t, doomed.foos(), "foo")
	awaitGone(t, cluster.kube.CoreV1().ConfigMaps(doomed.name), "settings")
	if replicaSets, pods := owned(t, doomed, "web"); replicaSets+pods > 0 {
		t.Errorf("%d ReplicaSets and %d Pods have outlived their namespace", replicaSets, pods)
	}
}
