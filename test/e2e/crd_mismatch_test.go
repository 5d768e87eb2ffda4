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
)

// Where the definition has what the controller needs.
const (
	ofVersion = "/spec/versions/0"
	ofStatus  = ofVersion + "/schema/openAPIV3Schema/properties/status/properties"
)

// aStatus is a patch with a condition, as the controller might write it.
const aStatus = `{"status":{"conditions":[{"type":"Ready","status":"False","reason":"Progressing","message":"",` +
	`"observedGeneration":1,"lastTransitionTime":"2026-11-21T12:00:00Z"}]}}`

// The definition is the whole cluster's, so this test starts another, and its
// parts come one after the other.
func TestADefinitionThatDoesNotFitIsToldAndNotFought(t *testing.T) {
	t.Parallel()
	own := newOwnCluster(t)
	if err := own.installDefinition(t.Context()); err != nil {
		t.Fatal(err)
	}
	own.account = newAccountIn(t, own.kubeconfig, metav1.NamespaceDefault)
	if err := own.account.awaitFoosAsOwners(t.Context(), metav1.NamespaceDefault); err != nil {
		t.Fatal(err)
	}
	t.Run("one that prunes conditions", func(t *testing.T) {
		own.checkMisfit(t, `[{"op":"remove","path":"`+ofStatus+`/conditions"}]`, isPruned, "does not fit")
	})
	t.Run("one without the status subresource", func(t *testing.T) {
		own.checkMisfit(t, `[{"op":"remove","path":"`+ofVersion+`/subresources/status"}]`, isMissing, "status subresource")
	})
	t.Run("one that has stored what Go can't read", own.checkUnreadable)
}

// checkMisfit: with a definition that does not take the status, it is written
// few times and the cause is told once; a start with the right one mends all.
func (c *testCluster) checkMisfit(t *testing.T, patch string, inForce func(*unstructured.Unstructured, error) bool, says string) {
	ns := c.newNamespace(t)
	ns.createFoo(t, newFoo("foo", withReplicas(1)))
	defer c.restoreDefinition(t)
	c.changeDefinition(t, patch)
	ns.awaitStatusAnswer(t, "foo", aStatus, dryRun, inForce)
	stop := ns.witness(t)
	p, sent := ns.startRecorded(t, nil, "-resync=1s", "-v=4")
	p.awaitLog(t, says, 1)
	p.awaitResyncs(t, 10)
	if got := sent.writes("foos"); got > 3 {
		t.Errorf("The status was written %d times, and never stored", got)
	}
	if got := sent.writes("events"); got > 3 {
		t.Errorf("%d events were written", got)
	}
	if told := p.log.Lines("CustomResourceDefinition", says); len(told) != 1 || told[0][0] != 'E' {
		t.Errorf("It is told %d times, want one error: %q", len(told), told)
	}
	p.stop(t)
	stop() // a change of the definition ends watches

	c.restoreDefinition(t)
	ns.awaitStatusAnswer(t, "foo", aStatus, dryRun, isStored)
	stop = ns.witness(t)
	again := ns.startController(t)
	ns.awaitReady(t, "foo")
	again.stop(t)
	stop()
}

// checkUnreadable: statuses that an older definition took, and Go can't read,
// are put right, and nobody else's Foo suffers from them.
func (c *testCluster) checkUnreadable(t *testing.T) {
	ns, beside := c.newNamespace(t), c.newNamespace(t)
	defer c.restoreDefinition(t)
	c.changeDefinition(t, `[{"op":"replace","path":"`+ofStatus+`/availableReplicas","value":{"type":"integer"}},`+
		`{"op":"replace","path":"`+ofStatus+`/conditions","value":{"type":"array","items":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}]`)
	const largeNumber = `{"status":{"availableReplicas":1099511627776}}`
	lowerCase := strings.NewReplacer("T12", "t12", "Z", "z").Replace(aStatus)
	for name, status := range map[string]string{"number": largeNumber, "time": lowerCase} {
		ns.createFoo(t, newFoo(name, withReplicas(1)))
		ns.awaitStatusAnswer(t, name, status, nil, func(_ *unstructured.Unstructured, err error) bool { return err == nil })
	}
	c.restoreDefinition(t)
	ns.awaitStatusAnswer(t, "time", largeNumber, dryRun, func(_ *unstructured.Unstructured, err error) bool { return apierrors.IsInvalid(err) })

	beside.witness(t)
	beside.createFoo(t, newFoo("beside", withReplicas(1)))
	startController(t, "-kubeconfig="+c.account.kubeconfig)
	beside.awaitReady(t, "beside")
	for _, name := range []string{"number", "time"} {
		ns.awaitReadable(t, name)
	}
	ns.witness(t) // before, they could not have been read here either
	mergePatch(t, ns.foos(), "time", `{"spec":{"replicas":2}}`)
	ns.awaitReplicas(t, "time", 2)
	beside.createReadyFoo(t, newFoo("later", withReplicas(1)))
}

// changeDefinition applies a JSON patch to the definition.
func (c *testCluster) changeDefinition(t *testing.T, patch string) {
	t.Helper()
	patchAs(t, definitions(c.dynamic), definitionName, types.JSONPatchType, patch)
}

// restoreDefinition applies the shipped one.
func (c *testCluster) restoreDefinition(t *testing.T) {
	t.Helper()
	wanted, err := readObject(filepath.Join(moduleRoot, definitionFile))
	if err != nil {
		t.Fatal(err)
	}
	// Not only what differs: what is shipped, whole.
	spec, err := json.Marshal(wanted.Object["spec"])
	if err != nil {
		t.Fatal(err)
	}
	c.changeDefinition(t, `[{"op":"replace","path":"/spec","value":`+string(spec)+`}]`)
}

// awaitStatusAnswer patches a Foo's status, until what the API server answers
// is so: a definition is in force a moment after it is stored.
func (ns *namespace) awaitStatusAnswer(t *testing.T, foo, status string, dryRun []string, isSo func(*unstructured.Unstructured, error) bool) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, cluster.patience(), true, func(ctx context.Context) (bool, error) {
		var stored *unstructured.Unstructured
		stored, last = ns.rawFoos().Patch(ctx, foo, types.MergePatchType, []byte(status), metav1.PatchOptions{DryRun: dryRun}, "status")
		return isSo(stored, last), nil
	})
	if err != nil {
		t.Fatalf("Patching Foo %s with %s until it is answered as it should be: %v: %v", foo, status, err, last)
	}
}

// isPruned, isMissing and isStored say what has become of aStatus.
func isPruned(foo *unstructured.Unstructured, err error) bool {
	return err == nil && !hasConditions(foo)
}
func isMissing(_ *unstructured.Unstructured, err error) bool { return apierrors.IsNotFound(err) }
func isStored(foo *unstructured.Unstructured, err error) bool {
	return err == nil && hasConditions(foo)
}

func hasConditions(foo *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(foo.Object, "status", "conditions")
	return len(conditions) > 0
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
