// SPDX-License-Identifier: Apache-2.0

// The CustomResourceDefinition: which Foos the API server accepts (test/artifacts/fuzz has statuses), which installation
// protects it, and older ones.

package e2e

import (
	"context"
	"fmt"
	"maps"
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

// rawFoo returns a Foo with a name, of whose spec one field is set to any value.
func rawFoo(name, field string, value any) *unstructured.Unstructured {
	spec := map[string]any{"deploymentName": "web"}
	spec[field] = value
	foo := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	foo.SetAPIVersion(samplev1alpha1.SchemeGroupVersion.String())
	foo.SetKind("Foo")
	foo.SetName(name)
	return foo
}

// expectAnswer checks that the API server refused an object as invalid, with a field and a
// message, or that it accepted the object if there is no message.
func expectAnswer(t *testing.T, err error, field, message string) {
	t.Helper()
	if message == "" {
		footest.Must(t, err)
		return
	}
	if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), field) || !strings.Contains(err.Error(), message) {
		t.Errorf("The API server answered %v\nwant a refusal of %s with %s", err, field, message)
	}
}

func TestWhichFoosTheAPIServerAccepts(t *testing.T) {
	t.Parallel()
	tr := newTrial(t)
	const (
		accepted   = ""
		required   = ": Required value"
		notDNS1123 = ": must be a DNS-1123 subdomain: lower-case letters, digits, '-' and '.', " +
			"beginning and ending with a letter or digit (for example 'web-1')"
		below  = "in body should be greater than or equal to 1"
		above  = "in body should be less than or equal to 10"
		noName = "must be no more than 63 characters: it becomes the value of a Pod label"
	)
	try := func(t *testing.T, foo *unstructured.Unstructured, field, message string) {
		t.Helper()
		stored, err := tr.rawFoos().Create(t.Context(), foo, metav1.CreateOptions{DryRun: dryRun})
		expectAnswer(t, err, field, message)
		if message == accepted {
			want := foo.Object["spec"].(map[string]any)
			maps.DeleteFunc(want, func(_ string, value any) bool { return value == nil })
			footest.ExpectEqual(t, "the stored spec", any(want), stored.Object["spec"])
		}
	}
	try(t, rawFoo(strings.Repeat("a", 63), "deploymentName", "web"), "metadata.name", accepted) // without replicas
	try(t, rawFoo(strings.Repeat("a", 64), "replicas", int64(1)), "metadata.name", noName)
	without := rawFoo("bad", "replicas", int64(1))
	delete(without.Object["spec"].(map[string]any), "deploymentName")
	try(t, without, "spec.deploymentName", required)
	delete(without.Object, "spec")
	try(t, without, "spec", required)
	for _, test := range []struct {
		field   string
		value   any
		message string
	}{
		{"deploymentName", nil, required},
		{"deploymentName", "", `Invalid value: ""` + notDNS1123},
		{"deploymentName", "my_web", `Invalid value: "my_web"` + notDNS1123},
		{"deploymentName", "Web", `Invalid value: "Web"` + notDNS1123},
		{"deploymentName", "web-", `Invalid value: "web-"` + notDNS1123},
		{"deploymentName", strings.Repeat("a", 254), "Too long: may not be more than 253 bytes"},
		{"deploymentName", strings.Repeat("a", 253), accepted},
		{"deploymentName", "w", accepted},
		{"deploymentName", "web.v1", accepted},
		{"deploymentName", int64(7), "in body must be of type string"},
		{"replicas", int64(0), below},
		{"replicas", int64(1), accepted},
		{"replicas", int64(10), accepted},
		{"replicas", int64(11), above},
		{"replicas", int64(-1), below},
		{"replicas", nil, accepted}, // as a client without omitempty sends it
		{"replicas", "three", "in body must be of type integer"},
		{"replicas", 1.5, "Checked value must be of type integer with format int32 in spec.replicas"},
	} {
		t.Run(fmt.Sprintf("%s %.10v", test.field, test.value), func(t *testing.T) {
			try(t, rawFoo("web", test.field, test.value), "spec."+test.field, test.message)
		})
	}
}

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

// TestWhatAnOlderCRDAcceptedDoesNoHarm starts its own cluster, because the CRD belongs to
// the whole cluster. An older CRD has accepted statuses that Go can't read: the controller
// repairs them, and they do not affect other Foos. It has also accepted a name that no Pod
// label can hold: that Foo reports this, and can be deleted in the foreground, which takes
// updates of the Foo.
func TestWhatAnOlderCRDAcceptedDoesNoHarm(t *testing.T) {
	t.Parallel()
	own := newOwnCluster(t)
	footest.Must(t, own.install(t.Context()))
	footest.Must(t, own.awaitInForce(t.Context()))
	old, err := own.createNamespace(t.Context())
	footest.Must(t, err)
	tr := inNamespaceOf(t, own, old)
	longName := strings.Repeat("a", 64)
	const (
		largeNumber = `{"status":{"availableReplicas":1099511627776}}`
		lowerCase   = `{"status":{"conditions":[{"type":"Ready","status":"False","reason":"Progressing","message":"",` +
			`"observedGeneration":1,"lastTransitionTime":"2026-11-21t12:00:00z"}]}}`
	)
	writeStatus := func(name, status string, dryRun []string, wanted func(error) bool) {
		answer := testcluster.AwaitAnswer(t.Context(), patience, "the CRD is in force", func(ctx context.Context) error {
			options := metav1.PatchOptions{DryRun: dryRun}
			_, err := tr.rawFoos().Patch(ctx, name, types.MergePatchType, []byte(status), options, "status")
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
		tr.createFoo(name, name, 1)
		writeStatus(name, status, nil, testcluster.Succeeded)
	}
	_, err = tr.rawFoos().Create(t.Context(), rawFoo(longName, "deploymentName", "long"), metav1.CreateOptions{})
	footest.Must(t, err)
	own.kubectl(t, "replace", "--filename="+crdFolder)
	writeStatus("time", largeNumber, dryRun, apierrors.IsInvalid)

	other := newTrialIn(t, own, func(*trial) {})
	tr.everywhere = true
	tr.start()
	other.readyFoo("beside", "beside", 1)
	tr.awaitReason(longName, samplev1alpha1.ReasonDeploymentFailed)
	tr.awaitReady("number", "time")
	tr.kubectl("delete", "foo", longName, "--cascade=foreground", timeout)
	footest.Must(t, tr.startRecording()) // only now can the typed client read these Foos
	tr.kubectl("scale", "foo/time", "--replicas=2")
	tr.awaitPods("time", 2)
	other.readyFoo("later", "later", 1)
}

// rawFoos returns a client for Foos that our types can't represent.
func (tr *trial) rawFoos() dynamic.ResourceInterface {
	return tr.cluster.dynamic.Resource(footest.FoosResource).Namespace(tr.ns)
}
