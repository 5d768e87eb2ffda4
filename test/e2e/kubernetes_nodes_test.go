// SPDX-License-Identifier: Apache-2.0

// How the cluster handles nodes without heartbeats, and its components' Leases.

package e2e

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func checkNodeHeartbeats(t *testing.T, _ *namespace) {
	if !cluster.devcluster {
		t.Skip("this test adds a node, which it does only to a development cluster")
	}
	nodes := cluster.kube.CoreV1().Nodes()
	node, err := nodes.Create(t.Context(), &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			GenerateName: "e2e-",
			Labels:       map[string]string{kwokLabel: kwokValue},
			Annotations:  map[string]string{kwokLabel: kwokValue},
		},
		// Keep the Pods of other tests away.
		Spec: corev1.NodeSpec{Taints: []corev1.Taint{{Key: runLabel, Value: cluster.run, Effect: corev1.TaintEffectNoSchedule}}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		if err := nodes.Delete(ctx, node.Name, metav1.DeleteOptions{}); err != nil {
			t.Errorf("Deleting node %s: %v", node.Name, err)
		}
	})
	awaitOne(t, "the node is Ready", nodes, node.Name, func(node *corev1.Node) error {
		return nodeReady(node, corev1.ConditionTrue)
	})

	// Without the label and the annotation KWOK stops sending the node's heartbeats.
	mergePatch(t, nodes, node.Name, fmt.Sprintf(`{"metadata":{"labels":{%q:null},"annotations":{%q:null}}}`, kwokLabel, kwokLabel))
	awaitOne(t, "the node is NotReady", nodes, node.Name, func(node *corev1.Node) error {
		return errors.Join(nodeReady(node, corev1.ConditionUnknown), hasTaint(node, corev1.TaintNodeUnreachable))
	})
}

func nodeReady(node *corev1.Node, want corev1.ConditionStatus) error {
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady && condition.Status == want {
			return nil
		}
	}
	return fmt.Errorf("condition Ready is not %s", want)
}

func hasTaint(node *corev1.Node, key string) error {
	for _, taint := range node.Spec.Taints {
		if taint.Key == key {
			return nil
		}
	}
	return fmt.Errorf("it does not have the taint %s", key)
}

func checkLease(t *testing.T, _ *namespace) {
	leases := cluster.kube.CoordinationV1().Leases(metav1.NamespaceSystem)
	for _, component := range []string{"kube-controller-manager", "kube-scheduler"} {
		first, err := leases.Get(t.Context(), component, metav1.GetOptions{})
		if err != nil {
			if !cluster.devcluster {
				t.Skipf("the components' Leases can't be read: %v", err)
			}
			t.Fatal(err)
		}
		if first.Spec.HolderIdentity == nil || *first.Spec.HolderIdentity == "" {
			t.Fatalf("Nobody holds the Lease of %s", component)
		}
		awaitOne(t, component+" renews its Lease", leases, component, func(lease *coordinationv1.Lease) error {
			if *lease.Spec.HolderIdentity != *first.Spec.HolderIdentity {
				return fmt.Errorf("its holder is now %s", *lease.Spec.HolderIdentity)
			}
			if !lease.Spec.RenewTime.After(first.Spec.RenewTime.Time) {
				return errors.New("it has not been renewed")
			}
			return nil
		})
	}
}
