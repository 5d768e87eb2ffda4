// SPDX-License-Identifier: Apache-2.0

// The Pods of a workload.

package e2e

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// awaitReadyPods waits until a workload has exactly the wanted number of Pods, all bound
// to nodes and ready.
func (ns *namespace) awaitReadyPods(t *testing.T, workload string, want int) []corev1.Pod {
	t.Helper()
	return ns.awaitPods(t, ofWorkload(workload), want)
}

// awaitPods does the same for Pods of a selection.
func (ns *namespace) awaitPods(t *testing.T, of metav1.ListOptions, want int) []corev1.Pod {
	t.Helper()
	list := awaitList(t, fmt.Sprintf("%d Pods of %s are ready", want, of.LabelSelector), ns.pods(), of,
		func(pods *corev1.PodList) error {
			if len(pods.Items) != want {
				return fmt.Errorf("%d Pods, want %d", len(pods.Items), want)
			}
			for i := range pods.Items {
				if err := podReady(&pods.Items[i]); err != nil {
					return err
				}
			}
			return nil
		})
	return list.Items
}

// expectController checks that owner controls an object.
func expectController(t *testing.T, object, owner metav1.Object) {
	t.Helper()
	if !metav1.IsControlledBy(object, owner) {
		t.Errorf("%s is owned by %v, want %s as its controller", object.GetName(), object.GetOwnerReferences(), owner.GetName())
	}
}
