// SPDX-License-Identifier: Apache-2.0

// Clusters that a test starts for itself.

package e2e

import (
	"path/filepath"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/sample-controller/test/testcluster"
)

// newOwnCluster starts a cluster that lasts until the test ends, for a test that changes
// the whole cluster. It has no CRD and no account.
func newOwnCluster(t *testing.T, flags ...string) *testCluster {
	t.Helper()
	return clusterAt(t, startCluster(t, needsDevclusterProgram(t), flags...))
}

// startCluster starts a cluster that lasts until the test ends, and returns its
// kubeconfig. It emulates the same Kubernetes as the cluster under test, unless flags
// name another.
func startCluster(t *testing.T, devcluster string, flags ...string) string {
	t.Helper()
	if cluster.devcluster && cluster.emulates != "" {
		flags = append([]string{"-emulated-version=" + cluster.emulates}, flags...)
	}
	c, err := testcluster.StartCluster(cluster.ctx, devcluster, filepath.Join(t.TempDir(), "data"), flags...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(); err != nil || t.Failed() {
			t.Errorf("Output of devcluster (%v):\n%s", err, c.Log)
		}
	})
	return c.Kubeconfig
}

// newBareCluster starts a cluster with only an API server and etcd, so that no Pod ever
// runs.
func newBareCluster(t *testing.T) *testCluster {
	t.Helper()
	return newOwnCluster(t, testcluster.ControlPlaneOnly)
}

// clusterAt connects to a cluster that the test has started.
func clusterAt(t *testing.T, kubeconfig string) *testCluster {
	t.Helper()
	c := &testCluster{ctx: cluster.ctx, kubeconfig: kubeconfig, devcluster: true, run: cluster.run}
	if err := c.makeClients(); err != nil {
		t.Fatal(err)
	}
	server, err := c.kube.Discovery().ServerVersion()
	if err != nil {
		t.Fatal(err)
	}
	c.emulates = emulatedBy(server)
	return c
}

// newNamespace creates a namespace that lasts as long as the test's own cluster.
func (c *testCluster) newNamespace(t *testing.T) *namespace {
	t.Helper()
	created, err := c.createNamespace(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return &namespace{name: created.Name, in: c}
}

// inDefault returns the namespace default of the test's own cluster.
func (c *testCluster) inDefault() *namespace {
	return &namespace{name: metav1.NamespaceDefault, in: c}
}
