// SPDX-License-Identifier: Apache-2.0

// The CustomResourceDefinition: which installation protects it, and older ones.

package e2e

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/test/footest"
	"example.com/sample-controller/test/testcluster"
)

func isCRD(object *unstructured.Unstructured) bool {
	return object.GetKind() == "CustomResourceDefinition"
}

// TestAnOverlayCanLeaveOutTheCRD checks that an overlay can remove the CRD, for users who
// install it separately, without removing anything else.
func TestAnOverlayCanLeaveOutTheCRD(t *testing.T) {
	t.Parallel()
	for _, folder := range []string{deployFolder, namespacedFolder} {
		whole := slices.DeleteFunc(objectsOf(t, folder), isCRD)
		without := objectsOf(t, writeOverlay(t, folder, "patches:\n- target: {kind: CustomResourceDefinition}\n"+
			"  patch: '{$patch: delete, kind: CustomResourceDefinition, metadata: {name: any}}'\n"))
		footest.ExpectEqual(t, "an overlay without the CRD", whole, without)
	}
}

// TestTheCRDIsProtectedFromPruning checks the annotations that stop deployment tools from
// deleting the CRD, and all Foos with it.
func TestTheCRDIsProtectedFromPruning(t *testing.T) {
	t.Parallel()
	found := 0
	for _, object := range objectsOf(t, deployFolder) {
		annotations := object.GetAnnotations()
		if isCRD(object) && annotations["kustomize.toolkit.fluxcd.io/prune"] == "disabled" &&
			annotations["argocd.argoproj.io/sync-options"] == "Prune=false,Delete=false" && annotations["helm.sh/resource-policy"] == "keep" {
			found++
		}
	}
	if found != len(footest.Owners) {
		t.Errorf("%d CRDs are protected, and there are %d kinds", found, len(footest.Owners))
	}
}

// Paths within the CRD of the parts that the controller needs.
const (
	ofSchema = "/spec/versions/0/schema/openAPIV3Schema"
	ofStatus = ofSchema + "/properties/status/properties"
)

// TestWhatAnOlderCRDAcceptedDoesNoHarm starts a cluster of its own, because the CRD belongs to
// the whole cluster. An older CRD has accepted statuses that Go can't read: the controller
// repairs them, and they do not affect other Foos. It has also accepted a name that no Pod
// label can hold: that Foo reports this, and can be deleted in the foreground, which takes
// updates of the Foo.
func TestWhatAnOlderCRDAcceptedDoesNoHarm(t *testing.T) {
	t.Parallel()
	own := newOwnCluster(t)
	footest.Must(t, own.installCRDs(t.Context()))
	ns, beside := own.newNamespace(t), own.newNamespace(t)
	account := own.inDefault().newAccount(t)
	footest.Must(t, account.awaitFoosAsOwners(t.Context(), metav1.NamespaceDefault))
	longName := strings.Repeat("a", 64)
	const (
		largeNumber = `{"status":{"availableReplicas":1099511627776}}`
		lowerCase   = `{"status":{"conditions":[{"type":"Ready","status":"False","reason":"Progressing","message":"",` +
			`"observedGeneration":1,"lastTransitionTime":"2026-11-21t12:00:00z"}]}}`
	)
	writeStatus := func(name, status string, dryRun []string, wanted func(error) bool) {
		answer := testcluster.AwaitAnswer(t.Context(), patience, "the CRD is in force", func(ctx context.Context) error {
			options := metav1.PatchOptions{DryRun: dryRun}
			_, err := ns.rawFoos().Patch(ctx, name, types.MergePatchType, []byte(status), options, "status")
			return err
		}, wanted)
		footest.Must(t, answer)
	}
	const anything = `{"type":"array","items":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}`
	own.kubectl(t, "patch", "crd", crdName, "--type=json", "--patch=["+
		`{"op":"replace","path":"`+ofStatus+`/availableReplicas","value":{"type":"integer"}},`+
		`{"op":"replace","path":"`+ofStatus+`/conditions","value":`+anything+`},`+
		`{"op":"remove","path":"`+ofSchema+`/x-kubernetes-validations"}]`)
	for name, status := range map[string]string{"number": largeNumber, "time": lowerCase} {
		_, err := ns.foos().Create(t.Context(), newFoo(name, 1), metav1.CreateOptions{})
		footest.Must(t, err)
		writeStatus(name, status, nil, testcluster.Succeeded)
	}
	_, err := ns.rawFoos().Create(t.Context(), rawFoo(longName, "deploymentName", "long"), metav1.CreateOptions{})
	footest.Must(t, err)
	own.restoreCRD(t)
	writeStatus("time", largeNumber, dryRun, apierrors.IsInvalid)

	beside.witness(t)
	beside.primary().createOwner(t, newFoo("beside", 1))
	startController(t, "-kubeconfig="+account.kubeconfig)
	beside.primary().awaitReady(t, "beside")
	ns.awaitNotReady(t, longName, samplev1alpha1.ReasonDeploymentFailed)
	ns.primary().awaitReady(t, "number")
	ns.primary().awaitReady(t, "time")
	ns.kubectl(t, "delete", "foo", longName, "--cascade=foreground", timeout)
	ns.witness(t) // only now can the typed client read these Foos
	ns.kubectl(t, "scale", "foo/time", "--replicas=2")
	ns.awaitReplicas(t, "time", 2)
	beside.createReadyFoo(t, newFoo("later", 1))
}

// newNamespace creates a namespace that lasts as long as the test's own cluster.
func (c *testCluster) newNamespace(t *testing.T) *namespace {
	t.Helper()
	ns, err := c.createNamespace(t.Context())
	footest.Must(t, err)
	return ns
}

// restoreCRD restores the shipped CRD. It replaces the whole spec, not only the patched parts.
func (c *testCluster) restoreCRD(t *testing.T) {
	t.Helper()
	wanted, err := readObject(crdFile)
	footest.Must(t, err)
	spec, err := json.Marshal(wanted.Object["spec"])
	footest.Must(t, err)
	patch := `[{"op":"replace","path":"/spec","value":` + string(spec) + `}]`
	c.kubectl(t, "patch", "crd", crdName, "--type=json", "--patch="+patch)
}

// rawFoos returns a client for Foos that our types can't represent.
func (ns *namespace) rawFoos() dynamic.ResourceInterface { return ns.primary().owners().client }
