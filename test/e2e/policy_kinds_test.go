// SPDX-License-Identifier: Apache-2.0

// The admission policies of all kinds of children, from the rows of test/footest.

package e2e

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/jsonmergepatch"
	"k8s.io/client-go/dynamic"

	"example.com/sample-controller/test/footest"
	"example.com/sample-controller/test/testcluster"
)

// TestWithAStolenTokenNoKindIsWrittenOtherwise tries with a child of each kind what no Foo
// asks for. test/policy tries each field.
func TestWithAStolenTokenNoKindIsWrittenOtherwise(t *testing.T) {
	t.Parallel()
	needsNoOtherController(t) // the Foo must not be reconciled
	ns := newNamespace(t)
	_ = forEachKind(func(kind *footest.Kind) error {
		t.Run(kind.Kind, func(t *testing.T) { kindIn{ns, kind}.testThief(t) })
		return nil
	})
}

func (k kindIn) testThief(t *testing.T) {
	everywhere, err := dynamic.NewForConfig(k.in.account.config)
	if err != nil {
		t.Fatal(err)
	}
	thief := everywhere.Resource(k.Resource).Namespace(k.name)
	foo := k.createAsking(t, "robbed")
	foo.SetNamespace(k.name)
	asked := k.New(foo)
	refused := func(what string, err error) {
		t.Helper()
		if !testcluster.IsDeniedByPolicy(err) || !strings.Contains(err.Error(), k.Kind.Kind) {
			t.Errorf("%s: the API server answered %v\nwant a refusal by the policy", what, err)
		}
	}
	create := func(ctx context.Context, change func(child footest.Object)) error {
		child := asked.DeepCopyObject().(footest.Object)
		change(child)
		_, err := thief.Create(ctx, k.untyped(t, child), metav1.CreateOptions{DryRun: dryRun})
		return err
	}
	ownerless := func(child footest.Object) { child.SetOwnerReferences(nil) }
	err = testcluster.AwaitAnswer(t.Context(), time.Minute, "the policy is in force", func(ctx context.Context) error {
		return create(ctx, ownerless)
	}, testcluster.IsDeniedByPolicy)
	if err != nil {
		t.Fatal(err)
	}
	refused("a new one without an owner", create(t.Context(), ownerless))
	refused("a new one with others' fields", create(t.Context(), func(child footest.Object) { k.Edit(child, "stolen") }))
	if _, err := thief.Create(t.Context(), k.untyped(t, asked), metav1.CreateOptions{}); err != nil {
		t.Fatalf("A new one as the Foo asks: %v", err)
	}
	k.update(t, asked.GetName(), func(child footest.Object) { k.Drift(child, foo) })
	patch := func(change func(child footest.Object)) error {
		object, err := k.client().Get(t.Context(), asked.GetName(), metav1.GetOptions{})
		if err != nil {
			return err
		}
		_, err = thief.Patch(t.Context(), asked.GetName(), types.MergePatchType, patchOf(t, k.typed(t, object), change), metav1.PatchOptions{DryRun: dryRun})
		return err
	}
	refused("others' fields", patch(func(child footest.Object) { k.Edit(child, "stolen") }))
	refused("the owner", patch(ownerless))
	orphan, background := metav1.DeletePropagationOrphan, metav1.DeletePropagationBackground
	refused("a delete that leaves what it owns", thief.Delete(t.Context(), asked.GetName(), metav1.DeleteOptions{DryRun: dryRun, PropagationPolicy: &orphan}))
	foreign := k.createForeign(t, k.asking("foreign"))
	refused("a delete of what belongs to others", thief.Delete(t.Context(), foreign.GetName(), metav1.DeleteOptions{DryRun: dryRun, PropagationPolicy: &background}))
}

// patchOf returns the JSON merge patch that changes an object. The controller's account may
// send patches of any type, and no updates.
func patchOf[T runtime.Object](t *testing.T, object T, change func(T)) []byte {
	t.Helper()
	before, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	change(object)
	after, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	patch, err := jsonmergepatch.CreateThreeWayJSONMergePatch(before, after, before)
	if err != nil {
		t.Fatal(err)
	}
	return patch
}
