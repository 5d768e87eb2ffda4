// SPDX-License-Identifier: Apache-2.0

// Package explore runs a controller of Foos in every order in which a small world can go
// on, and checks each state. It is bounded model checking of the code itself.
//
// A test passes a function that makes the controller of the parts that it gets:
//
//	func TestExplore(t *testing.T) { explore.Test(t, footest.FooOwner, newExplored) }
//
// Read model.go (a state), steps.go and take.go (what can happen, and what it leads to),
// subject.go (how the controller is put into a state), fingerprint.go (when two states are
// the same), search.go (the search), and properties.go
// (what must be true). worlds.go has what is explored. walk.go, replay.go and conformance.go
// compare the API server of this model with a real one.
package explore
