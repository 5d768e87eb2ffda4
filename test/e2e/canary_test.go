// SPDX-License-Identifier: Apache-2.0

// The canary: a Foo that shows whether another controller works in the cluster.

package e2e

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	samplev1alpha1 "example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// canary is the name of a Foo in a namespace that no controller under test watches.
const canary = "canary"

// createCanary creates the canary and returns its namespace. It is called early, to give
// another controller in the cluster time to write the status.
func (c *testCluster) createCanary(ctx context.Context) (*namespace, error) {
	created, err := c.createNamespace(ctx)
	if err != nil {
		return nil, err
	}
	ns := &namespace{name: created.Name, in: c}
	if _, err := ns.foos().Create(ctx, newFoo(canary), metav1.CreateOptions{}); err != nil {
		return nil, fmt.Errorf("creating a Foo: %w", err)
	}
	return ns, nil
}

// checkCanary sets otherController if a controller has written the canary's status.
func (c *testCluster) checkCanary(ctx context.Context, ns *namespace) error {
	foo, err := ns.foos().Get(ctx, canary, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("reading a Foo: %w", err)
	}
	reason := readyOf(foo).Reason
	c.otherController = reason != "" && reason != samplev1alpha1.ReasonPending || foo.Status.ObservedGeneration > 0
	if c.otherController {
		fmt.Println("e2e: another controller manages this cluster's Foos: the tests that it would disturb are skipped")
	}
	return nil // tidyUp deletes the canary
}

func (c *testCluster) createNamespace(ctx context.Context) (*corev1.Namespace, error) {
	created, err := c.kube.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		GenerateName: "foo-e2e-",
		Labels:       map[string]string{runLabel: c.run},
	}}, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("creating a namespace: %w", err)
	}
	return created, nil
}

// needsNoOtherController skips a test if another controller in the cluster would disturb
// it.
func needsNoOtherController(t *testing.T) {
	t.Helper()
	if cluster.otherController {
		t.Skip("another controller manages this cluster's Foos")
	}
}
