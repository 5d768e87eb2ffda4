// SPDX-License-Identifier: Apache-2.0

// Package e2e tests the controller as it is installed: the manifests, permissions and
// policies, the CustomResourceDefinition, flags, logs, metrics and health, and for each
// kind what its users see, with a real API server.
//
//	E2E_KUBECONFIG=… go test -count=1 ./test/e2e
//
// Use -count=1, because go test does not notice changes of the cluster and of the program.
//
// Without E2E_KUBECONFIG, or with -short, every test is skipped: "go test ./..." touches no
// cluster, whatever KUBECONFIG the shell exports. Otherwise the tests use the kubeconfig's
// current context, and the first line of the output (-v shows it) names that server.
//
// The tests leave the cluster as they found it:
//   - Each creates a namespace with a generated name and the label
//     e2e.samplecontroller.k8s.io/run, and deletes it at the end, even after a failure or
//     Ctrl-C.
//   - The controller under test is built from this tree and watches only the test's
//     namespace. It has the run's service account, with the permissions and the admission
//     policy of artifacts/deploy/permissions. Cluster-scoped objects have the run's label,
//     and are deleted when the run ends.
//   - If another controller works in the cluster, or a CustomResourceDefinition differs from
//     this tree's, no test runs. CustomResourceDefinitions that are missing are installed,
//     and deleted at the end.
//
// Environment variables:
//
//	E2E_KUBECONFIG  the cluster
//	DEVCLUSTER_BIN  absolute path of the devcluster program: for kubectl (else the one on
//	                PATH), and for the tests that need their own cluster (else they
//	                are skipped)
package e2e
