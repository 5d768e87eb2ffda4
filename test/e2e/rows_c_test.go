// SPDX-License-Identifier: Apache-2.0

// Rows C: owners, deletion, renames, what other writers put on a Deployment, and the
// CustomResourceDefinition.

package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/test/faults/proxy"
	"example.com/sample-controller/test/footest"
	"example.com/sample-controller/test/testcluster"
)

var rowsC = []*scenario{
	{row: "C3", title: "foreground deletion of a Foo: no new Deployment is created",
		quick: 1, cases: one("held by a finalizer", func(tr *trial) {
			tr.startWithFoo("a", 1)
			tr.patchFoo("a", held)
			tr.stableAndQuiet()
			tr.deleteFoo("a", metav1.DeletePropagationForeground)
			tr.awaitGone("a")
			tr.letAct()
			_, err := tr.deployments().Get(tr.ctx, "a", metav1.GetOptions{})
			tr.must(goneOr(err))
			tr.patchFoo("a", released)
		}), why: "it does not check the Foo's deletionTimestamp"},
	{row: "C4", title: "orphan deletion of a Foo: the Deployment stays and is not adopted (C5)",
		quick: 2, cases: []trialCase{
			{name: "stays", run: func(tr *trial) {
				tr.startWithFoo("a", 1)
				tr.orphan()
			}},
			{name: "and a Foo of the same name", run: func(tr *trial) {
				tr.startWithFoo("a", 1)
				tr.orphan()
				tr.createFoo("a", "a", 2)
			}},
		}},
	{row: "C6", title: "a user removes the owner reference", quick: 1, exempt: true, cases: one("by a user", func(tr *trial) {
		// The Deployment is an orphan then, and the controller does not write to it.
		tr.startWithFoo("a", 1)
		tr.takeAway()
		tr.scaleFoo("a", 2)
	}), why: "as B2"},
	{row: "C7", title: "two Foos name one Deployment", quick: 1, exempt: true, cases: one("two Foos", func(tr *trial) {
		tr.start()
		tr.settledFoo("first", "shared", 1)
		tr.createFoo("second", "shared", 3)
	})},
	{row: "C9", title: "the Deployment is being deleted but still exists: nothing is written",
		quick: 1, cases: one("held by a finalizer", func(tr *trial) {
			tr.startWithFoo("a", 1)
			tr.patchDeployment("a", held)
			tr.stableAndQuiet()
			tr.deleteDeployment("a")
			tr.letAct() // the status may report the deletion
			tr.mustNotWrite(tr.letAct)
			tr.patchDeployment("a", released)
		})},
	{row: "C10", title: "the namespace is being deleted: no further write is attempted",
		quick: 1, cases: one("with a Foo held by a finalizer", func(tr *trial) {
			tr.startWithFoo("a", 1)
			tr.patchFoo("a", held)
			tr.stableAndQuiet()
			tr.must(tr.cluster.kube.CoreV1().Namespaces().Delete(tr.ctx, tr.ns, metav1.DeleteOptions{}))
			tr.awaitGone("a")
			tr.await("Foo a is being deleted", func(ctx context.Context) error {
				foo, err := tr.foos().Get(ctx, "a", metav1.GetOptions{})
				if err == nil && foo.DeletionTimestamp == nil {
					err = errors.New("it is not yet")
				}
				return err
			})
			// Nothing can be created in such a namespace, so no fence.
			tr.pause(2 * quiet) // the status may report the deletion
			tr.mustNotWrite(func() { tr.pause(4 * quiet) })
			tr.patchFoo("a", released)
		}),
		why: "it retries the rejected creates"},
	{row: "C12", title: "the CRD is deleted and recreated",
		quick: 1, breaksPlane: true, cases: one("while running", func(tr *trial) {
			// With the CRD all Foos are deleted, and their Deployments.
			r := tr.startWithFoo("a", 1)
			// A garbage collector that does not know Foos yet does not notice that they go.
			tr.settledFoo("b", "b", 1)
			tr.deleteFoo("b", metav1.DeletePropagationBackground)
			tr.awaitGone("b")
			tr.withoutRecording(func() {
				began := time.Now()
				tr.deleteCRD()
				tr.awaitCall(r, since(began), func(call *proxy.Call) bool { return call.Resource == "foos" && call.Code == http.StatusNotFound })
				tr.mustRun(r)
				tr.awaitGone("a")
				tr.must(tr.cluster.install(tr.ctx))
			})
			tr.createFoo("a", "a", 2)
		})},
	{row: "C12", title: "a Foo is created right after the CRD: its Deployment follows about as soon as the API server allows",
		breaksPlane: true, cases: one("fresh installation", func(tr *trial) {
			// A Foo is created right after its CRD. The admission plugin
			// OwnerReferencesPermissionEnforcement refuses owners of a kind that it does not know
			// yet. Creates that are not stored measure for how long.
			tr.withoutRecording(func() {
				tr.deleteCRD()
				tr.plane.Kill(testcluster.APIServer)
				tr.must(tr.plane.Start(tr.ctx, testcluster.APIServer))
				up := time.Now()
				// The plugin reads the kinds when it needs them first: without the Foo.
				account, err := kubernetes.NewForConfig(tr.cluster.exempt.Config)
				tr.must(err)
				_, err = account.AppsV1().Deployments(tr.ns).Create(tr.ctx, footest.UnstoredDeployment("probe"),
					metav1.CreateOptions{DryRun: dryRun})
				if !apierrors.IsForbidden(err) {
					tr.must(errors.Join(errors.New("the API server knows the kind of a CRD that is deleted"), err))
				}
				tr.must(tr.cluster.install(tr.ctx))
				tr.pause(time.Until(up.Add(fooAt)))
			})
			r := tr.start()
			tr.createFoo("a", "a", 1)
			began := time.Now()
			tr.must(tr.cluster.exempt.awaitFoosAsOwners(tr.ctx, tr.ns))
			allowed := time.Since(began)
			created := tr.awaitCall(r, isCreate, succeeded)
			tr.stableAndQuiet()
			if took := created.Began.Sub(began); took > 2*allowed+time.Second {
				tr.failf("the Deployment was created after %v, but the API server allowed it after %v",
					took, allowed)
			}
		})},
	{row: "C13", title: "the owner is a Foo of another API group",
		quick: 1, exempt: true, cases: one("of the same name", func(tr *trial) {
			tr.foreignOwner("faults.example.com/v1alpha1")
		})},
	{row: "C14", title: "other writers' additions to the Deployment stay",
		quick: 1, exempt: true, cases: one("an annotation and a sidecar", func(tr *trial) {
			const withSidecar = `{"spec":{"template":{"spec":{"containers":[
		{"name":"nginx","image":"nginx:latest"},{"name":"sidecar","image":"busybox"}]}}}}`
			tr.startWithFoo("a", 1)
			tr.annotate("a", "mine")
			tr.patchDeployment("a", withSidecar)
			tr.protectThat("a", func(d *appsv1.Deployment) error {
				for _, container := range d.Spec.Template.Spec.Containers {
					if container.Name == "sidecar" {
						return nil
					}
				}
				return errors.New("the sidecar that another writer added to Deployment a is gone")
			})
			tr.stableAndQuiet()
			tr.scaleFoo("a", 2)
		}),
		why: "its Update sends a new object, built from the Foo alone"},
	{row: "C16", title: "deploymentName changes: the new Deployment starts with as many replicas, and the old one serves until it is ready",
		quick: 3, cases: []trialCase{
			{name: "the number of Pods is left to others", run: func(tr *trial) {
				r := tr.start()
				tr.settledFoo("a", "one", 0)
				tr.serves("one", 1)
				tr.scaleDeployment("one", 3) // as an autoscaler does
				tr.stableAndQuiet()
				tr.serves("one", 3)
				tr.renameDeployment("a", "two")
				tr.stableAndQuiet()
				tr.serves("two", 3)
				for _, call := range r.made(isCreate, succeeded, isAbout("two")) {
					var created appsv1.Deployment
					tr.must(json.Unmarshal(call.Answer, &created))
					if begun := *created.Spec.Replicas; begun != 3 {
						tr.failf("Deployment two started with %d replicas, but the one before had 3", begun)
					}
				}
				tr.mustServe()
			}, needs: "rename"},
			{name: "a third name while the second Deployment has no Pods", run: func(tr *trial) {
				const stays = `Deployment "one" stays in service until then`
				tr.startWithFoo("one", 1)
				tr.setQuota(corev1.ResourcePods, "1")
				tr.whileRefused("a", samplev1alpha1.ReasonDeploymentFailed, func() {
					tr.renameDeployment("a", "two")
					tr.awaitReported("a", `Deployment "two"`, stays)
					tr.renameDeployment("a", "three")
					tr.awaitReported("a", `Deployment "three"`, stays)
					tr.awaitGone("two")
					tr.stableAndQuiet()
					tr.serves("one", 1)
				}, func() { tr.setQuota(corev1.ResourcePods, "9") })
				tr.stableAndQuiet()
				tr.mustServe()
			}, needs: "rename"},
			{name: "the new name is refused", run: func(tr *trial) {
				tr.startWithFoo("one", 1)
				tr.deny("two", creates, "")
				tr.whileRefused("a", samplev1alpha1.ReasonDeploymentFailed, func() {
					tr.renameDeployment("a", "two")
					tr.awaitReported("a", denialText)
					tr.stableAndQuiet()
					tr.serves("one", 1)
				}, tr.withdraw)
				tr.stableAndQuiet()
				tr.mustServe()
			}, needs: "rename"},
		}},
}

// orphan deletes Foo a with orphan propagation, and protects its Deployment.
func (tr *trial) orphan() {
	tr.deleteFoo("a", metav1.DeletePropagationOrphan)
	tr.await("Foo a is gone", func(ctx context.Context) error {
		_, err := tr.foos().Get(ctx, "a", metav1.GetOptions{})
		return goneOr(err)
	})
	tr.awaitDeployment("is an orphan", "a", func(d *appsv1.Deployment) error {
		if len(d.OwnerReferences) > 0 {
			return fmt.Errorf("it has the owners %v", d.OwnerReferences)
		}
		return nil
	})
	tr.protect(tr.deployment("a"))
}

// deleteCRD deletes the CRD, and with it all Foos.
func (tr *trial) deleteCRD() {
	tr.kubectl("delete", "crd", "foos.samplecontroller.k8s.io", "--wait=true", "--timeout=60s")
}

// fooAt is when the Foo of a fresh installation is created, from the start of the API
// server on. The server reads the kinds 30 s after its start, which is neither at once nor
// as late as a long back-off would have it.
const fooAt = 15 * time.Second
