// SPDX-License-Identifier: Apache-2.0

// How the cluster runs StatefulSets and DaemonSets.

package e2e

import (
	"errors"
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
)

func checkStatefulSet(t *testing.T, ns *namespace) {
	statefulSets := cluster.kube.AppsV1().StatefulSets(ns.name)
	created, err := statefulSets.Create(t.Context(), &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: "db"},
		Spec: appsv1.StatefulSetSpec{
			Replicas: new(int32(1)), Selector: selectorOf("db"), ServiceName: "db", Template: templateOf("db"),
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	first := ns.awaitReadyPods(t, "db", 1)[0]
	if first.Name != "db-0" {
		t.Errorf("The first Pod is %s, want db-0", first.Name)
	}
	expectController(t, &first, created)

	mergePatch(t, statefulSets, "db", `{"spec":{"replicas":2}}`)
	names := map[string]corev1.Pod{}
	for _, pod := range ns.awaitReadyPods(t, "db", 2) {
		names[pod.Name] = pod
	}
	if names["db-0"].UID != first.UID || names["db-1"].UID == "" {
		t.Errorf("The Pods are %v, want db-1 and the same db-0", sets.KeySet(names))
	}
}

func checkDaemonSet(t *testing.T, ns *namespace) {
	daemonSets := cluster.kube.AppsV1().DaemonSets(ns.name)
	created, err := daemonSets.Create(t.Context(), &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Name: "agent"},
		Spec:       appsv1.DaemonSetSpec{Selector: selectorOf("agent"), Template: templateOf("agent")},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	want := openNodes(t)
	got := sets.New[string]()
	for _, pod := range ns.awaitReadyPods(t, "agent", len(want)) {
		expectController(t, &pod, created)
		got.Insert(pod.Spec.NodeName)
	}
	if !got.Equal(want) {
		t.Errorf("Its Pods are on %v, want %v", got, want)
	}
	awaitList(t, "a ControllerRevision of the DaemonSet", cluster.kube.AppsV1().ControllerRevisions(ns.name), ofWorkload("agent"),
		func(revisions *appsv1.ControllerRevisionList) error {
			if len(revisions.Items) != 1 {
				return fmt.Errorf("%d ControllerRevisions, want 1", len(revisions.Items))
			}
			if !metav1.IsControlledBy(&revisions.Items[0], created) {
				return errors.New("the DaemonSet does not control it")
			}
			return nil
		})
}

// openNodes returns the names of the nodes without taints.
func openNodes(t *testing.T) sets.Set[string] {
	t.Helper()
	nodes, err := cluster.kube.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	names := sets.New[string]()
	for i := range nodes.Items {
		if len(nodes.Items[i].Spec.Taints) == 0 {
			names.Insert(nodes.Items[i].Name)
		}
	}
	if names.Len() == 0 {
		t.Fatal("Every node has a taint")
	}
	return names
}
