// SPDX-License-Identifier: Apache-2.0

// The owners of children: Foos, and objects of other kinds of the program.

package e2e

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/util/retry"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/test/footest"
)

func (k kindIn) owners() dynamic.ResourceInterface {
	return k.in.dynamic.Resource(k.Owner().Resource).Namespace(k.name)
}

// asking returns a Foo, or another owner, that asks for a child of the kind.
func (k kindIn) asking(scenario string) footest.Object {
	name := strings.ToLower(k.Kind.Kind) + "-" + scenario
	foo := k.Owner().New(name, name, 1)
	foo.SetNamespace(k.name)
	k.Ask(foo)
	return foo
}

func (k kindIn) createAsking(t *testing.T, scenario string) footest.Object {
	t.Helper()
	return k.createOwner(t, k.asking(scenario))
}

func (k kindIn) createOwner(t *testing.T, foo footest.Object) footest.Object {
	t.Helper()
	created, err := k.owners().Create(t.Context(), k.untypedOwner(t, foo), metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("Creating %s %s: %v", k.Owner(), foo.GetName(), err)
	}
	return k.typedOwner(t, created)
}

// untypedOwner returns an owner as a user sends it.
func (k kindIn) untypedOwner(t *testing.T, foo footest.Object) *unstructured.Unstructured {
	t.Helper()
	object := untyped(t, foo, k.Owner().Kind)
	delete(object.Object, "status")
	return object
}

// owner reads an owner.
func (k kindIn) owner(t *testing.T, name string) footest.Object {
	t.Helper()
	object, err := k.owners().Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatalf("Reading %s %s: %v", k.Owner(), name, err)
	}
	return k.typedOwner(t, object)
}

func (k kindIn) typedOwner(t *testing.T, object *unstructured.Unstructured) footest.Object {
	t.Helper()
	foo := k.Owner().New("", "", 0)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, foo); err != nil {
		t.Fatalf("Reading a %s: %v", k.Owner(), err)
	}
	return foo
}

// awaitReady waits until an owner reports Ready for its newest spec.
func (k kindIn) awaitReady(t *testing.T, name string) {
	t.Helper()
	k.awaitCondition(t, name, metav1.ConditionTrue, samplev1alpha1.ReasonAvailable)
}

func (k kindIn) awaitCondition(t *testing.T, name string, status metav1.ConditionStatus, reason string) {
	t.Helper()
	awaitOne(t, fmt.Sprintf("%s %s reports %s", k.Owner(), name, reason), k.owners(), name, func(object *unstructured.Unstructured) error {
		foo := k.typedOwner(t, object)
		ready := footest.ConditionOf(foo)
		if ready == nil || ready.Status != status || ready.Reason != reason || ready.ObservedGeneration != foo.GetGeneration() {
			return fmt.Errorf("its condition is %v, in generation %d", ready, foo.GetGeneration())
		}
		return nil
	})
}

// awaitSyncs does the same as that of a namespace, for the controller of the kind.
func (k kindIn) awaitSyncs(t *testing.T) {
	t.Helper()
	marker := k.Owner().New("marker-"+rand.String(8), "marker-"+rand.String(8), 1)
	marker.SetNamespace(k.name)
	k.createOwner(t, marker)
	k.awaitReady(t, marker.GetName())
}

// rename makes an owner ask only for what each of its kind asks for, under another name.
func (k kindIn) rename(t *testing.T, name, child string) {
	t.Helper()
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		foo := k.Owner().New(name, child, 1)
		foo.SetNamespace(k.name)
		foo.SetResourceVersion(k.owner(t, name).GetResourceVersion())
		_, err := k.owners().Update(t.Context(), k.untypedOwner(t, foo), metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		t.Fatalf("Changing %s %s: %v", k.Owner(), name, err)
	}
}
