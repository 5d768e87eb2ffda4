// SPDX-License-Identifier: Apache-2.0

// A cluster without the CRD.

package e2e

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

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
	if got := p.log.Count("is not installed"); got != 1 {
		t.Errorf("The log says %d times that the CRD is missing, want once", got)
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
