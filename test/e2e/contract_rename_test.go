// SPDX-License-Identifier: Apache-2.0

// The contract: a Foo that asks for another name of its child ends with one child.

package e2e

import (
	"net/http"
	"strings"
	"testing"

	"example.com/sample-controller/internal/footest"
)

func TestARenamedFooHasOneChild(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t)
	ns.startController(t, "-resync=0")
	checkAll(t, ns, []scenario{
		{"the new one is created, then the old one deleted", checkRenamed},
		{"renaming back and forth ends with the first one", checkRenamedThereAndBack},
		{"with a taken name the old one stays until the name is free", checkRenamedOntoTaken},
	})
}

func (ns *namespace) rename(t *testing.T, foo, child string) {
	t.Helper()
	field := strings.TrimPrefix(footest.Primary.NamedBy, "spec.")
	mergePatch(t, ns.foos(), foo, `{"spec":{"`+field+`":"`+child+`"}}`)
}

func checkRenamed(t *testing.T, ns *namespace) {
	foo := ns.createReadyFoo(t, newFoo("renamed", withReplicas(2)))
	ns.rename(t, "renamed", "renamed-new")
	ns.awaitOnly(t, foo, "renamed-new")
	awaitGone(t, ns.children(), "renamed")
	ns.awaitReady(t, "renamed")
}

func checkRenamedThereAndBack(t *testing.T, ns *namespace) {
	foo := ns.createReadyFoo(t, newFoo("there"))
	for range 3 {
		ns.rename(t, "there", "back")
		ns.rename(t, "there", "there")
	}
	ns.awaitReady(t, "there")
	ns.awaitOnly(t, foo, "there")
	ns.awaitSyncs(t)
	ns.awaitOnly(t, foo, "there")
}

func checkRenamedOntoTaken(t *testing.T, ns *namespace) {
	foreign := ns.createForeignChild(t, "taken")
	foo := ns.createReadyFoo(t, newFoo("keeper"))
	kept := ns.awaitSettledOne(t, "keeper")
	ns.rename(t, "keeper", "taken")
	ns.awaitConflict(t, "keeper")
	ns.awaitSyncs(t)
	ns.isSameVersion(t, kept)
	isUntouched(t, ns.getChild(t, "taken"), foreign)

	deleteChildInBackground(t, ns, "taken")
	ns.awaitOnly(t, foo, "taken")
	ns.awaitReady(t, "keeper")
}

// TestARenameInterruptedByACrashIsFinished kills the first controller when it has created
// the new child and requests the deletion of the old one. That request never
// arrives.
func TestARenameInterruptedByACrashIsFinished(t *testing.T) {
	t.Parallel()
	needsNoOtherController(t)
	ns := newNamespace(t)
	gate := newGate(t, func(r *http.Request) bool {
		return r.Method == http.MethodDelete && strings.Contains(r.URL.Path, "/"+childResource+"/")
	})
	first := startController(t, "-kubeconfig="+gate.kubeconfig, "-namespace="+ns.name)
	foo := ns.createReadyFoo(t, newFoo("old"))
	ns.rename(t, "old", "new")
	receive(t, gate.arrived)
	first.kill(t)
	made := ns.awaitSettledOne(t, "new")
	ns.getChild(t, "old")

	ns.startController(t)
	ns.awaitOnly(t, foo, "new")
	awaitGone(t, ns.children(), "old")
	ns.awaitReady(t, "old")
	ns.isSameVersion(t, made)
}
