// SPDX-License-Identifier: Apache-2.0

// Children of the kind footest.Primary: how the tests that need a child, but are about no
// kind in particular, read and write it.

package e2e

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
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

type (
	child     = unstructured.Unstructured
	childList = unstructured.UnstructuredList
)

var (
	childResource = footest.Primary.Resource.Resource
	childGR       = footest.Primary.Resource.GroupResource().String()
	// reasonConflict and reasonFailed are the reasons for which a user has to do something.
	reasonConflict = footest.Primary.Kind + "Conflict"
)

// dryRun makes the API server judge a write without storing it.
var dryRun = []string{metav1.DryRunAll}

func (ns *namespace) primary() kindIn { return kindIn{ns, footest.Primary} }

func (ns *namespace) children() dynamic.ResourceInterface { return ns.primary().client() }

func (ns *namespace) getChild(t *testing.T, name string) *child {
	t.Helper()
	found, err := ns.children().Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatalf("Reading %s: %v", name, err)
	}
	return found
}

// withChild makes a Foo ask for a child of a name.
func withChild(name string) func(*samplev1alpha1.Foo) { return footest.WithChildName(name) }

// createForeignChild creates an object that no Foo controls.
func (ns *namespace) createForeignChild(t *testing.T, name string) *child {
	t.Helper()
	foreign := footest.Primary.ForeignNamed(name)
	foreign.SetNamespace(ns.name)
	created, err := ns.children().Create(t.Context(), ns.primary().untyped(t, foreign), metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("Creating %s %s: %v", footest.Primary, name, err)
	}
	return created
}

// isControlled returns an error unless the Foo is the object's controller.
func isControlled(object metav1.Object, foo *samplev1alpha1.Foo) error {
	if !metav1.IsControlledBy(object, foo) {
		return fmt.Errorf("its owners are %v, want Foo %s (%s) as the controller", object.GetOwnerReferences(), foo.Name, foo.UID)
	}
	return nil
}

// isChildOf returns a check that a Foo controls a child, which is as the Foo asks.
func (ns *namespace) isChildOf(t *testing.T, foo *samplev1alpha1.Foo) func(*child) error {
	return func(found *child) error {
		return errors.Join(isControlled(found, foo), ns.isAsAsked(t, found, foo))
	}
}

// isAsAsked returns an error unless a child is as a Foo asks.
func (ns *namespace) isAsAsked(t *testing.T, found *child, foo *samplev1alpha1.Foo) error {
	t.Helper()
	if differs := footest.Primary.Differs(ns.primary().typed(t, found), foo); differs != "" {
		return errors.New(differs)
	}
	return nil
}

// awaitReplicas waits until a Foo asks for a number of Pods, its child is as it asks, and
// the Foo is ready and reports its child.
func (ns *namespace) awaitReplicas(t *testing.T, name string, want int32) {
	t.Helper()
	awaitOne(t, fmt.Sprintf("Foo %s has %d Pods", name, want), ns.foos(), name, func(foo *samplev1alpha1.Foo) error {
		if asked := foo.Spec.Replicas; asked != nil && *asked != want {
			return fmt.Errorf("spec.replicas is %d, want %d", *asked, want)
		}
		found, err := ns.children().Get(t.Context(), footest.Primary.Name(foo), metav1.GetOptions{})
		if err != nil {
			return err
		}
		if misreported := footest.Primary.Misreported(foo, ns.primary().typed(t, found)); misreported != "" {
			return errors.New(misreported)
		}
		return errors.Join(ns.isChildOf(t, foo)(found), isReady(foo))
	})
}

// isSameVersion checks that nobody has written to a child since it was read.
func (ns *namespace) isSameVersion(t *testing.T, before footest.Object) {
	t.Helper()
	if got := ns.getChild(t, before.GetName()); got.GetUID() != before.GetUID() || got.GetResourceVersion() != before.GetResourceVersion() {
		t.Errorf("%s %s was written to:\n%s\nbefore:\n%s", footest.Primary, before.GetName(), show(got), show(before))
	}
}

// isSettled returns an error while the cluster's own controllers may still write to a
// child.
func (ns *namespace) isSettled(t *testing.T, found *child) error {
	t.Helper()
	if busy := footest.Primary.Busy(ns.primary().typed(t, found)); busy != "" {
		return fmt.Errorf("%s %s %s", footest.Primary, found.GetName(), busy)
	}
	return nil
}

// awaitSettledOne waits until a child has settled, and returns it.
func (ns *namespace) awaitSettledOne(t *testing.T, name string) *child {
	t.Helper()
	return awaitOne(t, name+" has settled", ns.children(), name, func(found *child) error { return ns.isSettled(t, found) })
}

// awaitSettled waits until all children have settled.
func (ns *namespace) awaitSettled(t *testing.T) {
	t.Helper()
	awaitList(t, "all children have settled", ns.children(), metav1.ListOptions{}, func(list *childList) error {
		for i := range list.Items {
			if err := ns.isSettled(t, &list.Items[i]); err != nil {
				return err
			}
		}
		return nil
	})
}

// contentOf returns what users write of a child, without its metadata.
func contentOf(found *child) map[string]any {
	fields := found.DeepCopy().Object
	delete(fields, "metadata")
	delete(fields, "status")
	return fields
}

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

func TestAControllerForOneNamespaceRequestsNothingElse(t *testing.T) {
	t.Parallel()
	ns := newNamespace(t)
	var mu sync.Mutex
	inside, outside := 0, []string(nil)
	gate := newGate(t, func(r *http.Request) bool {
		mu.Lock()
		defer mu.Unlock()
		if strings.Contains(r.URL.Path, "/namespaces/"+ns.name+"/") {
			inside++
		} else {
			outside = append(outside, r.Method+" "+r.URL.Path)
		}
		return false
	})
	p := startController(t, "-kubeconfig="+gate.kubeconfig, "-namespace="+ns.name)
	ns.createReadyFoo(t, newFoo("inside"))
	p.stop(t)

	mu.Lock()
	defer mu.Unlock()
	if len(outside) > 0 || inside == 0 {
		t.Errorf("The controller sent %d requests in its namespace, and others: %v", inside, outside)
	}
}
