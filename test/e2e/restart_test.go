// SPDX-License-Identifier: Apache-2.0

// Restarts of the controller.

package e2e

import (
	"fmt"
	"maps"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/sample-controller/internal/footest"
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
	ns.primary().update(t, "drifted", footest.Drifted)
	deleteChildInBackground(t, ns, "orphaned")
	ns.createFoo(t, newFoo("new", withReplicas(2)))

	ns.startController(t)
	ns.awaitReplicas(t, "scaled", 3)
	ns.awaitReplicas(t, "drifted", 1)
	ns.awaitReplicas(t, "orphaned", 1)
	ns.awaitReplicas(t, "new", 2)
}

// versions returns the resourceVersion of each Foo and child by
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
	children, err := ns.children().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range children.Items {
		versions[footest.Primary.Kind+"/"+ns.name+"/"+children.Items[i].GetName()] = children.Items[i].GetResourceVersion()
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
