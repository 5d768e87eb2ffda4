// SPDX-License-Identifier: Apache-2.0

// The contract: a Foo has one child from its creation to its deletion.

package e2e

import (
	"errors"
	"path/filepath"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestAFooHasAChildAsLongAsItExists(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t)
	ns.startController(t)
	checkAll(t, ns, []scenario{
		{"a created Foo gets a child", checkCreated},
		{"a Foo deleted and created again gets a child of its own", checkRecreated},
		{"example-foo.yaml works as it is", checkExample},
	})
}

func checkCreated(t *testing.T, ns *namespace) {
	foo := ns.createFoo(t, newFoo("created", withReplicas(2)))
	awaitOne(t, "the child is created", ns.children(), "created", ns.isChildOf(t, foo))
	ns.awaitReplicas(t, "created", 2)
}

func checkRecreated(t *testing.T, ns *namespace) {
	ns.createReadyFoo(t, newFoo("again"))
	first := ns.getChild(t, "again")
	if err := ns.foos().Delete(t.Context(), "again", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	awaitGone(t, ns.foos(), "again")
	second := ns.createFoo(t, newFoo("again"))

	awaitOne(t, "the second Foo has a child", ns.children(), "again", func(d *child) error {
		if d.GetUID() == first.GetUID() {
			return errors.New("it is the first Foo's")
		}
		return isControlled(d, second)
	})
	ns.awaitReady(t, "again")
}

func checkExample(t *testing.T, ns *namespace) {
	ns.applyExample(t, filepath.Join(moduleRoot, "artifacts/examples/example-foo.yaml"))
}

// applyExample creates the Foo "example-foo" from a file, without decoding it into our
// types, and waits until it is ready.
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
}
