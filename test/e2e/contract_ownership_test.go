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

// The contract: a Deployment changes owners only if somebody who may edit it asks.

package e2e

import (
	"errors"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

func TestADeploymentChangesOwnersOnlyWhenAsked(t *testing.T) {
	t.Parallel()
	needsNoOtherController(t)
	ns := newNamespace(t)
	ns.startController(t, "-resync=0")
	checkAll(t, ns, []scenario{
		{"an orphan is not adopted, until the command in the message is run", checkAdoption},
		{"a Deployment created by hand is adopted with its own selector", checkAdoptionByHand},
		{"a Deployment whose owner reference a user removes is left alone", checkOwnerTaken},
		{"a Deployment that a user gives to another Foo belongs to that Foo", checkOwnerChanged},
		{"a Foo of another API group is another owner, whatever its UID", checkOtherGroup},
		{"an autoscaler's replicas stay, however often they change", checkAutoscaled},
	})
}

func checkAdoption(t *testing.T, ns *namespace) {
	ns.createReadyFoo(t, newFoo("orphan", withReplicas(1)))
	ns.deleteFoo(t, "orphan", metav1.DeletePropagationOrphan)
	awaitGone(t, ns.foos(), "orphan")
	mergePatch(t, ns.deployments(), "orphan", `{"metadata":{"annotations":{"team":"blue"},"labels":{"cost":"low"}}}`)
	kept := ns.awaitSettledOne(t, "orphan")
	foo := ns.createFoo(t, newFoo("orphan", withReplicas(2)))
	conflicted := ns.awaitConflict(t, "orphan")
	ns.awaitSyncs(t)
	ns.isSameVersion(t, kept)

	ns.kubectl(t, commandIn(t, readyOf(conflicted).Message)...)
	ns.awaitReady(t, "orphan")
	adopted := ns.getDeployment(t, "orphan")
	if err := errors.Join(isControlled(adopted, foo), asksFor(adopted, 2)); err != nil || adopted.UID != kept.UID {
		t.Errorf("The orphan was not adopted (%v): %s", err, show(adopted))
	}
	if adopted.Annotations["team"] != "blue" || adopted.Labels["cost"] != "low" {
		t.Errorf("The adoption removed annotations or labels: %s", show(adopted))
	}
}

// checkAdoptionByHand uses kubectl create deployment, whose selector differs from the
// controller's.
func checkAdoptionByHand(t *testing.T, ns *namespace) {
	ns.kubectl(t, "create", "deployment", "byhand", "--image=nginx")
	ns.createFoo(t, newFoo("hopeful", withDeployment("byhand"), withReplicas(2)))
	ns.kubectl(t, commandIn(t, readyOf(ns.awaitConflict(t, "hopeful")).Message)...)
	ns.awaitReady(t, "hopeful")
	if app := ns.getDeployment(t, "byhand").Spec.Template.Labels["app"]; app != "byhand" {
		t.Errorf("The Pods' label app is %q, which the selector does not match", app)
	}
}

// commandIn returns the arguments of the kubectl command that a message quotes.
func commandIn(t *testing.T, message string) []string {
	t.Helper()
	_, rest, _ := strings.Cut(message, "'kubectl ")
	command, _, found := strings.Cut(rest, "'")
	if !found {
		t.Fatalf("There is no kubectl command in %q", message)
	}
	return strings.Fields(command)
}

func checkOwnerTaken(t *testing.T, ns *namespace) {
	ns.createReadyFoo(t, newFoo("robbed", withReplicas(1)))
	ns.awaitSettledOne(t, "robbed")
	taken := mergePatch(t, ns.deployments(), "robbed", `{"metadata":{"ownerReferences":null}}`)
	ns.awaitConflict(t, "robbed")
	mergePatch(t, ns.foos(), "robbed", `{"spec":{"replicas":3}}`)
	ns.awaitConflict(t, "robbed")
	ns.isSameVersion(t, taken)
}

func checkOwnerChanged(t *testing.T, ns *namespace) {
	ns.createReadyFoo(t, newFoo("giver", withDeployment("gift"), withReplicas(1)))
	taker := ns.createFoo(t, newFoo("taker", withDeployment("gift"), withReplicas(2)))
	ns.awaitConflict(t, "taker")
	mergePatch(t, ns.deployments(), "gift", ownedBy(samplev1alpha1.GroupName, "taker", string(taker.UID)))
	ns.awaitConflict(t, "giver")
	ns.awaitReady(t, "taker")
	if err := asksFor(ns.getDeployment(t, "gift"), 2); err != nil {
		t.Error(err)
	}
}

func checkOtherGroup(t *testing.T, ns *namespace) {
	foo := ns.createReadyFoo(t, newFoo("namesake"))
	ns.createDeployment(t, "strange", 2)
	ns.awaitSettledOne(t, "strange")
	strange := mergePatch(t, ns.deployments(), "strange", ownedBy("other.example.com", "namesake", string(foo.UID)))
	ns.awaitSyncs(t)
	ns.rename(t, "namesake", "strange")
	ns.awaitConflict(t, "namesake")
	ns.isSameVersion(t, strange)
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
	}
	settled := ns.awaitSettledOne(t, "elastic")
	ns.awaitSyncs(t)
	ns.isSameVersion(t, settled)
}
