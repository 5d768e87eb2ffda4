// SPDX-License-Identifier: Apache-2.0

// What an older CRD accepted: statuses that Go cannot read, and long names.

package e2e

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/test/testcluster"
)

// Paths within the CRD of the parts that the controller needs.
const (
	ofVersion = "/spec/versions/0"
	ofStatus  = ofVersion + "/schema/openAPIV3Schema/properties/status/properties"
)

// aStatus is a patch with a condition like the controller's.
const aStatus = `{"status":{"conditions":[{"type":"Ready","status":"False","reason":"Progressing","message":"",` +
	`"observedGeneration":1,"lastTransitionTime":"2026-11-21T12:00:00Z"}]}}`

// TestWhatAnOlderCRDAcceptedDoesNoHarm starts a cluster of its own, because the CRD
// belongs to the whole cluster. Its parts run one after the other.
func TestWhatAnOlderCRDAcceptedDoesNoHarm(t *testing.T) {
	t.Parallel()
	own := newOwnCluster(t)
	if err := own.installCRD(t.Context()); err != nil {
		t.Fatal(err)
	}
	own.account = newAccountIn(t, own.kubeconfig, metav1.NamespaceDefault)
	if err := own.account.awaitFoosAsOwners(t.Context(), metav1.NamespaceDefault); err != nil {
		t.Fatal(err)
	}
	t.Run("a CRD that accepted statuses which Go can't read", own.checkUnreadable)
	t.Run("a CRD that accepted long names", own.checkLongName)
}

// checkUnreadable checks that the controller repairs statuses that an older CRD accepted
// and Go can't read, and that they do not affect other Foos.
func (c *testCluster) checkUnreadable(t *testing.T) {
	ns, beside := c.newNamespace(t), c.newNamespace(t)
	defer c.restoreCRD(t)
	c.patchCRD(t, `[{"op":"replace","path":"`+ofStatus+`/availableReplicas","value":{"type":"integer"}},`+
		`{"op":"replace","path":"`+ofStatus+`/conditions","value":{"type":"array","items":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}]`)
	const largeNumber = `{"status":{"availableReplicas":1099511627776}}`
	lowerCase := strings.NewReplacer("T12", "t12", "Z", "z").Replace(aStatus)
	for name, status := range map[string]string{"number": largeNumber, "time": lowerCase} {
		ns.createFoo(t, newFoo(name, withReplicas(1)))
		ns.awaitStatusAnswer(t, name, status, nil, func(_ *unstructured.Unstructured, err error) bool { return err == nil })
	}
	c.restoreCRD(t)
	ns.awaitStatusAnswer(t, "time", largeNumber, dryRun, func(_ *unstructured.Unstructured, err error) bool { return apierrors.IsInvalid(err) })

	beside.witness(t)
	beside.createFoo(t, newFoo("beside", withReplicas(1)))
	startController(t, "-kubeconfig="+c.account.kubeconfig)
	beside.awaitReady(t, "beside")
	for _, name := range []string{"number", "time"} {
		ns.awaitReadable(t, name)
	}
	ns.witness(t) // only now can the typed client read these Foos
	mergePatch(t, ns.foos(), "time", `{"spec":{"replicas":2}}`)
	ns.awaitReplicas(t, "time", 2)
	beside.createReadyFoo(t, newFoo("later", withReplicas(1)))
}

// checkLongName checks that a Foo whose name an older CRD accepted, and no Pod label can
// hold, reports this and can be deleted in the foreground, which takes updates of the Foo.
func (c *testCluster) checkLongName(t *testing.T) {
	ns, name := c.newNamespace(t), strings.Repeat("a", 64)
	defer c.restoreCRD(t)
	c.patchCRD(t, `[{"op":"remove","path":"`+ofVersion+`/schema/openAPIV3Schema/x-kubernetes-validations"}]`)
	awaitCreation := func(name string, opts metav1.CreateOptions, accept func(error) bool) {
		err := testcluster.AwaitAnswer(t.Context(), c.patience(), "the CRD is in force", func(ctx context.Context) error {
			_, err := ns.foos().Create(ctx, newFoo(name), opts)
			return err
		}, accept)
		if err != nil {
			t.Fatal(err)
		}
	}
	awaitCreation(name, metav1.CreateOptions{}, testcluster.Succeeded)
	c.restoreCRD(t)
	awaitCreation(name+"b", metav1.CreateOptions{DryRun: dryRun}, apierrors.IsInvalid)

	startController(t, "-kubeconfig="+c.account.kubeconfig)
	ns.awaitReason(t, name, samplev1alpha1.ReasonDeploymentFailed)
	ns.deleteFoo(t, name, metav1.DeletePropagationForeground)
	awaitGone(t, ns.foos(), name)
}

// patchCRD applies a JSON patch to the CRD.
func (c *testCluster) patchCRD(t *testing.T, patch string) {
	t.Helper()
	patchAs(t, crdClient(c.dynamic), crdName, types.JSONPatchType, patch)
}

// restoreCRD restores the shipped CRD.
func (c *testCluster) restoreCRD(t *testing.T) {
	t.Helper()
	wanted, err := readObject(filepath.Join(moduleRoot, crdFile))
	if err != nil {
		t.Fatal(err)
	}
	// Replace the whole spec, not only the patched parts.
	spec, err := json.Marshal(wanted.Object["spec"])
	if err != nil {
		t.Fatal(err)
	}
	c.patchCRD(t, `[{"op":"replace","path":"/spec","value":`+string(spec)+`}]`)
}

// awaitStatusAnswer patches a Foo's status until the API server's answer is accepted. A
// CRD is in force a moment after it is stored.
func (ns *namespace) awaitStatusAnswer(t *testing.T, foo, status string, dryRun []string, accept func(*unstructured.Unstructured, error) bool) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, cluster.patience(), true, func(ctx context.Context) (bool, error) {
		var stored *unstructured.Unstructured
		stored, last = ns.rawFoos().Patch(ctx, foo, types.MergePatchType, []byte(status), metav1.PatchOptions{DryRun: dryRun}, "status")
		return accept(stored, last), nil
	})
	if err != nil {
		t.Fatalf("Patching Foo %s with %s until the answer is as expected: %v: %v", foo, status, err, last)
	}
}

// awaitReadable waits until a Foo is ready and Go can read it.
func (ns *namespace) awaitReadable(t *testing.T, name string) {
	t.Helper()
	awaitOne(t, "Foo "+name+" is ready", ns.rawFoos(), name, func(raw *unstructured.Unstructured) error {
		foo := &samplev1alpha1.Foo{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(raw.Object, foo); err != nil {
			return err
		}
		return isReady(foo)
	})
}
