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

// A Foo that asks for a Deployment which it does not control.

package e2e

import (
	"errors"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

func TestADeploymentThatIsNotTheFoosIsLeftAlone(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t)
	// Without resyncs, only events cause syncs.
	ns.startController(t, "-resync=0")
	checkAll(t, ns, []scenario{
		{"and the Foo reports it, until the name is free", checkForeignDeployment},
		{"also when another Foo controls it", checkTwoFoosOneName},
		{"and a Foo that then asks for a free name gets its own at once", checkRenamedOff},
	})
}

// isConflicted returns an error unless a Foo reports that its Deployment's name is taken.
func isConflicted(foo *samplev1alpha1.Foo) error {
	if err := hasReady(foo, metav1.ConditionFalse, samplev1alpha1.ReasonDeploymentConflict); err != nil {
		return err
	}
	if message := readyOf(foo).Message; !strings.Contains(message, foo.Spec.DeploymentName) {
		return errors.New("the message does not name the Deployment: " + message)
	}
	if foo.Status.AvailableReplicas != 0 {
		return errors.New("the status counts the Pods of a Deployment that the Foo does not control")
	}
	return nil
}

func checkForeignDeployment(t *testing.T, ns *namespace) {
	foreign := ns.createDeployment(t, "foreign", 1)
	foo := ns.createFoo(t, newFoo("unlucky", withDeployment("foreign"), withReplicas(3)))
	awaitOne(t, "the Foo reports the conflict", ns.foos(), "unlucky", isConflicted)
	awaitEvent(t, ns, "unlucky", corev1.EventTypeWarning, samplev1alpha1.ReasonDeploymentConflict)

	// Every change of the foreign Deployment causes a sync, which must not write to it.
	mergePatch(t, ns.deployments(), "foreign", `{"metadata":{"annotations":{"touched":"yes"}}}`)
	ns.awaitSyncs(t)
	isUntouched(t, ns.getDeployment(t, "foreign"), foreign)

	deleteDeploymentInBackground(t, ns, "foreign")
	awaitOne(t, "the Foo has its own Deployment", ns.deployments(), "foreign", func(d *appsv1.Deployment) error {
		return errors.Join(isControlled(d, foo), asksFor(d, 3))
	})
	ns.awaitReady(t, "unlucky")
}

// isUntouched checks that the controller has not written to a Deployment.
func isUntouched(t *testing.T, got, before *appsv1.Deployment) {
	t.Helper()
	if got.UID != before.UID || !equality.Semantic.DeepEqual(got.Spec, before.Spec) || len(got.OwnerReferences) > 0 {
		t.Errorf("The Deployment has changed:\n%s", show(got))
	}
	for _, entry := range got.ManagedFields {
		if entry.Manager == "sample-controller" {
			t.Errorf("The controller has written to %s: %s", got.Name, entry.FieldsV1)
		}
	}
}

// deleteDeploymentInBackground deletes a Deployment and leaves its children to the
// garbage collector.
func deleteDeploymentInBackground(t *testing.T, ns *namespace, name string) {
	t.Helper()
	background := metav1.DeletePropagationBackground
	if err := ns.deployments().Delete(t.Context(), name, metav1.DeleteOptions{PropagationPolicy: &background}); err != nil {
		t.Fatal(err)
	}
}

func checkTwoFoosOneName(t *testing.T, ns *namespace) {
	winner := ns.createReadyFoo(t, newFoo("winner", withDeployment("shared"), withReplicas(1)))
	loser := ns.createFoo(t, newFoo("loser", withDeployment("shared"), withReplicas(2)))
	awaitOne(t, "the second Foo reports the conflict", ns.foos(), "loser", isConflicted)
	if err := errors.Join(isControlled(ns.getDeployment(t, "shared"), winner), isReady(ns.getFoo(t, "winner"))); err != nil {
		t.Error(err)
	}

	if err := ns.foos().Delete(t.Context(), "winner", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	awaitOne(t, "the second Foo controls the Deployment", ns.deployments(), "shared", func(d *appsv1.Deployment) error {
		return errors.Join(isControlled(d, loser), asksFor(d, 2))
	})
	ns.awaitReady(t, "loser")
}

func checkRenamedOff(t *testing.T, ns *namespace) {
	ns.createDeployment(t, "occupied", 1)
	foo := ns.createFoo(t, newFoo("mover", withDeployment("occupied")))
	awaitOne(t, "the Foo reports the conflict", ns.foos(), "mover", isConflicted)
	mergePatch(t, ns.foos(), "mover", `{"spec":{"deploymentName":"vacant"}}`)
	awaitOne(t, "the Foo has its Deployment", ns.deployments(), "vacant", func(d *appsv1.Deployment) error {
		return isControlled(d, foo)
	})
	ns.awaitReady(t, "mover")
}
