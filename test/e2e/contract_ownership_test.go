// SPDX-License-Identifier: Apache-2.0

// The contract: a child changes owners only if somebody who may edit it asks.

package e2e

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

func TestAChildChangesOwnersOnlyWhenAsked(t *testing.T) {
	t.Parallel()
	needsNoOtherController(t)
	ns := newNamespace(t)
	ns.startController(t, "-resync=0")
	checkAll(t, ns, []scenario{
		{"an orphan is not adopted, until the command in the message is run", checkAdoption},
		{"a child whose owner reference a user removes is left alone", checkOwnerTaken},
		{"a child that a user gives to another Foo belongs to that Foo", checkOwnerChanged},
		{"a Foo of another API group is another owner, whatever its UID", checkOtherGroup},
	})
}

func checkAdoption(t *testing.T, ns *namespace) {
	ns.createReadyFoo(t, newFoo("orphan", withReplicas(1)))
	ns.deleteFoo(t, "orphan", metav1.DeletePropagationOrphan)
	awaitGone(t, ns.foos(), "orphan")
	mergePatch(t, ns.children(), "orphan", `{"metadata":{"annotations":{"team":"blue"},"labels":{"cost":"low"}}}`)
	kept := ns.awaitSettledOne(t, "orphan")
	foo := ns.createFoo(t, newFoo("orphan", withReplicas(2)))
	conflicted := ns.awaitConflict(t, "orphan")
	ns.awaitSyncs(t)
	ns.isSameVersion(t, kept)

	ns.kubectl(t, commandIn(t, readyOf(conflicted).Message)...)
	ns.awaitReady(t, "orphan")
	adopted := ns.getChild(t, "orphan")
	if err := ns.isChildOf(t, foo)(adopted); err != nil || adopted.GetUID() != kept.GetUID() {
		t.Errorf("The orphan was not adopted (%v): %s", err, show(adopted))
	}
	if adopted.GetAnnotations()["team"] != "blue" || adopted.GetLabels()["cost"] != "low" {
		t.Errorf("The adoption removed annotations or labels: %s", show(adopted))
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
	taken := mergePatch(t, ns.children(), "robbed", `{"metadata":{"ownerReferences":null}}`)
	ns.awaitConflict(t, "robbed")
	mergePatch(t, ns.foos(), "robbed", `{"spec":{"replicas":3}}`)
	ns.awaitConflict(t, "robbed")
	ns.isSameVersion(t, taken)
}

func checkOwnerChanged(t *testing.T, ns *namespace) {
	ns.createReadyFoo(t, newFoo("giver", withChild("gift"), withReplicas(1)))
	taker := ns.createFoo(t, newFoo("taker", withChild("gift"), withReplicas(2)))
	ns.awaitConflict(t, "taker")
	mergePatch(t, ns.children(), "gift", ownedBy(samplev1alpha1.GroupName, "taker", string(taker.UID)))
	ns.awaitConflict(t, "giver")
	ns.awaitReady(t, "taker")
	if err := ns.isAsAsked(t, ns.getChild(t, "gift"), taker); err != nil {
		t.Error(err)
	}
}

func checkOtherGroup(t *testing.T, ns *namespace) {
	foo := ns.createReadyFoo(t, newFoo("namesake"))
	ns.createOrphan(t, "strange")
	strange := mergePatch(t, ns.children(), "strange", ownedBy("other.example.com", "namesake", string(foo.UID)))
	ns.awaitSyncs(t)
	ns.rename(t, "namesake", "strange")
	ns.awaitConflict(t, "namesake")
	ns.isSameVersion(t, strange)
}
