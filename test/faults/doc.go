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

// Package faults breaks what a controller relies on, and checks that the controller
// recovers: its process, its connection, its watches, the API server's answers, other
// writers.
//
// The controller runs as a process against a real API server, behind a proxy that sees
// all its requests (package proxy). A trial is one controller in a namespace of its own.
// It prepares some objects, breaks one thing, and calls one oracle, which checks that the
// state is right within a bounded time, that no object of another writer has changed, and
// that the controller then stops writing.
//
//	make test-faults            a selection of the faults, for this repository's controller
//	make faults                 all faults, for it and for kubernetes/sample-controller, into docs/faults.md
//
// Without FAULTS=quick or FAULTS=all, and KUBECONFIG, all tests are skipped.
package faults
