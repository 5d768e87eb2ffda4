// SPDX-License-Identifier: Apache-2.0

// The kinds of children and their owners, from the rows of test/footest: how the tests read
// and write them, and what all of them have in common.

package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/util/retry"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	fooscheme "example.com/sample-controller/pkg/generated/clientset/versioned/scheme"
	"example.com/sample-controller/pkg/reconcile/reconciletest/rows"
	"example.com/sample-controller/test/footest"
	"example.com/sample-controller/test/testcluster"
)

// check checks what every kind of children has in common. What is particular to a kind has
// tests of its own.
func (k kindIn) check(t *testing.T) {
	t.Parallel()
	checks := map[string]func(*testing.T){
		"drift is undone, and what belongs to others stays":                                         k.checkDrift,
		"a deleted child is created again, and goes with its owner; one of another name is deleted": k.checkDeleted,
		"the child of somebody else stays as it is, is reported, and is adopted if handed over":     k.checkForeign,
	}
	if k.IsOptional() {
		checks["a child that is not asked for any more is deleted, and created again when it is"] = k.checkUnset
	}
	if k.Kind == k.Owner().Kinds[0] {
		checks["no child of an earlier name is left"] = k.checkRenamed
	}
	for sentence, check := range checks {
		t.Run(sentence, func(t *testing.T) {
			t.Parallel()
			check(t)
		})
	}
}

// kindsOfChildren are those of all owners.
func kindsOfChildren() (kinds []*footest.Kind) {
	for _, owner := range footest.Owners {
		kinds = append(kinds, owner.Kinds...)
	}
	return kinds
}

// objects reads and writes those of a kind in a namespace, as ones of the kind's type.
type objects struct {
	client dynamic.ResourceInterface
	kind   schema.GroupVersionKind
}

func (ns *namespace) objects(kind *footest.Kind) objects {
	client := ns.in.dynamic.Resource(kind.Resource).Namespace(ns.name)
	return objects{client, kind.Resource.GroupVersion().WithKind(kind.Kind)}
}

func (o objects) Get(ctx context.Context, name string, options metav1.GetOptions) (footest.Object, error) {
	return o.typed(o.client.Get(ctx, name, options))
}

func (o objects) Create(ctx context.Context, made footest.Object, options metav1.CreateOptions) (footest.Object, error) {
	sent, err := testcluster.Untyped(made, o.kind)
	if err != nil {
		return nil, err
	}
	return o.typed(o.client.Create(ctx, sent, options))
}

func (o objects) Update(ctx context.Context, object footest.Object) (footest.Object, error) {
	sent, err := testcluster.Untyped(object, o.kind)
	if err != nil {
		return nil, err
	}
	return o.typed(o.client.Update(ctx, sent, metav1.UpdateOptions{}))
}

// typed returns an object of the kind's type, unless there is an error already.
func (o objects) typed(object *unstructured.Unstructured, err error) (footest.Object, error) {
	if err != nil {
		return nil, err
	}
	types := scheme.Scheme
	if !types.Recognizes(o.kind) {
		types = fooscheme.Scheme
	}
	typed, err := types.New(o.kind)
	if err == nil {
		err = runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, typed)
	}
	if err != nil {
		return nil, fmt.Errorf("reading a %s: %w", o.kind.Kind, err)
	}
	return typed.(footest.Object), nil
}

// kindIn is a kind of children in a namespace.
type kindIn struct {
	*namespace
	*footest.Kind
}

// primary is the kind for the tests that need a child, but are about no kind in particular.
func (ns *namespace) primary() kindIn { return kindIn{ns, footest.Primary} }

func (k kindIn) children() objects { return k.objects(k.Kind) }

func (k kindIn) owners() objects { return k.objects(k.Owner().Kind) }

// asking returns a Foo, or another owner, that asks for a child of the kind.
func (k kindIn) asking(scenario string) footest.Object {
	name := strings.ToLower(k.Kind.Kind) + "-" + scenario
	foo := k.Owner().New(name, name, 1)
	foo.SetNamespace(k.name)
	k.Ask(foo)
	return foo
}

func (k kindIn) createOwner(t *testing.T, foo footest.Object) footest.Object {
	t.Helper()
	foo.SetNamespace(k.name)
	created, err := k.owners().Create(t.Context(), foo, metav1.CreateOptions{})
	footest.Must(t, err)
	return created
}

// awaitReady waits until an owner reports Ready for its newest spec.
func (k kindIn) awaitReady(t *testing.T, name string) footest.Object {
	t.Helper()
	return await(t, fmt.Sprintf("%s %s is ready", k.Owner(), name), k.owners(), name, isReady)
}

func isReady(foo footest.Object) error {
	return hasReady(foo, metav1.ConditionTrue, samplev1alpha1.ReasonAvailable)
}

// hasReady returns an error unless the condition Ready of an owner has the status and the
// reason, for the newest spec.
func hasReady(foo footest.Object, status metav1.ConditionStatus, reason string) error {
	ready, generation := rows.ConditionOf(foo), foo.GetGeneration()
	if ready == nil || ready.Status != status || ready.Reason != reason {
		return fmt.Errorf("condition Ready is %v, want %s, %s", ready, status, reason)
	}
	if observed := rows.ObservedGenerationOf(foo); observed != generation || ready.ObservedGeneration != generation {
		return fmt.Errorf("observedGeneration is %d, and that of %v, want %d", observed, ready, generation)
	}
	return nil
}

// awaitNotReady waits until an owner reports Ready=False for its newest spec, with a reason and
// a message that contains texts, and returns the message.
func (k kindIn) awaitNotReady(t *testing.T, name, reason string, says ...string) (message string) {
	t.Helper()
	want := fmt.Sprintf("%s %s reports %s: %q", k.Owner(), name, reason, says)
	await(t, want, k.owners(), name, func(foo footest.Object) error {
		if err := hasReady(foo, metav1.ConditionFalse, reason); err != nil {
			return err
		}
		message = rows.ConditionOf(foo).Message
		for _, text := range says {
			if !strings.Contains(message, text) {
				return fmt.Errorf("the message is %q", message)
			}
		}
		return nil
	})
	return message
}

// conflict is the reason of an owner whose child's name is taken.
func (k kindIn) conflict() string { return k.Kind.Kind + "Conflict" }

// awaitSyncs waits until the controller of the owners has synced every change made before
// the call, by waiting for a new owner, which is queued behind them. Then a test knows that
// the controller had the chance to do something wrong.
func (k kindIn) awaitSyncs(t *testing.T) {
	t.Helper()
	name := "marker-" + rand.String(8)
	k.createOwner(t, k.Owner().New(name, name, 1))
	k.awaitReady(t, name)
}

// awaitChild waits until the child of an owner exists and check accepts it.
func (k kindIn) awaitChild(t *testing.T, want string, of footest.Object, check func(footest.Object) error) footest.Object {
	t.Helper()
	return await(t, want, k.children(), k.Name(of), check)
}

// isAsAsked returns a check that a Foo controls an object, which is as the Foo asks.
func (k kindIn) isAsAsked(foo footest.Object) func(footest.Object) error {
	return func(child footest.Object) error {
		if !metav1.IsControlledBy(child, foo) {
			return fmt.Errorf("its owners are %v, want %s %s", child.GetOwnerReferences(), k.Owner(), foo.GetName())
		}
		if differs := k.Differs(child, foo); differs != "" {
			return errors.New(differs)
		}
		return nil
	}
}

// awaitSettled waits until the cluster's own controllers no longer write to a child, and
// returns it.
func (k kindIn) awaitSettled(t *testing.T, foo footest.Object) footest.Object {
	t.Helper()
	return k.awaitChild(t, "it has settled", foo, func(child footest.Object) error {
		if busy := k.Busy(child); busy != "" {
			return errors.New(busy)
		}
		return nil
	})
}

// change changes an object as a user would. Others may write at any time.
func (o objects) change(t *testing.T, name string, change func(footest.Object)) (changed footest.Object) {
	t.Helper()
	often := wait.Backoff{Duration: 10 * time.Millisecond, Steps: 100}
	err := retry.RetryOnConflict(often, func() (err error) {
		object := get(t, o, name)
		change(object)
		changed, err = o.Update(t.Context(), object)
		return err
	})
	footest.Must(t, err)
	return changed
}

// createForeign creates the object that a Foo is going to ask for, as someone else.
func (k kindIn) createForeign(t *testing.T, foo footest.Object) footest.Object {
	t.Helper()
	foreign := k.ForeignNamed(k.Name(foo))
	foreign.SetNamespace(k.name)
	created, err := k.children().Create(t.Context(), foreign, metav1.CreateOptions{})
	footest.Must(t, err)
	return created
}

// handOver lets an owner adopt the object that has the name of its child.
func (k kindIn) handOver(t *testing.T, to footest.Object) {
	t.Helper()
	k.children().change(t, k.Name(to), footest.WithAdoptBy(to.GetName()))
}

// othersPart returns what a user may write of an object, without the fields that a Foo
// owns.
func (k kindIn) othersPart(t *testing.T, child, foo footest.Object) map[string]any {
	t.Helper()
	part := child.DeepCopyObject().(footest.Object)
	if foo != nil {
		k.ClearOwned(part, foo)
	}
	untyped, err := testcluster.Untyped(part, k.children().kind)
	footest.Must(t, err)
	fields := untyped.Object
	fields["metadata"] = map[string]any{"note": part.GetAnnotations()["note"], "team": part.GetLabels()["team"]}
	return fields
}

func (k kindIn) checkDrift(t *testing.T) {
	foo := k.createOwner(t, k.asking("drifts"))
	child := k.awaitChild(t, "the child is created", foo, k.isAsAsked(foo))
	k.awaitReady(t, foo.GetName())
	drifted := k.children().change(t, child.GetName(), func(child footest.Object) {
		k.Drift(child, foo)
		k.Edit(child, "kept")
	})
	if k.Differs(drifted, foo) == "" {
		t.Fatal("The API server did not store the drift, so this test shows nothing")
	}
	repaired := k.awaitChild(t, "the drift is undone", foo, k.isAsAsked(foo))
	footest.ExpectEqual(t, "what belongs to others", k.othersPart(t, drifted, foo), k.othersPart(t, repaired, foo))
	k.awaitReady(t, foo.GetName())
}

func (k kindIn) checkDeleted(t *testing.T) {
	foo := k.createOwner(t, k.asking("loses"))
	child := k.awaitChild(t, "the child is created", foo, k.isAsAsked(foo))
	inBackground := metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationBackground)}
	footest.Must(t, k.children().client.Delete(t.Context(), child.GetName(), inBackground))
	k.awaitChild(t, "the child is created again", foo, func(again footest.Object) error {
		if again.GetUID() == child.GetUID() {
			return errors.New("it is still the first")
		}
		return k.isAsAsked(foo)(again)
	})
	earlier := k.New(foo)
	earlier.SetName(child.GetName() + "-earlier")
	_, err := k.children().Create(t.Context(), earlier, metav1.CreateOptions{})
	footest.Must(t, err)
	awaitGone(t, k.children(), earlier.GetName())
	footest.Must(t, k.owners().client.Delete(t.Context(), foo.GetName(), metav1.DeleteOptions{}))
	awaitGone(t, k.children(), child.GetName())
}

func (k kindIn) checkUnset(t *testing.T) {
	foo := k.createOwner(t, k.asking("unset"))
	child := k.awaitChild(t, "the child is created", foo, k.isAsAsked(foo))
	k.owners().change(t, foo.GetName(), k.Unset)
	awaitGone(t, k.children(), child.GetName())
	k.awaitReady(t, foo.GetName())
	k.owners().change(t, foo.GetName(), k.Ask)
	k.awaitChild(t, "the child is created again", foo, k.isAsAsked(foo))
	k.awaitReady(t, foo.GetName())
}

// checkRenamed makes an owner ask for children of a taken name, of a free one, and of the taken
// one again, so that the third event repeats the first.
func (k kindIn) checkRenamed(t *testing.T) {
	const name = "restless"
	foo := k.createOwner(t, k.Owner().Asking(name, name, 1))
	k.awaitReady(t, name)
	rename := func(child string) {
		k.owners().change(t, name, func(foo footest.Object) { k.Owner().Rename(foo, child) })
	}
	k.createForeign(t, k.Owner().New(name, "taken", 1))
	rename("taken")
	k.awaitNotReady(t, name, k.conflict())
	rename("free")
	k.awaitReady(t, name)
	for _, kind := range k.Owner().Kinds {
		name := kind.Name(get(t, k.owners(), name))
		awaitThat(t, "its only "+kind.Kind+" is "+name, func(ctx context.Context) error {
			list, err := k.objects(kind).client.List(ctx, metav1.ListOptions{})
			if err != nil {
				return err
			}
			for _, child := range list.Items {
				if metav1.IsControlledBy(&child, foo) && child.GetName() != name {
					return fmt.Errorf("there is %s", child.GetName())
				}
			}
			return nil
		})
	}
	rename("taken")
	k.awaitNotReady(t, name, k.conflict())
}

func (k kindIn) checkForeign(t *testing.T) {
	foo := k.asking("taken")
	foreign := k.createForeign(t, foo)
	foo = k.createOwner(t, foo)
	k.awaitNotReady(t, foo.GetName(), k.conflict())
	expect := func(want footest.Object) footest.Object {
		now := get(t, k.children(), foreign.GetName())
		footest.ExpectEqual(t, "the object of somebody else", k.othersPart(t, want, nil), k.othersPart(t, now, nil))
		return now
	}
	expect(foreign)
	edited := k.children().change(t, foreign.GetName(), func(child footest.Object) { k.Edit(child, "touched") })
	k.awaitSyncs(t)
	if now := expect(edited); now.GetOwnerReferences() != nil {
		t.Errorf("Its owners are %v", now.GetOwnerReferences())
	}
	k.handOver(t, foo)
	if k.awaitChild(t, "it is adopted", foo, k.isAsAsked(foo)).GetUID() != foreign.GetUID() {
		t.Error("It was replaced, not adopted")
	}
}
