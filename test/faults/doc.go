// SPDX-License-Identifier: Apache-2.0

// Package faults breaks what a controller relies on, and checks that the controller
// recovers: its process, its connection, its watches, the API server's answers, other
// writers.
//
// The controller runs as a process against a real API server, behind a proxy that sees
// all its requests (package proxy). A trial is one controller in its own namespace.
// It prepares some objects, breaks one thing, and calls one oracle, which checks that the
// state is right within a bounded time, that no object of another writer has changed, and
// that the controller then stops writing.
//
//	make test-faults            a selection of the faults, for this repository's controller
//	make faults                 all faults, for it and for kubernetes/sample-controller, into docs/faults.md
//
// Without FAULTS=quick or FAULTS=all, and KUBECONFIG, all tests are skipped.
package faults
