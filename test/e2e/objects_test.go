// SPDX-License-Identifier: Apache-2.0

// Foos and other objects: how the tests create, read and patch them, and wait for their
// states.

package e2e

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/test/oracle"
)

// newFoo returns a Foo whose child has the same name.
func newFoo(name string, options ...func(*samplev1alpha1.Foo)) *samplev1alpha1.Foo {
	foo := &samplev1alpha1.Foo{
		ObjectMeta: metav1.ObjectMeta{Name: name},
	}
	withChild(name)(foo)
	for _, option := range options {
		option(foo)
	}
	return foo
}

func withReplicas(replicas int32) func(*samplev1alpha1.Foo) {
	return func(foo *samplev1alpha1.Foo) { foo.Spec.Replicas = &replicas }
}

// createFoo creates a Foo.
func (ns *namespace) createFoo(t *testing.T, foo *samplev1alpha1.Foo) *samplev1alpha1.Foo {
	t.Helper()
	created, err := ns.foos().Create(t.Context(), foo, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("Creating Foo %s: %v", foo.Name, err)
	}
	return created
}

// createReadyFoo creates a Foo and waits until its Pods are available.
func (ns *namespace) createReadyFoo(t *testing.T, foo *samplev1alpha1.Foo) *samplev1alpha1.Foo {
	t.Helper()
	ns.createFoo(t, foo)
	return ns.awaitReady(t, foo.Name)
}

// awaitReady waits until a Foo reports Ready for its newest spec.
func (ns *namespace) awaitReady(t *testing.T, name string) *samplev1alpha1.Foo {
	t.Helper()
	return awaitOne(t, "Foo "+name+" is ready", ns.foos(), name, isReady)
}

func isReady(foo *samplev1alpha1.Foo) error {
	return hasReady(foo, metav1.ConditionTrue, samplev1alpha1.ReasonAvailable)
}

// hasReady returns an error unless a Foo's condition Ready has the status and the reason,
// for the newest spec.
func hasReady(foo *samplev1alpha1.Foo, status metav1.ConditionStatus, reason string) error {
	ready := readyOf(foo)
	if ready.Status != status || ready.Reason != reason {
		return fmt.Errorf("condition Ready is %q, reason %q, want %q, %q", ready.Status, ready.Reason, status, reason)
	}
	if foo.Status.ObservedGeneration != foo.Generation || ready.ObservedGeneration != foo.Generation {
		return fmt.Errorf("observedGeneration is %d in the status and %d in the condition, want %d",
			foo.Status.ObservedGeneration, ready.ObservedGeneration, foo.Generation)
	}
	return nil
}

// readyOf returns a Foo's condition Ready, or an empty condition.
func readyOf(foo *samplev1alpha1.Foo) metav1.Condition {
	if ready := meta.FindStatusCondition(foo.Status.Conditions, samplev1alpha1.ConditionReady); ready != nil {
		return *ready
	}
	return metav1.Condition{}
}

// awaitSyncs waits until the controller has synced every change made before the call, by
// waiting for a new Foo, which is queued behind them. Then a test knows that the
// controller had the chance to do something wrong.
func (ns *namespace) awaitSyncs(t *testing.T) {
	t.Helper()
	marker, err := ns.foos().Create(t.Context(), newFoo("marker-"+rand.String(8)), metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("Creating a marker Foo: %v", err)
	}
	ns.awaitReady(t, marker.Name)
}

func (ns *namespace) getFoo(t *testing.T, name string) *samplev1alpha1.Foo {
	t.Helper()
	return get(t, ns.foos(), name)
}

// get reads an object. The test fails if it does not exist.
func get[T any](t *testing.T, client interface {
	Get(ctx context.Context, name string, opts metav1.GetOptions) (T, error)
}, name string) T {
	t.Helper()
	object, err := client.Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatalf("Reading %s: %v", name, err)
	}
	return object
}

// mergePatch sends a JSON merge patch.
func mergePatch[T any](t *testing.T, client interface {
	Patch(ctx context.Context, name string, kind types.PatchType, data []byte, opts metav1.PatchOptions, subresources ...string) (T, error)
}, name, patch string) T {
	t.Helper()
	return patchAs(t, client, name, types.MergePatchType, patch)
}

// patchAs sends a patch of a type.
func patchAs[T any](t *testing.T, client interface {
	Patch(ctx context.Context, name string, kind types.PatchType, data []byte, opts metav1.PatchOptions, subresources ...string) (T, error)
}, name string, kind types.PatchType, patch string) T {
	t.Helper()
	object, err := client.Patch(t.Context(), name, kind, []byte(patch), metav1.PatchOptions{})
	if err != nil {
		t.Fatalf("Patching %s with %s: %v", name, patch, err)
	}
	return object
}

// podReady returns an error unless a Pod is bound to a node and ready.
func podReady(pod *corev1.Pod) error {
	if pod.Spec.NodeName == "" {
		return errors.New("it is not bound to a node")
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue {
			return nil
		}
	}
	return fmt.Errorf("Pod %s is not ready", pod.Name)
}

// rawFoos returns a client for Foos that our types can't represent.
func (ns *namespace) rawFoos() dynamic.ResourceInterface {
	return ns.in.dynamic.Resource(samplev1alpha1.SchemeGroupVersion.WithResource("foos")).Namespace(ns.name)
}

// rawFoo returns a Foo with a name and the given YAML.
func rawFoo(t *testing.T, name, text string) *unstructured.Unstructured {
	t.Helper()
	foo := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &foo.Object); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	if foo.Object == nil {
		foo.Object = map[string]any{}
	}
	foo.SetAPIVersion(samplev1alpha1.SchemeGroupVersion.String())
	foo.SetKind("Foo")
	foo.SetName(name)
	return foo
}

// tableOf requests a Foo as a table, as kubectl get does.
func tableOf(t *testing.T, ns *namespace, foo string) *metav1.Table {
	t.Helper()
	table := &metav1.Table{}
	text, err := cluster.foos.SamplecontrollerV1alpha1().RESTClient().Get().
		Namespace(ns.name).Resource("foos").Name(foo).
		SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").
		Do(t.Context()).Raw()
	if err == nil {
		err = yaml.Unmarshal(text, table)
	}
	if err != nil {
		t.Fatalf("Requesting a table: %v", err)
	}
	return table
}

// witness records what the namespace's Foos report, until the test ends or stop is
// called, and fails the test if any report was false. A test that removes the CRD must
// call stop first, because that would leave a gap in the record.
func (ns *namespace) witness(t *testing.T) (stop func()) {
	t.Helper()
	recording, err := oracle.Record(cluster.ctx, ns.in.kube, ns.in.foos, ns.name)
	if err != nil {
		t.Fatal(err)
	}
	stop = sync.OnceFunc(func() {
		defer recording.Stop()
		// The context of a test has ended when its cleanup runs.
		ctx, cancel := context.WithTimeout(cluster.ctx, cluster.patience())
		defer cancel()
		lies, err := recording.Lies(ctx)
		if err != nil {
			t.Errorf("The record of the Foos in %s is incomplete: %v", ns.name, err)
		}
		for _, lie := range lies {
			t.Errorf("False report: %s", lie)
		}
	})
	t.Cleanup(stop)
	return stop
}

// scenario is one sentence of the contract, and the check that it holds.
type scenario struct {
	sentence string
	check    func(t *testing.T, ns *namespace)
}

// checkAll checks scenarios in parallel in one namespace. Each uses names of its own.
func checkAll(t *testing.T, ns *namespace, scenarios []scenario) {
	t.Helper()
	for _, s := range scenarios {
		t.Run(s.sentence, func(t *testing.T) {
			t.Parallel()
			s.check(t, ns)
		})
	}
}

// pauseImage is a small image that does nothing.
const pauseImage = "registry.k8s.io/pause:3.10"

// labelsOf returns the labels of the Pods of a test's workload.
func labelsOf(name string) map[string]string {
	return map[string]string{"workload": name}
}

func selectorOf(name string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: labelsOf(name)}
}

// ofWorkload selects the objects of a workload.
func ofWorkload(name string) metav1.ListOptions {
	return metav1.ListOptions{LabelSelector: "workload=" + name}
}

// templateOf returns the template of a Pod that does nothing.
func templateOf(name string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: labelsOf(name)},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "pause", Image: pauseImage}}},
	}
}
