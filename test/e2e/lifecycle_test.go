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

// The contract: a Foo has one Deployment from its creation to its deletion.

package e2e

import (
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
)

func TestAFooHasADeploymentAsLongAsItExists(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t)
	ns.startController(t)
	checkAll(t, ns, []scenario{
		{"a created Foo gets a Deployment, and its Pods become ready", checkCreated},
		{"a Foo that leaves replicas out gets one Pod", checkReplicasLeftOut},
		{"a deleted Foo's Deployment, ReplicaSet and Pods are garbage collected", checkDeleted},
		{"a Foo deleted and created again gets a Deployment of its own", checkRecreated},
		{"a deleted Deployment is created again", checkDeploymentDeleted},
		{"example-foo.yaml works as it is", checkExample},
	})
}

func checkCreated(t *testing.T, ns *namespace) {
	foo := ns.createFoo(t, newFoo("created", withReplicas(2)))

	deployment := awaitOne(t, "the Deployment is created", ns.deployments(), "created", func(d *appsv1.Deployment) error {
		return isControlled(d, foo)
	})
	if err := asksFor(deployment, 2); err != nil {
		t.Error(err)
	}
	if got := deployment.Spec.Template.Spec.Containers; len(got) != 1 || got[0].Name != "nginx" || got[0].Image != "nginx:latest" {
		t.Errorf("Its containers are %v, want one nginx", got)
	}
	awaitList(t, "two Pods are ready", ns.pods(), podsOf("created"), func(pods *corev1.PodList) error {
		if len(pods.Items) != 2 {
			return fmt.Errorf("%d Pods, want 2", len(pods.Items))
		}
		return errors.Join(podReady(&pods.Items[0]), podReady(&pods.Items[1]))
	})
	ns.awaitReplicas(t, "created", 2)
}

// podsOf selects a Foo's Pods.
func podsOf(foo string) metav1.ListOptions {
	return metav1.ListOptions{LabelSelector: "app=nginx,controller=" + foo}
}

func checkReplicasLeftOut(t *testing.T, ns *namespace) {
	ns.createReadyFoo(t, newFoo("left-out"))
	ns.awaitReplicas(t, "left-out", 1)
}

func checkDeleted(t *testing.T, ns *namespace) {
	ns.createReadyFoo(t, newFoo("deleted"))
	background := metav1.DeletePropagationBackground
	if err := ns.foos().Delete(t.Context(), "deleted", metav1.DeleteOptions{PropagationPolicy: &background}); err != nil {
		t.Fatal(err)
	}

	awaitGone(t, ns.foos(), "deleted")
	awaitGone(t, ns.deployments(), "deleted")
	awaitList(t, "the ReplicaSet is gone", ns.replicaSets(), podsOf("deleted"), func(sets *appsv1.ReplicaSetList) error {
		return isEmpty(len(sets.Items))
	})
	awaitList(t, "the Pods are gone", ns.pods(), podsOf("deleted"), func(pods *corev1.PodList) error {
		return isEmpty(len(pods.Items))
	})
}

func isEmpty(left int) error {
	if left > 0 {
		return fmt.Errorf("%d are left", left)
	}
	return nil
}

func checkRecreated(t *testing.T, ns *namespace) {
	ns.createReadyFoo(t, newFoo("again"))
	first := ns.getDeployment(t, "again")
	if err := ns.foos().Delete(t.Context(), "again", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	awaitGone(t, ns.foos(), "again")
	second := ns.createFoo(t, newFoo("again"))

	awaitOne(t, "the second Foo has a Deployment", ns.deployments(), "again", func(d *appsv1.Deployment) error {
		if d.UID == first.UID {
			return errors.New("it is the first Foo's")
		}
		return isControlled(d, second)
	})
	ns.awaitReady(t, "again")
}

func checkDeploymentDeleted(t *testing.T, ns *namespace) {
	foo := ns.createReadyFoo(t, newFoo("restored", withReplicas(2)))
	first := ns.getDeployment(t, "restored")
	if err := ns.deployments().Delete(t.Context(), "restored", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}

	awaitOne(t, "there is another Deployment", ns.deployments(), "restored", func(d *appsv1.Deployment) error {
		if d.UID == first.UID {
			return errors.New("it is still the first one")
		}
		return isControlled(d, foo)
	})
	ns.awaitReplicas(t, "restored", 2)
}

func checkExample(t *testing.T, ns *namespace) {
	ns.applyExample(t, filepath.Join(moduleRoot, "artifacts/examples/example-foo.yaml"))
}

// applyExample creates the Foo "example-foo" from a file, without decoding it into our
// types, and waits for its Pod.
func (ns *namespace) applyExample(t *testing.T, path string) {
	t.Helper()
	example, err := readObject(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ns.rawFoos().Create(t.Context(), example, metav1.CreateOptions{}); err != nil {
		t.Fatalf("Creating %s: %v", path, err)
	}
	ns.awaitReplicas(t, "example-foo", 1)
	if got := sets.New(podNames(t, ns, "example-foo")...); got.Len() != 1 {
		t.Errorf("The Pods are %v, want one", got)
	}
}
