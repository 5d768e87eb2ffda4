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

// The contract: the controller does not work against a deletion.

package e2e

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

func TestADeletionIsNotFought(t *testing.T) {
	t.Parallel()
	needsNoOtherController(t)
	ns := newNamespace(t)
	ns.startController(t, "-resync=0")
	checkAll(t, ns, []scenario{
		{"a Foo that is being deleted gets no update and no create", checkTerminatingFoo},
		{"a Foo deleted in the foreground waits for its Deployment, which is left alone", checkForegroundFoo},
		{"an orphaned Deployment stays as it is", checkOrphaned},
		{"a Deployment that is being deleted is recreated when it is gone", checkTerminatingDeployment},
		{"a Foo deleted and recreated at once gets a Deployment of its own", checkRecreatedAtOnce},
	})
}

// patcher patches objects. Every typed client is one.
type patcher[T any] interface {
	Patch(ctx context.Context, name string, kind types.PatchType, data []byte, opts metav1.PatchOptions, subresources ...string) (T, error)
}

// releaseAtEnd removes an object's finalizers when the test ends.
func releaseAtEnd[T any](t *testing.T, client patcher[T], name string) {
	t.Helper()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		if err := releaseNow(ctx, client, name); err != nil {
			t.Error(err)
		}
	})
}

// releaseNow removes the finalizers of an object, if it still exists.
func releaseNow[T any](ctx context.Context, client patcher[T], name string) error {
	_, err := client.Patch(ctx, name, types.MergePatchType, []byte(releasedPatch), metav1.PatchOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("releasing %s: %w", name, err)
	}
	return nil
}

// checkTerminatingFoo holds the Foo by a finalizer. As long as the Foo exists, the
// garbage collector leaves its Deployment alone, so only the controller could change it.
func checkTerminatingFoo(t *testing.T, ns *namespace) {
	ns.createReadyFoo(t, newFoo("held", withReplicas(1)))
	releaseAtEnd(t, ns.foos(), "held")
	mergePatch(t, ns.foos(), "held", heldPatch)
	ns.deleteFoo(t, "held", metav1.DeletePropagationBackground)
	before := ns.awaitSettledOne(t, "held")
	mergePatch(t, ns.foos(), "held", `{"spec":{"replicas":3}}`)
	ns.awaitReason(t, "held", samplev1alpha1.ReasonTerminating)
	ns.awaitSyncs(t)
	ns.isSameVersion(t, before)

	deleteDeploymentInBackground(t, ns, "held")
	awaitGone(t, ns.deployments(), "held")
	ns.awaitSyncs(t)
	awaitGone(t, ns.deployments(), "held")
}

func checkForegroundFoo(t *testing.T, ns *namespace) {
	ns.createReadyFoo(t, newFoo("foreground", withReplicas(1)))
	releaseAtEnd(t, ns.deployments(), "foreground")
	mergePatch(t, ns.deployments(), "foreground", heldPatch)
	ns.deleteFoo(t, "foreground", metav1.DeletePropagationForeground)
	terminating := awaitOne(t, "the Deployment is being deleted", ns.deployments(), "foreground", isTerminating)
	mergePatch(t, ns.foos(), "foreground", `{"spec":{"replicas":3}}`)
	ns.awaitReason(t, "foreground", samplev1alpha1.ReasonTerminating)
	ns.awaitSyncs(t)
	if got := ns.getDeployment(t, "foreground"); !equality.Semantic.DeepEqual(got.Spec, terminating.Spec) {
		t.Errorf("The Deployment's spec has changed: %s", show(got))
	}

	mergePatch(t, ns.deployments(), "foreground", releasedPatch)
	awaitGone(t, ns.foos(), "foreground")
	ns.awaitSyncs(t)
	awaitGone(t, ns.deployments(), "foreground")
}

func isTerminating(deployment *appsv1.Deployment) error {
	if deployment.DeletionTimestamp == nil {
		return errors.New("it is not being deleted")
	}
	return nil
}

func checkOrphaned(t *testing.T, ns *namespace) {
	ns.createReadyFoo(t, newFoo("parent", withReplicas(2)))
	before := ns.awaitSettledOne(t, "parent")
	ns.deleteFoo(t, "parent", metav1.DeletePropagationOrphan)
	awaitGone(t, ns.foos(), "parent")
	ns.awaitSyncs(t)
	after := ns.getDeployment(t, "parent")
	if len(after.OwnerReferences) > 0 {
		t.Errorf("It still has the owners %v", after.OwnerReferences)
	}
	if !equality.Semantic.DeepEqual(withoutOwner(after), withoutOwner(before)) {
		t.Errorf("The orphan has changed:\n%s\nbefore:\n%s", show(after), show(before))
	}
}

// withoutOwner returns a copy of a Deployment without the fields that change when its
// owner reference is removed.
func withoutOwner(deployment *appsv1.Deployment) *appsv1.Deployment {
	bare := deployment.DeepCopy()
	bare.OwnerReferences, bare.ManagedFields, bare.ResourceVersion = nil, nil, ""
	return bare
}

func checkTerminatingDeployment(t *testing.T, ns *namespace) {
	foo := ns.createReadyFoo(t, newFoo("waited", withReplicas(1)))
	releaseAtEnd(t, ns.deployments(), "waited")
	first := mergePatch(t, ns.deployments(), "waited", heldPatch)
	foreground := metav1.DeletePropagationForeground
	if err := ns.deployments().Delete(t.Context(), "waited", metav1.DeleteOptions{PropagationPolicy: &foreground}); err != nil {
		t.Fatal(err)
	}
	ns.awaitReason(t, "waited", samplev1alpha1.ReasonTerminating)
	mergePatch(t, ns.foos(), "waited", `{"spec":{"replicas":2}}`)
	ns.awaitReason(t, "waited", samplev1alpha1.ReasonTerminating)
	ns.awaitSyncs(t)
	if got := ns.getDeployment(t, "waited"); !equality.Semantic.DeepEqual(got.Spec, first.Spec) {
		t.Errorf("The Deployment's spec has changed: %s", show(got))
	}

	mergePatch(t, ns.deployments(), "waited", releasedPatch)
	awaitOne(t, "there is another Deployment", ns.deployments(), "waited", func(d *appsv1.Deployment) error {
		if d.UID == first.UID {
			return errors.New("it is still the first one")
		}
		return errors.Join(isControlled(d, foo), asksFor(d, 2))
	})
	ns.awaitReady(t, "waited")
}

// checkRecreatedAtOnce recreates a Foo so fast that the controller may see one Foo that
// changes. The Deployment of the first Foo exists until the garbage collector deletes it.
func checkRecreatedAtOnce(t *testing.T, ns *namespace) {
	ns.createReadyFoo(t, newFoo("phoenix"))
	var last *samplev1alpha1.Foo
	for range 3 {
		ns.deleteFoo(t, "phoenix", metav1.DeletePropagationBackground)
		last = ns.createFoo(t, newFoo("phoenix", withReplicas(2)))
	}
	awaitOne(t, "the last Foo has a Deployment", ns.deployments(), "phoenix", func(d *appsv1.Deployment) error {
		return errors.Join(isControlled(d, last), asksFor(d, 2))
	})
	ns.awaitReady(t, "phoenix")
	ns.awaitOnly(t, last, "phoenix")
}

func TestADeploymentOfADeletedFooIsLeftToTheGarbageCollector(t *testing.T) {
	t.Parallel()
	needsNoOtherController(t)
	ns := newNamespace(t)
	p, sent := ns.startRecorded(t, nil, "-resync=1s", "-v=4")
	ns.createReadyFoo(t, newFoo("alive"))
	ns.awaitSettledOne(t, "alive")
	awaitEvent(t, ns, "alive", "Normal", samplev1alpha1.ReasonAvailable)
	before := sent.writes("deployments") + sent.writes("foos")

	ns.createDeployment(t, "left", 1)
	mergePatch(t, ns.deployments(), "left", ownedBy(samplev1alpha1.GroupName, "ghost", "00000000-0000-0000-0000-000000000000"))
	awaitGone(t, ns.deployments(), "left")
	p.awaitResyncs(t, 2)
	if got := sent.writes("deployments") + sent.writes("foos") - before; got != 0 {
		t.Errorf("The controller sent %d writes, want none", got)
	}
}
