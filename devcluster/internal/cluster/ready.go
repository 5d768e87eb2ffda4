// SPDX-License-Identifier: Apache-2.0

// When components are ready.

package cluster

import (
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	nodeutil "k8s.io/kubernetes/pkg/util/node"
	"k8s.io/kubernetes/pkg/util/taints"
)

const (
	// startTimeout is how long to wait for a component that neither becomes ready nor
	// exits. A start takes seconds; the timeout is for a busy machine.
	startTimeout  = 2 * time.Minute
	pollInterval  = 50 * time.Millisecond
	healthTimeout = 5 * time.Second
)

// poll calls check until it returns nil. When ctx is done, it returns the cause and the
// last error of check.
func poll(ctx context.Context, check func(context.Context) error) error {
	var last error
	err := wait.PollUntilContextCancel(ctx, pollInterval, true, func(ctx context.Context) (bool, error) {
		last = check(ctx)
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("%w (%w)", context.Cause(ctx), last)
	}
	return nil
}

// healthAt returns a check that succeeds when the component at a port answers a request for
// its health with 200.
func healthAt(port int, path string, files rest.TLSClientConfig) (func(context.Context) error, error) {
	config := &rest.Config{Host: httpsURL(port), TLSClientConfig: files, Timeout: healthTimeout}
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	return health(client.RESTClient(), path), nil
}

func health(component rest.Interface, path string) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := component.Get().AbsPath(path).DoRaw(ctx)
		return err
	}
}

// leads returns a check that succeeds when a component has been elected, before which it
// does nothing. deleteLeases has deleted the leases of an earlier run.
func leads(client kubernetes.Interface, component string) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := client.CoordinationV1().Leases(metav1.NamespaceSystem).Get(ctx, component, metav1.GetOptions{})
		return err
	}
}

// podsAreAdmitted returns a check that succeeds when Pods can be created in the namespace
// default. They need its service account, which a controller creates.
func podsAreAdmitted(client kubernetes.Interface) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := client.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{})
		return err
	}
}

// nodesReady returns a check that succeeds when n nodes can run Pods. Without
// kube-controller-manager nobody removes the taint of a new node, so only the condition
// counts then.
func nodesReady(client kubernetes.Interface, n int, taintsRemoved bool) func(context.Context) error {
	return func(ctx context.Context) error {
		nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: nodeLabelKey + "=" + nodeLabelValue})
		if err != nil {
			return err
		}
		leases, err := client.CoordinationV1().Leases(corev1.NamespaceNodeLease).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		if ready := countReady(nodes.Items, leases.Items, taintsRemoved); ready < n {
			return fmt.Errorf("%d of %d nodes are ready", ready, n)
		}
		return nil
	}
}

// countReady returns the number of nodes that are Ready and managed by KWOK. After a
// restart, a node still has the status of the last run, but no lease until KWOK manages
// it.
func countReady(nodes []corev1.Node, leases []coordinationv1.Lease, taintsRemoved bool) int {
	managed := make(map[string]bool, len(leases))
	for i := range leases {
		managed[leases[i].Name] = true
	}
	ready := 0
	for i := range nodes {
		if managed[nodes[i].Name] && isReady(&nodes[i], taintsRemoved) {
			ready++
		}
	}
	return ready
}

func isReady(node *corev1.Node, taintsRemoved bool) bool {
	tainted := taints.TaintKeyExists(node.Spec.Taints, corev1.TaintNodeNotReady) ||
		taints.TaintKeyExists(node.Spec.Taints, corev1.TaintNodeUnreachable)
	return nodeutil.IsNodeReady(node) && (!taintsRemoved || !tainted)
}
