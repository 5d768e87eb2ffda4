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

// Package e2e tests the controller, the CustomResourceDefinition and the
// generated clients against a real API server: what fakes can't show.
//
//	KUBECONFIG=… go test ./test/e2e
//
// Without KUBECONFIG, with -short, or where the package is matched by a pattern,
// every test is skipped: "go test ./..." touches no cluster, whatever the shell
// exports. Otherwise they run against the kubeconfig's current context, and the
// first line of the output (-v shows it) says which server that is.
//
// The tests are good guests:
//   - Each makes a namespace of its own with a generated name and the label
//     e2e.samplecontroller.k8s.io/run, and deletes it at the end, after a
//     failure and after Ctrl-C, too.
//   - The controller under test is built from this tree, looks after the
//     test's namespace only, and has a service account of the run with the
//     rights, and under the admission policy, of artifacts/deploy/rights. What
//     of that is in no namespace has the run's name and label, and goes when
//     the run ends.
//   - A controller that is at work in the cluster already is left alone; the
//     tests that it would spoil are skipped.
//   - The CustomResourceDefinition is installed if there is none, and then
//     removed at the end. One that is there stays as it is; if it is another
//     than this tree's, the tests of its rules and columns are skipped.
//
// A cluster whose nodes are all KWOK's (as devcluster's are) runs nobody's
// work, so there more is tested: a controller for all namespaces, the API
// server's count of requests, policies and webhooks of admission, and a node
// that dies.
//
// The environment:
//
//	KUBECONFIG     the cluster
//	DEVCLUSTER_BIN absolute path of the devcluster program: for kubectl (else
//	               the one on PATH, else those tests are skipped) and for the
//	               test that needs a cluster without the definition
//	THIRDPARTY     1: also build and run test/thirdparty, a program compiled
//	               against upstream's clients; this downloads modules
package e2e
