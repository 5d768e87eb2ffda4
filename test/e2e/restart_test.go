// SPDX-License-Identifier: Apache-2.0

// Restarts of the controller.

package e2e

import (
	"fmt"
	"maps"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/sample-controller/test/footest"
)

// TestSettledFoosCostNoWrites checks some resyncs, and a restart.
func TestSettledFoosCostNoWrites(t *testing.T) {
	t.Parallel()
	needsNoOtherController(t)
	ns := newNamespace(t)
	killed := ns.startController(t, "-resync=1s", "-v=4")
	for i := range 3 {
		ns.createReadyFoo(t, newFoo(fmt.Sprintf("settled-%d", i), withReplicas(1)))
	}
	ns.awaitSettled(t)
	before := ns.versions(t)
	killed.awaitResyncs(t, 3)
	expectVersions(t, before, ns.versions(t))
	killed.kill(t)

	second := ns.startController(t)
	ns.awaitSyncs(t)
	// A stop waits for the syncs under way, so that no write follows.
	second.stop(t)
	expectVersions(t, before, ns.versions(t))
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
