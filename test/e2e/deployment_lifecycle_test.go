// SPDX-License-Identifier: Apache-2.0

// The contract of what the Deployment of a Foo does: its Pods, its replicas, its selector.

package e2e

import (
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

func TestAFoosDeploymentRunsItsPods(t *testing.T) {
	t.Parallel()
	needsNoOtherController(t)
	ns := newNamespace(t)
	ns.startController(t)
	checkAll(t, ns, []scenario{
		{"the Pods of a created Foo become ready", checkPodsOfACreatedFoo},
		{"a Foo that leaves replicas out gets one Pod", checkReplicasLeftOut},
		{"a deleted Foo's ReplicaSet and Pods are garbage collected", checkPodsOfADeletedFoo},
		{"a Deployment created by hand is adopted with its own selector", checkAdoptionByHand},
		{"an autoscaler's replicas stay, however often they change", checkAutoscaled},
	})
}

func TestPodsRunInARestrictedNamespace(t *testing.T) {
	t.Parallel()
	needsNoOtherController(t)
	ns := newNamespace(t)
	label := []byte(`{"metadata":{"labels":{"pod-security.kubernetes.io/enforce":"restricted"}}}`)
	if _, err := cluster.kube.CoreV1().Namespaces().Patch(t.Context(), ns.name, types.MergePatchType, label, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	ns.startController(t)
	ns.createReadyFoo(t, newFoo("restricted", withReplicas(1)))
	pod := ns.awaitPods(t, podsOf("restricted"), 1)[0]
	if len(pod.Spec.Containers[0].VolumeMounts) != 2 {
		t.Errorf("The Pod mounts %v, want two empty volumes and no token", pod.Spec.Containers[0].VolumeMounts)
	}
}

func checkPodsOfACreatedFoo(t *testing.T, ns *namespace) {
	foo := ns.createFoo(t, newFoo("with-pods", withReplicas(2)))

	deployment := awaitOne(t, "the Deployment is created", ns.deployments(), "with-pods", func(d *appsv1.Deployment) error {
		return isControlled(d, foo)
	})
	if err := asksFor(deployment, 2); err != nil {
		t.Error(err)
	}
	if got := deployment.Spec.Template.Spec.Containers; len(got) != 1 || got[0].Name != "nginx" || got[0].Image != "nginx:latest" {
		t.Errorf("Its containers are %v, want one nginx", got)
	}
	ns.awaitPods(t, podsOf("with-pods"), 2)
	ns.awaitReplicas(t, "with-pods", 2)
}

func checkReplicasLeftOut(t *testing.T, ns *namespace) {
	ns.createReadyFoo(t, newFoo("left-out"))
	ns.awaitReplicas(t, "left-out", 1)
	if got := podNames(t, ns, "left-out"); len(got) != 1 {
		t.Errorf("The Pods are %v, want one", got)
	}
}

func checkPodsOfADeletedFoo(t *testing.T, ns *namespace) {
	ns.createReadyFoo(t, newFoo("without-pods"))
	background := metav1.DeletePropagationBackground
	if err := ns.foos().Delete(t.Context(), "without-pods", metav1.DeleteOptions{PropagationPolicy: &background}); err != nil {
		t.Fatal(err)
	}

	awaitGone(t, ns.foos(), "without-pods")
	awaitGone(t, ns.deployments(), "without-pods")
	awaitList(t, "the ReplicaSet is gone", ns.replicaSets(), podsOf("without-pods"), func(sets *appsv1.ReplicaSetList) error {
		return isEmpty(len(sets.Items))
	})
	awaitList(t, "the Pods are gone", ns.pods(), podsOf("without-pods"), func(pods *corev1.PodList) error {
		return isEmpty(len(pods.Items))
	})
}

func isEmpty(left int) error {
	if left > 0 {
		return fmt.Errorf("%d are left", left)
	}
	return nil
}

// checkAdoptionByHand uses kubectl create deployment, whose selector differs from the
// controller's.
func checkAdoptionByHand(t *testing.T, ns *namespace) {
	ns.kubectl(t, "create", "deployment", "byhand", "--image=nginx")
	ns.createFoo(t, newFoo("hopeful", withChild("byhand"), withReplicas(2)))
	ns.kubectl(t, commandIn(t, readyOf(ns.awaitConflict(t, "hopeful")).Message)...)
	ns.awaitReady(t, "hopeful")
	if app := ns.getDeployment(t, "byhand").Spec.Template.Labels["app"]; app != "byhand" {
		t.Errorf("The Pods' label app is %q, which the selector does not match", app)
	}
}

func checkAutoscaled(t *testing.T, ns *namespace) {
	ns.createReadyFoo(t, newFoo("elastic"))
	for _, replicas := range []int32{3, 1, 2} {
		scale, err := ns.deployments().GetScale(t.Context(), "elastic", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		scale.Spec.Replicas = replicas
		scale.ResourceVersion = ""
		if _, err := ns.deployments().UpdateScale(t.Context(), "elastic", scale, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		ns.awaitReplicas(t, "elastic", replicas)
		if err := asksFor(ns.getDeployment(t, "elastic"), replicas); err != nil {
			t.Error(err)
		}
	}
	settled := ns.settledDeployment(t, "elastic")
	ns.awaitSyncs(t)
	ns.isSameVersion(t, settled)
}

func TestADeploymentThatCannotCreatePodsIsReported(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t)
	ns.setQuota(t, corev1.ResourcePods, "0")
	ns.startController(t, "-resync=0")
	ns.createFoo(t, newFoo("barren", withReplicas(1)))
	foo := ns.awaitReason(t, "barren", samplev1alpha1.ReasonDeploymentFailed)
	if message := readyOf(foo).Message; !strings.Contains(message, `"barren" cannot create its Pods`) || !strings.Contains(message, "exceeded quota: limit") {
		t.Errorf("The message %q does not say what failed and why", message)
	}
	awaitEvent(t, ns, "barren", corev1.EventTypeWarning, samplev1alpha1.ReasonDeploymentFailed)

	if err := cluster.kube.CoreV1().ResourceQuotas(ns.name).Delete(t.Context(), "limit", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	ns.awaitReady(t, "barren")
}

// podsOf selects a Foo's Pods.
func podsOf(foo string) metav1.ListOptions {
	return metav1.ListOptions{LabelSelector: "app=nginx,controller=" + foo}
}

// podNames returns the names of a Foo's Pods.
func podNames(t *testing.T, ns *namespace, foo string) []string {
	t.Helper()
	pods, err := ns.pods().List(t.Context(), podsOf(foo))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for i := range pods.Items {
		names = append(names, pods.Items[i].Name)
	}
	return names
}
