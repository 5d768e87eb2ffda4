// SPDX-License-Identifier: Apache-2.0

// Package simulation tests a controller of Foos under faults: each kind of fault, at each
// call of the controller and each event that it receives. It uses the clock of
// testing/synctest, so that a minute takes no time and runs are repeatable.
//
// A test passes a function that starts the controller with the simulation's clients:
//
//	func TestSimulation(t *testing.T)       { simulation.TestController(t, footest.FooOwner, start) }
//	func TestSimulationRandom(t *testing.T) { simulation.TestRandomSequences(t, footest.FooOwner, start) }
//
// TestController runs each workload (a few steps of users) without faults and records the
// injection points: the controller's calls and the events that it receives. It then runs
// the workload once for each injection point and each fault that can happen there: a
// crash, an error, a lost or late answer, a stale cache, a second controller, an
// admission policy. Each of these runs has injection points of its own. At those that
// come after the fault, TestController injects a second one: in a sample of all pairs,
// or in all. TestRandomSequences lets rapid choose the steps and the faults.
//
// Each run must end in the same state as the run without faults, and the controller must
// then make no calls during several resyncs. Each write is checked when it is stored: it
// changes something; it changes only owned fields, and only in children that a live Foo
// controls; it deletes no child before its successor exists; it is not refused because of
// the controller's own last write. Each transition of
// Ready has one event, and no Foo reports Ready before it is ready (test/oracle). None of
// these checks uses the code under test.
//
// The same holds for two faults. What they allow together follows from the run: the
// cluster comes to rest after the last fault; while two controllers are at work of which
// one has not been shown a change, each may replace the status that the other wrote; and
// a transition has no event if its answer was lost and another controller had written the
// next one meanwhile.
//
// The simulation does not cover three faults in one run, except in random sequences, nor
// behavior in which a real API server differs (test/e2e).
//
// The kinds of children are the rows of footest.Kinds. To add a kind, add a row: the
// clientsets serve each resource that has one, and workloads, faults and rules are made
// for each. To test another controller of Foos, pass another start function. To test the
// controller of another kind than Foos, pass another footest.OwnerRow.
package simulation
