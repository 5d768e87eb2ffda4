// SPDX-License-Identifier: Apache-2.0

// The namespaces of the tests, and the clients for the objects in them.

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedappsv1 "k8s.io/client-go/kubernetes/typed/apps/v1"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	typedfoo "example.com/sample-controller/pkg/generated/clientset/versioned/typed/samplecontroller/v1alpha1"
	"example.com/sample-controller/test/footest"
)

// runLabel is the label of all namespaces and cluster-scoped objects of a run.
const runLabel = "e2e.samplecontroller.k8s.io/run"

// namespace is a namespace that belongs to one test.
type namespace struct {
	name string
	in   *testCluster
}

// newNamespace creates a namespace that is deleted when the test ends. If the test has
// failed, the contents are shown first. Until then a witness checks what the Foos report.
func newNamespace(t *testing.T) *namespace {
	t.Helper()
	ns := cluster.newNamespace(t)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		if t.Failed() {
			ns.showContent(ctx, t)
		}
		removeBindings(ctx, t, ns.name)
		// tidyUp waits until the namespace is gone.
		if err := cluster.kube.CoreV1().Namespaces().Delete(ctx, ns.name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			t.Errorf("Deleting namespace %s: %v", ns.name, err)
		}
	})
	ns.witness(t)
	return ns
}

// removeBindings removes the bindings of admission policies to accounts of a namespace.
// Without the account, the API server would look for it at each write of other tests, and
// refuse those for which that takes too long.
func removeBindings(ctx context.Context, t *testing.T, namespace string) {
	t.Helper()
	bindings := cluster.kube.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings()
	list, err := bindings.List(ctx, metav1.ListOptions{LabelSelector: runLabel + "=" + cluster.run})
	if err != nil {
		t.Errorf("Listing bindings: %v", err)
		return
	}
	for _, binding := range list.Items {
		if ref := binding.Spec.ParamRef; ref != nil && ref.Namespace == namespace {
			if err := bindings.Delete(ctx, binding.Name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
				t.Errorf("Deleting the binding %s: %v", binding.Name, err)
			}
		}
	}
}

func (ns *namespace) foos() typedfoo.FooInterface {
	return ns.in.foos.SamplecontrollerV1alpha1().Foos(ns.name)
}

func (ns *namespace) replicaSets() typedappsv1.ReplicaSetInterface {
	return ns.in.kube.AppsV1().ReplicaSets(ns.name)
}

func (ns *namespace) pods() typedcorev1.PodInterface {
	return ns.in.kube.CoreV1().Pods(ns.name)
}

func (ns *namespace) events() typedcorev1.EventInterface {
	return ns.in.kube.CoreV1().Events(ns.name)
}

// showContent logs the Foos, children and events of the namespace.
func (ns *namespace) showContent(ctx context.Context, t *testing.T) {
	if foos, err := ns.foos().List(ctx, metav1.ListOptions{}); err == nil {
		t.Logf("Foos in %s:\n%s", ns.name, show(foos))
	}
	if children, err := ns.children().List(ctx, metav1.ListOptions{}); err == nil {
		t.Logf("%ss in %s:\n%s", footest.Primary, ns.name, show(children))
	}
	events, err := ns.events().List(ctx, metav1.ListOptions{})
	if err != nil {
		return
	}
	var lines strings.Builder
	for i := range events.Items {
		event := &events.Items[i]
		fmt.Fprintf(&lines, "  %s %s %s/%s: %s\n", event.Type, event.Reason, event.InvolvedObject.Kind, event.InvolvedObject.Name, event.Message)
	}
	t.Logf("Events in %s:\n%s", ns.name, lines.String())
}
