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

// Restarts of the controller.

package e2e

import (
	"fmt"
	"maps"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestARestartWritesNothingToSettledObjects(t *testing.T) {
	t.Parallel()
	needsNoOtherController(t)
	ns := newNamespace(t)
	killed := ns.startController(t)
	for i := range 3 {
		ns.createReadyFoo(t, newFoo(fmt.Sprintf("settled-%d", i), withReplicas(1)))
	}
	ns.awaitSettled(t)
	before := ns.versions(t)
	killed.kill(t)

	second := ns.startController(t)
	ns.awaitSyncs(t)
	// A stop waits for the syncs under way, so that no write follows.
	second.stop(t)
	expectVersions(t, before, ns.versions(t))
}

func TestAControllerCatchesUpAfterARestart(t *testing.T) {
	t.Parallel()
	needsNoOtherController(t)
	ns := newNamespace(t)
	first := ns.startController(t)
	for _, name := range []string{"scaled", "drifted", "orphaned"} {
		ns.createReadyFoo(t, newFoo(name, withReplicas(1)))
	}
	first.kill(t)
	mergePatch(t, ns.foos(), "scaled", `{"spec":{"replicas":3}}`)
	mergePatch(t, ns.deployments(), "drifted", `{"spec":{"replicas":4}}`)
	deleteDeploymentInBackground(t, ns, "orphaned")
	ns.createFoo(t, newFoo("new", withReplicas(2)))

	ns.startController(t)
	ns.awaitReplicas(t, "scaled", 3)
	ns.awaitReplicas(t, "drifted", 1)
	ns.awaitReplicas(t, "orphaned", 1)
	ns.awaitReplicas(t, "new", 2)
}

// awaitSettled waits until the Deployment controller has completed the rollouts of all
// Deployments.
func (ns *namespace) awaitSettled(t *testing.T) {
	t.Helper()
	awaitList(t, "all Deployments have settled", ns.deployments(), metav1.ListOptions{}, func(list *appsv1.DeploymentList) error {
		for i := range list.Items {
			if !isSettled(&list.Items[i]) {
				return fmt.Errorf("Deployment %s has not settled", list.Items[i].Name)
			}
		}
		return nil
	})
}

// isSettled reports whether the Deployment controller has completed a rollout.
func isSettled(deployment *appsv1.Deployment) bool {
	if deployment.Status.ObservedGeneration != deployment.Generation {
		return false
	}
	for _, condition := range deployment.Status.Conditions {
		if condition.Type == appsv1.DeploymentProgressing {
			return condition.Status == corev1.ConditionTrue && condition.Reason == "NewReplicaSetAvailable"
		}
	}
	return false
}

// versions returns the resourceVersion of each Foo and Deployment by
// "kind/namespace/name".
func (ns *namespace) versions(t *testing.T) map[string]string {
	t.Helper()
	versions := map[string]string{}
	foos, err := ns.foos().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range foos.Items {
		versions["Foo/"+ns.name+"/"+foos.Items[i].Name] = foos.Items[i].ResourceVersion
	}
	deployments, err := ns.deployments().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range deployments.Items {
		versions["Deployment/"+ns.name+"/"+deployments.Items[i].Name] = deployments.Items[i].ResourceVersion
	}
	return versions
}

// expectVersions checks that the objects of before have the same versions after.
func expectVersions(t *testing.T, before, after map[string]string) {
	t.Helper()
	if len(before) == 0 {
		t.Error("There are no objects to compare")
	}
	for object, version := range maps.All(before) {
		if after[object] != version {
			t.Errorf("%s was written to: resourceVersion %s, before %s", object, after[object], version)
		}
	}
}
