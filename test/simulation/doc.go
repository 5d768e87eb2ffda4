// SPDX-License-Identifier: Apache-2.0

// Package simulation tests a controller of Foos under faults: each kind of fault, at each
// call of the controller and each event that it receives, and pairs of faults. README.md has
// the faults and the rules. It uses the clock of testing/synctest, so that a minute takes no
// time and runs are repeatable.
//
// A test passes a function that starts the controller with the simulation's clients:
//
//	func TestSimulation(t *testing.T)       { simulation.TestController(t, footest.FooOwner, start) }
//	func TestSimulationRandom(t *testing.T) { simulation.TestRandomSequences(t, footest.FooOwner, start) }
//
// None of the rules uses the code under test. The simulation does not cover three faults in
// one run, except in random sequences, nor behavior in which a real API server differs
// (test/e2e).
//
// The kinds of children are the rows of footest.Kinds. To add a kind, add a row: the
// clientsets serve each resource that has one, and workloads, faults and rules are made
// for each. To test another controller of Foos, pass another start function. To test the
// controller of another kind than Foos, pass another footest.OwnerRow.
package simulation
