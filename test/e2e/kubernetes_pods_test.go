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

// How the cluster makes Pods for Deployments and ReplicationControllers.

package e2e

import (
	"errors"
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// awaitReadyPods waits until a workload has exactly the wanted number of Pods, all bound
// to nodes and ready.
func (ns *namespace) awaitReadyPods(t *testing.T, workload string, want int) []corev1.Pod {
	t.Helper()
	list := awaitList(t, fmt.Sprintf("%d Pods of %s are ready", want, workload), ns.pods(), ofWorkload(workload),
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
