// SPDX-License-Identifier: Apache-2.0

// The CustomResourceDefinition: its installation, how the controller waits for it, and
// older ones.

package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/test/footest"
	"example.com/sample-controller/test/testcluster"
)

const (
	crdName = "foos.samplecontroller.k8s.io"
	crdFile = "artifacts/crd/samplecontroller.k8s.io_foos.yaml"
)

// crdState says where the CustomResourceDefinition in the cluster came from.
type crdState int

const (
	// crdOurs means that this tree's CRD was installed already.
	crdOurs crdState = iota
	// crdOther means that another CRD was installed already. The tests do not change it.
	crdOther
	// crdInstalled means that this run installed the CRD, and removes it at the end.
	crdInstalled
)

func crdClient(client dynamic.Interface) dynamic.ResourceInterface {
	return client.Resource(schema.GroupVersionResource{
		Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
	})
}

// installCRD installs the CRD if there is none, and waits until the API server serves it.
// It does the same with the CRDs of the program's other kinds.
func (c *testCluster) installCRD(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, c.patience())
	defer cancel()
	if err := c.installOtherCRDs(ctx); err != nil {
		return err
	}
	wanted, err := readObject(filepath.Join(moduleRoot, crdFile))
	if err != nil {
		return err
	}
	client := crdClient(c.dynamic)
	found, err := client.Get(ctx, crdName, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		c.crd = crdInstalled
		if _, err := client.Create(ctx, wanted, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("installing the CustomResourceDefinition: %w", err)
		}
	case err != nil:
		return fmt.Errorf("looking for the CustomResourceDefinition: %w", err)
	case c.accepts(ctx, found, wanted):
		c.crd = crdOurs
	default:
		c.crd = crdOther
		fmt.Printf("e2e: the cluster's %s differs from %s: it stays as it is, and the tests of its rules and columns are skipped\n",
			crdName, crdFile)
	}
	_, err = untilList(ctx, client, named(crdName), isEstablished)
	return err
}

func (c *testCluster) installOtherCRDs(ctx context.Context) error {
	files, err := filepath.Glob(filepath.Join(moduleRoot, filepath.Dir(crdFile), "*.yaml"))
	if err != nil {
		return err
	}
	client := crdClient(c.dynamic)
	for _, file := range files {
		wanted, err := readObject(file)
		if err != nil {
			return err
		}
		name := wanted.GetName()
		if name == crdName {
			continue
		}
		_, err = client.Create(ctx, wanted, metav1.CreateOptions{})
		if err == nil {
			c.otherCRDs = append(c.otherCRDs, name)
		} else if !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("installing the CustomResourceDefinition %s: %w", name, err)
		}
		if _, err := untilList(ctx, client, named(name), isEstablished); err != nil {
			return err
		}
	}
	return nil
}

// accepts reports whether a CRD in the cluster equals the wanted one. The API server sets
// defaults, so the wanted one is sent as a dry run first.
func (c *testCluster) accepts(ctx context.Context, found, wanted *unstructured.Unstructured) bool {
	candidate := found.DeepCopy()
	candidate.Object["spec"] = wanted.Object["spec"]
	result, err := crdClient(c.dynamic).Update(ctx, candidate, metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}})
	return err == nil && equality.Semantic.DeepEqual(found.Object["spec"], result.Object["spec"])
}

func isEstablished(list *unstructured.UnstructuredList) error {
	for i := range list.Items {
		conditions, _, _ := unstructured.NestedSlice(list.Items[i].Object, "status", "conditions")
		for _, condition := range conditions {
			if condition, ok := condition.(map[string]any); ok && condition["type"] == "Established" && condition["status"] == "True" {
				return nil
			}
		}
	}
	return errors.New("the CustomResourceDefinition is not established")
}

// needsOurCRD skips a test of this tree's CRD if the cluster has another one.
func needsOurCRD(t *testing.T) {
	t.Helper()
	if cluster.crd == crdOther {
		t.Skip("the cluster's CustomResourceDefinition differs from " + crdFile)
	}
}

// readObject reads a YAML file with one object.
func readObject(path string) (*unstructured.Unstructured, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(content, &object.Object); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return object, nil
}

// TestTheControllerWaitsForAMissingCRD starts a cluster of its own, because the cluster
// under test has the CRD. An API server and etcd are enough.
func TestTheControllerWaitsForAMissingCRD(t *testing.T) {
	t.Parallel()
	own := newBareCluster(t)
	p := startController(t, "-kubeconfig="+newAccountIn(t, own.kubeconfig, metav1.NamespaceDefault).kubeconfig)
	p.awaitLog(t, "CustomResourceDefinition foos.samplecontroller.k8s.io is not installed", 1)
	p.awaitLog(t, "kubectl apply -f artifacts/crd", 1)

	if err := own.installCRD(t.Context()); err != nil {
		t.Fatal(err)
	}
	p.awaitLog(t, "Starting workers", 1)
	if got, kinds := p.log.Count("is not installed"), len(footest.Owners); got != kinds {
		t.Errorf("The log says %d times that the CRD of one of %d kinds is missing, want once for each", got, kinds)
	}
	p.stop(t)
}

func TestAControllerThatWaitsForTheCRDCanBeStopped(t *testing.T) {
	t.Parallel()
	own := newBareCluster(t)
	p := startController(t, "-kubeconfig="+newAccountIn(t, own.kubeconfig, metav1.NamespaceDefault).kubeconfig)
	p.awaitLog(t, "is not installed", 1)
	p.stop(t)
}

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
