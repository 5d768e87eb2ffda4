// SPDX-License-Identifier: Apache-2.0

// Package e2e tests the controller, the CustomResourceDefinition and the generated
// clients with a real API server.
//
//	KUBECONFIG=… go test ./test/e2e
//
// Without KUBECONFIG, with -short, or if the package is matched by a pattern, every test
// is skipped: "go test ./..." touches no cluster, whatever the shell exports. Otherwise
// the tests use the kubeconfig's current context, and the first line of the output (-v
// shows it) names that server.
//
// The tests leave the cluster as they found it:
//   - Each creates a namespace with a generated name and the label
//     e2e.samplecontroller.k8s.io/run, and deletes it at the end, even after a failure or
//     Ctrl-C.
//   - The controller under test is built from this tree and watches only the test's
//     namespace. It has the run's service account, with the permissions and the admission
//     policy of artifacts/deploy/permissions. Cluster-scoped objects have the run's name and
//     label, and are deleted when the run ends.
//   - If another controller works in the cluster, the tests that it would disturb are
//     skipped.
//   - The CustomResourceDefinition is installed if there is none, and then deleted at the
//     end. An existing one stays as it is; if it differs from this tree's, the tests of
//     its rules and columns are skipped.
//
// If KWOK simulates all nodes, as in a development cluster, nobody depends on the
// cluster. Then more is tested: a controller for all namespaces, the API server's count
// of requests, admission policies and webhooks, and a node that dies.
//
// Environment variables:
//
//	KUBECONFIG     the cluster
//	DEVCLUSTER_BIN absolute path of the devcluster program: for kubectl (else
//	               the one on PATH, else those tests are skipped) and for the
//	               tests that need a cluster of their own
package e2e
