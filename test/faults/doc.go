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

// Package faults breaks what a controller relies on, and looks whether it gets
// over it: its process, its connection, its watches, the API server's answers,
// other writers.
//
// The controller runs as a process, on a real API server, behind a proxy that
// sees all its requests (package proxy). A trial is one controller in a
// namespace of its own; it arranges something, breaks one thing, and then has
// one oracle judge: the state is right within a bounded time, nothing of others
// has changed, and then nothing is written any more.
//
//	make test-faults            the quick part, for this repository's controller
//	make faults                 everything, for it and for kubernetes/sample-controller, into docs/faults.md
//
// Without FAULTS=quick or FAULTS=all, and KUBECONFIG, nothing is run.
package faults
