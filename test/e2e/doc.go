// SPDX-License-Identifier: Apache-2.0

// Package e2e tests the controller on a real control plane, with one harness and three tables:
//   - the contract: what users of Foos see (contract_test.go, validation_test.go, thirdparty_test.go);
//   - the installation: manifests, permissions and policies, flags, logs, metrics and health (deploy_test.go,
//     overlay_test.go, permissions_test.go, health_test.go, metrics_test.go);
//   - the faults: what the controller relies on breaks (faults_test.go, workloads_test.go, and the rows).
//
// The controller runs as a process behind a proxy that sees all its requests (package test/faults/proxy). A trial is
// one controller in its own namespace. One oracle judges it by the rules of pkg/reconcile/reconciletest:
// the state is right within a bounded time, no object of another writer has changed, no status was false, and the
// controller then stops writing.
//
//	E2E_KUBECONFIG=… go test -count=1 ./test/e2e      the contract and the installation
//	make test-faults                                  a selection of the faults, for this repository's controller
//	make faults                                       all faults, for it and for kubernetes/sample-controller, into docs/faults.md
//
// Use -count=1, because go test does not notice changes of the cluster and of the program.
//
// Without E2E_KUBECONFIG, or with -short, every test is skipped: "go test ./..." touches no
// cluster, whatever KUBECONFIG the shell exports. Otherwise the tests use the kubeconfig's
// current context, and the first line of the output (-v shows it) names that server. With FAULTS=quick or FAULTS=all,
// which are for a devcluster, it is the cluster in KUBECONFIG.
//
// The tests leave the cluster as they found it:
//   - Each creates a namespace with a generated name and the label
//     e2e.samplecontroller.k8s.io/run. It is deleted at the end, even after a failure or Ctrl-C.
//   - The controller under test is built from this tree and watches only the test's
//     namespace. It has the account, the permissions and the admission policy of artifacts/deploy/permissions,
//     which are installed, and deleted at the end. Other cluster-scoped objects have the run's label.
//   - If an installation is in the cluster, another controller works in it, or a CustomResourceDefinition differs
//     from this tree's, no test runs. CustomResourceDefinitions that are missing are installed,
//     and deleted at the end.
//
// Environment variables, beside those:
//
//	DEVCLUSTER_BIN  absolute path of the devcluster program: for kubectl (else the one on
//	                PATH), and for the tests that need their own cluster (else they
//	                are skipped)
package e2e
