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
