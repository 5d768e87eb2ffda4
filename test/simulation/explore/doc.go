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

// Package explore runs a controller of Foos in every order in which a small world can go
// on, and checks each state. It is bounded model checking of the code itself.
//
// A test passes a function that makes the controller of the parts that it gets:
//
//	func TestExplore(t *testing.T) { explore.Test(t, footest.FooOwner, newExplored) }
//
// Read model.go (a state), steps.go and take.go (what can happen, and what it leads to),
// subject.go (how the controller is put into a state), key.go (when two states are the
// same), search.go and rest.go (the search, and the states of rest), and properties.go (what
// must be true). worlds.go has what is explored.
package explore
