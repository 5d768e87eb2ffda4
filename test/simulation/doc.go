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

// Package simulation tests a controller of Foos under faults: each kind of
// fault, at each call that the controller makes and each event that reaches it.
// The clock is that of testing/synctest, so a minute takes no time and a run can
// be repeated.
//
// A test gives it a function that starts the controller on clients that the
// simulation made:
//
//	func TestSimulation(t *testing.T)       { simulation.TestController(t, start) }
//	func TestSimulationRandom(t *testing.T) { simulation.TestRandomSequences(t, start) }
//
// TestController runs each workload, a few steps of users, without faults, and
// records the injection points: the controller's calls and events. It then runs
// the workload once for each point and each fault that can happen there: a
// crash, an error, a lost or late answer, a stale cache, a second controller, an
// admission policy. TestRandomSequences lets rapid choose steps and faults.
//
// Each run has to end in the state of the run without faults, and in silence
// over several resyncs. On the way, each write is checked as it is stored: it
// changes something; it touches only Deployments of a live Foo, and of those only
// the fields that the Foo owns; it deletes no Deployment before its successor
// exists. Each transition of Ready has one event, and no Foo reports Ready before
// it was (test/oracle). None of these checks uses the code under test. What they
// can't show: two faults at once, except in random sequences, and what a real API
// server does otherwise (test/e2e).
//
// To test another controller of Foos, give it another start function. To test a
// controller of something else, replace what knows Foos and Deployments: the
// clients (clients.go), the objects (objects.go), the workloads and their steps,
// the rules for writes (rules.go), the expected state (oracle.go), and the other
// controllers of the cluster (controlplane.go). The API server, its watches, the
// faults and the runs stay as they are.
package simulation
